"""Learn to separate neighboring datasets from labeled outputs, or from single draws.

Where the likelihood ratio is known it is the score, and only the cuts are learned. Elsewhere outputs become
features that do not depend on the sign or order of factors. A linear discriminant projects them, and a
histogram of the projection gives an estimated ratio.

Only inputs that differ between the datasets matter: the others cancel in the ratio.
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
from discreet.core import Floats, Indices, PrivacyRandom
from discreet.privacy.sampling import draws

Truth = npt.NDArray[np.bool_]
# The most bins of a histogram; outputs with fewer values get one bin per value.
_BINS = 64
# Candidate cuts, finer in the tails.
_TAILS = np.array([0.0, 0.001, 0.0025, 0.005, 0.01, 0.015])
_QUANTILES = np.concatenate([_TAILS, np.linspace(0.025, 0.975, 39), 1 - _TAILS])
_RIDGE = 1e-2
# The most features taken from a file.
_MOST_FEATURES = 400


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Guess the first dataset below `low` and the second above `high`; a forced guess uses `middle`."""

    low: float
    middle: float
    high: float

    @classmethod
    def learned(cls, scores: Floats, truth: Truth, delta: float, error: float) -> Cuts:
        """Choose the cuts that refute most on these games; other games are then counted with them."""
        finite = scores[np.isfinite(scores)]
        points = np.unique(np.quantile(finite, _QUANTILES)) if finite.size else np.zeros(1)
        right = [float(np.mean((scores > point) == truth)) for point in points]
        middle = float(points[int(np.argmax(right))])
        best, chosen = -1.0, cls(low=middle, middle=middle, high=middle)
        # Bonferroni: many cuts are tried on the same games.
        error /= points.size**2
        for low in points[points <= middle]:
            for high in points[points >= middle]:
                cuts = cls(low=float(low), middle=middle, high=float(high))
                found = refuted_epsilon(cuts.tally(scores, truth), delta, error)
                if found > best:
                    best, chosen = found, cuts
        return chosen

    def tally(self, scores: Floats, truth: Truth) -> GuessCounts:
        """Count the guesses by these cuts, and the right ones."""
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
    """A histogram of estimated log-ratios; outputs with few values have one bin per value."""

    edges: Floats
    log_ratio: Floats

    @classmethod
    def of(cls, along: Floats, truth: Truth) -> Thresholds:
        """Count the outputs on both datasets in each bin."""
        values = np.unique(along)
        edges = (
            (values[1:] + values[:-1]) / 2
            if values.size <= _BINS
            else np.unique(np.quantile(along, np.linspace(0, 1, _BINS + 1)[1:-1]))
        )
        bins = np.searchsorted(edges, along)
        counts = [np.bincount(bins[side], minlength=edges.size + 1) + 1.0 for side in (truth, ~truth)]
        ratio = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
        return cls(edges=edges, log_ratio=ratio)

    @classmethod
    def better(cls, along: Floats, truth: Truth) -> Thresholds | None:
        """Return a histogram if on held-out lessons it separates the datasets better than the projection."""
        cut = 2 * truth.size // 3
        thresholds = cls.of(along[:cut], truth[:cut])
        middle = float(np.median(along[:cut]))
        by_thresholds = np.mean((thresholds(along[cut:]) > 0) == truth[cut:])
        by_projection = np.mean((along[cut:] > middle) == truth[cut:])
        clear = 2 * np.sqrt(0.25 / max(truth.size - cut, 1))
        return cls.of(along, truth) if by_thresholds > by_projection + clear else None

    def __call__(self, along: Floats) -> Floats:
        """Return the estimated log-ratio of each projection."""
        return np.asarray(self.log_ratio[np.searchsorted(self.edges, along)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScore:
    """Scores of outputs by their projection on a direction, or by a histogram of the log-ratio along it."""

    center: Floats
    direction: Floats
    thresholds: Thresholds | None

    @classmethod
    def of(cls, features: Floats, truth: Truth) -> LearnedScore:
        """Learn from games whose dataset is known."""
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
    """Return the features of a file: vectors as they are, factors by their products."""
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
    """Return rows of features as a matrix with `width` columns, truncated or padded with zeros."""
    width = width or min(max(row.size for row in rows), _MOST_FEATURES) + 1
    table = np.zeros((len(rows), width))
    for index, row in enumerate(rows):
        size = min(row.size, width - 1)
        table[index, :size] = row[:size]
        # The size is a feature, too.
        table[index, -1] = row.size
    return table


# The number of outcomes drawn at a time.
_CHUNK = 1 << 20


def log_ratios(first: MechanismCall, second: MechanismCall, truth: Truth, random: PrivacyRandom) -> Floats:
    """Return the log-ratios of the second dataset over the first, for outputs drawn on the one in `truth`.

    A score is computed from the output alone, by the same arithmetic for both datasets: a difference in
    rounding would reveal the dataset.
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
            terms = apart * (2.0 * output - apart) / 2
            parts.append(np.sum(terms, axis=1) / first.width**2)
        else:
            parts.append(np.sum(np.abs(output) - np.abs(output - apart), axis=1) / first.width)
    return np.concatenate(parts)


def _table(first: RecordedTable, second: RecordedTable, truth: Truth, random: PrivacyRandom) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.subtract(*map(np.log, different_rows(first, second)[::-1]))
    total = np.zeros(truth.size)
    for index, draw in enumerate(rows_that_differ(first, second)):
        starts = np.stack([table.starts[table.rows.reshape(-1)[draw]] for table in (first, second)])
        total += ratios[index, draws.draw_from_table(starts, truth.astype(np.int64), random)]
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
    """Return `count` independent answers for this entry of the rating matrix."""
    own = call.ratings[call.rated == cell]
    rated = np.arange(count if own.size else 0, dtype=np.int64)
    reported, codes = answer_cells(call.mechanism, rated, np.repeat(own, count), count, random)
    output = np.zeros(count, dtype=np.int64)
    output[reported] = codes + 1
    return output
