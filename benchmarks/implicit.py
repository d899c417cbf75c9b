"""Time a private sweep of `implicit-objective` beside a sweep of the `implicit` package, and its growth.

    python benchmarks/implicit.py --json        MovieLens 1M if it is on this machine, else generated choices

A sweep takes people's rows and item vectors of 64 factors to new item factors: ours computes profiles, sums
the shared Gram and every item's linear term exactly, adds Gaussian noise and solves all items; theirs is one
iteration of alternating least squares (users, then items). Both use the same number of threads; runs
alternate. `ratio` is the median of our seconds over the median of theirs. `growth` holds CPU seconds of a
sweep of ours for 1, 2, 4 and 8 million choices (8 factors; people and items grow alike), and of the printed
Gram matrices by set difference: each item's Gram of the people who did not choose it, which grow with people
times items (timed on every fiftieth item and multiplied).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from fractions import Fraction

import harness
import numpy as np

FACTORS = 64
GROWTH_FACTORS = 8


def load(toy: bool):
    """Return MovieLens 1M as choices if it is here, else generated choices of about its size."""
    data = harness.ratings("movielens-1m", toy=toy)
    return data.with_values(np.ones(data.n_ratings, dtype=np.float32))


def generated(choices: int):
    """Return about this many choices, about a hundred a person, of half as many items as people."""
    from discreet.data.facts import PublicFacts
    from discreet.data.interactions import Interactions

    people = choices // 100
    items = people // 2
    draw = np.random.default_rng(choices)
    drawn = (items * draw.uniform(size=choices) ** 2).astype(np.int64)
    cells = np.unique(draw.integers(people, size=choices) * items + drawn)
    return Interactions.from_arrays(
        cells // items,
        cells % items,
        facts=PublicFacts(n_items=items, low=1, high=1),
        name=f"generated {choices}",
    )


def sweeper(data, factors: int = FACTORS):
    """Return a function that runs one private sweep."""
    from discreet.core.randomness import PrivacyRandom
    from discreet.papers.dpimf import item_solves
    from discreet.papers.dpimf.implicit_objective import VOTES, ImplicitObjective
    from discreet.privacy.session import Session
    from discreet.statistics import profiles as party

    estimator = ImplicitObjective(epsilon=5.0, delta=1e-5)
    random = PrivacyRandom.simulate(0)

    def metered():
        return Session.open(data, estimator.promise(data.facts), random).gaussian()

    votes = party.ProfileVotes(n_items=data.n_items, norm="l2")
    favor = item_solves.read_votes(*metered().release(votes, VOTES))
    vectors = np.random.default_rng(0).standard_normal((data.n_items, factors))
    profiles = party.Profiles.of(
        vectors,
        np.ones(data.n_items),
        center=np.zeros(factors),
        scale=np.ones(factors),
        clip=float(np.sqrt(factors + 2)),
    )
    return lambda: estimator.sweep(metered().split(Fraction(1, 2))[0], profiles, favor)


def their_sweeper(data):
    """Return a function that runs one iteration of the `implicit` package."""
    from implicit.als import AlternatingLeastSquares

    threads = int(os.environ.get("NUMBA_NUM_THREADS", 1))
    model = AlternatingLeastSquares(
        factors=FACTORS, iterations=1, regularization=1.0, num_threads=threads, random_state=0, use_gpu=False
    )
    matrix = data.to_scipy().tocsr().astype(np.float32)
    model.fit(matrix, show_progress=False)

    def sweep():
        from implicit.cpu._als import least_squares_cg

        least_squares_cg(matrix, model.user_factors, model.item_factors, 1.0, num_threads=threads, cg_steps=3)
        least_squares_cg(turned, model.item_factors, model.user_factors, 1.0, num_threads=threads, cg_steps=3)

    turned = matrix.T.tocsr()
    return sweep


def by_set_difference(data, factors: int = GROWTH_FACTORS) -> float:
    """Return the seconds that Gram matrices of those who did not choose an item take, item by item."""
    users = np.random.default_rng(1).standard_normal((data.n_users, factors))
    turned = data.by_item
    start = time.process_time()
    tried = range(0, data.n_items, 50)
    for item in tried:
        out = np.ones(data.n_users, dtype=np.bool_)
        out[turned.users[turned.indptr[item] : turned.indptr[item + 1]]] = False
        users[out].T @ users[out]
    return (time.process_time() - start) * data.n_items / len(tried)


def timed(sweep, clock=time.perf_counter) -> float:
    start = clock()
    sweep()
    return clock() - start


def compare(runs: int, toy: bool) -> dict[str, object]:
    """Alternate sweeps of both sides."""
    data = load(toy)
    ours, theirs = sweeper(data), their_sweeper(data)
    timed(ours), timed(theirs)
    pairs = [(timed(ours), timed(theirs)) for _ in range(runs)]
    seconds = [statistics.median(side) for side in zip(*pairs, strict=True)]
    return {
        "data": data.name,
        "choices": data.n_ratings,
        "factors": FACTORS,
        "seconds": {"ours": seconds[0], "implicit": seconds[1]},
        "ratio": seconds[0] / seconds[1],
        "runs": runs,
    }


def growth(sizes: list[int]) -> list[dict[str, float]]:
    """Time one sweep, and the printed way, for growing data."""
    rows = []
    for size in sizes:
        data = generated(size)
        sweep = sweeper(data, GROWTH_FACTORS)
        rows.append(
            {
                "choices": data.n_ratings,
                "cpu_seconds": min(timed(sweep, time.process_time) for _ in range(3)),
                "set_difference_cpu_seconds": by_set_difference(data),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--millions", type=float, nargs="*", default=[1, 2, 4, 8])
    options = harness.options(parser, toy={"runs": 1, "millions": [0.005]})
    if not options.toy:
        os.environ.setdefault("NUMBA_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    sizes = [round(1e6 * size) for size in options.millions]
    result = {**compare(options.runs, options.toy), "growth": growth(sizes)}
    harness.tell(result, options.json, lambda found: print(json.dumps(found, indent=1)))


if __name__ == "__main__":
    main()
