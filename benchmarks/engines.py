"""Fit the same Parquet file on every engine: processor time of all processes, memory, and the model's digest.

    python benchmarks/engines.py --json                                       one million ratings
    python benchmarks/engines.py --json --millions 1,10 --engines memory,shards,duckdb
    python benchmarks/engines.py --json --engines spark --folder kept         keep the generated files

The shape is that of a film service: 480,000 users and 17,770 items at a hundred million ratings. Each fit
starts from the file, so reading and grouping by user count. It runs in a session of its own: `cpu_seconds`
counts every process in that session, the JVM and the workers, too, and `peak_mb` is the most memory that all
of them had at a time. Both are sampled five times a second. A small fit in memory compiles kernels first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness

ENGINES = ("memory", "shards", "dask", "duckdb", "spark")


def generate(file: Path, n_ratings: int) -> None:
    """Write a Parquet file of ratings in no order."""
    import numpy as np
    import polars as pl

    from discreet.testing.large_data import LargeShape, large

    data = large(LargeShape.of(n_ratings), seed=1)
    order = np.random.default_rng(0).permutation(data.n_ratings)
    pl.DataFrame(
        {"user": data.rows()[order], "item": data.items[order], "rating": data.values[order]}
    ).write_parquet(file)


def digest_on(engine: str, file: Path) -> str:
    """Return the digest of the model that an engine learns from a file; the noise is simulated."""
    import hashlib

    import numpy as np

    from discreet.cli.options.declared import Reading
    from discreet.cli.options.sources import opened, plan_of
    from discreet.core.randomness import PrivacyRandom
    from discreet.models.user_factorization.estimator import UserFactorization
    from discreet.sources.sharding import make_shards

    reading = Reading(scale="1,5,1", people=100_000)

    def fitted(source: str, how: Reading, on: str | None) -> str:
        with opened(source, how, None, on, lambda *_: None) as data:
            model = UserFactorization(epsilon=1.0).fit(data, random=PrivacyRandom.simulate(1))
        total = hashlib.sha256()
        for name, array in sorted(model.scorer.arrays().items()):
            total.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return total.hexdigest()[:16]

    if engine == "memory":
        return fitted(str(file), reading, None)
    if engine == "duckdb":
        return fitted(f"SELECT * FROM read_parquet('{file}')", reading, f"duckdb:{database_at(file)}")
    if engine == "spark":
        return fitted(str(file), reading, "spark://local")
    reader, declared = plan_of(reading)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        make_shards([file], Path(folder) / "shards", reader=reader, name="rows", **declared)
        return fitted(str(Path(folder) / "shards"), Reading(), "dask://local" if engine == "dask" else None)


def database_at(file: Path) -> Path:
    """Return an empty database next to a file, through which the file is read."""
    import duckdb

    place = file.with_suffix(".duckdb")
    if not place.exists():
        duckdb.connect(str(place)).close()
    return place


def measured(engine: str, file: Path) -> dict[str, object]:
    """Fit in a session of its own, and count what all its processes took."""
    begun = time.monotonic()
    command = [sys.executable, __file__, "--one", engine, str(file)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    seconds: dict[int, float] = {}
    peak = 0.0
    while child.poll() is None:
        now = processes(child.pid)
        seconds |= {pid: spent for pid, (spent, _) in now.items()}
        peak = max(peak, sum(memory for _, memory in now.values()))
        time.sleep(0.2)
    if child.returncode or child.stdout is None:
        raise SystemExit(f"{engine} failed.")
    found = json.loads(child.stdout.read().splitlines()[-1])
    return {
        "cpu_seconds": round(sum(seconds.values()) - found["before"], 2),
        "peak_mb": round(peak),
        "seconds": round(time.monotonic() - begun, 1),
        "digest": found["digest"],
    }


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


def one(engine: str, file: Path, *, small: Path | None = None) -> dict[str, object]:
    """Fit on an engine, after a small fit that compiles kernels; `before` is what that took."""
    if small is not None:
        digest_on("memory", small)
    before = time.process_time()
    digest = digest_on(engine, file)
    own = {"cpu_seconds": time.process_time() - before, "peak_mb": peak_mb()}
    return {"digest": digest, "before": before, **own}


def peak_mb() -> float:
    """Return the most memory that this process had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", default="1")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--folder", type=Path, help="where generated files are kept")
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "FILE"), help=argparse.SUPPRESS)
    options = harness.options(parser, toy={"millions": "0.002", "engines": "memory,shards"})
    harness.use_threads(1, toy=options.toy)
    if options.one:
        engine, file = options.one[0], Path(options.one[1])
        print(json.dumps(one(engine, file, small=file.with_name("small.parquet"))))
        return
    with tempfile.TemporaryDirectory() as aside:
        folder = options.folder or Path(aside)
        folder.mkdir(exist_ok=True)
        generate(folder / "small.parquet", 2_000)
        table: dict[str, dict[str, dict[str, object]]] = {}
        for millions in options.millions.split(","):
            file = folder / f"{millions}.parquet"
            if not file.exists():
                generate(file, round(float(millions) * 1e6))
            for engine in options.engines.split(","):
                found = one(engine, file) if options.toy else measured(engine, file)
                table.setdefault(engine, {})[millions] = found
    harness.tell({"engines": table}, options.json, show)


def show(found: dict[str, dict[str, dict[str, dict[str, object]]]]) -> None:
    for engine, sizes in found["engines"].items():
        for millions, row in sizes.items():
            print(engine, millions, *(f"{name}={value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
