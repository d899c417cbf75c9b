"""Time a round of private Frank-Wolfe against the bare sparse products it cannot do without.

    python benchmarks/frank_wolfe.py --json            1, 4, 10 and 40 million generated ratings
    python benchmarks/frank_wolfe.py --json --quick    0.3 and 1 million

A round of Oja's method has every person compute the own residuals, scales the rows, multiplies a vector with
their second moment 8 times, adds noise each time, and sizes the direction. The peer does the 8 products
alone: scipy's `A @ v` and `A.T @ u` over the same ratings in single precision. Both run on one thread and are
measured in seconds of the processor, so that a busy machine does not matter. `ratio` is the median over the
sizes of our seconds over theirs; `later_ratio` is the same for a round that has three directions before it.
`linear` is the time a rating at the largest size over that at the smallest. `wide` is one private fit on a
catalog of 1,000,000 items in a process of its own: how far its memory rose above the ratings, in MB and in
vectors of a number an item.
"""

from __future__ import annotations

import os
import resource
import statistics
import time

import harness
import numpy as np

STEPS = 8
REPEAT = 3
WIDE_ITEMS, TOY_WIDE_ITEMS = 1_000_000, 7_000


def metered(data, random):
    """Return a session with the whole budget of a fit."""
    from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe
    from discreet.privacy.session import Session

    return Session.open(data, FrankWolfe(epsilon=1.0).promise(data.facts), random).gaussian()


def one_round(data, view, look, factors, random) -> None:
    """Do what a fit does between two directions."""
    from discreet.papers.frank_wolfe.directions import item_factor
    from discreet.papers.frank_wolfe.frank_wolfe import oja_direction
    from discreet.solvers.spectrum import random_signs

    start = look.counts * random_signs(data.n_items, "benchmark")
    item_factor(oja_direction(metered(data, random), view.scaling(factors), start, STEPS), look)


def bare_products(matrix, vector) -> None:
    """Multiply a vector with the second moment of the ratings, again and again."""
    turned = matrix.T
    for _ in range(STEPS):
        vector = turned @ (matrix @ vector)
        vector /= np.linalg.norm(vector)


def fastest(work, *arguments) -> float:
    seconds = []
    for _ in range(REPEAT):
        start = time.process_time()
        work(*arguments)
        seconds.append(time.process_time() - start)
    return min(seconds)


def time_size(n_ratings: int) -> dict[str, float]:
    from large_data import LargeShape, large

    from discreet.core.progress import silent
    from discreet.core.randomness import PrivacyRandom
    from discreet.papers.frank_wolfe.directions import centered

    data, random = large(LargeShape.of(n_ratings)), PrivacyRandom.simulate(0)
    matrix = data.to_scipy()
    view, look = centered(metered(data, random), silent)
    ours = fastest(one_round, data, view, look, np.zeros((data.n_items, 0)), random)
    later = fastest(one_round, data, view, look, np.full((data.n_items, 3), 0.1), random)
    bare = fastest(bare_products, matrix, np.ones(data.n_items, dtype=np.float32))
    size = {"ratings": n_ratings, "people": data.n_users, "items": data.n_items}
    return {
        **size,
        "round_seconds": ours,
        "bare_seconds": bare,
        "ratio": ours / bare,
        "later_ratio": later / bare,
    }


def fit_wide(wide_items: int, people: int) -> dict[str, float]:
    """Fit on a catalog so wide that a matrix of pairs would take 8 TB."""
    from discreet.core.randomness import PrivacyRandom, experiment_generator
    from discreet.data.datasets.synthetic import numbered
    from discreet.data.facts import PublicFacts
    from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe

    draw = experiment_generator(0, "wide")
    per_user = 20
    spread = np.sort(draw.integers(0, wide_items - per_user, (people, per_user)), axis=1)
    items = (spread + np.arange(per_user)).astype(np.int32)
    stars = draw.integers(1, 6, items.size).astype(np.float32)
    facts = PublicFacts(n_items=wide_items, low=1, high=5, step=1, n_users=people)
    data = numbered(np.full(people, per_user), items.reshape(-1), stars, facts=facts, name="wide")
    small = data.select_users(np.arange(50)).select_items(np.arange(6_000))
    FrankWolfe(epsilon=1.0, rounds=1, solver="oja").fit(small, random=PrivacyRandom.simulate(0))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    FrankWolfe(epsilon=1.0, rounds=1, steps=STEPS).fit(data, random=PrivacyRandom.simulate(0))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rise = (peak - before) / 1024
    return {
        "items": wide_items,
        "ratings": data.n_ratings,
        "seconds": seconds,
        "peak_mb": peak / 1024,
        "fit_mb": rise,
        "vectors_of_items": rise * 2**20 / (8 * wide_items),
    }


def compare(sizes: list[int], toy: bool) -> dict[str, object]:
    # First of all: a process starts with the largest memory that its parent ever had.
    size = (TOY_WIDE_ITEMS, 60) if toy else (WIDE_ITEMS, 100_000)
    wide = harness.in_own_process(fit_wide, *size, toy=toy)
    if not toy:
        time_size(20_000)  # compiling is not what is measured
    runs = [time_size(size) for size in sizes]
    per_rating = [run["round_seconds"] / run["ratings"] for run in runs]
    return {
        "benchmark": "frank_wolfe",
        "peer": "scipy sparse products",
        "ratio": statistics.median(run["ratio"] for run in runs),
        "later_ratio": statistics.median(run["later_ratio"] for run in runs),
        "linear": per_rating[-1] / per_rating[0],
        "sizes": runs,
        "wide": wide,
        "threads": 1,
    }


def main() -> None:
    options = harness.options(__doc__, quick=harness.flag("up to a million ratings"))
    if not options.toy:
        os.environ.setdefault("NUMBA_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    millions = [0.02] if options.toy else [0.3, 1] if options.quick else [1, 4, 10, 40]
    result = compare([round(1e6 * size) for size in millions], options.toy)
    harness.tell(result, options)


if __name__ == "__main__":
    main()
