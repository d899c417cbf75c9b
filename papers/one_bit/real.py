"""Figures 2 and 3: how often the sign of a held-out verdict is right, on ML-100K and on restaurants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from discreet.checks import FileError
from discreet.data.datasets import catalog
from discreet.data.splits import Split, given, random_split
from discreet.evaluation.scoring import measure
from discreet.models.one_bit.estimators import OneBitGradient, OneBitInput, OneBitObjective, OneBitOutput
from discreet.randomness import PrivacyRandom

KINDS = {
    "input": OneBitInput,
    "objective": OneBitObjective,
    "gradient": OneBitGradient,
    "output": OneBitOutput,
}


def movielens() -> Split | None:
    """Return the published split u1, or None where the data is not at hand."""
    try:
        data = catalog.load("movielens-100k")
        files = [catalog.split_file("movielens-100k", f"u1.{part}") for part in ("base", "test")]
    except FileError:
        return None
    return given(*files, name=data.name, facts=data.facts, catalog=data.catalog, people=data.users)


def restaurants(seed: int) -> Split | None:
    """Return a random 80/20 split of the restaurant ratings, or None where the data is not at hand."""
    try:
        return random_split(catalog.load("restaurant-consumer"), 0.2, seed)
    except FileError:
        return None


def accuracy(split: Split, method: str, epsilon: float, seed: int, link: str = "logistic") -> float:
    """Return the accuracy with the paper's radius; the threshold is the ratings' mean, as if it were free.

    The paper does this. It is NOT covered by any promise, so only the package's `papers/` does it.
    """
    mean = float(split.train.values.mean(dtype=np.float64))
    size = split.train.n_users * split.train.n_items
    settings = {"above": mean, "link": link, "radius": math.sqrt(size), "leveling": 0.0}
    kind = KINDS["input" if method == "clear" else method]
    model = kind(epsilon=epsilon, **settings).fit(split.train, random=PrivacyRandom.simulate(seed))
    return measure(model, split.train, split.test, "accuracy")["accuracy"]


def majority(split: Split) -> float:
    """Return the accuracy of always answering with the more frequent verdict."""
    mean = float(split.train.values.mean(dtype=np.float64))
    liked = float(np.mean(split.test.values > mean))
    return max(liked, 1 - liked)


def curves(
    splits: Iterable[Split], epsilons: Sequence[float], link: str = "logistic"
) -> dict[str, list[list[float]]]:
    """Return, for each method and epsilon, the accuracy of every split."""
    found: dict[str, list[list[float]]] = {
        method: [[] for _ in epsilons] for method in ("clear", *KINDS, "majority")
    }
    for seed, split in enumerate(splits):
        clear, most = accuracy(split, "clear", math.inf, seed, link), majority(split)
        for place, epsilon in enumerate(epsilons):
            found["clear"][place].append(clear)
            found["majority"][place].append(most)
            for method in KINDS:
                found[method][place].append(accuracy(split, method, epsilon, seed, link))
    return found
