"""Turn guesses into lower confidence bounds on epsilon: binomial bounds, and betting.

A fair coin picks one of two neighboring datasets, and the attacker guesses or abstains. Under (epsilon,
delta) the probability of a right guess is at most e^epsilon times that of a wrong one, plus delta. Under a
known trade-off curve the probability of a right guess is at most (1 + the curve's total variation) / 2. Each
gives a bound: the first assumes nothing, the second assumes that the shape of the noise is known.

Betting tests the claim that numbers in [0, 1] have a mean of at most p. Each number x multiplies the capital
by 1 + stake (x - p), which does not grow on average if the claim is true. So the capital ever reaches
1 / error with probability at most `error`, however often it is checked.

References:
    Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from discreet.core import Floats, integer, within
from discreet.models import Estimator

# With fewer guesses the share of games that are guessed at all is not known well enough for delta.
_FEWEST = 100
_MOST_EPSILON = 32.0


class GuessCounts(NamedTuple):
    """Counts of games, guesses, right guesses, and right guesses if the attacker may not abstain."""

    games: int
    guesses: int
    right: int
    right_of_all: int

    def plus(self, other: GuessCounts) -> GuessCounts:
        """Return the counts of both."""
        return GuessCounts(*map(sum, zip(self, other, strict=True)))


def least_share(right: int, tried: int, error: float) -> float:
    """Return the lower Clopper-Pearson bound: above the true probability only with probability `error`.

    Example:
        >>> round(least_share(731, 1000, 0.01), 4)
        0.697
    """
    integer("right", right, least=0, most=tried)
    within("error", error, above=0, below=1)
    return 0.0 if right == 0 else float(betaincinv(right, tried - right + 1, error))


def refuted_epsilon(tally: GuessCounts, delta: float, error: float) -> float:
    """Return the largest epsilon that the guesses refute at `delta`, whatever the noise looks like."""
    if tally.guesses < _FEWEST:
        return 0.0
    right = least_share(tally.right, tally.guesses, error)
    # Half of the observed share: the true one is smaller with probability below 1e-9.
    spared = delta / (tally.guesses / tally.games / 2)
    odds = (right - spared) / max(1 - right, 1e-300)
    return max(math.log(odds), 0.0) if odds > 0 else 0.0


def largest(refutes: Callable[[float], bool], *, most: float = _MOST_EPSILON) -> float:
    """Return the largest epsilon, to six digits, that is refuted; 0 if none is."""
    low, high = 0.0, most
    while high - low >= 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low


def refuted_on_curve(tally: GuessCounts, distance: Callable[[float], float], error: float) -> float:
    """Return the largest epsilon whose trade-off curve the games refute.

    `distance(epsilon)` is the total variation between the outputs on neighboring datasets that a guarantee
    with that epsilon allows.
    """
    seen = 2 * least_share(tally.right_of_all, tally.games, error) - 1
    if seen <= 0:
        return 0.0
    return math.inf if distance(_MOST_EPSILON) < seen else largest(lambda epsilon: distance(epsilon) < seen)


def curve_of(estimator: Estimator, n_items: int) -> Callable[[float], float] | None:
    """Return the total variation of the estimator's releases by epsilon; None if it does not list them."""
    from dataclasses import replace

    from discreet.data import PublicFacts
    from discreet.privacy import delta_at

    implicit = estimator.feedback == "implicit"
    facts = PublicFacts(n_items=n_items, low=1.0, high=1.0 if implicit else 5.0, n_users=n_items)
    if not estimator.events(facts):
        return None

    @lru_cache(maxsize=256)
    def distance(epsilon: float) -> float:
        if epsilon <= 1e-3:
            return 0.0
        claimed: Estimator = replace(estimator, epsilon=epsilon)  # type: ignore[type-var]
        return delta_at(claimed.events(facts), 0.0)

    return distance


# The largest magnitude of luck.
_MOST_LUCK = 1.0
# The stake stays below what could lose all capital.
_BOLDEST = 0.9


def is_refuted(lessons: Floats, numbers: Floats, claimed: float, error: float) -> bool:
    """Return whether a mean of at most `claimed` is refuted; `lessons` only set the stake.

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
    """Return the largest epsilon whose curve the shares of right guesses, one per fit, refute.

    A share is a mean over canaries. Each canary is guessed right with probability at most (1 + distance) / 2,
    whatever the dependence between guesses.
    """
    return largest(lambda epsilon: is_refuted(lessons, numbers, (1 + distance(epsilon)) / 2, error))


class BettingShares(NamedTuple):
    """Shares of right guesses, and the luck in each: numbers in [-1, 1] with mean 0."""

    right: Floats
    luck: Floats


def joined(parts: Sequence[BettingShares]) -> BettingShares:
    """Return the shares of several fits as one."""
    right, luck = (np.concatenate(column) for column in zip(*parts, strict=True))
    return BettingShares(right, luck)


def refuted_without_luck(
    lessons: BettingShares, numbers: BettingShares, distance: Callable[[float], float], error: float
) -> float:
    """Return the largest epsilon whose curve independent shares of right guesses refute.

    Luck is a control variate: its mean is 0, so subtracting a multiple of it, set on `lessons`, keeps the
    mean and removes most of the variance.
    """
    together, alone = float(np.mean(lessons.right * lessons.luck)), float(np.mean(lessons.luck**2))
    worth = max(together, 0.0) / max(alone, 1e-12)
    most = _MOST_LUCK * worth

    def scaled(right: Floats | float, luck: Floats | float = 0.0) -> Any:
        return (right - worth * luck + most) / (1 + 2 * most)

    def refutes(epsilon: float) -> bool:
        return is_refuted(learned, counted, scaled((1 + distance(epsilon)) / 2), error)

    learned, counted = scaled(*lessons), scaled(*numbers)
    return largest(refutes)
