"""Score the canaries of one fit by what its file says about their items.

A stranger who holds the file reads, for every canary, the numbers of its items: biases and counts as they
are, factors by the length of what the canary's likes and dislikes make of them, which no turn or sign
changes. Where a canary's numbers usually lie, and how to weigh them, is learned on fits whose canaries are
known; a fit and its mirror image, in which all the others are in, share their noise, so that a few of them
are enough. A crowd that is large and agrees about items leaves its numbers hardly shrunk, and then a file
tells nearly all that was told for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.audit.canaries.planting import Canaries, Game
from discreet.audit.games.scores import LearnedScore, Truth
from discreet.models.estimator import Estimator
from discreet.randomness import PrivacyRandom, experiment_generator


@final
class CanaryFileAttack:
    """Learn to read canaries off files, then score those of fresh fits."""

    def __init__(self, estimator: Estimator, canaries: Canaries, *, lessons: int, seed: int) -> None:
        self._estimator, self._canaries, self.fits = estimator, canaries, 0
        self._signs = _signs(canaries)
        features, truths = [], []
        for number in range(lessons):
            truth = self._coins(seed + number)
            for present in (truth, ~truth):
                features.append(self._features(present, seed + number))
                truths.append(present)
        # Half of the time each canary is in, so that this is the middle between both.
        self._middle = np.mean(features, axis=0)
        apart = np.concatenate([one - self._middle for one in features])
        self._score = LearnedScore.of(apart, np.concatenate(truths))

    def play(self, seed: int) -> Game:
        """Return the scores of all canaries in one fit, and which of them were in it."""
        truth = self._coins(seed)
        return Game(self._score(self._features(truth, seed) - self._middle), truth)

    def _coins(self, seed: int) -> Truth:
        return experiment_generator(seed, "canaries").random(len(self._canaries.rows)) < 0.5

    def _features(self, present: Truth, seed: int) -> Floats:
        self.fits += 1
        data = self._canaries.world(present)
        scorer = self._estimator.rehearse(data, PrivacyRandom.simulate(seed))
        return item_features(scorer.arrays(), self._signs)


def item_features(arrays: Mapping[str, npt.NDArray[Any]], signs: Floats) -> Floats:
    """Return for every canary, a row of `signs` over the items, what the arrays say about its items."""
    n_items = signs.shape[1]
    columns: list[Floats] = [np.zeros(len(signs))]
    for name in sorted(arrays):
        array = arrays[name]
        if array.dtype.kind != "f" or n_items not in array.shape:
            continue
        numbers = np.asarray(array, dtype=np.float64)
        numbers = numbers if numbers.shape[0] == n_items else numbers.T
        told = signs @ numbers
        if told.ndim == 1:
            columns.append(told)
        else:
            columns.append(np.sum(told**2, axis=1))
            columns.append(np.abs(signs) @ np.sum(numbers**2, axis=1))
    numbers = np.stack(columns, axis=1)
    # How far a file shrinks everything depends on its noise; beside the other canaries that cancels.
    spread = numbers.std(axis=0)
    beside = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.hstack([numbers, beside])


def _signs(canaries: Canaries) -> Floats:
    """Return +1 at what a canary likes and -1 at what it dislikes."""
    middle = (canaries.facts.low + canaries.facts.high) / 2
    signs = np.zeros((len(canaries.rows), canaries.facts.n_items))
    for place, row in enumerate(canaries.rows.values()):
        for item, value in row.items():
            signs[place, item] = 1.0 if value >= middle else -1.0
    return signs
