"""Fit the same Parquet files on every engine: processor time of all processes, memory, the model's digest.

    python benchmarks/engines.py --json                                       one million ratings
    python benchmarks/engines.py --json --millions 1,10 --engines memory,shards,duckdb
    python benchmarks/engines.py --json --millions 100,1000 --engines shards --folder kept

The shape is that of a film service: 480,000 users and 17,770 items at a hundred million ratings, 2 million
and 100,000 at a billion. The files are a log in the order of time, with 40 factors and a long tail. Each fit
starts from the files, so reading and grouping by user count; fits from the same shards share the grouping,
which counts for each of them. `--folder` keeps generated files and shards. A fit runs in a session of its
own: `cpu_seconds` counts every process in that session, the JVM and the workers, too, and `peak_mb` is the
most memory that all of them had at a time. Both are sampled five times a second. A small fit in memory
compiles kernels first. `passes` are over all shards. `exponents` are those of processor time from each size
to the next. In `engines` are the fits for the first purpose, by engine and millions of ratings.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import harness

ENGINES = ("memory", "shards", "dask", "duckdb", "spark")
PURPOSES = ("lists", "ratings")
# Ratings in the file on which kernels are compiled. With noise, it is too small to show factors.
SMALL = 100_000


def generate(folder: Path, n_ratings: int) -> None:
    """Write a folder of Parquet files of ratings in the order of time."""
    from large_data import LargeShape, write_log

    write_log(folder, LargeShape.of(n_ratings), seed=1)


def declared_facts():
    """Return how all engines read the files."""
    from discreet.cli.options.declared import Reading

    return Reading(scale="1,5,1", people=2_000_000)


def group(files: Path) -> None:
    """Group the ratings by user, into shards next to the files."""
    from discreet.cli.options.declared import plan_of
    from discreet.sources.sharding import make_shards

    reader, declared = plan_of(declared_facts())
    make_shards([files], shards_of(files), reader=reader, name="rows", **declared)


def shards_of(files: Path) -> Path:
    return files.with_name(f"{files.name}-shards")


def fit_on(engine: str, files: Path, purpose: str, epsilon: float = 1.0) -> dict[str, object]:
    """Return the digest of the model that an engine learns from files; the noise is simulated."""
    import hashlib

    import numpy as np

    from discreet.cli.options.declared import Reading, opened
    from discreet.core.randomness import PrivacyRandom
    from discreet.models.user_factorization.estimator import UserFactorization

    from_shards, passes = engine in ("shards", "dask"), []
    source, on = str(shards_of(files) if from_shards else files), None
    if engine == "duckdb":
        source, on = f"SELECT * FROM read_parquet('{files}/*.parquet')", f"duckdb:{database_at(files)}"
    elif engine in ("dask", "spark"):
        on = f"{engine}://local"

    def show(what: str, done: int, of: int) -> None:
        passes.extend([what] * (what == "shards" and done == of))

    with opened(source, Reading() if from_shards else declared_facts(), None, on, show) as data:
        estimator = UserFactorization(epsilon=epsilon, purpose=purpose)
        model = estimator.fit(data, random=PrivacyRandom.simulate(1))
    total = hashlib.sha256()
    for name, array in sorted(model.scorer.arrays().items()):
        total.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return {"digest": total.hexdigest()[:16], "passes": len(passes), "decisions": model.scorer.explain()}


def database_at(file: Path) -> Path:
    """Return an empty database next to a file, through which the file is read."""
    import duckdb

    place = file.with_suffix(".duckdb")
    if not place.exists():
        duckdb.connect(str(place)).close()
    return place


def measured(*job: str) -> dict[str, object]:
    """Do a job in a session of its own, and count what all its processes took."""
    begun = time.monotonic()
    command = [sys.executable, __file__, "--one", *job]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    seconds: dict[int, float] = {}
    peak = 0.0
    while child.poll() is None:
        now = processes(child.pid)
        seconds |= {pid: spent for pid, (spent, _) in now.items()}
        peak = max(peak, sum(memory for _, memory in now.values()))
        time.sleep(0.2)
    if child.returncode or child.stdout is None:
        raise SystemExit(f"{' '.join(job)} failed.")
    found = json.loads(child.stdout.read().splitlines()[-1])
    counted = {"cpu_seconds": round(sum(seconds.values()) - found.pop("before"), 2), "peak_mb": round(peak)}
    return {**found, **counted, "seconds": round(time.monotonic() - begun, 1)}


def processes(session: int) -> dict[int, tuple[float, float]]:
    """Return processor seconds and megabytes of each process in a session."""
    tick, page, found = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE") / 1e6, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            spent = (int(fields[11]) + int(fields[12])) / tick
            found[int(place.parent.name)] = (spent, int(fields[21]) * page)
    return found


def one(engine: str, files: Path, purpose: str, *, small: Path | None = None) -> dict[str, object]:
    """Group files or fit on an engine, after small fits that compile kernels; `before` is what those took."""
    if small is not None:
        for epsilon in (1.0, math.inf):
            fit_on("memory", small, purpose if engine != "group" else PURPOSES[0], epsilon)
    before = time.process_time()
    found = group(files) if engine == "group" else fit_on(engine, files, purpose)
    return {
        **(found or {}),
        "before": before,
        "cpu_seconds": time.process_time() - before,
        "peak_mb": peak_mb(),
    }


def peak_mb() -> float:
    """Return the most memory that this process had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def compared(options: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    """Return a row for each engine, size and purpose."""

    def run(engine: str, files: Path, purpose: str = "") -> dict[str, object]:
        return one(engine, files, purpose) if options.toy else measured(engine, str(files), purpose)

    rows: list[dict[str, object]] = []
    for millions in options.millions.split(","):
        files, engines = folder / f"log-{millions}", options.engines.split(",")
        if not files.exists():
            generate(files, round(float(millions) * 1e6))
        grouping = grouped(run, files) if {"shards", "dask"} & {*engines} else None
        for purpose in options.purposes.split(","):
            first = len(rows)
            for engine in engines:
                row = run(engine, files, purpose)
                if engine in ("shards", "dask") and grouping is not None:
                    row["grouping_cpu_seconds"] = grouping["cpu_seconds"]
                    row["cpu_seconds"] += grouping["cpu_seconds"]
                    row["peak_mb"] = max(row["peak_mb"], grouping["peak_mb"])
                known = {"engine": engine, "millions": float(millions), "purpose": purpose}
                known["cpu_per_million"] = round(row["cpu_seconds"] / float(millions), 3)
                # One engine alone has nothing to be equal to.
                others = [other["digest"] == row["digest"] for other in rows[first:]]
                rows.append({**known, **row, "equal": all(others) if len(engines) > 1 else None})
                print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def grouped(run, files: Path) -> dict[str, object]:
    """Make shards, unless they are kept, and return what that took."""
    notes = files.with_name(f"{files.name}-grouping.json")
    if not notes.exists():
        notes.write_text(json.dumps(run("group", files)), encoding="utf8")
    return json.loads(notes.read_text(encoding="utf8"))


def by_engine(rows: list[dict[str, object]]) -> dict[str, dict[str, dict[str, object]]]:
    """Return the costs and the digest by engine and millions of ratings, of fits for the first purpose."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for row in rows:
        if row["purpose"] == rows[0]["purpose"]:
            kept = {name: row[name] for name in ("cpu_seconds", "peak_mb", "digest")}
            found.setdefault(str(row["engine"]), {})[f"{row['millions']:g}"] = kept
    return found


def exponents(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return how processor time grows from each size to the next, for each engine and purpose."""
    found = []
    for engine, purpose in dict.fromkeys((row["engine"], row["purpose"]) for row in rows):
        sizes = [row for row in rows if (row["engine"], row["purpose"]) == (engine, purpose)]
        for less, more in pairwise(sizes):
            grown = math.log(more["cpu_seconds"] / less["cpu_seconds"])
            power = grown / math.log(more["millions"] / less["millions"])
            found.append(
                {
                    "engine": engine,
                    "purpose": purpose,
                    "from": less["millions"],
                    "to": more["millions"],
                    "exponent": round(power, 2),
                }
            )
    return found


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"millions": "0.002,0.004", "engines": "memory,shards"},
        millions="1",
        engines=",".join(ENGINES),
        purposes=",".join(PURPOSES),
        folder=harness.option(type=Path, help="where generated files and shards are kept"),
        one=harness.option(nargs=3, metavar=("ENGINE", "FILES", "PURPOSE"), help=argparse.SUPPRESS),
    )
    harness.use_threads(1, toy=options.toy)
    if options.one:
        files = Path(options.one[1])
        print(json.dumps(one(options.one[0], files, options.one[2], small=files.with_name("small"))))
        return
    with tempfile.TemporaryDirectory() as aside:
        folder = options.folder or Path(aside)
        folder.mkdir(exist_ok=True)
        if not options.toy and not (folder / "small").exists():
            generate(folder / "small", SMALL)
        rows = compared(options, folder)
    found = {"engines": by_engine(rows), "rows": rows, "exponents": exponents(rows)}
    harness.tell(found, options)


if __name__ == "__main__":
    main()
