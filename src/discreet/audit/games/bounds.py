"""Turn guesses into lower bounds on epsilon, exactly: one binomial, and no approximation of its tails.

A fair coin picks one of two worlds, and the attacker guesses or abstains. Under (epsilon, delta) the
probability of a right guess is at most e^epsilon times that of a wrong one, plus delta; under a known
trade-off curve the probability of a right guess is at most (1 + the curve's distance at epsilon 0) / 2. Each
gives a bound of its own: the first assumes nothing, the second takes the shape of the noise for granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from scipy.special import betaincinv

from discreet.checks import integer, require
from discreet.models.estimator import Estimator

# With fewer guesses than this the share of games that are guessed at all is not known well enough for delta.
_FEWEST = 100
_BISECTIONS = 40
_MOST_EPSILON = 32.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Count games: how many, in how many the attacker guessed and was right; and right if it must guess."""

    games: int
    guesses: int
    right: int
    right_of_all: int

    def __add__(self, other: Tally) -> Tally:
        """Return the counts of both."""
        return Tally(
            games=self.games + other.games,
            guesses=self.guesses + other.guesses,
            right=self.right + other.right,
            right_of_all=self.right_of_all + other.right_of_all,
        )


def least_share(right: int, tried: int, error: float) -> float:
    """Return a probability that is below the true one except with probability `error` (Clopper, Pearson).

    Example:
        >>> round(least_share(731, 1000, 0.01), 4)
        0.697
    """
    integer("right", right, least=0, most=tried)
    require(0 < error < 1, "error", error, "must lie in (0, 1)")
    return 0.0 if right == 0 else float(betaincinv(right, tried - right + 1, error))


def refuted_epsilon(tally: Tally, delta: float, error: float) -> float:
    """Return the largest epsilon that the guesses refute at `delta`, whatever the noise looks like."""
    if tally.guesses < _FEWEST:
        return 0.0
    right = least_share(tally.right, tally.guesses, error)
    # Half of the share seen: the true one is smaller with probability below 1e-5 of 1e-5.
    spared = delta / (tally.guesses / tally.games / 2)
    odds = (right - spared) / max(1 - right, 1e-300)
    return max(math.log(odds), 0.0) if odds > 0 else 0.0


def refuted_on_curve(tally: Tally, distance: Callable[[float], float], error: float) -> float:
    """Return the largest epsilon whose curve the games refute; `distance` is the curve's at epsilon 0.

    `distance(epsilon)` is the total variation between two worlds under a promise of that epsilon.
    """
    seen = 2 * least_share(tally.right_of_all, tally.games, error) - 1
    if seen <= 0:
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    if distance(high) < seen:
        return math.inf
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if distance(middle) < seen else (low, middle)
        if high - low < 1e-6:
            break
    return low


def curve_of(estimator: Estimator, n_items: int) -> Callable[[float], float] | None:
    """Return the distance of the estimator's own releases by epsilon; None if it does not list them."""
    from dataclasses import replace

    from discreet.data.facts import PublicFacts
    from discreet.privacy.accounting.accountant import delta_at

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
