"""Debias reports that hide which items were rated: rating rates, means, and weighted residuals.

Nothing here sees a rating. A device reports an unrated item as rated with a known probability, so the share
of reports that come from ratings can be estimated for every user and item, and each sum over entries (pairs
of user and item) can be debiased. Entries are weighted by the posterior probability that they were rated. The
rates behind an entry's weight come from other users and other items than its own (two halves of each),
because weights that depend on an entry's own report would bias every sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.collect.estimate import Collected
from discreet.core import Floats, Rows
from discreet.data import Interactions
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.solvers import SPREAD, shrink

_ENTRIES = 1 << 18
# Rates are clipped to this fraction of the average rate from below, and to the second number from above.
_LEAST_RATE, _MOST_RATE = 0.05, 0.98
_LEAST_SHARE = 1e-3
# Effects are kept if their sum of squares exceeds the noise by this many standard deviations.
CLEAR = 2.0
# Prior standard deviation of the overall mean around the middle of the scale, as a fraction of its width.
_MEAN_SPREAD = 0.125
# The least variance of ratings, as a fraction of the typical one, whatever noisy reports suggest.
_LEAST_SPREAD = 0.1


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Presence:
    """The probability that entries were rated: a user's rate times an item's rate over the average.

    `people[g]` are rates of users estimated from items of the other half than g; `items[g]` likewise of
    items.
    """

    people: Floats
    items: Floats
    share: float

    def at(self, rows: npt.NDArray[np.integer], items: npt.NDArray[np.integer]) -> Floats:
        """Return the probability that each entry was rated."""
        product = self.people[items % 2, rows] * self.items[rows % 2, items]
        return np.asarray(np.minimum(product / self.share, _MOST_RATE))

    @classmethod
    def of(cls, reports: Interactions, mechanism: CellMechanism) -> Presence:
        """Estimate the rates from reports, each shrunk toward the average according to its noise."""
        rows, items, shape = reports.rows(), reports.items, (reports.n_users, reports.n_items)
        keep, fake = mechanism.keep, mechanism.fake
        noise = fake * (1 - fake) / (keep - fake) ** 2
        share = max((rows.size / (shape[0] * shape[1]) - fake) / (keep - fake), _LEAST_SHARE)
        rates = []
        for mine, others, size in ((rows, items, shape[0]), (items, rows, shape[1])):
            both = []
            for half in (0, 1):
                seen = max(len(range(1 - half, shape[1] if mine is rows else shape[0], 2)), 1)
                counts = np.bincount(mine[others % 2 != half], minlength=size)
                raw = (counts / seen - fake) / (keep - fake)
                both.append(_shrunk(raw, noise / seen + share / seen, share))
            rates.append(np.stack(both))
        return cls(people=rates[0], items=rates[1], share=share)


def _shrunk(rates: Floats, noise: float, share: float) -> Floats:
    spread = max(float(rates.var()) - noise, 1e-9)
    mean = float(rates.mean())
    shrunk = mean + spread / (spread + noise) * (rates - mean)
    return np.clip(shrunk, _LEAST_RATE * share, _MOST_RATE)


class RatingCounts(NamedTuple):
    """Weighted sums over entries: rating - center, expected count, debiased count, and noise."""

    sums: Floats
    counts: Floats
    present: Floats
    variance: Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellReader:
    """Debias sums over all entries, reported or not, by inverting the channel."""

    collected: Collected
    presence: Presence
    numbers: Floats
    keep: float
    fake: float
    rated_variance: float
    fake_variance: float
    typical_variance: float

    @classmethod
    def of(cls, collected: Collected, mechanism: CellMechanism) -> CellReader:
        """Return the reader of reports of this mechanism."""
        return cls(
            collected=collected,
            presence=Presence.of(collected.reports, mechanism),
            numbers=(mechanism.unbiased() - mechanism.middle)[collected.codes],
            keep=mechanism.keep,
            fake=mechanism.fake,
            rated_variance=mechanism.rated_variance(),
            fake_variance=mechanism.fake_variance(),
            typical_variance=(SPREAD * (mechanism.high - mechanism.low)) ** 2,
        )

    def posterior(self, rates: Floats) -> Floats:
        """Return the probability that an entry reported as rated was rated."""
        rated = rates * self.keep
        return rated / (rated + (1 - rates) * self.fake)

    def tally(self, people: Floats, items: Floats) -> tuple[RatingCounts, RatingCounts]:
        """Return sums by user and by item; the center of an entry is the sum of both effects."""
        by_user, by_item = np.zeros((4, people.size)), np.zeros((4, items.size))
        for start, stop, weights, rates, reported, numbers in self._blocks():
            center = people[start:stop, None] + items[None, :]
            parts = self._parts(center, weights, rates, reported, numbers)
            for place, part in enumerate(parts):
                by_user[place, start:stop] += part.sum(axis=1)
                by_item[place] += part.sum(axis=0)
        return RatingCounts(*by_user), RatingCounts(*by_item)

    def _parts(
        self, center: Floats, weights: Floats, rates: Floats, reported: npt.NDArray[np.bool_], numbers: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what each entry adds to the four sums of a tally.

        An unreported entry adds `silent` and a reported one (number - shifted) / keep: the mean is then
        rating - center for a rated entry and 0 for an unrated one.
        """
        keep, fake = self.keep, self.fake
        silent = fake * center / (keep - fake)
        shifted = center + (1 - keep) * silent
        sums = np.where(reported, (numbers - shifted) / keep, silent)
        present = np.where(reported, 1 - fake, -fake) / (keep - fake)
        empty = fake * (self.fake_variance + shifted**2) / keep**2 + (1 - fake) * silent**2
        rated = (self.rated_variance + self.typical_variance + (center - shifted) ** 2) / keep + (
            1 - keep
        ) * silent**2
        variance = rates * rated + (1 - rates) * empty
        return weights * sums, weights * rates, weights * present, weights**2 * variance

    def _blocks(self) -> Iterator[tuple[int, int, Floats, Floats, npt.NDArray[np.bool_], Floats]]:
        reports = self.collected.reports
        columns, block = np.arange(reports.n_items), max(1, _ENTRIES // reports.n_items)
        for start in range(0, reports.n_users, block):
            stop = min(start + block, reports.n_users)
            some = slice(reports.indptr[start], reports.indptr[stop])
            rows = np.repeat(np.arange(stop - start), np.diff(reports.indptr[start : stop + 1]))
            rates = self.presence.at(np.arange(start, stop)[:, None], columns[None, :])
            reported = np.zeros(rates.shape, np.bool_)
            numbers = np.zeros(rates.shape)
            reported[rows, reports.items[some]] = True
            numbers[rows, reports.items[some]] = self.numbers[some]
            yield start, stop, self.posterior(rates), rates, reported, numbers


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectedMeans:
    """Effects around the middle of the scale; all zero where they are not above the noise."""

    mean: float
    items: Floats
    people: Floats
    clear_items: bool
    clear_people: bool


def corrected_means(reader: CellReader, width: float) -> CorrectedMeans:
    """Return the debiased overall mean, and effects of items and users shrunk by their known noise."""
    shape = reader.collected.reports.n_users, reader.collected.reports.n_items
    nobody, nothing = np.zeros(shape[0]), np.zeros(shape[1])
    whole = reader.tally(nobody, nothing)[1]
    total = float(whole.present.sum())
    prior = float(whole.variance.sum()) / (_MEAN_SPREAD * width) ** 2
    mean = float(whole.sums.sum()) * total / (total**2 + prior)
    items, clear_items = _effects(reader.tally(nobody + mean, nothing)[1])
    people, clear_people = _effects(reader.tally(nobody + mean, items)[0])
    return CorrectedMeans(
        mean=mean, items=items, people=people, clear_items=clear_items, clear_people=clear_people
    )


def _effects(tally: RatingCounts) -> tuple[Floats, bool]:
    """Return shrunken effects and True, or zeros and False if they are not above the noise."""
    size = tally.sums.size
    excess = float(np.sum(tally.sums**2 / tally.variance)) - size
    if excess <= CLEAR * math.sqrt(2 * size):
        return np.zeros(size), False
    return shrink(tally.sums, tally.counts, tally.variance, np.ones((size, 1))).mean, True


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectedCells:
    """The debiased residuals of reported entries, weighted by precision.

    `cells.values` have the true residual as their mean. `fixed` and `own` are the parts of each weighted
    square that come from the channel and from the ratings' own variance; together they average 1.
    """

    cells: Rows
    fixed: Floats
    own: Floats
    spread: float

    def where(self, kept: npt.NDArray[np.bool_]) -> CorrectedCells:
        """Return some of the entries."""
        before = np.concatenate([[0], np.cumsum(kept)])
        cells = self.cells
        part = Rows(
            before[cells.indptr],
            cells.columns[kept],
            cells.values[kept],
            None if cells.weights is None else cells.weights[kept],
        )
        return CorrectedCells(cells=part, fixed=self.fixed[kept], own=self.own[kept], spread=self.spread)

    def rho(self, share: float) -> float:
        """Return the misfit to allow if latent factors explain this share of the residual variance."""
        weights = self.cells.weights
        if weights is None or weights.size == 0:
            return 0.0
        squares = float(weights @ self.cells.values.astype(np.float64) ** 2)
        return math.sqrt(squares * float(np.mean(self.fixed + (1 - share) * self.own)))


def corrected_cells(reader: CellReader, means: CorrectedMeans) -> CorrectedCells:
    """Return residuals of reported entries: a report's mean is posterior times (rating - middle)."""
    reports = reader.collected.reports
    rows, items = reports.rows(), reports.items
    weight = reader.posterior(reader.presence.at(rows, items))
    center = means.mean + means.people[rows] + means.items[items]
    off = reader.numbers - weight * center
    fixed = (1 - weight) * (reader.fake_variance + weight * center**2) + weight * reader.rated_variance
    trust = (weight / (fixed + weight * reader.typical_variance)) ** 2
    # With few entries there may be no report to estimate from.
    total = float(trust @ weight)
    estimate = float(trust @ (off**2 - fixed)) / total if total > 0 else 0.0
    spread = max(estimate, _LEAST_SPREAD * reader.typical_variance)
    variance = fixed + weight * spread
    return CorrectedCells(
        cells=Rows(
            reports.indptr,
            items,
            (off / weight).astype(np.float32),
            (weight**2 / variance).astype(np.float32),
        ),
        fixed=fixed / variance,
        own=weight * spread / variance,
        spread=spread,
    )
