"""Compute user profiles and their contributions to item sums, on all available threads.

A user's profile is the sum of the vectors of the items in the row, divided by the size of that set, centered
and scaled. The contribution to an item leaves that item's own vector out of the sum: otherwise an item would
find itself in the profile of each of its users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple, final

import numpy as np

from discreet.core.arrays import Array, Floats, Rows, require_fit, run, run_over_rows, summed_over_rows
from discreet.core.kernels import compiled, inner
from discreet.statistics.domain import MOST, Length, Numbers
from discreet.statistics.norm_clipping import clipped_rows
from discreet.statistics.statistic import ROUNDING, Block, Part, Statistic, Steps


def profile_totals(rows: Rows, lens: Lens) -> Floats:
    """Return for each row the sums that make up its profile: of vectors and, last, of squares."""
    require_fit(rows, len(lens.vectors))
    out = np.empty((rows.n_rows, lens.vectors.shape[1] + 1))
    run_over_rows(sum_rows, rows, lens, out)
    return out


def profiles(totals: Floats, lens: Lens) -> Floats:
    """Return the profile of each row, all its items included."""
    out = np.empty((len(totals), lens.vectors.shape[1]))
    run(place_rows, np.arange(len(totals) + 1), lens, totals, out)
    return out


def contribution_norms(rows: Rows, lens: Lens, question: ItemQuestion, *, absolute: bool) -> Floats:
    """Return the norm of each row's whole contribution at weight 1: l1 if `absolute`, else l2."""
    norms, scratch = np.zeros(rows.n_rows), np.zeros(width(lens, question))
    totals = profile_totals(rows, lens)
    run_over_rows(fill_contribution_norms, rows, totals, lens, question, absolute, scratch, norms)
    return norms


def contribution_sums(
    rows: Rows,
    lens: Lens,
    question: ItemQuestion,
    *,
    steps: float,
    absolute: bool,
    weights: Floats | None = None,
) -> Steps:
    """Return for each item the sum of its rows' contributions, in fixed point truncated toward zero.

    The whole contribution of a row is scaled to norm `steps`, or multiplied by its weight if `weights` are
    given.
    """
    totals = profile_totals(rows, lens)
    given = np.zeros(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    longest = int(np.diff(rows.indptr).max(initial=1))

    def part(start: int, stop: int) -> tuple[Steps]:
        out = np.zeros((len(lens.vectors), width(lens, question)), dtype=np.int64)
        scratch = np.zeros((longest, out.shape[1]))
        shared = (rows.indptr, rows.columns, totals, lens, question, given, steps, absolute, scratch)
        add_contributions(start, stop, *shared, out)
        return (out,)

    return summed_over_rows(part, rows.indptr)[0]


def width(lens: Lens, question: ItemQuestion) -> int:
    """Return the number of values that a row contributes to an item."""
    return 1 + int(lens.vectors.shape[1]) + len(question.pairs)


class Lens(NamedTuple):
    """How items become a profile.

    The size of a set is the sum of its items' `squares`. The sum of vectors is divided by the root of the
    size, or, if `growth` is not empty, coordinate by coordinate by `1 + growth * size`. Then `center` is
    subtracted and `scale` multiplied, and the profile is clipped to norm `clip`.
    """

    vectors: Array
    squares: Array
    growth: Array
    center: Array
    scale: Array
    clip: float


class ItemQuestion(NamedTuple):
    """A contribution to an item: its weight times a count, a profile, and products of its entries."""

    item_weights: Array
    count_part: float
    pairs: Array
    pair_part: float


@compiled
def sum_rows(start: int, stop: int, indptr: Array, columns: Array, lens: Lens, out: Array) -> None:
    """Write for each row the sum of its items' vectors and, in the last column, of their squares."""
    width = lens.vectors.shape[1]
    for row in range(start, stop):
        out[row, :] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            item = columns[entry]
            for a in range(width):
                out[row, a] += lens.vectors[item, a]
            out[row, width] += lens.squares[item]


@compiled
def place(lens: Lens, total: Array, item: int, out: Array) -> None:
    """Set `out` to the profile of one user without one item; with all of them if the item is -1."""
    width = out.size
    size = total[width] - (lens.squares[item] if item >= 0 else 0.0)
    out[:] = 0.0
    if size <= 1e-12 * total[width]:
        return
    if item >= 0:
        for a in range(width):
            out[a] = total[a] - lens.vectors[item, a]
    else:
        for a in range(width):
            out[a] = total[a]
    if lens.growth.size:
        for a in range(width):
            out[a] /= lens.growth[a] * size + 1.0
    else:
        inverse = 1.0 / math.sqrt(size)
        for a in range(width):
            out[a] *= inverse
    length = 0.0
    for a in range(width):
        out[a] = (out[a] - lens.center[a]) * lens.scale[a]
        length += out[a] * out[a]
    if length > lens.clip * lens.clip:
        shrink = lens.clip / math.sqrt(length)
        for a in range(width):
            out[a] *= shrink


@inner
def contribute(question: ItemQuestion, profile: Array, item_weight: float, out: Array) -> None:
    """Set `out` to the contribution of a user with this profile to one item."""
    width = profile.size
    out[0] = item_weight * question.count_part
    for a in range(width):
        out[1 + a] = item_weight * profile[a]
    for p in range(question.pairs.shape[0]):
        product = profile[question.pairs[p, 0]] * profile[question.pairs[p, 1]]
        out[1 + width + p] = item_weight * question.pair_part * product


@compiled
def place_rows(start: int, stop: int, lens: Lens, totals: Array, out: Array) -> None:
    """Write the profile of each user, all items of the row included."""
    for row in range(start, stop):
        place(lens, totals[row], -1, out[row])


@compiled
def fill_contribution_norms(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    totals: Array,
    lens: Lens,
    question: ItemQuestion,
    absolute: bool,
    scratch: Array,
    out: Array,
) -> None:
    """Write the norm of each user's whole contribution: l1 if `absolute`, else l2."""
    contribution = scratch.copy()
    profile = scratch[: lens.vectors.shape[1]].copy()
    for row in range(start, stop):
        norm = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            item = columns[entry]
            place(lens, totals[row], item, profile)
            contribute(question, profile, question.item_weights[item], contribution)
            for a in range(contribution.size):
                norm += abs(contribution[a]) if absolute else contribution[a] * contribution[a]
        out[row] = norm if absolute else math.sqrt(norm)


@compiled
def add_contributions(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    totals: Array,
    lens: Lens,
    question: ItemQuestion,
    weights: Array,
    steps: float,
    absolute: bool,
    scratch: Array,
    out: Array,
) -> None:
    """Add to each item its users' contributions, in fixed point truncated toward zero.

    The whole contribution of a user is scaled to norm `steps`, or by `weights` if they are not empty; both
    are in fixed-point units. The sums are integers, so they are exact in any order of addition.
    """
    profile = scratch[0, : lens.vectors.shape[1]].copy()
    for row in range(start, stop):
        first = indptr[row]
        norm = 0.0
        for entry in range(first, indptr[row + 1]):
            item, contribution = columns[entry], scratch[entry - first]
            place(lens, totals[row], item, profile)
            contribute(question, profile, question.item_weights[item], contribution)
            for a in range(contribution.size):
                norm += abs(contribution[a]) if absolute else contribution[a] * contribution[a]
        weight = weights[row] if weights.size else steps / (norm if absolute else math.sqrt(norm))
        if norm == 0.0 or not (np.isfinite(norm) and np.isfinite(weight)):
            continue
        for entry in range(first, indptr[row + 1]):
            item, contribution = columns[entry], scratch[entry - first]
            for a in range(contribution.size):
                out[item, a] += np.int64(weight * contribution[a])


#: Weight of the count against the profile in a contribution to an item.
COUNT_PART = 0.5


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ProfiledItems(Statistic):
    """Sum of (c, profile) / sqrt(n (1 + c^2)) over the users of each item; n is the user's number of items.

    Profiles are public, one for each row of the data, of norm at most 1: |(c, profile)|^2 <= 1 + c^2, n
    times. They belong to rows, so blocks must come from the data that the profiles were made for.
    """

    n_items: Annotated[int, Length("n")]
    profiles: Annotated[Floats, Numbers(("u", "k"), -MOST, MOST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return a count and a profile for each item."""
        return (Part("placed", (self.n_items, self.profiles.shape[1] + 1)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        bounded = clipped_rows(self.profiles[block.start : block.stop])
        own = np.column_stack([np.full(len(bounded), COUNT_PART), bounded]) / math.hypot(1.0, COUNT_PART)
        people = block.people
        weights = ROUNDING / np.sqrt(block.counts[people].astype(np.float64))
        for column in range(own.shape[1]):
            block.add_by_item(own[people, column] * weights, sums[0][:, column])
