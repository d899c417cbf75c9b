"""Learn to separate neighboring datasets from labeled outputs, or from single draws.

Where the likelihood ratio is known it is the score, and only the cuts are learned. Elsewhere outputs become
numbers that do not depend on the sign or order of factors, a linear discriminant projects them, and a
histogram of the projection turns them into an estimated ratio.

Only the numbers, rows and cells that differ between the worlds matter: the others cancel in the ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.audit.games.bounds import GuessCounts, refuted_epsilon
from discreet.audit.white_box.costs import (
    cell_answers,
    cells_that_differ,
    dense_cells,
    different_rows,
    rows_that_differ,
)
from discreet.audit.white_box.recording import MechanismCall, RecordedAdditive, RecordedCells, RecordedTable
from discreet.collect.device import answer_cells
from discreet.core.arrays import Floats, Indices
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.sampling import draws

Truth = npt.NDArray[np.bool_]
# A histogram has at most so many bars, and outputs with fewer values are counted one by one.
_BARS = 64
# Where cuts may lie: everywhere, and finer in the tails.
_TAILS = np.array([0.0, 0.001, 0.0025, 0.005, 0.01, 0.015])
_QUANTILES = np.concatenate([_TAILS, np.linspace(0.025, 0.975, 39), 1 - _TAILS])
_RIDGE = 1e-2
# At most so many numbers of a file are looked at.
_MOST_FEATURES = 400


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Guess the first world below `low`, the second above `high`, and if one must, by `middle`."""

    low: float
    middle: float
    high: float

    @classmethod
    def learned(cls, scores: Floats, truth: Truth, delta: float, error: float) -> Cuts:
        """Choose the cuts that refute most on these games; they are then tried on others."""
        finite = scores[np.isfinite(scores)]
        points = np.unique(np.quantile(finite, _QUANTILES)) if finite.size else np.zeros(1)
        right = [float(np.mean((scores > point) == truth)) for point in points]
        middle = float(points[int(np.argmax(right))])
        best, chosen = -1.0, cls(low=middle, middle=middle, high=middle)
        # Many cuts are tried on the same games, and the luckiest must not win.
        error /= points.size**2
        for low in points[points <= middle]:
            for high in points[points >= middle]:
                cuts = cls(low=float(low), middle=middle, high=float(high))
                found = refuted_epsilon(cuts.tally(scores, truth), delta, error)
                if found > best:
                    best, chosen = found, cuts
        return chosen

    def tally(self, scores: Floats, truth: Truth) -> GuessCounts:
        """Count how guesses by these cuts fare."""
        above, below = scores > self.high, scores < self.low
        return GuessCounts(
            games=truth.size,
            guesses=int(np.count_nonzero(above | below)),
            right=int(np.count_nonzero((above & truth) | (below & ~truth))),
            right_of_all=int(np.count_nonzero((scores > self.middle) == truth)),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Hold a histogram of estimated log-ratios; outputs with few values have a bar each."""

    edges: Floats
    log_ratio: Floats

    @classmethod
    def of(cls, along: Floats, truth: Truth) -> Thresholds:
        """Count both worlds bar by bar."""
        values = np.unique(along)
        edges = (
            (values[1:] + values[:-1]) / 2
            if values.size <= _BARS
            else np.unique(np.quantile(along, np.linspace(0, 1, _BARS + 1)[1:-1]))
        )
        place = np.searchsorted(edges, along)
        counts = [np.bincount(place[side], minlength=edges.size + 1) + 1.0 for side in (truth, ~truth)]
        ratio = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
        return cls(edges=edges, log_ratio=ratio)

    @classmethod
    def better(cls, along: Floats, truth: Truth) -> Thresholds | None:
        """Return a histogram if on other lessons it tells the worlds apart better than the place itself."""
        cut = 2 * truth.size // 3
        thresholds = cls.of(along[:cut], truth[:cut])
        middle = float(np.median(along[:cut]))
        by_thresholds = np.mean((thresholds(along[cut:]) > 0) == truth[cut:])
        by_place = np.mean((along[cut:] > middle) == truth[cut:])
        clear = 2 * np.sqrt(0.25 / max(truth.size - cut, 1))
        return cls.of(along, truth) if by_thresholds > by_place + clear else None

    def __call__(self, along: Floats) -> Floats:
        """Return the estimated log-ratio at each place."""
        return np.asarray(self.log_ratio[np.searchsorted(self.edges, along)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScore:
    """Score outputs along a direction, by their place or by a histogram of the log-ratio there."""

    center: Floats
    direction: Floats
    thresholds: Thresholds | None

    @classmethod
    def of(cls, features: Floats, truth: Truth) -> LearnedScore:
        """Learn from games whose outcome is known."""
        center, spread = features.mean(axis=0), features.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        unit = (features - center) / scale
        apart = unit[truth].mean(axis=0) - unit[~truth].mean(axis=0)
        within = np.cov(unit, rowvar=False).reshape(apart.size, apart.size)
        direction = np.linalg.solve(within + _RIDGE * np.eye(apart.size), apart) / scale
        along = (features - center) @ direction
        return cls(center=center, direction=direction, thresholds=Thresholds.better(along, truth))

    def __call__(self, features: Floats) -> Floats:
        """Return the estimated log-ratio of each output."""
        along = (features - self.center) @ self.direction
        return along if self.thresholds is None else self.thresholds(along)


def features_of(arrays: Mapping[str, npt.NDArray[Any]]) -> Floats:
    """Return numbers that a file tells: vectors as they are, factors by their products."""
    parts: list[Floats] = []
    for name in sorted(arrays):
        array = arrays[name]
        if array.dtype.kind not in "fiub":
            continue
        numbers = np.nan_to_num(np.asarray(array, dtype=np.float64), posinf=1e30, neginf=-1e30)
        if numbers.ndim == 2 and numbers.shape[1]:
            gram = numbers @ numbers.T
            numbers = np.concatenate([gram[np.triu_indices(len(gram))], np.linalg.norm(numbers, axis=0)])
        parts.append(np.asarray(numbers.reshape(-1), dtype=np.float64))
    return np.concatenate([np.zeros(1), *parts])


def aligned(rows: Sequence[Floats], width: int | None = None) -> Floats:
    """Return rows of features as a matrix, `width` columns wide: cut or filled up with zeros."""
    width = width or min(max(row.size for row in rows), _MOST_FEATURES) + 1
    table = np.zeros((len(rows), width))
    for place, row in enumerate(rows):
        size = min(row.size, width - 1)
        table[place, :size] = row[:size]
        # How much there is tells something, too.
        table[place, -1] = row.size
    return table


# Outcomes drawn at a time.
_CHUNK = 1 << 20


def log_ratios(first: MechanismCall, second: MechanismCall, truth: Truth, random: PrivacyRandom) -> Floats:
    """Return the log-ratios of the second world over the first for outcomes drawn where `truth` says.

    A score is computed from what was told alone, by the same steps whichever world it was: a difference in
    rounding would give the world away.
    """
    match first, second:
        case RecordedAdditive(), RecordedAdditive():
            return _additive(first, second, truth, random)
        case RecordedTable(), RecordedTable():
            return _table(first, second, truth, random)
        case RecordedCells(), RecordedCells():
            return _cells(first, second, truth, random)
    return np.zeros(truth.size)


def _additive(
    first: RecordedAdditive, second: RecordedAdditive, truth: Truth, random: PrivacyRandom
) -> Floats:
    apart = (second.given - first.given).reshape(-1)
    apart = apart[apart != 0]
    draw = draws.discrete_gaussian if first.gaussian else draws.discrete_laplace
    parts = []
    each = max(_CHUNK // max(apart.size, 1), 1)
    for start in range(0, truth.size, each):
        some = truth[start : start + each]
        output = draw(first.width, some.size * apart.size, random).reshape(some.size, apart.size)
        output += np.where(some[:, None], apart, 0)
        if first.gaussian:
            steps = apart * (2.0 * output - apart) / 2
            parts.append(np.sum(steps, axis=1) / first.width**2)
        else:
            parts.append(np.sum(np.abs(output) - np.abs(output - apart), axis=1) / first.width)
    return np.concatenate(parts)


def _table(first: RecordedTable, second: RecordedTable, truth: Truth, random: PrivacyRandom) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.subtract(*map(np.log, different_rows(first, second)[::-1]))
    total = np.zeros(truth.size)
    for place, draw in enumerate(rows_that_differ(first, second)):
        starts = np.stack([table.starts[table.rows.reshape(-1)[draw]] for table in (first, second)])
        total += ratios[place, draws.draw_from_table(starts, truth.astype(np.int64), random)]
    return total


def _cells(first: RecordedCells, second: RecordedCells, truth: Truth, random: PrivacyRandom) -> Floats:
    answers, total = cell_answers(first.mechanism), np.zeros(truth.size)
    for cell in cells_that_differ(first, second).tolist():
        output = np.zeros(truth.size, dtype=np.int64)
        for call, here in ((first, ~truth), (second, truth)):
            output[here] = _output(call, cell, int(here.sum()), random)
        mine, theirs = (dense_cells(call)[cell] for call in (first, second))
        total += np.log(answers[theirs, output]) - np.log(answers[mine, output])
    return total


def _output(call: RecordedCells, cell: int, count: int, random: PrivacyRandom) -> Indices:
    """Return what many cells like this one are told to be: cells answer independently."""
    own = call.ratings[call.rated == cell]
    rated = np.arange(count if own.size else 0, dtype=np.int64)
    places, codes = answer_cells(call.mechanism, rated, np.repeat(own, count), count, random)
    output = np.zeros(count, dtype=np.int64)
    output[places] = codes + 1
    return output
