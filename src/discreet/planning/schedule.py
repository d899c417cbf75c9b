"""Share a budget between releases that are not made yet: what each may cost in which account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from discreet.checks import failure_probability, integer, positive_finite, require
from discreet.planning.odds import best_chance, best_chance_gaussian
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.accounts import Account, allowed_each
from discreet.privacy.ledger.records import Amount


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Hold what each of `releases` equal releases may cost, and what all of them leave an attacker."""

    releases: int
    limit: Amount
    per_release: Amount
    adding: Amount
    #: The best chance of telling whether somebody is in the data, from one release and from all of them.
    from_one: float
    from_all: float
    #: What the budget's (epsilon, delta) alone would leave, were the noise not known to be Gaussian.
    at_most: float

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that `discreet plan --json` prints."""
        return {
            "releases": self.releases,
            "limit": self.limit._asdict(),
            "per_release": self.per_release._asdict(),
            "adding": self.adding._asdict(),
            "attacker": {"prior": 0.5, "one": self.from_one, "all": self.from_all, "at_most": self.at_most},
        }


def schedule(epsilon: float, delta: float, releases: int) -> Schedule:
    """Return what a budget of (epsilon, delta) allows each of so many Gaussian releases, chosen adaptively.

    Example:
        >>> year = schedule(5.0, 1e-6, 12)
        >>> round(year.per_release.epsilon, 3), round(year.adding.epsilon, 3)
        (1.266, 0.417)
    """
    positive_finite("epsilon", epsilon)
    require(failure_probability("delta", delta) > 0, "delta", delta, "must be greater than 0")
    integer("releases", releases, least=1)
    limit = Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        basis=Basis.PROVED,
    )
    each = allowed_each(Account.GAUSSIAN, limit, releases, delta)
    return Schedule(
        releases=releases,
        limit=Amount(epsilon, delta),
        per_release=Amount(each, delta),
        adding=Amount(epsilon / releases, delta / releases),
        from_one=best_chance_gaussian(gaussian_multiplier(each, delta)),
        from_all=best_chance_gaussian(gaussian_multiplier(epsilon, delta)),
        at_most=best_chance(epsilon, delta),
    )
