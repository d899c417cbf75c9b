"""Guess how accurate a model will be from runs on public data of similar size; private data are never read.

What noise does to a sum over people depends on epsilon times the number of people, so a file with twice the
people at half the epsilon is about as good. The runs are committed with the package (`curves.json`, which
`benchmarks/planning.py` writes).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any, final

from discreet.checks import ParameterError, integer, one_of, positive_finite

METRICS = {"rmse": "lower", "hr@10": "higher"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Hold how a metric of the recommended model moved with epsilon on one public data set."""

    dataset: str
    people: int
    ratings_per_person: float
    metric: str
    points: tuple[tuple[float, float], ...]
    floor: float
    bar: float

    def at(self, epsilon: float, people: int) -> float:
        """Return the value expected at this epsilon with so many people, within what was measured."""
        effective = epsilon * people / self.people
        if effective <= self.points[0][0]:
            return self.points[0][1]
        for (low, below), (high, above) in pairwise(self.points):
            if effective <= high:
                share = math.log(effective / low) / math.log(high / low)
                return below + share * (above - below)
        return self.points[-1][1]

    def smallest_epsilon(self, wanted: float, people: int) -> float | None:
        """Return the smallest epsilon at which the metric was as good as wanted, or None if it never was."""
        sign = 1 if METRICS[self.metric] == "higher" else -1
        if sign * self.points[0][1] >= sign * wanted:
            return self.points[0][0] * self.people / people
        for (low, below), (high, above) in pairwise(self.points):
            if sign * above >= sign * wanted:
                share = (wanted - below) / (above - below) if above != below else 1.0
                return float(low * (high / low) ** share * self.people / people)
        return None

    def reaches(self, people: int) -> tuple[float, float]:
        """Return the epsilons between which something was measured, for so many people."""
        return self.points[0][0] * self.people / people, self.points[-1][0] * self.people / people


@lru_cache(maxsize=1)
def curves() -> tuple[Curve, ...]:
    """Return every committed curve."""
    text = resources.files("discreet.planning").joinpath("curves.json").read_text(encoding="utf8")
    records: list[dict[str, Any]] = json.loads(text)
    return tuple(
        Curve(**{**record, "points": tuple((place, value) for place, value in record["points"])})
        for record in records
    )


def similar_curve(metric: str, people: int, ratings_per_person: float) -> Curve:
    """Return the curve of the public data most like these: ratings a person count most, then people."""
    one_of("metric", metric, tuple(METRICS))
    integer("people", people, least=2)
    positive_finite("ratings_per_person", ratings_per_person)
    found = [curve for curve in curves() if curve.metric == metric]
    if not found:
        raise ParameterError(f"There is no committed curve of {metric}.")

    def distance(curve: Curve) -> float:
        longer = abs(math.log(ratings_per_person / curve.ratings_per_person))
        return 2 * longer + abs(math.log(people / curve.people))

    return min(found, key=distance)
