"""Sum how well released co-occurrences of other users predict the order of each user's own interactions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from discreet.core.arrays import Array, Floats, add_over_rows
from discreet.core.kernels import compiled, fetch_entry, inner, longest_row
from discreet.statistics.co_occurrence import (
    CoOccurrence,
    OrderedRows,
    PairWeights,
    squared_length,
    taking_part,
)
from discreet.statistics.domain import MOST, Numbers
from discreet.statistics.statistic import ROUNDING, VECTOR_STEPS, Block, Part, Statistic, Steps

#: A user contributes r, r^2 / 2 and 1/2; this bounds the norm of that vector. The root of 3/2 as a double is
#: a little too small, and a user with r = 1 is exactly there.
EVIDENCE_LENGTH = math.nextafter(math.sqrt(1.5), 2.0)
# Pairs of at most so many interactions, the latest, are read: a bound on the time that a user takes.
_LATEST = 32
# Two interactions have one pair, whose correlation is -1 or 1 whatever they are.
_FEWEST = 3


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OrderEvidence(Statistic):
    """Sum of users' correlations r, half of their squares, and half the number of users who have one.

    `pairs` is the released matrix that `asked` sums, noise included. A user takes out their own contribution
    to it. r is the correlation, over the ordered pairs of their latest interactions, of a pair's weight by
    order and closeness in time with its entry of the matrix, multiplied by the `scale` of both items. If a
    user's order is random, what is left of the matrix does not depend on it, so r is 0 on average. It is
    clipped to -1 to 1: |(r, r^2 / 2, 1/2)| <= sqrt(1 + 1/4 + 1/4), whatever the matrix is. A user with fewer
    than three interactions in `asked.top`, or all at one time, contributes nothing.
    """

    asked: CoOccurrence
    pairs: Annotated[Floats, Numbers(("t", "t"), -MOST, MOST)]
    scale: Annotated[Floats, Numbers(("t",), 0.0, 1.0)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the three sums."""
        return (Part("evidence", (3,), bound=EVIDENCE_LENGTH),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        rows, weights, pairs = self.asked.rows(block), self.asked.weights(), np.ascontiguousarray(self.pairs)

        def part(start: int, stop: int, total: Steps) -> None:
            add_evidence(start, stop, rows, weights, pairs, self.scale, total)

        add_over_rows(part, block.indptr, *sums)


# What is left of an entry that is a user's own contribution: rounding, and truncation to fixed point.
_OWN_ROUNDING, _OWN_TRUNCATION = 2e-6, 2.0**-22
# A smaller part of a sum of squares is rounding, not variance.
_LEAST_VARIANCE = 1e-9


@inner
def _without(entry: float, own: float, scale: float) -> float:
    """Return an entry of the matrix without a user's own part, scaled."""
    left = entry - own
    return left * scale if abs(left) > _OWN_ROUNDING * own + _OWN_TRUNCATION else 0.0


@inner
def _correlation(
    columns: Array,
    own: Array,
    gaps: Array,
    moved: Array,
    count: int,
    unit: float,
    asked: PairWeights,
    pairs: Array,
    scale: Array,
) -> float:
    """Return the correlation of a user's weights with the entries of all others; NaN where there is none.

    `unit` times the product of two items' weights and the weight of their order is what the user added.
    """
    apart, back = asked.apart, asked.back
    number, first, second, product, squares, others = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(max(0, count - _LATEST), count):
        for b in range(a + 2, count):
            fetch_entry(pairs, columns[a + 1], columns[b])
            fetch_entry(pairs, columns[b], columns[a + 1])
        decay, passed = 1.0, False
        for b in range(a + 1, count):
            decay *= gaps[b]
            passed |= moved[b]
            weight = apart + (1 - apart) * decay
            ahead = weight if passed else weight * (1 + back) / 2
            behind = weight * back if passed else ahead
            i, j = columns[a], columns[b]
            mine, scaled = unit * own[a] * own[b], scale[i] * scale[j]
            one = _without(pairs[i, j], mine * ahead, scaled)
            other = _without(pairs[j, i], mine * behind, scaled)
            number += 2
            first += ahead + behind
            second += one + other
            product += ahead * one + behind * other
            squares += ahead * ahead + behind * behind
            others += one * one + other * other
    spread, varied = squares - first * first / number, others - second * second / number
    if not (spread > _LEAST_VARIANCE * squares and varied > _LEAST_VARIANCE * others):
        return np.nan
    return (product - first * second / number) / np.sqrt(spread * varied)  # type: ignore[no-any-return]


@compiled
def add_evidence(
    start: int,
    stop: int,
    rows: OrderedRows,
    asked: PairWeights,
    pairs: Array,
    scale: Array,
    totals: Array,
) -> None:
    """Add the contributions of a range of rows in fixed point, truncated toward zero.

    A user without a correlation, or with one that is not finite, contributes nothing.
    """
    longest = longest_row(start, stop, rows.indptr)
    columns, own, gaps = np.empty(longest, np.uint32), np.empty(longest), np.empty(longest)
    moved = np.empty(longest, np.bool_)
    for row in range(start, stop):
        count = taking_part(rows, row, asked, columns, own, gaps, moved)
        if count < _FEWEST:
            continue
        added = ROUNDING / np.sqrt(squared_length(own, gaps, moved, count, asked))
        found = _correlation(columns, own, gaps, moved, count, added, asked, pairs, scale)
        if not np.isfinite(found):
            continue
        found = -1.0 if found < -1.0 else 1.0 if found > 1.0 else found
        totals[0] += np.int64(found * VECTOR_STEPS)
        totals[1] += np.int64(found * found / 2 * VECTOR_STEPS)
        totals[2] += np.int64(VECTOR_STEPS / 2)
