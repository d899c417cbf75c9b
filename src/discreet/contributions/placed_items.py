"""Add up, for each item, the given profiles of those who chose it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import MOST, Length, Numbers
from discreet.contributions.grid import ROUNDING, Steps
from discreet.contributions.statistic import Part, Statistic

#: How much of what a person says about an item says only that it was chosen.
COUNT_PART = 0.5


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PlacedItems(Statistic):
    """Sum (c, profile) / sqrt(n (1 + c^2)) over the people of each item; n is how many items they chose.

    Profiles are public, one for each row of the data, at most 1 long: |(c, profile)|^2 <= 1 + c^2, n times.
    As they belong to rows, blocks must come from the data that they were made for.
    """

    n_items: Annotated[int, Length("n")]
    profiles: Annotated[Floats, Numbers(("u", "k"), -MOST, MOST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return a count and a profile an item."""
        return (Part("placed", (self.n_items, self.profiles.shape[1] + 1)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        bounded = shortened(self.profiles[block.start : block.stop])
        told = np.column_stack([np.full(len(bounded), COUNT_PART), bounded]) / math.hypot(1.0, COUNT_PART)
        weights = ROUNDING / np.sqrt(block.counts[block.people].astype(np.float64))
        for column in range(told.shape[1]):
            block.add_by_item(told[block.people, column] * weights, sums[0][:, column])


def shortened(profiles: Floats) -> Floats:
    """Return profiles at most 1 long."""
    lengths = np.maximum(np.linalg.norm(profiles, axis=1, keepdims=True), 1.0)
    shorter: Floats = profiles / lengths * ROUNDING
    return shorter
