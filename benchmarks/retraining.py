"""Twelve monthly fits under one yearly budget: does starting from the last release pay?

    python benchmarks/retraining.py [--json] [--runs 2] [--dataset movielens-1m]

The ratings are cut by time into twelve parts of equal size. On hidden ratings of the last part three models
are compared, all under a yearly (5, 1e-6): the twelfth refit, which starts from the eleventh; the same fit
without earlier releases; and a fit with a twelfth of epsilon, which is what adding would allow.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import harness
import numpy as np

import discreet
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import random_split
from discreet.evaluation.scoring import measure
from discreet.planning.schedules import schedule

EPSILON, DELTA = 5.0, 1e-6


def months(data: Interactions, count: int) -> Iterator[Interactions]:
    """Yield the parts, each with the people who rated in it."""
    part = np.empty(data.n_ratings, dtype=np.int64)
    part[np.argsort(data.times, kind="stable")] = np.arange(data.n_ratings) * count // data.n_ratings
    for month in range(count):
        one = data.where(part == month)
        yield one.select_users(np.diff(one.indptr) > 0)


def run(data: Interactions, count: int, seed: int, folder: Path) -> dict[str, float]:
    """Return the RMSE of the three models on hidden ratings of the last part."""
    each = schedule(EPSILON, DELTA, count).per_release.epsilon
    *earlier, latest = months(data, count)
    split = random_split(latest, 0.1, seed)
    prior: str | None = None
    for month, part in enumerate([*earlier, split.train]):
        estimator = discreet.UserFactorization(epsilon=each, delta=DELTA, prior=prior)
        model = estimator.fit(part, random=PrivacyRandom.simulate(100 * seed + month))
        prior = str(folder / f"{seed}-{month}.discreet")
        model.save(prior)
    fresh = {
        "twelfth refit": model,
        "without earlier releases": _fit(split.train, each, seed),
        "a twelfth of epsilon": _fit(split.train, EPSILON / count, seed),
    }
    return {name: measure(one, split.train, split.test, ["rmse"])["rmse"] for name, one in fresh.items()}


def _fit(data: Interactions, epsilon: float, seed: int) -> discreet.FittedModel:
    estimator = discreet.UserFactorization(epsilon=epsilon, delta=DELTA)
    return estimator.fit(data, random=PrivacyRandom.simulate(100 * seed + 50))


def main() -> None:
    options = harness.options(
        __doc__, toy={"runs": 1, "months": 2}, runs=2, months=12, dataset="movielens-1m"
    )
    data = harness.ratings(options.dataset, toy=options.toy)
    with tempfile.TemporaryDirectory() as folder:
        runs = [run(data, options.months, seed, Path(folder)) for seed in range(options.runs)]
    found = {name: [one[name] for one in runs] for name in runs[0]}
    means = {name: statistics.fmean(values) for name, values in found.items()}
    ratio = means["twelfth refit"] / means["a twelfth of epsilon"]
    result = {"dataset": data.name, "months": options.months, "rmse": found, "ratio": ratio}
    harness.tell(result, options)


if __name__ == "__main__":
    main()
