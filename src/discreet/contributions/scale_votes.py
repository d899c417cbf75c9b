"""Count which scale people's ratings need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from discreet.contributions.blocks import Block
from discreet.contributions.domain import FARTHEST, Ranges
from discreet.contributions.grid import Steps
from discreet.contributions.statistic import Part, Statistic


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ScaleVotes(Statistic):
    """Count people by the first of the `scales` that holds all their ratings.

    The last count is of those whom none holds. Whoever rated anything adds 1 in one place: 1 in l1.
    """

    scales: Annotated[tuple[tuple[float, float], ...], Ranges(-FARTHEST, FARTHEST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one count a scale, and one more."""
        return (Part("votes", (len(self.scales) + 1,), bits=0, norm="l1", nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        starts = block.indptr[:-1][block.counts > 0]
        if starts.size == 0:
            return
        least, most = np.minimum.reduceat(block.values, starts), np.maximum.reduceat(block.values, starts)
        votes = np.full(starts.size, len(self.scales))
        for place, (low, high) in reversed(list(enumerate(self.scales))):
            votes[(least >= low) & (most <= high)] = place
        sums[0][:] += np.bincount(votes, minlength=len(self.scales) + 1)
