"""Add up one number or two a person: the mean rating, being there at all, and, by rating, its share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import FARTHEST, Number
from discreet.contributions.grid import Steps, whole_steps
from discreet.contributions.statistic import Part, Statistic

#: A person tells the mean and half a count; the vector (mean, 1/2) is at most this long.
MEAN_LENGTH = math.sqrt(1.25)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PersonMeans(Statistic):
    """Sum people's mean ratings, on a scale that runs from -1 to 1, and half of how many people rated.

    |(mean, 1/2)| <= sqrt(1 + 1/4), since |mean| <= 1.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the two sums."""
        return (Part("mean", (2,), bound=MEAN_LENGTH),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        rated = block.counts > 0
        own = block.per_person((block.values - self.middle) / self.half)[rated] / block.counts[rated]
        # On a scale too narrow for single precision a clipped rating may still lie outside.
        own = np.clip(own, -1, 1)
        sums[0][:] += [_total(own), _total(np.full(own.size, 0.5))]


@final
@dataclass(frozen=True, eq=False)
class PeopleCount(Statistic):
    """Count the people who have at least one rating; each adds 1."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the count."""
        return (Part("people", (1,), nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        sums[0][0] += _total((block.counts > 0).astype(np.float64))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RatingShares(Statistic):
    """Sum how far up the scale every rating lies, from 0 to 1: one *rating* adds at most 1."""

    low: Annotated[float, Number(-FARTHEST, FARTHEST)]
    width: Annotated[float, Number(0.0, FARTHEST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the sum."""
        return (Part("shares", (1,), norm="l1", of="rating", nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        sums[0][0] += _total(np.clip((block.values - self.low) / self.width, 0, 1))


def _total(numbers: Floats) -> int:
    """Return the sum of numbers, each at most 1 in size, in whole steps."""
    return int(np.sum(whole_steps(numbers)))
