"""Sum users' contributions to items through their profiles: four statistics, each of norm at most 1.

A user's profile is the sum of the vectors of the items in the row, divided by the size of that set, centered
and scaled. The contribution to an item leaves that item's own vector out of the sum: otherwise an item would
find itself in the profile of each of its users. Nothing here adds noise; `papers/dpimf` uses the noisy sums.
The proof is in proofs/implicit_objective.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import Array, Floats, Rows, add_over_rows, require_fit, run, run_over_rows
from discreet.core.kernels import compiled, inner
from discreet.data import Interactions
from discreet.statistics.domain import LEAST, MOST, Length, Number, Numbers, OneOf, Places, Stated
from discreet.statistics.norm_clipping import clipped_rows
from discreet.statistics.statistic import (
    ROOT_BITS,
    ROOT_STEPS,
    ROUNDING,
    VECTOR_STEPS,
    Block,
    Norm,
    Part,
    Statistic,
    Steps,
    as_fixed_point,
    rows_of,
    to_fixed_point,
)


def profile_totals(rows: Rows, lens: Lens) -> Floats:
    """Return for each row the sums that make up its profile: of vectors and, last, of squares."""
    require_fit(rows, len(lens.vectors))
    out = np.empty((rows.n_rows, lens.vectors.shape[1] + 1))
    run_over_rows(sum_rows, rows, lens, out)
    return out


def profiles(totals: Floats, lens: Lens) -> Floats:
    """Return the profile of each row, all its items included."""
    out = np.empty((len(totals), lens.vectors.shape[1]))
    run(place_rows, len(totals), lens, totals, out)
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

    def part(start: int, stop: int, out: Steps) -> None:
        scratch = np.zeros((longest, out.shape[1]))
        shared = (rows.indptr, rows.columns, totals, lens, question, given, steps, absolute, scratch)
        add_contributions(start, stop, *shared, out)

    sums = np.zeros((len(lens.vectors), width(lens, question)), dtype=np.int64)
    add_over_rows(part, rows.indptr, sums)
    return sums


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


#: The part of a user's votes that counts the user.
PEOPLE_PART = 0.3
# Entries of a dense matrix, users by items, that are held at a time.
_ENTRIES_AT_A_TIME = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles(Stated):
    """How a user's own interactions become a profile, made of public and released numbers only.

    `Lens` documents the fields. Nothing in a profile divides by `scale` or `center`, and it is
    shortened to `clip`: these may be any numbers.
    """

    vectors: Annotated[Floats, Numbers(("n", "f"), -MOST, MOST)]
    squares: Annotated[Floats, Numbers(("n",), 0.0, MOST)]
    growth: Annotated[Floats, Numbers(("f",), 0.0, MOST, or_none=True)] = field(
        default_factory=lambda: np.zeros(0)
    )
    center: Annotated[Floats, Numbers(("f",), -MOST, MOST)]
    scale: Annotated[Floats, Numbers(("f",), -MOST, MOST)]
    clip: Annotated[float, Number(0.0, 1e15)]

    def __post_init__(self) -> None:
        """Store the arrays as compiled loops read them."""
        for name in ("vectors", "squares", "growth", "center", "scale"):
            view = np.ascontiguousarray(getattr(self, name), dtype=np.float64).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        Stated.__post_init__(self)

    @property
    def lens(self) -> Lens:
        """Return the same for the compiled loops."""
        return Lens(self.vectors, self.squares, self.growth, self.center, self.scale, float(self.clip))

    @property
    def factors(self) -> int:
        """Return the length of a profile."""
        return int(self.vectors.shape[1])

    def places(self, people: Rows) -> Floats:
        """Return the profile of each user, computed from that user's own row."""
        return profiles(profile_totals(people, self.lens), self.lens)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileQuestion(Stated):
    """A user's contribution to each chosen item, and the norm in which it is bounded.

    `pairs` are the products of profile entries that are contributed as well; a loss that weights interactions
    and other items equally needs none.
    """

    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]
    pairs: Annotated[npt.NDArray[np.int64], Places(("p", "2"), below="f", different=False)]
    pair_part: Annotated[float, Number(0.0, MOST)]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @property
    def question(self) -> ItemQuestion:
        """Return the same definition for the compiled loops."""
        item_weights, pairs = (
            np.array(self.item_weights, dtype=np.float64),
            np.array(self.pairs, dtype=np.int64),
        )
        for array in (item_weights, pairs):
            array.setflags(write=False)
        return ItemQuestion(item_weights, self.count_part, pairs, self.pair_part)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ProfileVotes(Statistic):
    """Sum of the weighted number of users of each item and, last, the number of users times p = 0.3.

    A user with n interactions adds s / n (l1) or s / sqrt(n) (l2) to each item, with s = 1 - p or
    sqrt(1 - p^2), and p to the last entry: the norm of the contribution is 1.
    """

    n_items: Annotated[int, Length("n")]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum an item, and one more."""
        return (Part("votes", (self.n_items + 1,), norm=self.norm, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        share = (1 - PEOPLE_PART) if self.norm == "l1" else np.sqrt(1 - PEOPLE_PART**2)
        own = block.counts[block.people].astype(np.float64)
        weights = share * ROUNDING / (own if self.norm == "l1" else np.sqrt(own))
        block.add_by_item(weights, sums[0][:-1])
        sums[0][-1] += math.floor(PEOPLE_PART * VECTOR_STEPS) * np.count_nonzero(block.counts)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class StartMoment(Statistic):
    """Sum of e e' over users, where e is the user's row over `items`, scaled to norm 1.

    A row has `item_weights` for each of `items` that the user interacted with, divided by its own norm. In
    l2 |e e'|_F = |e|^2 = 1; in l1 the entries' sum is (sum_i e_i)^2 = 1.
    """

    items: Annotated[npt.NDArray[np.int64], Places(("t",), below="n")]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of the matrix over `items`."""
        shape = (self.items.size, self.items.size)
        moment = Part("moment", shape, bits=2 * ROOT_BITS, norm=self.norm, symmetric=True, nonnegative=True)
        return (moment,)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        column = np.full(self.item_weights.size, -1)
        column[self.items] = np.arange(self.items.size)
        known = column[block.items] >= 0
        people, columns = block.people[known], column[block.items[known]]
        terms = self.item_weights[self.items][columns]
        lengths = np.bincount(people, terms if self.norm == "l1" else terms**2, minlength=block.counts.size)
        lengths = lengths if self.norm == "l1" else np.sqrt(lengths)
        units = to_fixed_point(ROUNDING * terms / lengths[people], ROOT_BITS)
        at_a_time = max(_ENTRIES_AT_A_TIME // max(self.items.size, 1), 1)
        for start in range(0, block.counts.size, at_a_time):
            stop = min(start + at_a_time, block.counts.size)
            entries = slice(*np.searchsorted(people, [start, stop]))
            rows = np.zeros((stop - start, self.items.size))
            rows[people[entries] - start, columns[entries]] = units[entries]
            sums[0][:] += np.triu(as_fixed_point(rows.T @ rows))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ProfileGram(Statistic):
    """Sum of p p' over users for p = (1, profile), divided by the largest norm that it can have (`bound`).

    The norm of a profile is at most `clip`: in l2 |p p'|_F = |p|^2 <= 1 + clip^2; in l1 the absolute entries
    add up to (sum_i |p_i|)^2 <= (1 + clip sqrt(factors))^2.
    """

    profiles: Profiles
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of the matrix."""
        size = self.profiles.factors + 1
        return (Part("gram", (size, size), bits=2 * ROOT_BITS, norm=self.norm, symmetric=True),)

    @property
    def bound(self) -> float:
        """Return the largest norm that p p' can have."""
        return gram_bound(self.profiles, self.norm)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        entries = np.ones((block.counts.size, self.profiles.factors + 1))
        entries[:, 1:] = self.profiles.places(block.rows())
        entries[block.counts == 0] = 0.0
        entries = np.trunc(entries * (ROUNDING / math.sqrt(self.bound) * ROOT_STEPS))
        entries[~np.isfinite(entries).all(axis=1)] = 0.0
        sums[0][:] += np.triu(as_fixed_point(entries.T @ entries))


def gram_bound(profiles: Profiles, norm: Norm) -> float:
    """Return the largest norm that p p' can have, for p = (1, profile)."""
    clip = profiles.lens.clip
    return float((1 + clip * np.sqrt(profiles.factors)) ** 2 if norm == "l1" else 1 + clip**2)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTerms(Statistic):
    """Sums for each item of its users' contributions: a count, the profile, and the products in `pairs`.

    The whole contribution of one user is divided by its own norm.
    """

    profiles: Profiles
    question: ProfileQuestion

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one row of numbers for each item."""
        lens = self.profiles.lens
        shape = (len(lens.vectors), width(lens, self.question.question))
        return (Part("linear", shape, norm=self.question.norm),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        question, pure = self.question.question, self.question.norm == "l1"
        steps = ROUNDING * VECTOR_STEPS
        sums[0][:] += contribution_sums(
            block.rows(), self.profiles.lens, question, steps=steps, absolute=pure
        )


def weighted_terms(
    data: Interactions, profiles: Profiles, question: ProfileQuestion, weights: Floats
) -> Steps:
    """Return the sums of `LinearTerms` in fixed point with given weights, for callers that bound them."""
    return contribution_sums(
        rows_of(data),
        profiles.lens,
        question.question,
        steps=1.0,
        absolute=question.norm == "l1",
        weights=weights * VECTOR_STEPS,
    )


def norms_of_all(data: Interactions, profiles: Profiles, question: ProfileQuestion) -> Floats:
    """Return the norm of each user's whole contribution at weight 1."""
    return contribution_norms(rows_of(data), profiles.lens, question.question, absolute=question.norm == "l1")
