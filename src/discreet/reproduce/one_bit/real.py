"""Figures 2 and 3: how often the sign of a held-out verdict is right, on ML-100K and on restaurants.

The threshold is the mean of the training ratings, as if it were free. The paper does this; it is NOT covered
by any promise, so only the experiments here do it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.checks import FileError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets import catalog
from discreet.data.splits import Split, given, random_split
from discreet.papers.one_bit.estimators import OneBitGradient, OneBitInput
from discreet.papers.one_bit.task import OneBit
from discreet.reproduce import copies
from discreet.reproduce.one_bit.methods import CLEAR, KINDS, OUTPUT, fit, with_printed_noise

MAJORITY = "majority"
# The paper does not say its bound on real data; answers are cut to this before the noise.
ANSWER_BOUND = 0.2
# Flip rates of +1 and -1 that satisfy all four ratios at epsilon 2, with the smaller on either side.
SKEWED_AT_2 = {"p1 < p2": (0.08, 0.41), "p1 > p2": (0.41, 0.08)}


def movielens(seed: int) -> Split | None:
    """Return the published split u1 (of a copy: a random split); None where the data is not at hand."""
    if copies.copy_of("movielens-100k"):
        return random_split(copies.load("movielens-100k"), 0.2, seed)
    try:
        data = copies.load("movielens-100k")
        files = [catalog.split_file("movielens-100k", f"u1.{part}") for part in ("base", "test")]
    except FileError:
        return None
    return given(*files, name=data.name, facts=data.facts, catalog=data.catalog, people=data.users)


def restaurants(seed: int) -> Split | None:
    """Return a random 80/20 split of the restaurant ratings, or None where the data is not at hand."""
    try:
        return random_split(copies.load("restaurant-consumer"), 0.2, seed)
    except FileError:
        return None


def threshold(split: Split) -> float:
    """Return the mean of the training ratings."""
    return float(split.train.values.mean(dtype=np.float64))


def right(split: Split, answers: npt.NDArray[Any]) -> float:
    """Return how often an answer above 0 goes with a rating above the threshold."""
    return float(np.mean((answers > 0) == (split.test.values > threshold(split))))


def answers(
    split: Split, method: str, epsilon: float, link: str, seed: int, iterations: int
) -> npt.NDArray[Any]:
    """Return a method's scores of the held-out cells, not noised for the output's sake."""
    settings = {"link": link, "above": threshold(split), "iterations": iterations}
    model = fit(split.train, method, epsilon, seed, **settings)
    return model.predict(split.train, split.test.rows(), split.test.items)


def accuracies(
    split: Split, epsilons: Sequence[float], link: str, seed: int, iterations: int
) -> dict[str, list[float]]:
    """Return the accuracy of every method at each epsilon."""
    clear = answers(split, CLEAR, math.inf, link, seed, iterations)
    liked = float(np.mean(split.test.values > threshold(split)))
    found = {
        method: [
            right(split, answers(split, method, epsilon, link, seed, iterations)) for epsilon in epsilons
        ]
        for method in KINDS
    }
    found[OUTPUT] = [
        right(split, with_printed_noise(clear, ANSWER_BOUND, epsilon, seed)) for epsilon in epsilons
    ]
    found[CLEAR] = [right(split, clear)] * len(epsilons)
    found[MAJORITY] = [max(liked, 1 - liked)] * len(epsilons)
    return found


def by_rounds(split: Split, rounds: Sequence[int], seed: int) -> dict[str, list[float]]:
    """Return the accuracy at epsilon 4 after K noised gradients, for both kinds of steps."""
    return {
        step: [
            _accuracy(split, OneBitGradient(epsilon=4.0, rounds=k, step=step, **_shared(split)), seed)
            for k in rounds
        ]
        for step in ("fixed", "barzilai-borwein")
    }


def by_flip_rates(split: Split, seed: int, iterations: int) -> dict[str, float]:
    """Return the accuracy at epsilon 2 with equal flip rates and with differing ones."""
    pairs: dict[str, Mapping[str, float]] = {
        name: {"flip_positive": positive, "flip_negative": negative}
        for name, (positive, negative) in SKEWED_AT_2.items()
    }
    return {
        name: _accuracy(
            split, OneBitInput(epsilon=2.0, iterations=iterations, **rates, **_shared(split)), seed
        )
        for name, rates in {"equal": {}, **pairs}.items()
    }


def _shared(split: Split) -> dict[str, float]:
    return {
        "radius": math.sqrt(split.train.n_users * split.train.n_items),
        "leveling": 0.0,
        "above": threshold(split),
    }


def _accuracy(split: Split, estimator: OneBit, seed: int) -> float:
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
    return right(split, model.predict(split.train, split.test.rows(), split.test.items))
