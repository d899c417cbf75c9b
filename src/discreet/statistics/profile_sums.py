"""Compute what people tell about items through their profiles: four statistics, each of norm at most 1.

Everything here reads people's rows, public numbers and what was released before. Nothing adds noise; the
readers of noisy sums are in `models/implicit_objective`. The proof is in proofs/implicit_objective.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.rows import Rows
from discreet.data.interactions import Interactions
from discreet.statistics.blocks import Block, rows_of
from discreet.statistics.domain import LEAST, MOST, Length, Number, Numbers, OneOf, Places, Stated
from discreet.statistics.fixed_point import (
    ROOT_BITS,
    ROOT_STEPS,
    ROUNDING,
    VECTOR_STEPS,
    Steps,
    as_fixed_point,
    to_fixed_point,
)
from discreet.statistics.profiles import (
    ItemQuestion,
    Lens,
    contribution_norms,
    contribution_sums,
    profile_totals,
    width,
)
from discreet.statistics.profiles import profiles as solve_profiles
from discreet.statistics.statistic import Norm, Part, Statistic

#: The part of a person's votes that counts the person.
PEOPLE_PART = 0.3
# So many cells of a dense matrix of a block's people by items are held at a time.
_CELLS_AT_A_TIME = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles(Stated):
    """Say how a person's own choices become a profile; made of public and released numbers only.

    What the fields mean is said by `Lens`. Nothing in a profile divides by `scale` or `center`, and it is
    shortened to `clip`: these may be any numbers.
    """

    vectors: Annotated[Floats, Numbers(("n", "f"), -MOST, MOST)]
    squares: Annotated[Floats, Numbers(("n",), 0.0, MOST)]
    growth: Annotated[Floats, Numbers(("f",), 0.0, MOST, or_none=True)]
    center: Annotated[Floats, Numbers(("f",), -MOST, MOST)]
    scale: Annotated[Floats, Numbers(("f",), -MOST, MOST)]
    clip: Annotated[float, Number(0.0, 1e15)]

    def __post_init__(self) -> None:
        """Hold the arrays as compiled loops read them."""
        for name in ("vectors", "squares", "growth", "center", "scale"):
            view = np.ascontiguousarray(getattr(self, name), dtype=np.float64).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        Stated.__post_init__(self)

    @classmethod
    def of(
        cls,
        vectors: Floats,
        squares: Floats,
        *,
        center: Floats,
        scale: Floats,
        clip: float,
        growth: Floats | None = None,
    ) -> Profiles:
        """Build it from arrays of any kind."""
        return cls(
            vectors=vectors,
            squares=squares,
            growth=np.zeros(0) if growth is None else growth,
            center=center,
            scale=scale,
            clip=float(clip),
        )

    @property
    def lens(self) -> Lens:
        """Return the same for the compiled loops."""
        return Lens(self.vectors, self.squares, self.growth, self.center, self.scale, float(self.clip))

    @property
    def factors(self) -> int:
        """Return the length of a profile."""
        return int(self.vectors.shape[1])

    def places(self, people: Rows) -> Floats:
        """Return the profile of each person, computed from that person's own row."""
        return solve_profiles(profile_totals(people, self.lens), self.lens)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileQuestion(Stated):
    """Say what a person tells about each chosen item, and in which norm it is bounded.

    `pairs` are the entries of the profile's products that are told besides; a loss in which chosen and
    other items weigh alike needs none.
    """

    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]
    pairs: Annotated[npt.NDArray[np.int64], Places(("p", "2"), below="f", different=False)]
    pair_part: Annotated[float, Number(0.0, MOST)]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @property
    def question(self) -> ItemQuestion:
        """Return the same for the compiled loops."""
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
    """Sum the weighted number of people of each item and, last, the number of people, times p = 0.3.

    Somebody with n choices gives each s / n (l1) or s / sqrt(n) (l2), together s = 1 - p or sqrt(1 - p^2),
    and p for being there: the norm of it all is 1.
    """

    n_items: Annotated[int, Length("n")]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @property
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
    """Sum e e' over people, where e is the person's row over the chosen `items`, scaled to norm 1.

    A row holds `pull` for each of `items` the person chose, over its own norm. In l2 |e e'|_F = |e|^2 = 1; in
    l1 the entries' sum is (sum_i e_i)^2 = 1.
    """

    items: Annotated[npt.NDArray[np.int64], Places(("t",), below="n")]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @property
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
        steps = to_fixed_point(ROUNDING * terms / lengths[people], ROOT_BITS)
        at_a_time = max(_CELLS_AT_A_TIME // max(self.items.size, 1), 1)
        for start in range(0, block.counts.size, at_a_time):
            stop = min(start + at_a_time, block.counts.size)
            cells = slice(*np.searchsorted(people, [start, stop]))
            rows = np.zeros((stop - start, self.items.size))
            rows[people[cells] - start, columns[cells]] = steps[cells]
            sums[0][:] += np.triu(as_fixed_point(rows.T @ rows))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ProfileGram(Statistic):
    """Sum p p' over people for p = (1, profile), over the largest norm that it can have (`bound`).

    A profile is at most `clip` long: in l2 |p p'|_F = |p|^2 <= 1 + clip^2; in l1 the entries' sizes add up to
    (sum_i |p_i|)^2 <= (1 + clip sqrt(factors))^2.
    """

    profiles: Profiles
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @property
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
    """Sum for each item what its people tell: a count, the profile's entries, and the products asked for.

    Everything one person tells is divided by its own norm.
    """

    profiles: Profiles
    question: ProfileQuestion

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one row of numbers an item."""
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
    """Return the sums of `LinearTerms` in steps with given weights, for those who bound them otherwise."""
    return contribution_sums(
        rows_of(data),
        profiles.lens,
        question.question,
        steps=1.0,
        absolute=question.norm == "l1",
        weights=weights * VECTOR_STEPS,
    )


def norms_of_all(data: Interactions, profiles: Profiles, question: ProfileQuestion) -> Floats:
    """Return the norm of everything each person would tell with weight 1."""
    return contribution_norms(rows_of(data), profiles.lens, question.question, absolute=question.norm == "l1")
