"""Describe a finite noisy channel twice: by integers to draw from, and by floats to compute with.

A local mechanism with finitely many outcomes is a `CountTable`: row i states how many of the 2^64 equally
likely words lead from input i to each outcome. Reports are drawn from the table itself, so the largest
log-ratio of its counts is the privacy loss of the code, not just of a formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, PrivacyRandom, require, within
from discreet.privacy.errors import NoInverse, TableReveals
from discreet.privacy.sampling.draws import draw_from_table

Counts = npt.NDArray[np.uint64]

WORDS = 1 << 64
LEAST_EPSILON = 1e-6
MOST_EPSILON = 700.0
# Rows are computed in float64, then rounded to counts; together this moves a log-ratio by far less than this.
ROUNDING = 2.0**-32


def local_epsilon(epsilon: object) -> float:
    """Return epsilon as a float for which a table of counts satisfies its guarantee."""
    return within("epsilon", epsilon, least=LEAST_EPSILON, most=MOST_EPSILON)


def count_above(log_odds: float, others: int) -> int:
    """Return the smallest n with n / 2^64 >= 1 / (e^log_odds + others), computed with 60 digits."""
    with localcontext(prec=60):
        # The last digits are rounded away so that the count is never too small by one.
        odds = Decimal(log_odds).exp() * (1 - Decimal(10) ** -55)
        return math.ceil(Fraction(WORDS) / Fraction(odds + others))


def log_up(ratio: Fraction) -> float:
    """Return the natural logarithm of `ratio` as a float, rounded upward."""
    with localcontext(prec=60):
        exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln() * (1 + Decimal(10) ** -50)
        nearest = float(exact)
        return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def largest_ratio(tops: Counts, bottoms: Counts) -> Fraction:
    """Return the largest of the quotients top / bottom of positive counts, exactly."""
    rough = tops / bottoms.astype(np.float64)
    # Floats err by less than a share of 2^-50 here, so the largest is among these.
    close = rough >= rough.max() * (1 - 2.0**-48)
    best_top, best_bottom = 0, 1
    for top, bottom in zip(tops[close].tolist(), bottoms[close].tolist(), strict=True):
        if top * best_bottom > best_top * bottom:
            best_top, best_bottom = top, bottom
    return Fraction(best_top, best_bottom)


def require_loss(loss: float, epsilon: float) -> None:
    """Raise unless the loss of a table that is about to be drawn from is at most epsilon."""
    if loss > epsilon:
        raise TableReveals(loss=loss, epsilon=epsilon)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountTable:
    """How many of the 2^64 words lead from each input (row) to each outcome (column).

    `starts[i, j]` is the first word that yields outcome j in row i, as `draw_from_table` needs it.
    """

    starts: Counts

    @classmethod
    def of_counts(cls, counts: Counts) -> Self:
        """Keep counts of at least one word whose rows add up to 2^64, which is 0 in 64 bits."""
        require(bool(counts.all()), "counts", counts.shape, must="be at least 1")
        ends = np.cumsum(counts, axis=1, dtype=np.uint64)
        require(not ends[:, -1].any(), "counts", counts.shape, must="add up to 2^64 in every row")
        starts = np.zeros_like(ends)
        starts[:, 1:] = ends[:, :-1]
        starts.setflags(write=False)
        return cls(starts=starts)

    @classmethod
    def of_probabilities(cls, probabilities: Floats) -> Self:
        """Round probabilities up to counts. The likeliest outcome of each row absorbs the rounding."""
        rows = np.arange(len(probabilities))
        payer = probabilities.argmax(axis=1)
        words = np.maximum(np.ceil(probabilities * float(WORDS)), 1.0)
        words[rows, payer] = 0.0
        counts = words.astype(np.uint64)
        counts[rows, payer] = np.negative(counts.sum(axis=1, dtype=np.uint64))
        return cls.of_counts(counts)

    def counts(self) -> Counts:
        """Return the counts. Every row adds up to 2^64."""
        return np.diff(self.starts, axis=1, append=np.uint64(0))

    def transition(self) -> Floats:
        """Return the table as float64 probabilities."""
        return self.counts() / float(WORDS)

    def largest_log_ratio(self) -> float:
        """Return the largest log P(outcome | input) / P(outcome | other input), exact and rounded upward."""
        counts = self.counts()
        return log_up(largest_ratio(counts.max(axis=0), counts.min(axis=0)))

    def kept(self, epsilon: float) -> Self:
        """Return this table if its largest log-ratio is at most epsilon. Raise otherwise."""
        require_loss(self.largest_log_ratio(), epsilon)
        return self

    def draw(self, rows: Indices, random: PrivacyRandom) -> Indices:
        """Draw one outcome for each input, by one 64-bit word each."""
        if rows.size == 0:
            return np.zeros(rows.shape, dtype=np.int64)
        if rows.size < len(self.starts):
            return draw_from_table(self.starts[rows.ravel()], np.arange(rows.size), random).reshape(
                rows.shape
            )
        return draw_from_table(self.starts, rows, random)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channel:
    """The values of inputs and reports, and the transition probabilities between them.

    `transition[i, j]` is the probability that the input `inputs[i]` is reported as `outputs[j]`.
    """

    inputs: Floats
    outputs: Floats
    transition: Floats

    def mean(self) -> Floats:
        """Return E[report | input] for every input."""
        return self.transition @ self.outputs

    def variance(self) -> Floats:
        """Return the variance of the report for every input."""
        mean = self.mean()
        return _row_sums(self.transition, (self.outputs[None, :] - mean[:, None]) ** 2)

    def cdf(self, row: int) -> Floats:
        """Return P(report <= output | input `row`) for every output, for outputs in rising order."""
        return np.cumsum(self.transition[row])

    def condition(self) -> float:
        """Return the condition number of a square channel: how much decoding magnifies noise."""
        return float(np.linalg.cond(self._square()))

    def inverse(self) -> Floats:
        """Return the matrix that decodes counts of reports without bias: `counts @ inverse`."""
        return np.linalg.inv(self._square()).astype(np.float64)

    def unbiased(self, scores: npt.ArrayLike) -> Floats:
        """Return for every output the number whose expectation, given the input, is that input's score."""
        return np.linalg.solve(self._square(), np.asarray(scores, dtype=np.float64)).astype(np.float64)

    def _square(self) -> Floats:
        if self.transition.shape[0] != self.transition.shape[1]:
            raise NoInverse()
        return self.transition


def _row_sums(left: Floats, right: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", left, right))
