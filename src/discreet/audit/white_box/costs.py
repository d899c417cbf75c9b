"""Compute the exact privacy cost between two fits with the same mechanism outputs, draw by draw.

Two whole numbers that differ by d, under discrete Laplace noise of scale s, have log-ratios up to d / s, and
reach it. Under discrete Gaussian noise with sigma of at least a thousand units they are as far apart as two
normal distributions that are d / sigma apart. For rows of a table the counts give the log-ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from discreet.audit.white_box.recording import (
    MechanismCall,
    RecordedAdditive,
    RecordedCells,
    RecordedCoins,
    RecordedTable,
)
from discreet.core import Floats, Indices
from discreet.privacy import gaussian_epsilon
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.privacy.mechanisms.channel import WORDS


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The cost between two datasets: the largest log-ratio, and the shift of a Gaussian."""

    pure: float = 0.0
    shift: float = 0.0

    def __add__(self, other: Price) -> Price:
        """Return the cost of both: log-ratios add, shifts add in squares."""
        return Price(pure=self.pure + other.pure, shift=math.hypot(self.shift, other.shift))

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at `delta` that is really spent; of both kinds only the larger one counts."""
        gaussian = gaussian_epsilon(1 / self.shift, delta) if self.shift > 0 else 0.0
        return max(self.pure, gaussian)


def price(recorded: Sequence[MechanismCall], replayed: Sequence[MechanismCall]) -> Price:
    """Return the privacy cost between two fits that saw the same mechanism outputs."""
    total = Price()
    for here, there in zip(recorded, replayed, strict=True):
        total += _price(here, there)
    return total


def log_ratio(recorded: Sequence[MechanismCall], replayed: Sequence[MechanismCall]) -> float:
    """Return the log-likelihood ratio of the outputs: replayed inputs over recorded inputs."""
    return math.fsum(_log_ratio(here, there) for here, there in zip(recorded, replayed, strict=True))


def _price(here: MechanismCall, there: MechanismCall) -> Price:
    match here, there:
        case RecordedAdditive(), RecordedAdditive():
            apart = (there.given - here.given).astype(np.float64) / here.width
            if here.gaussian:
                return Price(shift=float(np.linalg.norm(apart)))
            return Price(pure=float(np.abs(apart).sum()))
        case RecordedTable(), RecordedTable():
            mine, theirs = different_rows(here, there)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.abs(np.nan_to_num(np.log(mine) - np.log(theirs), nan=0.0, posinf=np.inf))
            return Price(pure=float(ratios.max(axis=1).sum()) if ratios.size else 0.0)
        case RecordedCells(), RecordedCells():
            mine, theirs = _different_cells(here, there)
            ratios = np.abs(np.log(mine) - np.log(theirs))
            return Price(pure=float(ratios.max(axis=1).sum()) if ratios.size else 0.0)
    assert isinstance(here, RecordedCoins)
    return Price()


def _log_ratio(here: MechanismCall, there: MechanismCall) -> float:
    match here, there:
        case RecordedAdditive(), RecordedAdditive():
            mine = (here.output - here.given).astype(np.float64) / here.width
            theirs = (here.output - there.given).astype(np.float64) / here.width
            if here.gaussian:
                return float(np.sum((mine - theirs) * (mine + theirs))) / 2
            return float(np.sum(np.abs(mine) - np.abs(theirs)))
        case RecordedTable(), RecordedTable():
            mine, theirs = different_rows(here, there)
            where = rows_that_differ(here, there)
            output = here.output.reshape(-1)[where]
            picked = np.arange(output.size)
            with np.errstate(divide="ignore"):
                return float(np.sum(np.log(theirs[picked, output]) - np.log(mine[picked, output])))
        case RecordedCells(), RecordedCells():
            mine, theirs = _different_cells(here, there)
            output = output_cells(here)[cells_that_differ(here, there)]
            picked = np.arange(output.size)
            return float(np.sum(np.log(theirs[picked, output]) - np.log(mine[picked, output])))
    return 0.0


def rows_that_differ(here: RecordedTable, there: RecordedTable) -> Indices:
    """Return which draws have different probabilities on the two datasets."""
    mine, theirs = here.rows.reshape(-1), there.rows.reshape(-1)
    if here.starts.shape == there.starts.shape and np.array_equal(here.starts, there.starts):
        return np.flatnonzero(mine != theirs)
    return np.flatnonzero((here.starts[mine] != there.starts[theirs]).any(axis=1))


def different_rows(here: RecordedTable, there: RecordedTable) -> tuple[Floats, Floats]:
    """Return the probabilities of the outcomes where the two inputs differ."""
    where = rows_that_differ(here, there)

    def probabilities(table: RecordedTable) -> Floats:
        starts = table.starts[table.rows.reshape(-1)[where]]
        counts = np.diff(starts, axis=1, append=np.uint64(0))
        shares = counts / float(WORDS)
        # All 2^64 words are 0 in 64 bits; only a last outcome can take them all.
        shares[~counts.any(axis=1), -1] = 1.0
        return np.asarray(shares)

    return probabilities(here), probabilities(there)


def cells_that_differ(here: RecordedCells, there: RecordedCells) -> Indices:
    """Return which entries of the rating matrix differ between the two datasets."""
    return np.flatnonzero(dense_cells(here) != dense_cells(there))


def dense_cells(call: RecordedCells) -> Indices:
    """Return each entry's row in the answer table: 0 for an empty entry, then the ratings."""
    inputs = call.mechanism.channel().inputs
    middles = (inputs[1:] + inputs[:-1]) / 2
    cells = np.zeros(call.count, dtype=np.int64)
    cells[call.rated] = 1 + np.searchsorted(middles, call.ratings)
    return cells


def output_cells(call: RecordedCells) -> Indices:
    """Return what was reported for each entry: 0 for no report, then the codes."""
    entries, codes = call.output
    reported = np.zeros(call.count, dtype=np.int64)
    reported[entries] = codes + 1
    return reported


def _different_cells(here: RecordedCells, there: RecordedCells) -> tuple[Floats, Floats]:
    where, answers = cells_that_differ(here, there), cell_answers(here.mechanism)
    return answers[dense_cells(here)[where]], answers[dense_cells(there)[where]]


@lru_cache(maxsize=8)
def cell_answers(mechanism: CellMechanism) -> Floats:
    """Return the probability of no report and of each code, for an empty entry and for each rating."""
    empty = np.concatenate([[1 - mechanism.fake], mechanism.fake * mechanism.pretended()])
    rated = mechanism.keep * mechanism.channel().transition
    silent = np.full((len(rated), 1), 1 - mechanism.keep)
    return np.vstack([empty, np.hstack([silent, rated])])
