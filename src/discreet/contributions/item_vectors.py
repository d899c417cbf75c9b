"""Add up what people tell about item vectors; sums are exact, so blocks and threads may come in any order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.kernels.item_vectors import add_people
from discreet.solvers.rows import Rows, require_fit, summed_over_rows


class LocalModel(NamedTuple):
    """Say how a person explains their own ratings: item features, what items bring by themselves, a ridge.

    `scale` turns a person's solution into factors of about unit size, no longer than `longest`; `pull` is the
    weight of an item, `count_part` what counting takes of a person's vector.
    """

    features: Floats
    offsets: Floats
    ridge: Floats
    scale: Floats
    longest: float
    pull: Floats
    count_part: float


class ItemStatistics(NamedTuple):
    """Hold the sum of what people told; each person's (sums, counts) and moment are at most 1 long."""

    sums: Floats
    counts: Floats
    moment: Floats


def item_statistics(people: Rows, model: LocalModel) -> ItemStatistics:
    """Return items' residuals times factors, their counts, and the factors' second moment, summed exactly."""
    require_fit(people, model.features.shape[0])
    return ItemStatistics(*summed_over_rows(lambda *rows: _add(people, model, *rows), people.indptr))


def _add(people: Rows, model: LocalModel, start: int, stop: int) -> ItemStatistics:
    n_items, size = model.features.shape
    told = ItemStatistics(np.zeros((n_items, size)), np.zeros(n_items), np.zeros((size, size)))
    add_people(
        start,
        stop,
        people.indptr,
        people.columns,
        people.values,
        model.offsets,
        model.features,
        model.ridge,
        model.scale,
        model.longest,
        model.pull,
        model.count_part,
        *told,
    )
    return told
