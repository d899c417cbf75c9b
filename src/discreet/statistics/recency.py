"""Weights of votes and residuals that fade with age, from a user's own row and a public time.

What is added up is what `ItemVotes` and `ItemResiduals` add up, each rating times 2^-(age / half-life). The
age counts from `now`, which is public: a setting or the clock, never the latest time in the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.statistics.counts import ItemResiduals
from discreet.statistics.domain import LEAST, MOST, Length, Number, OneOf, Stated
from discreet.statistics.statistic import ROUNDING, Block, Norm, Part, Statistic, Steps


@final
@dataclass(frozen=True, kw_only=True)
class Recency(Stated):
    """A public time and a half-life, both in the unit of the data's times: seconds."""

    now: Annotated[float, Number(-MOST, MOST)]
    half_life: Annotated[float, Number(LEAST, MOST)]

    def of(self, block: Block) -> Floats:
        """Return what is left of each rating, from 0 to 1; one from the future counts fully."""
        times = block.data.times
        if times is None:
            # None is older than another.
            return np.ones(block.items.size)
        own = times[block.data.indptr[block.start] : block.data.indptr[block.stop]]
        age = np.maximum(self.now - own.astype(np.float64), 0.0)
        left: Floats = np.exp2(-age / self.half_life)
        return np.minimum(left, 1.0)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RecentVotes(Statistic):
    """Sum of votes g_i / max(|g|, 1) of users for their items. g_i is what is left of each interaction.

    |g / max(|g|, 1)| <= 1, in l1 and l2 alike. A user without recent interactions has less than one vote.
    """

    n_items: Annotated[int, Length("n")]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]
    recency: Recency

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum an item."""
        return (Part("votes", (self.n_items,), norm=self.norm, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        left = self.recency.of(block)
        lengths = block.per_person(left) if self.norm == "l1" else np.sqrt(block.per_person(left**2))
        block.add_by_item(left * (ROUNDING / np.maximum(lengths, 1.0))[block.people], sums[0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RecentResiduals(Statistic):
    """Sum as in `ItemResiduals`, each rating times what is left of it.

    A user's vector there has length 1, and every entry is multiplied by a number from 0 to 1 here.
    """

    plain: ItemResiduals
    recency: Recency

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return two sums an item: of residuals, and of counts times `count_part`."""
        return self.plain.parts

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        left = self.recency.of(block)
        residuals, counted = self.plain.weighted(block)
        block.add_by_item(left * residuals, sums[0][0])
        block.add_by_item(left * counted, sums[0][1])
