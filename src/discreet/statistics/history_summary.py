"""Sum what synthetic histories need: lengths, whether there is an order, and levels of ratings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, column_sums
from discreet.statistics.domain import FARTHEST, Number, Whole
from discreet.statistics.statistic import Block, Part, Statistic, Steps, as_fixed_point, to_fixed_point

#: The shortest history of each bin of lengths: about half an octave a bin.
LENGTH_STARTS: npt.NDArray[np.int64] = np.array(
    [1, 2, 3, *(round(2 ** (half / 2)) for half in range(4, 62))], dtype=np.int64
)
#: The parts of a user's contribution for the length, the order and the ratings. Their squares add up to less
#: than 1: 0.64 + 0.04 + 0.3025 = 0.9825.
LENGTH_PART, ORDER_PART, LEVEL_PART = 0.8, 0.2, 0.55
#: A scale without steps is cut into so many levels; one with more steps than this, too.
MOST_LEVELS = 21


class SummedHistories(NamedTuple):
    """Estimates: users by length of history, users with an order, and users by level of rating.

    A user counts at each level with their share of ratings there.
    """

    lengths: Floats
    ordered: float
    levels: Floats


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class HistorySummary(Statistic):
    """Numbers of users by the length of their history, by whether it has an order, and by levels of ratings.

    A user with n >= 1 interactions adds 0.8 to the bin of n; 0.2 if two of their times differ; and at each
    level of the scale 0.55 times the share s_l of their ratings there. As sum_l s_l^2 <= (sum_l s_l)^2 = 1,
    the squared norm is at most 0.64 + 0.04 + 0.3025 < 1.
    """

    bins: Annotated[int, Whole(1, LENGTH_STARTS.size)]
    low: Annotated[float, Number(-FARTHEST, FARTHEST)]
    width: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    levels: Annotated[int, Whole(1, MOST_LEVELS)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum: the bins of lengths, the order, and the levels."""
        return (Part("histories", (self.bins + 1 + self.levels,), nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        total = sums[0]
        active = block.counts > 0
        bins = np.searchsorted(LENGTH_STARTS[: self.bins], block.counts[active], side="right") - 1
        unit = int(to_fixed_point(np.array([LENGTH_PART]))[0])
        total[: self.bins] += unit * np.bincount(bins, minlength=self.bins)
        total[self.bins] += int(to_fixed_point(np.array([ORDER_PART]))[0]) * self._ordered(block)
        with np.errstate(over="ignore", invalid="ignore"):
            place = np.rint((block.values - self.low) / self.width * (self.levels - 1))
        level = np.clip(np.nan_to_num(place), 0, self.levels - 1).astype(np.int64)
        shares = to_fixed_point(LEVEL_PART / block.counts[block.people])
        total[self.bins + 1 :] += as_fixed_point(column_sums(level, shares, self.levels))

    def _ordered(self, block: Block) -> int:
        """Return how many users of a block have interactions at two different times."""
        if block.data.times is None or not block.items.size:
            return 0
        times = block.data.times[block.data.indptr[block.start] : block.data.indptr[block.stop]]
        starts = block.indptr[:-1][block.counts > 0]
        first, last = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
        return int(np.count_nonzero(first != last))

    def split(self, released: Floats) -> SummedHistories:
        """Return the three kinds of numbers of a release, each in users."""
        return SummedHistories(
            released[: self.bins] / LENGTH_PART,
            float(released[self.bins] / ORDER_PART),
            released[self.bins + 1 :] / LEVEL_PART,
        )
