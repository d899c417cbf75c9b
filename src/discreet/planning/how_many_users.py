"""Answer how many users a private model needs, for recommendations and for ratings.

Noise on an item's sums matters by epsilon times the number of users, divided by the number of items. From a
limit of this number on a model is clearly better than the simplest answer, and below 0.05 it isn't. In
between data differ, and neither their rows per user nor their size explained how. "Clearly" means an RMSE at
least 1% lower than that of the best mean in `discreet compare`, or a hit rate at least 5% higher than that of
private popularity.

The limits are for 8 draws of users from MovieLens 100K, MovieLens 1M, and Amazon Instant Video: the answers
turn at 0.3 to 0.7 for ratings and at 0.1 to 1.5 for lists. They were then tested on MovieLens latest small,
MovieTweetings, and Jester: all models with enough users were better, 13 of 14 for ratings and 3 of 4 for
lists clearly (`benchmarks/how_many_users.py`, `tests/planning`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

from discreet.core import integer, one_of, positive_finite

What = Literal["lists", "ratings"]
# Epsilon times users per item: too few below the first, enough from the second on.
_TOO_FEW = 0.05
_ENOUGH: dict[What, float] = {"lists": 2.0, "ratings": 1.0}

Answer = Literal["yes", "no", "undecided"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UsersNeeded:
    """With `most` users or more a model is better, with fewer than `least` it isn't. In between, try it.

    Example:
        >>> needed = users_needed("lists", epsilon=1.0, items=4000)
        >>> needed.least, needed.most, needed.answer(20_000), needed.answer(1_000)
        (200, 8000, 'yes', 'undecided')
    """

    least: int
    most: int

    def answer(self, users: int) -> Answer:
        """Return whether so many users are enough."""
        if users >= self.most:
            return "yes"
        return "no" if users < self.least else "undecided"


def users_needed(what: What, *, epsilon: float, items: int) -> UsersNeeded:
    """Return how many users a private model needs to be better than the simplest answer."""
    one_of("what", what, tuple(_ENOUGH))
    positive_finite("epsilon", epsilon)
    integer("items", items, least=2)
    each = items / epsilon
    return UsersNeeded(least=_rounded(_TOO_FEW * each), most=_rounded(_ENOUGH[what] * each))


def users_instead(users: int, epsilon: float, needed: float) -> int:
    """Return about how many users at `epsilon` count as much as `users` at the `needed` epsilon."""
    return _rounded(users * needed / epsilon)


def _rounded(users: float) -> int:
    """Return a number of users, rounded up to two digits."""
    digits = int(10 ** max(0, math.floor(math.log10(max(users, 1.0))) - 1))
    # A whole number of digits may be a little more as a double.
    return math.ceil(users / digits - 1e-9) * digits
