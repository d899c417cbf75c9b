"""Add up where the people who chose an item stand; sums are exact, whatever the order or threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.kernels.choices import add_choices
from discreet.solvers.rows import Rows, require_fit, summed_over_rows


class ChoicePlaces(NamedTuple):
    """Say where choices put a person: the sum of the items' `vectors` over the root of their `squares`' sum.

    A place is shortened to `longest`; `pull` is the weight of an item in what a person tells, `count_part`
    what counting takes of it.
    """

    vectors: Floats
    squares: Floats
    longest: float
    pull: Floats
    count_part: float


class ChoiceStatistics(NamedTuple):
    """Hold the sum of what people told; one person's (sums, counts) are together at most 1 long."""

    sums: Floats
    counts: Floats


def choice_statistics(people: Rows, places: ChoicePlaces) -> ChoiceStatistics:
    """Return, for each item, the weighted places of those who chose it and their weight, summed exactly."""
    require_fit(people, places.vectors.shape[0])
    return ChoiceStatistics(*summed_over_rows(lambda *rows: _add(people, places, *rows), people.indptr))


def _add(people: Rows, places: ChoicePlaces, start: int, stop: int) -> ChoiceStatistics:
    told = ChoiceStatistics(np.zeros_like(places.vectors), np.zeros(places.vectors.shape[0]))
    add_choices(start, stop, people.indptr, people.columns, *places, *told)
    return told
