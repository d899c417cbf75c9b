"""Declare what a release may know about histories as a whole: lengths, order, and levels of ratings.

A fit with `for_synthesis` releases these numbers. Recommendations do not use them; `discreet.synthesis` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from discreet.core import Floats
from discreet.models.scorers.scorer import RELEASED, Scorer, Stored, StoredNumbers
from discreet.statistics import LENGTH_STARTS, MOST_LEVELS, SummedHistories

#: No release counts more users: data have at most 2^34, and what noise adds beyond this is cut off.
MOST_COUNTED = 2.0**35
# A bin of lengths counts from this many deviations of its noise.
_CLEAR = 3.0
#: The arrays of a scorer, all of them optional; files of older versions have none.
HISTORIES: Mapping[str, Stored] = {
    "history_lengths": StoredNumbers(
        source=RELEASED,
        shape=("length bins",),
        least=0.0,
        most=MOST_COUNTED,
        longest=LENGTH_STARTS.size,
        optional=True,
    ),
    "history_order": StoredNumbers(source=RELEASED, shape=(1,), least=0.0, most=1.0, optional=True),
    "rating_levels": StoredNumbers(
        source=RELEASED, shape=("levels",), least=0.0, longest=MOST_LEVELS, optional=True
    ),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedHistories:
    """Users by length bin, the share of users with an order, and shares of rating levels."""

    lengths: Floats
    ordered: float
    levels: Floats

    @classmethod
    def cleaned(cls, noisy: SummedHistories, noise: float) -> Self:
        """Return possible numbers near noisy ones: no count below 0, and totals as they were released.

        Bins of lengths that do not stand out of the `noise` are empty: a few users with histories as long as
        the catalog, which noise alone can make, would outweigh all others.
        """
        people = float(np.clip(noisy.lengths.sum(), 1.0, MOST_COUNTED))
        clear = noisy.lengths >= min(_CLEAR * noise, float(noisy.lengths.max()))
        lengths = np.zeros(clear.size)
        lengths[clear] = nearest_counts(noisy.lengths[clear], people)
        return cls(
            lengths=lengths,
            ordered=float(np.clip(noisy.ordered / people, 0.0, 1.0)),
            levels=nearest_counts(noisy.levels / people, 1.0),
        )

    @classmethod
    def of(cls, scorer: Scorer) -> Self | None:
        """Return a scorer's numbers, or None if its release doesn't have them."""
        if not set(HISTORIES) <= set(scorer.stored):
            return None
        lengths, order, levels = (scorer.part(name) for name in HISTORIES)
        usable = 0 < lengths.size <= LENGTH_STARTS.size and 0 < levels.size <= MOST_LEVELS
        if not usable or not order.size or not lengths.sum() > 0 or not levels.sum() > 0:
            return None
        return cls(lengths=lengths, ordered=float(order[0]), levels=levels / levels.sum())

    def fields(self) -> dict[str, Floats]:
        """Return the arrays of a scorer by name."""
        return {
            "history_lengths": self.lengths,
            "history_order": np.array([self.ordered]),
            "rating_levels": self.levels,
        }


def nearest_counts(noisy: Floats, total: float) -> Floats:
    """Return the nearest numbers that are not negative and add up to `total` (Euclidean projection).

    Example:
        >>> nearest_counts(np.array([5.0, -1.0, 2.0]), 6.0).tolist()
        [4.5, 0.0, 1.5]
    """
    falling = np.sort(noisy)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    shift = float(shifts[np.flatnonzero(falling > shifts)[-1]])
    nearest: Floats = np.maximum(noisy - shift, 0.0)
    return nearest
