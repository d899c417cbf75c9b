"""Bound a mean from below by betting: fair at every step, so one may stop whenever one likes.

Against a claim that numbers of [0, 1] have a mean of at most p, somebody who bets a fixed share of the
capital on each number exceeding p multiplies it by 1 + stake (x - p), which does not grow on average if the
claim is true. So a capital of 1 / error is reached with probability at most `error`, at whatever time one
looks.

References:
    Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Floats

#: Luck is cut here, on both sides.
MOST_LUCK = 3.0
_BISECTIONS = 40
_MOST_EPSILON = 32.0
# The stake is bounded away from ruin.
_BOLDEST = 0.9


def is_refuted(lessons: Floats, numbers: Floats, claimed: float, error: float) -> bool:
    """Tell whether a mean of at most `claimed` is refuted; the stake is set on `lessons`, which do not count.

    Example:
        >>> numbers = np.tile([0.5, 0.7], 500)
        >>> is_refuted(numbers, numbers, 0.55, 0.01), is_refuted(numbers, numbers, 0.61, 0.01)
        (True, False)
    """
    edge = float(lessons.mean()) - claimed
    if edge <= 0:
        return False
    stake = min(edge / (float(lessons.var()) + edge**2 + 1e-12), _BOLDEST / max(claimed, 1e-12))
    capital = np.cumsum(np.log1p(stake * (numbers - claimed)))
    return bool(capital.size and capital.max() >= math.log(1 / error))


def refuted_by_betting(
    lessons: Floats, numbers: Floats, distance: Callable[[float], float], error: float
) -> float:
    """Return the largest epsilon whose curve the shares of right guesses, one a fit, refute.

    A share is a mean over canaries of which each one is guessed right with probability at most (1 + distance)
    / 2, however their guesses hang together.
    """
    return _largest(lambda epsilon: is_refuted(lessons, numbers, (1 + distance(epsilon)) / 2, error))


class Shares(NamedTuple):
    """Hold shares of right guesses, and what luck each had: numbers of [-3, 3] with a mean of 0."""

    right: Floats
    luck: Floats


def joined(parts: Sequence[Shares]) -> Shares:
    """Return the shares of several fits as one."""
    right, luck = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Shares(right, luck)


def refuted_without_luck(
    lessons: Shares, numbers: Shares, distance: Callable[[float], float], error: float
) -> float:
    """Return the largest epsilon whose curve independent shares of right guesses refute.

    Luck is worth nothing on average, so that taking a multiple of it off, set on `lessons`, leaves the mean
    as it is; but most of what shares differ by is luck.
    """
    together, alone = float(np.mean(lessons.right * lessons.luck)), float(np.mean(lessons.luck**2))
    worth = max(together, 0.0) / max(alone, 1e-12)
    most = MOST_LUCK * worth

    def scaled(right: Floats | float, luck: Floats | float = 0.0) -> Any:
        return (right - worth * luck + most) / (1 + 2 * most)

    def refutes(epsilon: float) -> bool:
        return is_refuted(learned, counted, scaled((1 + distance(epsilon)) / 2), error)

    learned, counted = scaled(*lessons), scaled(*numbers)
    return _largest(refutes)


def _largest(refutes: Callable[[float], bool]) -> float:
    if not refutes(0.0):
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
        if high - low < 1e-6:
            break
    return low
