"""Audit any callable: your own mechanism, or another library's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.audit.errors import NotNumbers
from discreet.audit.findings import Finding
from discreet.audit.games.playing import Plan, play
from discreet.audit.games.scores import LearnedScore, Truth, aligned
from discreet.core import (
    Floats,
    OutOfRange,
    experiment_generator,
    failure_probability,
    integer,
    non_negative,
    within,
)

# A fifth of the games trains the score, and a tenth sets the thresholds for guessing.
_TO_LEARN, _TO_CUT = 5, 10


def audit(
    function: Callable[[Any], Any],
    neighbors: tuple[Any, Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    games: int = 20_000,
    confidence: float = 0.99,
    distance: Callable[[float], float] | None = None,
    seed: int = 0,
) -> Finding:
    """Try to refute that `function` hides which of two neighboring datasets it was called with.

    The function is called once per game, with one of the two datasets picked by a fair coin, and must draw
    fresh noise every time. The attacker sees only what it returns: a number, or an array of numbers of any
    shape. An exception is an answer, too. A guarantee is called refuted only if a fresh run of the same
    size refutes it again.

    Parameters:
        function: What is audited.
        neighbors: Two neighboring datasets, between which the guarantee applies.
        epsilon: The epsilon of the guarantee.
        delta: The delta of the guarantee.
        games: How many times the function is called, not counting a confirming run.
        confidence: How sure the bound is.
        distance: If the shape of the noise is known: the total variation between the outputs on the two
            datasets, by epsilon.
        seed: Which coins are thrown; never a seed of noise.

    Example:
        >>> noise = np.random.default_rng(1)
        >>> honest = audit(lambda x: x + noise.laplace(scale=1.0), (0.0, 1.0), epsilon=1.0)
        >>> honest.verdict, honest.refuted > 0.7
        ('not refuted', True)
        >>> audit(lambda x: x + noise.laplace(scale=0.5), (0.0, 1.0), epsilon=1.0).verdict
        'refuted'
    """
    if len(neighbors) != 2:
        raise OutOfRange(name="neighbors", value=len(neighbors), least=2, most=2)
    non_negative("epsilon", epsilon)
    failure_probability("delta", delta)
    integer("games", games, least=1_000)
    within("confidence", confidence, least=0.5, below=1)
    start = time.perf_counter()
    attack = _CallableAttack(function, neighbors, lessons=games // _TO_LEARN, seed=seed)
    counted = games - games // _TO_LEARN - games // _TO_CUT
    plan = Plan(lessons=games // _TO_CUT, games=counted, seconds=np.inf, error=1 - confidence, enough=np.inf)
    outcome = play(attack, plan, epsilon=epsilon, delta=delta, distance=distance, seed=seed + 1)
    return Finding(
        model=getattr(function, "__name__", type(function).__name__),
        attack="black box",
        promised=epsilon,
        delta=delta,
        refuted=outcome.refuted,
        curve=outcome.curve,
        confidence=confidence,
        fits=attack.fits,
        seconds=time.perf_counter() - start,
        notes=(f"{outcome.tally.guesses:,} guesses, {outcome.tally.right:,} right",),
        broken=outcome.broken,
    )


@final
class _CallableAttack:
    """An attack that learns from answers whose dataset is known, then scores others."""

    def __init__(
        self, function: Callable[[Any], Any], neighbors: tuple[Any, Any], *, lessons: int, seed: int
    ) -> None:
        self._function, self._neighbors, self.fits = function, neighbors, 0
        answers, truth = self._answers(lessons, seed)
        features = aligned(answers)
        self._width = features.shape[1]
        self._score = LearnedScore.of(features, truth)

    def play(self, count: int, seed: int) -> tuple[Floats, Truth]:
        """Return the scores of `count` fresh answers, and which dataset they come from."""
        answers, truth = self._answers(count, seed)
        return self._score(aligned(answers, self._width)), truth

    def _answers(self, count: int, seed: int) -> tuple[list[Floats], Truth]:
        truth: Truth = experiment_generator(seed, "coins", "callable").random(count) < 0.5
        self.fits += count
        return [self._answer(self._neighbors[int(second)]) for second in truth], truth

    def _answer(self, dataset: Any) -> Floats:
        try:
            output = self._function(dataset)
        except Exception as error:
            # The exception is part of the output: a number for its type and message.
            return np.full(2, 1.0 + sum(map(ord, f"{type(error).__name__}{error}")))
        return _numbers(output)


def _numbers(output: Any) -> Floats:
    array: npt.NDArray[Any] = np.asarray(output)
    if array.dtype.kind not in "fiub":
        raise NotNumbers()
    return np.nan_to_num(array.astype(np.float64).reshape(-1), posinf=1e30, neginf=-1e30)
