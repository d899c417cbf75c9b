"""Time alternating least squares: on clicks against `implicit`, on ratings also against the private fit.

    python benchmarks/als.py --json                 clicks of MovieLens 1M, or generated ones
    python benchmarks/als.py --json --millions 23   generated ratings: `als`, the private fit and `implicit`

Clicks: both minimize the same loss with 64 factors, 15 iterations and 3 conjugate-gradient steps a row, on
the same number of threads, from the ratings by person to factors of people and items. Run r of both starts
from seed r. `ratio` is the median of our seconds over the median of theirs. Compiling happens once for a
machine and is kept on disk; it is timed apart with an empty cache.

Ratings: `als` and `user-factorization` (epsilon 5) with default settings, `implicit` as above, after a small
fit that compiles the loops. `ratios` are those of `als` to the others, in seconds and in processor seconds;
compare the latter on a shared machine. Every run has a process of its own, and the sides alternate.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from dataclasses import dataclass

import harness
import numpy as np

ALPHA = 1.0  # a click counts 1 + ALPHA, an empty cell 1
REGULARIZATION = 1.0
STEPS = 3


@dataclass(frozen=True)
class Factors:
    """Score with factors of people and items as they came out of training."""

    users: np.ndarray
    items: np.ndarray
    above: None = None

    def predict(self, histories, rows, items):
        """Return the scores of single cells."""
        return np.einsum("ij,ij->i", self.users[rows], self.items[items])

    def worth(self, histories, rows):
        """Return a score for every item."""
        return self.users[rows] @ self.items.T


def fit_ours(clicks, factors: int, iterations: int, seed: int) -> Factors:
    from discreet.core.arrays import Rows
    from discreet.solvers.als import Confidence, implicit_als

    turned = clicks.by_item
    model = implicit_als(
        Rows(clicks.indptr, clicks.items, clicks.values),
        Rows(turned.indptr, turned.users, turned.values),
        confidence=Confidence(alpha=ALPHA, regularization=REGULARIZATION),
        factors=factors,
        iterations=iterations,
        steps=STEPS,
        seed=seed,
    )
    return Factors(model.user_factors, model.item_factors)


def fit_theirs(clicks, factors: int, iterations: int, seed: int) -> Factors:
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=factors,
        iterations=iterations,
        alpha=1 + ALPHA,
        regularization=REGULARIZATION,
        num_threads=int(os.environ.get("NUMBA_NUM_THREADS", 1)),
        random_state=seed,
        use_gpu=False,
    )
    model.cg_steps = STEPS
    model.fit(clicks.to_scipy(), show_progress=False)
    return Factors(model.user_factors, model.item_factors)


SIDES = {"ours": fit_ours, "implicit": fit_theirs}


def run(side: str, factors: int, iterations: int, seed: int, toy: bool) -> dict[str, object]:
    """Warm up on a small part, then time one fit and score it."""
    from discreet.data.splits import leave_one_out
    from discreet.evaluation import measure

    split = leave_one_out(harness.ratings("movielens-1m", toy=toy))
    clicks = split.train.with_values(np.ones(split.train.n_ratings, dtype=np.float32))
    warm_up, first = _timed(SIDES[side], clicks.select_users(np.arange(20)), factors, 1, seed)
    assert warm_up.items.shape[1] == factors
    model, seconds = _timed(SIDES[side], clicks, factors, iterations, seed)
    quality = measure(model, split.train, split.test, ["ndcg@10", "hr@10"])
    size = {"people": clicks.n_users, "items": clicks.n_items, "clicks": clicks.n_ratings}
    return {"seconds": seconds, "first_call": first, "data": clicks.name, **size, **quality}


def _timed(fit, *arguments):
    start = time.perf_counter()
    model = fit(*arguments)
    return model, time.perf_counter() - start


def fit_bar(data) -> None:
    from discreet.models.baselines.als import Als

    Als().fit(data)


def fit_private(data) -> None:
    from discreet.models.user_factorization.estimator import UserFactorization

    UserFactorization(epsilon=5.0, delta=1e-6).fit(data)


def fit_clicks(data) -> None:
    clicks = data.with_values(np.ones(data.n_ratings, dtype=np.float32))
    fit_theirs(clicks, 64, 15, 0)


RATING_SIDES = {"als": fit_bar, "user-factorization": fit_private, "implicit": fit_clicks}


def run_ratings(side: str, ratings: int, toy: bool) -> dict[str, float]:
    """Compile on a small part, then time one fit of generated ratings."""
    from large_data import LargeShape, large

    data = large(LargeShape.of(ratings))
    fit = RATING_SIDES[side]
    if not toy:
        fit(large(LargeShape(n_users=500, n_items=300, n_ratings=20_000)))
    start, cpu = time.perf_counter(), time.process_time()
    fit(data)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def compare_ratings(millions: float, repeat: int, toy: bool) -> dict[str, object]:
    """Return the medians of every side, and the ratios of `als` to the others."""
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in RATING_SIDES}
    for _ in range(repeat):
        for side in RATING_SIDES:
            found = harness.in_own_process(run_ratings, side, round(millions * 1e6), toy, toy=toy)
            runs[side].append(found)
    middle = {
        what: {side: statistics.median(run[what] for run in done) for side, done in runs.items()}
        for what in ("seconds", "cpu_seconds", "peak_mb")
    }
    ratios = {
        what: {side: middle[what]["als"] / middle[what][side] for side in RATING_SIDES if side != "als"}
        for what in ("seconds", "cpu_seconds")
    }
    return {"benchmark": "als", "millions": millions, "ratios": ratios, **middle}


def compile_seconds(factors: int) -> float:
    """Return how long the first call takes when nothing has been compiled yet."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        first = harness.in_own_process(run, "ours", factors, 1, 0, False)["first_call"]
        del os.environ["NUMBA_CACHE_DIR"]
    return first


def compare(factors: int, iterations: int, repeat: int, threads: int, toy: bool) -> dict[str, object]:
    compiling = None if toy else compile_seconds(factors)
    runs: dict[str, list[dict[str, object]]] = {side: [] for side in SIDES}
    for seed in range(repeat):
        for side in SIDES:
            runs[side].append(harness.in_own_process(run, side, factors, iterations, seed, toy, toy=toy))
    seconds = {side: statistics.median(run["seconds"] for run in done) for side, done in runs.items()}
    quality = {
        metric: {side: statistics.mean(run[metric] for run in done) for side, done in runs.items()}
        for metric in ("ndcg@10", "hr@10")
    }
    return {
        "benchmark": "als",
        "peer": "implicit",
        "ratio": seconds["ours"] / seconds["implicit"],
        "seconds": seconds,
        "all_seconds": {side: [run["seconds"] for run in done] for side, done in runs.items()},
        **quality,
        "compile_seconds": compiling,
        "threads": threads,
        "factors": factors,
        "iterations": iterations,
        **{key: runs["ours"][0][key] for key in ("data", "people", "items", "clicks")},
    }


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"factors": 4, "iterations": 1, "repeat": 1},
        factors=64,
        iterations=15,
        repeat=3,
        threads=2,
        millions=harness.option(type=float, help="time ratings instead, so many million of them"),
    )
    harness.use_threads(options.threads, toy=options.toy)
    if options.millions:
        found = compare_ratings(options.millions, options.repeat, options.toy)
        harness.tell(found, options)
        return
    given = (options.factors, options.iterations, options.repeat, options.threads, options.toy)
    harness.tell(compare(*given), options)


if __name__ == "__main__":
    main()
