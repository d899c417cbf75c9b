"""Add up item by item what people tell about items they rated or chose: votes, and residuals with counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import FARTHEST, LEAST, MOST, Length, Number, Numbers, OneOf
from discreet.contributions.grid import Steps
from discreet.contributions.statistic import Norm, Part, Statistic
from discreet.contributions.typical import USER_RIDGE


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemVotes(Statistic):
    """Sum the votes of people for the n items they chose: 1/n each in l1, 1/sqrt(n) in l2.

    l1: n (1/n) = 1. l2: sqrt(n (1/sqrt(n))^2) = 1.
    """

    n_items: Annotated[int, Length("n")]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum an item."""
        return (Part("votes", (self.n_items,), norm=self.norm, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        pure = self.norm == "l1"
        equal = 1.0 / block.counts[block.people] if pure else block.unit_weights(np.ones(block.items.size))
        block.add_by_item(equal, sums[0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemResiduals(Statistic):
    """Sum what ratings leave of a mean, item effects and the person's own mean, and the ratings' weights.

    With residuals e_i, weights q_i = `pull` and c = `count_part` a person tells (w q_i e_i, w q_i c) for each
    item i rated, w = 1 / sqrt(sum_i q_i^2 (e_i^2 + c^2)); the squared length of it all is 1.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    mean: Annotated[float, Number(-MOST, MOST)]
    effects: Annotated[Floats, Numbers(("n",), -MOST, MOST)]
    pull: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return two sums an item: of residuals, and of counts times `count_part`."""
        return (Part("residuals", (2, self.effects.size)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        residuals = (block.values - self.middle) / self.half - self.mean - self.effects[block.items]
        own = block.per_person(residuals) / (block.counts + USER_RIDGE)
        residuals -= own[block.people]
        item_weight = self.pull[block.items]
        weights = item_weight * block.unit_weights(item_weight**2 * (residuals**2 + self.count_part**2))
        block.add_by_item(weights * residuals, sums[0][0])
        block.add_by_item(weights * self.count_part, sums[0][1])
