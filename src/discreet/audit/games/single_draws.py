"""Draw one release many times and take its likelihood ratio between two worlds, without fitting again.

Only the numbers, rows and cells that differ between the worlds matter: the others cancel in the ratio.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats, Indices
from discreet.audit.games.scores import Truth
from discreet.audit.white_box.prices import (
    cell_answers,
    cells_that_differ,
    dense_cells,
    different_rows,
    rows_that_differ,
)
from discreet.audit.white_box.tape import Additive, Cells, Passage, Table
from discreet.collect.catalog.device import answer_cells
from discreet.privacy.sampling import draws
from discreet.randomness import PrivacyRandom

# Outcomes drawn at a time.
_CHUNK = 1 << 20


def log_ratios(first: Passage, second: Passage, truth: Truth, random: PrivacyRandom) -> Floats:
    """Return the log-ratios of the second world over the first for outcomes drawn where `truth` says.

    A score is computed from what was told alone, by the same steps whichever world it was: a difference in
    rounding would give the world away.
    """
    match first, second:
        case Additive(), Additive():
            return _additive(first, second, truth, random)
        case Table(), Table():
            return _table(first, second, truth, random)
        case Cells(), Cells():
            return _cells(first, second, truth, random)
    return np.zeros(truth.size)


def _additive(first: Additive, second: Additive, truth: Truth, random: PrivacyRandom) -> Floats:
    apart = (second.given - first.given).reshape(-1)
    apart = apart[apart != 0]
    draw = draws.discrete_gaussian if first.gaussian else draws.discrete_laplace
    parts = []
    each = max(_CHUNK // max(apart.size, 1), 1)
    for start in range(0, truth.size, each):
        some = truth[start : start + each]
        told = draw(first.width, some.size * apart.size, random).reshape(some.size, apart.size)
        told += np.where(some[:, None], apart, 0)
        if first.gaussian:
            steps = apart * (2.0 * told - apart) / 2
            parts.append(np.sum(steps, axis=1) / first.width**2)
        else:
            parts.append(np.sum(np.abs(told) - np.abs(told - apart), axis=1) / first.width)
    return np.concatenate(parts)


def _table(first: Table, second: Table, truth: Truth, random: PrivacyRandom) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.subtract(*map(np.log, different_rows(first, second)[::-1]))
    total = np.zeros(truth.size)
    for place, draw in enumerate(rows_that_differ(first, second)):
        starts = np.stack([table.starts[table.rows.reshape(-1)[draw]] for table in (first, second)])
        total += ratios[place, draws.draw_from_table(starts, truth.astype(np.int64), random)]
    return total


def _cells(first: Cells, second: Cells, truth: Truth, random: PrivacyRandom) -> Floats:
    answers, total = cell_answers(first.mechanism), np.zeros(truth.size)
    for cell in cells_that_differ(first, second).tolist():
        told = np.zeros(truth.size, dtype=np.int64)
        for passage, here in ((first, ~truth), (second, truth)):
            told[here] = _told(passage, cell, int(here.sum()), random)
        mine, theirs = (dense_cells(passage)[cell] for passage in (first, second))
        total += np.log(answers[theirs, told]) - np.log(answers[mine, told])
    return total


def _told(passage: Cells, cell: int, count: int, random: PrivacyRandom) -> Indices:
    """Return what many cells like this one are told to be: cells answer independently."""
    own = passage.ratings[passage.rated == cell]
    rated = np.arange(count if own.size else 0, dtype=np.int64)
    places, codes = answer_cells(passage.mechanism, rated, np.repeat(own, count), count, random)
    told = np.zeros(count, dtype=np.int64)
    told[places] = codes + 1
    return told
