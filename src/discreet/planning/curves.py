"""Estimate what accuracy to expect of a release, from what was measured on public data.

Each item's share of the noise is what counts: it depends on epsilon times the number of users, divided by
the number of items. So data with twice the users at half the epsilon are about as accurate. Errors and hit
rates do not carry over from one data set to another; the share that is kept of the gain over a simple answer
does, roughly. The curves ship with the package (`curves.json`, which `benchmarks/planning.py` writes).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any, final

from discreet.core import integer, one_of, positive_finite
from discreet.planning.errors import AccuracyNotReached

METRICS = {"rmse": "lower", "hr@10": "higher"}
#: What each metric is compared with: the simplest answer that learns next to nothing.
SIMPLEST = {"rmse": "the best mean of items or users", "hr@10": "popular items"}
# Data with ratings per user beyond this factor are of another kind.
_LIKE = 5.0
# A curve is read beyond its ends up to this factor.
_BEYOND = 2.0
# At each epsilon a public data set lies so near the range of the others in 9 of 10 cases (test_planning.py).
MARGIN = 0.25


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A metric of the recommended model by epsilon, measured on one public dataset.

    `bar` is the value without privacy, `floor` the value without learning.
    """

    dataset: str
    people: int
    items: int
    ratings_per_person: float
    metric: str
    points: tuple[tuple[float, float], ...]
    floor: float
    bar: float

    def at(self, epsilon: float, people: int, items: int | None = None) -> float:
        """Return the value at this epsilon with so many users and items, clipped to what was measured.

        Without `items` there are as many as in the public data.
        """
        effective = epsilon / self.scale(people, items)
        if effective <= self.points[0][0]:
            return self.points[0][1]
        for (low, below), (high, above) in pairwise(self.points):
            if effective <= high:
                share = math.log(effective / low) / math.log(high / low)
                return below + share * (above - below)
        return self.points[-1][1]

    def smallest_epsilon(self, wanted: float, people: int, items: int | None = None) -> float | None:
        """Return the smallest epsilon at which the metric reaches `wanted`, or None if it never does."""
        sign = 1 if METRICS[self.metric] == "higher" else -1
        scale = self.scale(people, items)
        if sign * self.points[0][1] >= sign * wanted:
            return self.points[0][0] * scale
        for (low, below), (high, above) in pairwise(self.points):
            if sign * above >= sign * wanted:
                share = (wanted - below) / (above - below) if above != below else 1.0
                return float(low * (high / low) ** share * scale)
        return None

    def scale(self, people: int, items: int | None = None) -> float:
        """Return the epsilon that means for such data what epsilon 1 means here."""
        return self.people / people * (1.0 if items is None else items / self.items)

    def share(self, value: float) -> float:
        """Return how much of the gain over the simplest answer is kept: 1 is as good as without privacy."""
        return (value - self.floor) / (self.bar - self.floor)

    def covers(self, epsilon: float, people: int, items: int | None = None) -> bool:
        """Return whether such noise was measured, or nearly."""
        effective = epsilon / self.scale(people, items)
        return self.points[0][0] / _BEYOND <= effective <= self.points[-1][0] * _BEYOND


@lru_cache(maxsize=1)
def curves() -> tuple[Curve, ...]:
    """Return every committed curve."""
    text = resources.files("discreet.planning").joinpath("curves.json").read_text(encoding="utf8")
    records: list[dict[str, Any]] = json.loads(text)
    return tuple(
        Curve(**{**record, "points": tuple((epsilon, value) for epsilon, value in record["points"])})
        for record in records
    )


def similar_curves(
    metric: str, people: int, ratings_per_person: float | None = None, items: int | None = None
) -> list[Curve]:
    """Return the curves of a metric, most similar data first: by ratings per user first, then by size."""
    one_of("metric", metric, tuple(METRICS))
    integer("people", people, least=2)
    if ratings_per_person is not None:
        positive_finite("ratings_per_person", ratings_per_person)
    if items is not None:
        integer("items", items, least=2)

    def distance(curve: Curve) -> float:
        longer = (
            0.0 if ratings_per_person is None else math.log(ratings_per_person / curve.ratings_per_person)
        )
        wider = 0.0 if items is None else math.log(items / curve.items)
        return 2 * abs(longer) + abs(math.log(people / curve.people)) + abs(wider)

    return sorted((curve for curve in curves() if curve.metric == metric), key=distance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedAccuracy:
    """Accuracy under one size of noise on public data: (curve, value there), most similar data first."""

    metric: str
    measured: tuple[tuple[Curve, float], ...]

    @property
    def shares(self) -> tuple[float, float]:
        """Return the range of the share of the gain to expect, as wide as public data sets differ."""
        kept = [curve.share(value) for curve, value in self.measured]
        return min(max(min(kept) - MARGIN, 0.0), 1.0), min(max(max(kept) + MARGIN, 0.0), 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that `discreet budget plan --json` prints."""
        low, high = self.shares
        rows = [
            {
                "dataset": curve.dataset,
                "people": curve.people,
                "items": curve.items,
                "ratings_per_person": curve.ratings_per_person,
                "value": value,
                "without_privacy": curve.bar,
                "without_learning": curve.floor,
            }
            for curve, value in self.measured
        ]
        return {"metric": self.metric, "share_kept": {"low": low, "high": high}, "measured": rows}


def expected(
    metric: str,
    epsilon: float,
    people: int,
    *,
    items: int | None = None,
    ratings_per_person: float | None = None,
) -> ExpectedAccuracy:
    """Return what a release at this epsilon kept on public data of about this kind.

    Data sets with at most five times more or fewer ratings per user are used, if there are two of them, and
    of these the ones where noise of about this size was measured.

    Example:
        >>> low, high = expected("rmse", 1.0, 6000, items=3700).shares
        >>> 0 <= low < high <= 1
        True
    """
    near = similar_curves(metric, people, ratings_per_person, items)
    for keep in (
        lambda curve: _alike(curve, ratings_per_person),
        lambda curve: curve.covers(epsilon, people, items),
    ):
        kept = [curve for curve in near if keep(curve)]
        near = kept if len(kept) > 1 else near
    return ExpectedAccuracy(
        metric=metric, measured=tuple((curve, curve.at(epsilon, people, items)) for curve in near)
    )


def _alike(curve: Curve, ratings_per_person: float | None) -> bool:
    if ratings_per_person is None:
        return True
    return 1 / _LIKE <= ratings_per_person / curve.ratings_per_person <= _LIKE


def smallest_epsilon(
    metric: str,
    wanted: float,
    people: int,
    *,
    items: int | None = None,
    ratings_per_person: float | None = None,
) -> tuple[float, Curve]:
    """Return the smallest epsilon that reached an accuracy, on the most similar data that did."""
    near = similar_curves(metric, people, ratings_per_person, items)
    for curve in near:
        found = curve.smallest_epsilon(wanted, people, items)
        if found is not None:
            return found, curve
    best = "; ".join(f"{curve.points[-1][1]:g} on {curve.dataset}" for curve in near)
    raise AccuracyNotReached(metric=metric, wanted=wanted, best=best)
