"""Plan a year of releases: the cost of each, and an attacker's chance. `curves` has the accuracy to expect.

The attacker knows everything but one user's presence, and considers both cases equally likely beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, final

from scipy.special import ndtr

from discreet.core import ArgumentMissing, integer, positive, positive_finite, within
from discreet.planning.curves import SIMPLEST, ExpectedAccuracy, expected, smallest_epsilon
from discreet.privacy import (
    Basis,
    Guarantee,
    Neighbors,
    Trust,
    Unit,
    allowed_each,
    epsilon_of,
    gaussian_multiplier,
)
from discreet.privacy.ledger.accounts import Account
from discreet.privacy.ledger.records import Amount
from discreet.report import (
    GRAY,
    Axis,
    ChartLine,
    Charts,
    Point,
    TableView,
    line_chart,
    number_below,
    posterior,
)

# Marks of more releases would lie on each other.
_MARKED = 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(TableView):
    """Cost of each of `releases` equal releases, and an attacker's chance of success: what `plan` returns.

    Use it before anything is spent. It follows from the numbers of the plan and from public measurements.

    Example:
        >>> year = schedule(5.0, 1e-6, 12)
        >>> year.releases, year.to_json()["limit"]["epsilon"]
        (12, 5.0)

    Stability
        Stable.
    """

    releases: int
    limit: Amount
    per_release: Amount
    adding: Amount
    #: The best chance of guessing whether a user is in the data, from one release and from all of them.
    from_one: float
    from_all: float
    #: The best chance that the budget's (epsilon, delta) alone allows, whatever the noise.
    at_most: float
    #: What one release kept on public data, if the number of users is known.
    expected: ExpectedAccuracy | None = None
    #: The accuracy that was asked for, and on which data the budget reached it.
    wanted: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        """Return what each release may cost and how likely an attacker is right."""
        each, limit = self.per_release, self.limit
        return (
            f"Schedule({self.releases} releases in epsilon={limit.epsilon:g}, delta={limit.delta:g}; each "
            f"epsilon={number_below(each.epsilon)}, delta={each.delta:g}; attacker right {self.from_all:.1%})"
        )

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        rows: list[Sequence[object]] = [
            ("Releases", self.releases),
            ("Budget", f"epsilon = {self.limit.epsilon:g}, delta = {self.limit.delta:g}"),
            ("Each release", _allowed(self.per_release)),
            ("If costs were added", _allowed(self.adding)),
            ("Attacker is right after one", f"{self.from_one:.1%}"),
            ("Attacker is right after all", f"{self.from_all:.1%}"),
            ("Whatever the noise, at most", f"{self.at_most:.1%}"),
        ]
        if self.expected is not None:
            low, high = self.expected.shares
            kept = f"{low:.0%} to {high:.0%} of what is gained without privacy over"
            rows.append((f"Expected {self.expected.metric}", f"{kept} {SIMPLEST[self.expected.metric]}"))
            if self.expected.metric == "rmse":
                rows.append(("For lists, such as from clicks", 'pass metric="hr@10" (--for lists)'))
        return (), rows, "Plan"

    def plot(self) -> Charts:
        """Return a chart of how epsilon grows from release to release, composed and added up."""
        each, delta = self.per_release, self.limit.delta
        weight = gaussian_multiplier(each.epsilon, each.delta) ** -2
        counts, few = range(1, self.releases + 1), self.releases <= _MARKED
        together = tuple(
            Point(count, epsilon_of(Account.GAUSSIAN, count * weight, delta)) for count in _some(counts)
        )
        added = tuple(Point(count, count * each.epsilon) for count in _some(counts))
        lines = [
            ChartLine(name="as this plan composes them", points=together, marked=few),
            ChartLine(name="if epsilons were added", points=added, color=1, dashes="2 4", marked=few),
            ChartLine(name="budget", level=self.limit.epsilon, color=GRAY, dashes="7 4"),
        ]
        across, up = Axis(label="releases so far"), Axis(label=f"epsilon at delta {delta:g}")
        return Charts(line_chart(lines, title=f"{self.releases} equal releases", x=across, y=up))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that `discreet budget plan --json` prints."""
        wanted = {} if self.wanted is None else {"wanted": dict(self.wanted)}
        expected = {} if self.expected is None else {"expected": self.expected.to_json()}
        return {
            **wanted,
            "releases": self.releases,
            "limit": self.limit._asdict(),
            "per_release": self.per_release._asdict(),
            "adding": self.adding._asdict(),
            "attacker": {"prior": 0.5, "one": self.from_one, "all": self.from_all, "at_most": self.at_most},
            **expected,
        }


def _allowed(amount: Amount) -> str:
    """Return what a release may cost, rounded down."""
    return f"epsilon = {number_below(amount.epsilon)}, delta = {number_below(amount.delta)}"


def _some(counts: range) -> list[int]:
    """Return at most about sixty of the counts, with the first and the last."""
    return sorted({*counts[:: max(1, len(counts) // 60)], counts[-1]})


def plan(
    epsilon: float | None = None,
    *,
    delta: float = 1e-6,
    releases: int = 1,
    people: int | None = None,
    items: int | None = None,
    ratings_per_person: float | None = None,
    metric: str = "rmse",
    wanted: float | None = None,
) -> Schedule:
    """Plan releases as `discreet budget plan` does: what each may cost, and which accuracy to expect.

    The plan uses only its arguments and measurements on public data. `epsilon` and `delta` are the budget of
    all releases together. Without an epsilon, the plan uses the smallest epsilon that reached `wanted`.
    If you pass the approximate number of users (`people`), `expected` states the accuracy (`metric` is rmse
    for predicted ratings, or hr@10 for lists) that this noise left on public data. If you also pass the
    approximate numbers of `items` and of ratings per user, the plan uses the public data most similar to
    yours.

    Example:
        >>> year = plan(5.0, releases=12, people=6000, items=3700)
        >>> round(year.per_release.epsilon, 3), round(year.from_all, 3)
        (1.266, 0.695)
        >>> low, high = year.expected.shares  # of what is gained without privacy
        >>> 0 <= low < high <= 1
        True
    """
    if epsilon is None and wanted is None:
        raise ArgumentMissing(names=("epsilon", "wanted"))
    asked: dict[str, Any] = {"items": items, "ratings_per_person": ratings_per_person}
    reached = None
    if wanted is not None:
        if people is None:
            raise ArgumentMissing(names=("people",))
        least, curve = smallest_epsilon(metric, wanted, people, **asked)
        reached = {"metric": metric, "value": wanted, "epsilon": least, "from": curve.dataset}
        epsilon = least if epsilon is None else epsilon
    found = schedule(cast(float, epsilon), delta, releases)
    kept = None if people is None else expected(metric, found.per_release.epsilon, people, **asked)
    return replace(found, expected=kept, wanted=reached)


def schedule(epsilon: float, delta: float, releases: int) -> Schedule:
    """Split a budget of (epsilon, delta) into equal Gaussian releases, chosen adaptively.

    Example:
        >>> year = schedule(5.0, 1e-6, 12)
        >>> round(year.per_release.epsilon, 3), round(year.adding.epsilon, 3)
        (1.266, 0.417)
    """
    positive_finite("epsilon", epsilon)
    within("delta", delta, above=0, below=1)
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
        at_most=posterior(epsilon, delta),
    )


def best_chance_gaussian(multiplier: float) -> float:
    """Return an attacker's best chance against Gaussian noise, which is less than its epsilon allows.

    Example:
        >>> round(best_chance_gaussian(1.0), 3)
        0.691
    """
    positive("multiplier", multiplier)
    return float(ndtr(0.5 / multiplier))
