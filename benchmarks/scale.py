"""Time private fits on 1, 10 and 100 million generated ratings, and one on MovieLens 1M beside `implicit`.

    python benchmarks/scale.py --json                        one and ten million
    python benchmarks/scale.py --json --millions 1,10,100    and a hundred: 480,000 people, 17,770 items

Every size is written to a Parquet file, then read and fitted in a process of its own after a small fit has
compiled the loops. Noise comes from the operating system. `per_million` is seconds of reading and fitting
together for each million ratings, `growth` the most expensive size over the cheapest, `peak_mb` the most
memory the process held. `ratio` is the median fit on MovieLens 1M (or generated ratings of its size) over the
median of `implicit`'s non-private alternating least squares with 64 factors on the same ratings; the two
alternate. On a shared machine compare `cpu_seconds`, which count all threads.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import harness
import numpy as np
from als import fit_theirs

FACTORS, ITERATIONS = 64, 15


def estimator(epsilon: float):
    from discreet.models.user_factorization.estimator import UserFactorization

    return UserFactorization(epsilon=epsilon, delta=1e-6)


def warm_up(epsilon: float) -> None:
    """Compile every loop: with noise, and on the way that finds factors."""
    from discreet.testing.large_data import LargeShape, large

    small = large(LargeShape(n_users=500, n_items=300, n_ratings=20_000))
    estimator(epsilon).fit(small)
    estimator(np.inf).fit(small)


def fit_file(path: Path, epsilon: float, toy: bool) -> dict[str, object]:
    """Read a file and fit it."""
    from discreet.data.reading.readers import read

    if not toy:
        warm_up(epsilon)
    before = [time.perf_counter(), time.process_time()]
    data = read(path, low=1, high=5, step=1)
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
        "decisions": model.scorer.explain(),
    }


def fit_ours(epsilon: float, toy: bool) -> dict[str, float]:
    if not toy:
        warm_up(epsilon)
    return _timed(estimator(epsilon).fit, harness.ratings("movielens-1m", toy=toy))


def fit_peer(seed: int, toy: bool) -> dict[str, float]:
    data = harness.ratings("movielens-1m", toy=toy)
    clicks = data.with_values(np.ones(data.n_ratings, dtype=np.float32))
    fit_theirs(clicks.select_users(np.arange(20)), FACTORS, 1, seed)
    return _timed(fit_theirs, clicks, FACTORS, 1 if toy else ITERATIONS, seed)


def _timed(fit, *arguments) -> dict[str, float]:
    start, cpu = time.perf_counter(), time.process_time()
    fit(*arguments)
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}


def write(path: Path, ratings: int) -> None:
    from discreet.testing.large_data import LargeShape, write_large

    write_large(path, LargeShape.of(ratings))


def sizes(millions: list[float], epsilon: float, folder: str | None, toy: bool) -> list[dict[str, object]]:
    found = []
    for size in millions:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "ratings.parquet"
            harness.in_own_process(write, path, round(size * 1e6), toy=toy)
            found.append(harness.in_own_process(fit_file, path, epsilon, toy, toy=toy))
    return found


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", default="1,10", help="how many million ratings, separated by commas")
    parser.add_argument("--epsilon", type=float, default=5.0, help="5 finds factors at every size")
    parser.add_argument("--peer-epsilon", type=float, default=20.0, help="for the fit beside the peer")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", help="where to write the files; a temporary folder by default")
    options = harness.options(parser, toy={"millions": "0.02", "repeat": 1})
    harness.use_threads(options.threads, toy=options.toy)
    millions = [float(size) for size in options.millions.split(",")]
    found = sizes(millions, options.epsilon, options.folder, options.toy)
    growth = {
        key: max(one[key] for one in found) / min(one[key] for one in found)
        for key in ("per_million", "cpu_per_million", "fit_cpu_per_million")
    }
    beside = beside_peer(options.peer_epsilon, options.repeat, options.toy)
    result = {"benchmark": "scale", "peer": "implicit", **beside, "growth": growth, "sizes": found}
    harness.tell(result, options.json, show)


def show(result: dict[str, object]) -> None:
    for one in result["sizes"]:
        print(
            f"{one['ratings']:,} ratings: read {one['read_seconds']:.1f} s, fit {one['fit_seconds']:.1f} s, "
            f"{one['per_million']:.2f} s a million ({one['cpu_per_million']:.2f} s of processor), "
            f"peak {one['peak_mb']:,.0f} MB"
        )
    growth = result["growth"]["per_million"]
    print(f"growth {growth:.2f}; MovieLens 1M against implicit: {result['ratio']:.2f}")


if __name__ == "__main__":
    main()
