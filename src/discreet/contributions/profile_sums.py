"""Compute what one party's people tell about items: four sums, each of norm at most 1 a person.

All functions are pure: they read people's rows, public numbers and what was released before, and return sums
that add up over parties. Nothing here adds noise; `implicit_server.py` reads sums that carry it. Terms
are cut toward zero on a grid of powers of two, so that double precision adds them without rounding and one
person moves a sum by exactly what that person tells. The proof is in proofs/implicit_objective.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.contributions.blocks import blocks, rows_of
from discreet.contributions.kernels.profiles import Lens, Telling
from discreet.contributions.profiles import profile_totals, told_norms, told_sums
from discreet.contributions.profiles import profiles as solve_profiles
from discreet.data.interactions import Interactions

Norm = Literal["l1", "l2"]

#: The part of a person's votes that counts the person.
PEOPLE_PART = 0.3
# What rounding can have added to a norm computed from up to 2^31 terms, with room to spare.
_ROUNDING = 1 - 1e-6
_GRID = 2.0**-24
# Products of two terms on this grid lie on the square of it, and 2^27 of them stay exact.
_ROOT_GRID = 2.0**-13
_PEOPLE_PER_BLOCK = 1 << 13


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """Say how a person's own choices become a profile; made of public and released numbers only."""

    lens: Lens

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
        arrays = (vectors, squares, np.zeros(0) if growth is None else growth, center, scale)
        settled = [np.ascontiguousarray(array, dtype=np.float64) for array in arrays]
        for array in settled:
            array.setflags(write=False)
        return cls(lens=Lens(settled[0], settled[1], settled[2], settled[3], settled[4], float(clip)))

    @property
    def factors(self) -> int:
        """Return the length of a profile."""
        return int(self.lens.vectors.shape[1])

    def places(self, data: Interactions) -> Floats:
        """Return the profile of each person, computed from that person's own row."""
        return solve_profiles(profile_totals(rows_of(data), self.lens), self.lens)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Say what a person tells about each chosen item, and in which norm it is bounded.

    `pairs` are the entries of the profile's products that are told besides; a loss in which chosen and
    other items weigh alike needs none.
    """

    pull: Floats
    count_part: float
    pairs: npt.NDArray[np.int64]
    pair_part: float
    norm: Norm

    @property
    def telling(self) -> Telling:
        """Return the same for the compiled loops."""
        pull, pairs = np.array(self.pull, dtype=np.float64), np.array(self.pairs, dtype=np.int64)
        for array in (pull, pairs):
            array.setflags(write=False)
        return Telling(pull, self.count_part, pairs, self.pair_part)


def votes(data: Interactions, norm: Norm) -> Floats:
    """Return the weighted number of people of each item and, last, the number of people, times 0.3."""
    share = (1 - PEOPLE_PART) if norm == "l1" else np.sqrt(1 - PEOPLE_PART**2)
    told = np.zeros(data.n_items + 1)
    for block in blocks(data):
        own = block.counts[block.people].astype(np.float64)
        weights = share * _ROUNDING / (own if norm == "l1" else np.sqrt(own))
        block.add_by_item(weights, told[:-1])
        told[-1] += math.floor(PEOPLE_PART / _GRID) * _GRID * np.count_nonzero(block.counts)
    return told


def second_moment(data: Interactions, items: npt.NDArray[np.int64], pull: Floats, norm: Norm) -> Floats:
    """Return, for the chosen `items`, the sum over people of e e', where e is the person's row of norm 1.

    A row holds `pull` for each of `items` the person chose and is scaled to norm 1 in l2 (l1: to sum 1), so
    its square has norm 1 too.
    """
    column = np.full(data.n_items, -1)
    column[items] = np.arange(items.size)
    total = np.zeros((items.size, items.size))
    for block in blocks(data, most_people=_PEOPLE_PER_BLOCK):
        known = column[block.items] >= 0
        people, columns = block.people[known], column[block.items[known]]
        terms = pull[items][columns]
        lengths = np.bincount(people, terms if norm == "l1" else terms**2, minlength=block.counts.size)
        lengths = lengths if norm == "l1" else np.sqrt(lengths)
        rows = np.zeros((block.counts.size, items.size))
        rows[people, columns] = np.floor(_ROUNDING * terms / lengths[people] / _ROOT_GRID) * _ROOT_GRID
        total += rows.T @ rows
    return total


def gram(data: Interactions, profiles: Profiles, norm: Norm) -> Floats:
    """Return the sum over people of p p' for p = (1, profile), over its largest possible norm."""
    entries = np.ones((data.n_users, profiles.factors + 1))
    entries[:, 1:] = profiles.places(data)
    entries[np.diff(data.indptr) == 0] = 0.0
    scale = _ROUNDING / math.sqrt(gram_bound(profiles, norm))
    entries = np.trunc(entries * (scale / _ROOT_GRID)) * _ROOT_GRID
    return entries.T @ entries


def gram_bound(profiles: Profiles, norm: Norm) -> float:
    """Return the largest norm that p p' can have."""
    clip = profiles.lens.clip
    return float((1 + clip * np.sqrt(profiles.factors)) ** 2 if norm == "l1" else 1 + clip**2)


def linear_terms(
    data: Interactions, profiles: Profiles, question: Question, weights: Floats | None = None
) -> Floats:
    """Return for each item the sums of what its people tell; everything one person tells has norm 1.

    Columns are the count, the profile's entries and the products asked for. `weights` replaces the weight of
    each person, for those who bound it by other means.
    """
    sums = told_sums(
        rows_of(data),
        profiles.lens,
        question.telling,
        steps=_ROUNDING / _GRID,
        absolute=question.norm == "l1",
        weights=None if weights is None else weights / _GRID,
    )
    return sums * _GRID


def norms_of_all(data: Interactions, profiles: Profiles, question: Question) -> Floats:
    """Return the norm of everything each person would tell with weight 1."""
    return told_norms(rows_of(data), profiles.lens, question.telling, absolute=question.norm == "l1")
