"""Audit with one training run: many canaries, each in or out by a coin, and one guess for each.

One fit is one sample of the noise, but thousands of coins. A guarantee bounds what the fit reveals about each
single coin, so too many right guesses refute it.

`CanaryFileAttack` attacks the published file. For every canary it reads the numbers of the canary's items:
biases and counts as they are; factors by the norm of their signed sum over the canary's items, which no
rotation or sign of the factors changes. The usual values and the weights of these features are learned on
fits whose canaries are known. A fit and its mirror image, in which exactly the other canaries are in, share
their noise, so a few pairs are enough. Where many users agree about items, estimates are hardly shrunk, and
the file reveals nearly all that the releases reveal.

References:
    Steinke, Nasr and Jagielski, Privacy auditing with one (1) training run (2023).
    Mahloujifar, Melis and Chaudhuri, Auditing f-differential privacy in one run (2024).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, expit, ndtr, ndtri

from discreet.audit.canaries.planting import Canaries, CanaryAttack, Game
from discreet.audit.errors import NotAuditable
from discreet.audit.findings import Finding
from discreet.audit.games.bounds import BettingShares, curve_of, largest, refuted_without_luck
from discreet.audit.games.scores import LearnedScore, Truth
from discreet.audit.neighboring import Row
from discreet.core import Floats, PrivacyRandom
from discreet.data import Interactions
from discreet.models import Estimator
from discreet.privacy import Neighbors, Unit, gaussian_multiplier

_MOST_EPSILON = 16.0
# The shares of canaries that are guessed: half of the guesses at the highest scores, half at the lowest.
_GUESSED = (1.0, 0.5, 0.2)
# The most canaries, unless the caller asks for more.
_MOST = 4_000


def one_run_chance(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Bound the probability of at least `right` right guesses under an (epsilon, delta) guarantee.

    Under a pure guarantee the number of right guesses is at most binomial with probability
    e^epsilon / (1 + e^epsilon); a delta adds the most that moving the whole distribution can gain.
    """
    share = float(expit(epsilon))
    above = float(_tail(right, guesses, share))
    if delta == 0:
        return min(above, 1.0)
    counts = np.arange(1, right + 1)
    gained = _tail(right - counts, guesses, share) - above
    most = float(np.max(gained / counts, initial=0.0))
    return min(above + most * delta * 2 * canaries, 1.0)


def one_run_epsilon(canaries: int, guesses: int, right: int, delta: float, error: float) -> float:
    """Return the largest epsilon that `right` right guesses refute.

    Example:
        >>> round(one_run_epsilon(1000, 1000, 731, 0.0, 0.01), 2)
        0.83
    """
    return largest(
        lambda epsilon: one_run_chance(canaries, guesses, right, epsilon, delta) <= error, most=_MOST_EPSILON
    )


def one_run_gaussian_epsilon(canaries: int, guesses: int, right: int, delta: float, error: float) -> float:
    """Return the largest epsilon at `delta` whose Gaussian trade-off curve `right` right guesses refute."""
    return largest(
        lambda epsilon: _curve_refuted(canaries, guesses, right, epsilon, delta, error), most=_MOST_EPSILON
    )


def _curve_refuted(
    canaries: int, guesses: int, right: int, epsilon: float, delta: float, error: float
) -> bool:
    """Return whether the recursion over right guesses rules this curve out.

    With r[i] and h[i] the shares of coins that are guessed right and wrong in outcomes with at least i right
    guesses, the curve bounds r by h at every i; if the least that this implies for i = 0 exceeds the share of
    guesses, so many right guesses are rarer than the error.
    """
    shift = 1 / gaussian_multiplier(epsilon, delta)
    r, h = error * right / canaries, error * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        # The least share that is wrong if a share r is right: the trade-off of two normal distributions.
        lower = float(ndtr(ndtri(min(r, 1.0)) - shift))
        grown = max(lower, h)
        if grown == h:
            break
        r += i / (guesses - i) * (grown - h)
        h = grown
        if r + h > guesses / canaries:
            return True
    return r + h >= guesses / canaries


def audit_one_run(
    estimator: Estimator,
    data: Interactions,
    *,
    error: float = 0.01,
    seed: int = 0,
    canaries: int | None = None,
) -> Finding:
    """Fit once on the data with canaries put in by coins, and guess from all releases which are in.

    There is one canary per item, at most 4,000 unless `canaries` gives their number. If the catalog has fewer
    items than that, items are added that no other user rated.

    Raises:
        ParameterError: the guarantee isn't about adding or removing a user.
    """
    start = time.perf_counter()
    promise = estimator.promise(data.facts)
    if promise.unit is not Unit.USER or promise.neighbors is not Neighbors.ADD_OR_REMOVE:
        raise NotAuditable(model=estimator.name, view="guarantee for whole users")
    attack = CanaryAttack(estimator, _among(data, canaries))
    game = attack.play(seed)
    found = [
        _bounds(game.scores, game.truth, share, promise.delta, error / 2 / len(_GUESSED))
        for share in _GUESSED
    ]
    refuted, curve, guesses, right = max(found, key=lambda one: max(one[0], one[1] or 0.0))
    curve = max(curve or 0.0, _curve(estimator, data.facts.n_items, game, error / 2))
    return Finding(
        model=estimator.name,
        attack="one run",
        promised=promise.epsilon,
        delta=promise.delta,
        refuted=refuted,
        curve=curve if promise.delta or game.shares is not None else None,
        confidence=1 - error,
        fits=attack.fits,
        seconds=time.perf_counter() - start,
        notes=(f"{game.truth.size:,} canaries, {guesses:,} guesses, {right:,} right",),
        broken=max(refuted, curve) > promise.epsilon,
    )


def _curve(estimator: Estimator, n_items: int, game: Game, error: float) -> float:
    """Return the epsilon whose curve is refuted; 0 unless canaries count as independent games."""
    distance = curve_of(estimator, n_items)
    if game.shares is None or distance is None:
        return 0.0
    lessons = game.truth.size // 5
    learned = BettingShares(*(column[:lessons] for column in game.shares))
    counted = BettingShares(*(column[lessons:] for column in game.shares))
    return refuted_without_luck(learned, counted, distance, error)


def _among(data: Interactions, canaries: int | None) -> Canaries:
    """Return one canary per item, with the users of the data as the background."""
    background: dict[str, Row] = {
        str(row): dict(zip(data.items[span].tolist(), data.values[span].tolist(), strict=True))
        for row in range(data.n_users)
        for span in (slice(int(data.indptr[row]), int(data.indptr[row + 1])),)
    }
    count = min(data.n_items, _MOST) if canaries is None else canaries
    facts = replace(data.facts, n_items=max(data.n_items, count))
    every = Canaries.disjoint(background, facts, 1)
    return Canaries(background=background, rows=dict(list(every.rows.items())[:count]), facts=facts)


def _bounds(
    scores: Floats, truth: Truth, share: float, delta: float, error: float
) -> tuple[float, float | None, int, int]:
    """Return both bounds if this share of the canaries is guessed, the guesses, and the right ones."""
    order = np.argsort(scores)
    each = max(int(truth.size * share / 2), 1)
    right = int(np.count_nonzero(truth[order[-each:]]) + np.count_nonzero(~truth[order[:each]]))
    arguments = (truth.size, 2 * each, right, delta, error)
    curve = one_run_gaussian_epsilon(*arguments) if delta else None
    return one_run_epsilon(*arguments), curve, 2 * each, right


def _tail(right: npt.ArrayLike, guesses: int, share: float) -> Floats:
    """Return the probability of at least `right` right guesses."""
    counts = np.asarray(right, dtype=np.float64)
    above = betainc(np.maximum(counts, 1.0), guesses - counts + 1, share)
    return np.where(counts <= 0, 1.0, above)


@final
class CanaryFileAttack:
    """An attack that learns to detect canaries from published files, then scores those of fresh fits."""

    def __init__(self, estimator: Estimator, canaries: Canaries, *, lessons: int, seed: int) -> None:
        self._estimator, self._canaries, self.fits = estimator, canaries, 0
        self._signs = _signs(canaries)
        features, truths = [], []
        for number in range(lessons):
            truth = canaries.coins(seed + number)
            for present in (truth, ~truth):
                features.append(self._features(present, seed + number))
                truths.append(present)
        # What a file contains can depend on its noise: a feature that some files lack is 0 there.
        self._names = sorted(set().union(*features))
        known = [self._columns(one) for one in features]
        # Each canary is in half of the fits, so this is the midpoint between in and out.
        self._middle = np.mean(known, axis=0)
        apart = np.concatenate([one - self._middle for one in known])
        self._score = LearnedScore.of(apart, np.concatenate(truths))

    def play(self, seed: int) -> Game:
        """Return the scores of all canaries in one fit, and which of them were in it."""
        truth = self._canaries.coins(seed)
        return Game(self._score(self._columns(self._features(truth, seed)) - self._middle), truth)

    def _columns(self, features: Mapping[str, Floats]) -> Floats:
        none = np.zeros(len(self._signs))
        return np.stack([features.get(name, none) for name in self._names], axis=1)

    def _features(self, present: Truth, seed: int) -> dict[str, Floats]:
        self.fits += 1
        data = self._canaries.dataset(present)
        scorer = self._estimator.rehearse(data, PrivacyRandom.simulate(seed))
        return item_features(scorer.arrays(), self._signs)


def item_features(arrays: Mapping[str, npt.NDArray[Any]], signs: Floats) -> dict[str, Floats]:
    """Return what the arrays say about every canary's items, given its row of `signs`, by name."""
    n_items = signs.shape[1]
    columns: dict[str, Floats] = {"none": np.zeros(len(signs))}
    for name, array in arrays.items():
        if array.dtype.kind != "f" or n_items not in array.shape:
            continue
        numbers = np.asarray(array, dtype=np.float64)
        numbers = numbers if numbers.shape[0] == n_items else numbers.T
        output = signs @ numbers
        if output.ndim == 1:
            columns[name] = output
        else:
            columns[f"{name}, length"] = np.sum(output**2, axis=1)
            columns[f"{name}, lengths"] = np.abs(signs) @ np.sum(numbers**2, axis=1)
    # How much a file shrinks its estimates depends on its noise; standardizing across canaries cancels that.
    standardized = {
        f"{name}, standardized": (column - column.mean()) / (column.std() or 1.0)
        for name, column in columns.items()
    }
    return columns | standardized


def _signs(canaries: Canaries) -> Floats:
    """Return, per canary and item, +1 where it likes and -1 where it dislikes."""
    middle = (canaries.facts.low + canaries.facts.high) / 2
    signs = np.zeros((len(canaries.rows), canaries.facts.n_items))
    for index, row in enumerate(canaries.rows.values()):
        for item, value in row.items():
            signs[index, item] = 1.0 if value >= middle else -1.0
    return signs
