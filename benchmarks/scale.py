"""Time private fits on 1, 10 and 100 million generated ratings, and one on MovieLens 1M beside `implicit`.

    python benchmarks/scale.py --json                        one and ten million
    python benchmarks/scale.py --json --millions 1,10,100    and a hundred: 480,000 people, 17,770 items
    python benchmarks/scale.py --json --times --beside ../v0.1/src --repeat 0

Every size is written to a Parquet file, with `--times` in no order of time, then read and fitted in a process
of its own after a small fit has compiled the loops. `--beside` names the source folder of another version,
which reads and fits the same files in the same run (`beside` in the result). Noise comes from the operating
system. `per_million` is seconds of reading and fitting together for each million ratings, `growth` the most
expensive size over the cheapest, `peak_mb` the most memory the process held. `ratio` is the median fit on
MovieLens 1M (or generated ratings of its size) over the median of `implicit`'s non-private alternating least
squares with 64 factors on the same ratings; the two alternate, `--repeat` times. On a shared machine compare
`cpu_seconds`, which count all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
import numpy as np

FACTORS, ITERATIONS = 64, 15


def estimator(epsilon: float):
    import discreet

    return discreet.UserFactorization(epsilon=epsilon, delta=1e-6)


def warm_up(data, epsilon: float) -> None:
    """Compile every loop: with noise, and on the way that finds factors."""
    estimator(epsilon).fit(data)
    estimator(np.inf).fit(data)


def fit_file(path: Path, small: Path, epsilon: float) -> dict[str, object]:
    """Read a file and fit it, after a small file of the same kind; earlier versions know all this, too."""
    import discreet

    warm_up(discreet.read(small, low=1, high=5, step=1), epsilon)
    before = [time.perf_counter(), time.process_time()]
    data = discreet.read(path, low=1, high=5, step=1)
    between = [time.perf_counter(), time.process_time()]
    model = estimator(epsilon).fit(data)
    after = [time.perf_counter(), time.process_time()]
    millions = data.n_ratings / 1e6
    return {
        "ratings": data.n_ratings,
        "people": data.n_users,
        "items": data.n_items,
        "read_seconds": between[0] - before[0],
        "fit_seconds": after[0] - between[0],
        "cpu_seconds": after[1] - before[1],
        "fit_cpu_seconds": after[1] - between[1],
        "per_million": (after[0] - before[0]) / millions,
        "cpu_per_million": (after[1] - before[1]) / millions,
        "fit_cpu_per_million": (after[1] - between[1]) / millions,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "decisions": getattr(model.scorer, "explain", dict)(),
    }


def fit_beside(source: str, path: Path, small: Path, epsilon: float) -> dict[str, object]:
    """Do the same with the version in another source folder."""
    command = [
        sys.executable,
        __file__,
        "--file",
        str(path),
        "--small",
        str(small),
        "--epsilon",
        str(epsilon),
    ]
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def fit_ours(epsilon: float, toy: bool) -> dict[str, float]:
    if not toy:
        from large_data import LargeShape, large

        warm_up(large(LargeShape(n_users=500, n_items=300, n_ratings=20_000)), epsilon)
    return _timed(estimator(epsilon).fit, harness.ratings("movielens-1m", toy=toy))


def fit_peer(seed: int, toy: bool) -> dict[str, float]:
    from als import fit_theirs

    data = harness.ratings("movielens-1m", toy=toy)
    clicks = data.with_values(np.ones(data.n_ratings, dtype=np.float32))
    fit_theirs(clicks.select_users(np.arange(20)), FACTORS, 1, seed)
    return _timed(fit_theirs, clicks, FACTORS, 1 if toy else ITERATIONS, seed)


def _timed(fit, *arguments) -> dict[str, float]:
    start, cpu = time.perf_counter(), time.process_time()
    fit(*arguments)
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}


def write(path: Path, ratings: int, times: bool) -> None:
    from large_data import LargeShape, write_large

    write_large(path, LargeShape.of(ratings), times=times)


def sizes(options: argparse.Namespace, toy: bool) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return what every size takes, and what it takes the other version, if there is one."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(options.folder or place)
        small = written(folder, 1_500 if toy else 20_000, options.times, toy)
        for size in map(float, options.millions.split(",")):
            path = written(folder, round(size * 1e6), options.times, toy)
            if options.beside and size <= options.beside_most:
                theirs.append(fit_beside(options.beside, path, small, options.epsilon))
            ours.append(harness.in_own_process(fit_file, path, small, options.epsilon, toy=toy))
            if not options.folder:
                path.unlink()
    return ours, theirs


def written(folder: Path, ratings: int, times: bool, toy: bool) -> Path:
    """Return a file of so many ratings, written if it is not there."""
    path = folder / f"{'timed' if times else 'plain'}-{ratings}.parquet"
    if not path.exists():
        harness.in_own_process(write, path, ratings, times, toy=toy)
    return path


def beside_peer(epsilon: float, repeat: int, toy: bool) -> dict[str, object]:
    runs: dict[str, list[dict[str, float]]] = {"ours": [], "implicit": []}
    for seed in range(repeat):
        runs["implicit"].append(harness.in_own_process(fit_peer, seed, toy, toy=toy))
        runs["ours"].append(harness.in_own_process(fit_ours, epsilon, toy, toy=toy))
    middle = {
        what: {side: statistics.median(run[what] for run in done) for side, done in runs.items()}
        for what in ("seconds", "cpu_seconds")
    }
    return {
        "ratio": middle["seconds"]["ours"] / middle["seconds"]["implicit"],
        "cpu_ratio": middle["cpu_seconds"]["ours"] / middle["cpu_seconds"]["implicit"],
        **middle,
    }


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"millions": "0.02", "repeat": 1},
        millions=harness.option(default="1,10", help="how many million ratings, separated by commas"),
        times=harness.flag("generate times, too"),
        beside=harness.option(help="the source folder of another version, for the same files"),
        beside_most=harness.option(type=float, default=np.inf, help="its most million ratings"),
        epsilon=harness.option(type=float, default=5.0, help="5 finds factors at every size"),
        peer_epsilon=harness.option(type=float, default=20.0, help="for the fit beside the peer"),
        repeat=harness.option(type=int, default=3, help="how often the peer is timed; 0 leaves it out"),
        threads=2,
        folder=harness.option(help="where files stay and are found again; a temporary one by default"),
        file=harness.option(type=Path, help=argparse.SUPPRESS),
        small=harness.option(type=Path, help=argparse.SUPPRESS),
    )
    if options.file:
        print(json.dumps(fit_file(options.file, options.small, options.epsilon)))
        return
    harness.use_threads(options.threads, toy=options.toy)
    found, theirs = sizes(options, options.toy)
    growth = {
        key: max(one[key] for one in found) / min(one[key] for one in found)
        for key in ("per_million", "cpu_per_million", "fit_cpu_per_million")
    }
    peer = beside_peer(options.peer_epsilon, options.repeat, options.toy) if options.repeat else {}
    result = {"benchmark": "scale", "peer": "implicit", **peer, "growth": growth, "sizes": found}
    harness.tell(result | ({"beside": theirs} if theirs else {}), options)


if __name__ == "__main__":
    main()
