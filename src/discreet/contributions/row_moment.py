"""Add up the second moment of people's rows over chosen columns, exactly, off its diagonal.

Entries are cut to whole steps of 2^-14 toward zero and their products added as whole numbers. For rows of
length at most 1 and up to 2^25 people the sums stay below 2^53 steps and become floats without rounding.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.checks import DataError
from discreet.contributions.kernels.row_moment import add_moment
from discreet.solvers.kernels.shared import thread_count

_UNIT = 2.0**14
_MOST_PEOPLE = 1 << 25


@final
class RowMoment:
    """Gather people's rows block by block; `columns` (ascending) are those that take part."""

    def __init__(self, columns: npt.NDArray[np.int64], n_columns: int) -> None:
        self._place = np.full(n_columns, -1, dtype=np.int32)
        self._place[columns] = np.arange(columns.size)
        self._people = 0
        self._totals = [np.zeros((columns.size, columns.size), np.int64) for _ in range(thread_count())]

    def takes_part(self, columns: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Tell which of these columns take part."""
        return self._place[columns] >= 0

    def add(self, indptr: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], entries: Floats) -> None:
        """Add rows at most 1 long over the columns that take part; one that is not finite is left out."""
        self._people += indptr.size - 1
        if self._people > _MOST_PEOPLE:
            raise DataError(
                f"Sums over more than {_MOST_PEOPLE:,} people are not exact; take a sample of them."
            )
        places = self._place[columns]
        cuts = np.searchsorted(indptr, np.linspace(0, columns.size, len(self._totals) + 1))
        cuts[0], cuts[-1] = 0, indptr.size - 1
        jobs = list(zip(pairwise(cuts.tolist()), self._totals, strict=True))

        def job(one: tuple[tuple[int, int], npt.NDArray[np.int64]]) -> None:
            (start, stop), total = one
            add_moment(start, max(start, stop), indptr, places, entries, _UNIT, total)

        with ThreadPoolExecutor(len(jobs)) as pool:
            list(pool.map(job, jobs))

    def total(self) -> Floats:
        """Return the symmetric sum with an empty diagonal."""
        upper = np.sum(self._totals, axis=0).astype(np.float64) / _UNIT**2
        symmetric: Floats = upper + upper.T
        return symmetric
