"""Randomize whole rows of a rating matrix, rated and missing entries alike.

Both mechanisms report a rated entry as rated with probability `keep`, and a missing entry as rated with
probability `fake`. The positions of these fake ratings are drawn by the gaps between them, so that a device
works in proportion to what it sends, not to the catalog. The scale of the gaps is rounded so that fake
ratings are slightly more frequent than in the mechanism's table, which only hides more
(proofs/local_nuclear.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, PrivacyRandom, finite, finite_array, positive_finite, require
from discreet.privacy.errors import WholeCatalogNeeded
from discreet.privacy.mechanisms.bounded import ModifiedLaplace
from discreet.privacy.mechanisms.channel import Channel, CountTable
from discreet.privacy.mechanisms.clamped_noise import ClampedNoise
from discreet.privacy.mechanisms.randomized_response import RandomizedResponse
from discreet.privacy.sampling.draws import geometric, uniform_below

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# Fake ratings are more frequent than in the table by this share, which covers every rounding of a float.
MARGIN = Fraction(1, 2**40)


def pretending_cells(gap: float, cells: int, random: PrivacyRandom) -> npt.NDArray[np.int64]:
    """Return which of `cells` entries are fake ratings, ascending; each independently by `realized(gap)`."""
    found, last, rate = [np.zeros(0, np.int64)], -1, realized(gap)
    while rate > 0 and last < cells:
        expected = (cells - last) * rate
        size = int(expected + 4 * math.sqrt(expected) + 16)
        positions = last + np.cumsum(np.minimum(geometric(gap, size, random), cells) + 1)
        found.append(positions[positions < cells])
        last = int(positions[-1])
    return np.concatenate(found)


@lru_cache(maxsize=64)
def gap_scale(fake: float) -> float:
    """Return the largest float s with 1 - e^(-1/s) >= fake (1 + MARGIN), rounded down once more."""
    wanted = Fraction(fake) * (1 + MARGIN)
    require(0 < wanted < 1, "fake", fake, must="be strictly between 0 and 1")
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        rest = 1 - Decimal(wanted.numerator) / Decimal(wanted.denominator)
        return math.nextafter(float(-1 / rest.ln()), 0.0)


def realized(gap: float) -> float:
    """Return the probability of a fake rating when gaps have this scale. A scale of 0 means never."""
    return -math.expm1(-1 / gap) if gap else 0.0


Codes = npt.NDArray[np.int64]

#: Points of a continuous scale, and the most steps of a scale whose ratings are reported as levels.
POINTS, MOST_LEVELS = 65, 21
_MOST_EPSILON = 32.0


class CellMechanism(ABC):
    """A mechanism that perturbs entries, rated or missing. Reports are codes: indices into `outputs()`."""

    __slots__ = ()

    epsilon: float
    low: float
    high: float

    @property
    @abstractmethod
    def keep(self) -> float:
        """Return the probability that a rated entry is reported as rated."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Return the scale of the gaps between fake ratings; 0 if there are none."""

    @property
    def fake(self) -> float:
        """Return the probability that a missing entry is reported as rated, as drawn by gaps."""
        return realized(self.gap)

    @abstractmethod
    def event(self) -> DpEvent:
        """Return the cost of one entry."""

    @abstractmethod
    def report(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Return which rated entries are reported as rated, and their codes."""

    @abstractmethod
    def pretend(self, size: int, random: PrivacyRandom) -> Codes:
        """Return codes for missing entries that are reported as rated."""

    @abstractmethod
    def outputs(self) -> Floats:
        """Return the number on the rating scale of each code, ascending."""

    @abstractmethod
    def unbiased(self) -> Floats:
        """Return for each code a number whose mean, given a rating that is reported, is the rating.

        Given a missing entry that is reported as rated, its mean is the middle of the scale.
        """

    @abstractmethod
    def channel(self) -> Channel:
        """Return the channel from ratings to reports, given that the entry is reported as rated."""

    @abstractmethod
    def pretended(self) -> Floats:
        """Return the probability of each code at a missing entry that is reported as rated."""

    def release(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> Floats:
        """Raise: reports for rated entries only would reveal which items were rated."""
        raise WholeCatalogNeeded()

    @property
    def middle(self) -> float:
        """Return the middle of the rating scale."""
        return self.low + (self.high - self.low) / 2

    def rated_variance(self) -> float:
        """Return the variance of `unbiased` around a reported rating, averaged over the scale."""
        channel, numbers = self.channel(), self.unbiased()
        inputs = [0, len(channel.inputs) // 2, len(channel.inputs) - 1]
        spread = (numbers[None, :] - channel.inputs[inputs, None]) ** 2
        return float(np.mean(np.einsum("ij,ij->i", channel.transition[inputs], spread)))

    def fake_variance(self) -> float:
        """Return the variance of `unbiased` at a missing entry that is reported as rated."""
        return float(self.pretended() @ (self.unbiased() - self.middle) ** 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenStars(CellMechanism):
    """Stars reported by randomized response, with "not rated" as one of the levels.

    On a scale of one value (`low` is `high`), a report is one bit per item: interaction or not.

    Guarantee
        Pure `epsilon` for one rating, between any two ratings and between any rating and none, against anyone
        (proofs/local_nuclear.md; the table of reports is in proofs/randomized_response.md).

    Example:
        >>> stars = HiddenStars(epsilon=2.0)
        >>> stars.levels, round(stars.keep, 3), round(stars.fake, 3)
        (5, 0.919, 0.404)

    Stability
        Stable.
    """

    epsilon: float
    low: float = 1.0
    high: float = 5.0
    step: float = 1.0

    def __post_init__(self) -> None:
        low, high = finite("low", self.low), finite("high", self.high)
        require(low <= high, "high", high, must=f"be at least low={low!r}")
        step = positive_finite("step", self.step)
        require(
            (high - low) / step <= MOST_LEVELS,
            "step",
            step,
            must=f"divide the scale into at most {MOST_LEVELS} parts",
        )
        self._response()
        _drawable(self.epsilon)
        several = self.levels >= 2 or low == high
        require(several, "step", self.step, must="divide the scale into at least two ratings")

    @property
    def levels(self) -> int:
        """Return the number of rating levels."""
        return round((self.high - self.low) / self.step) + 1

    @property
    def keep(self) -> float:
        """Return the probability that a rated entry is reported as rated: the truth or another rating."""
        return float(self._transition()[1, 1:].sum())

    @property
    def gap(self) -> float:
        """Return the scale of gaps at which fake ratings are at least as frequent as in the table."""
        return gap_scale(self._response().fake())

    def event(self) -> DpEvent:
        """Return the cost of one entry."""
        return self._response().event()

    def report(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Return which rated entries are reported as rated, and their codes."""
        numbers = np.clip(finite_array("ratings", ratings), self.low, self.high)
        answers = self._response().release(np.rint((numbers - self.low) / self.step) + 1, random)
        reported = answers > 0
        return reported, answers[reported] - 1

    def table(self) -> CountTable:
        """Return the table for rated entries: a row for each rating; outcome 0 is "not rated"."""
        return CountTable(starts=self._response().table().starts[1:])

    def pretend(self, size: int, random: PrivacyRandom) -> Codes:
        """Return uniformly random ratings."""
        return uniform_below(self.levels, size, random)

    def outputs(self) -> Floats:
        """Return the ratings."""
        return np.linspace(self.low, self.high, self.levels)

    def unbiased(self) -> Floats:
        """Return the score of each report under the inverted channel."""
        return self.channel().unbiased(self.outputs())

    def channel(self) -> Channel:
        """Return the channel from ratings to reported ratings."""
        stars = self._transition()[1:, 1:]
        ratings = self.outputs()
        return Channel(inputs=ratings, outputs=ratings, transition=stars / stars.sum(axis=1, keepdims=True))

    def pretended(self) -> Floats:
        """Return equal probabilities."""
        return np.full(self.levels, 1 / self.levels)

    def _response(self) -> RandomizedResponse:
        return RandomizedResponse(epsilon=self.epsilon, levels=self.levels)

    def _transition(self) -> Floats:
        return self._response().transition()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenNumbers(CellMechanism):
    """Numbers with Laplace noise, some reported as missing, and some missing ones as noise around the middle.

    Guarantee
        Pure `epsilon` for one rating, between any two ratings and between any rating and none, against anyone
        (proofs/local_nuclear.md; the table of reports is in proofs/modified_laplace.md).

    Example:
        >>> numbers = HiddenNumbers(epsilon=2.0, points=5)
        >>> round(numbers.keep + numbers.fake, 9)
        1.0
    """

    epsilon: float
    low: float = -1.0
    high: float = 1.0
    points: int = POINTS

    def __post_init__(self) -> None:
        self._laplace()
        _drawable(self.epsilon)

    @property
    def keep(self) -> float:
        """Return the probability that a rated entry is reported as rated."""
        return self._laplace().keep()

    @property
    def gap(self) -> float:
        """Return the scale of gaps at which fake ratings are at least as frequent as in the table."""
        return gap_scale(self._laplace().fake())

    def event(self) -> DpEvent:
        """Return the cost of one entry."""
        return self._laplace().event()

    def report(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Return which rated entries are reported as rated, and their codes."""
        numbers = np.clip(finite_array("ratings", ratings), self.low, self.high)
        reported, reports = self._laplace().release(numbers, random, present=np.ones(numbers.shape, np.bool_))
        return reported, self._codes(reports[reported])

    def tables(self) -> tuple[CountTable, ClampedNoise]:
        """Return the tables for rated entries: reported or not (one row), and the noise."""
        coin, noise = self._laplace().tables()
        return CountTable(starts=coin.starts[1:]), noise

    def pretend(self, size: int, random: PrivacyRandom) -> Codes:
        """Return noise around the middle of the scale."""
        return self._codes(self._laplace().pretend(size, random))

    def outputs(self) -> Floats:
        """Return the grid of reports, which reaches beyond the scale."""
        least, most = self._laplace().report_range()
        return np.linspace(least, most, round((most - least) / self._step()) + 1)

    def unbiased(self) -> Floats:
        """Return the reports themselves: the noise has mean zero, except for clamping one in ten million."""
        return self.outputs()

    def channel(self) -> Channel:
        """Return the channel from ratings to reports."""
        return self._laplace().channel()

    def rated_variance(self) -> float:
        """Return the variance of the noise."""
        return float(self._laplace().variance([self.middle])[0])

    def fake_variance(self) -> float:
        """Return the variance of the noise."""
        return self.rated_variance()

    def pretended(self) -> Floats:
        """Return the noise's distribution around the middle."""
        return self._laplace().likelihood_missing(self.outputs()) / self._laplace().fake()

    def _laplace(self) -> ModifiedLaplace:
        return ModifiedLaplace(epsilon=self.epsilon, low=self.low, high=self.high, points=self.points)

    def _step(self) -> float:
        return (self.high - self.low) / (self.points - 1)

    def _codes(self, reports: Floats) -> Codes:
        return np.rint((reports - self._laplace().report_range()[0]) / self._step()).astype(np.int64)


def _drawable(epsilon: float) -> None:
    """Raise for an epsilon at which fake ratings are too rare for a draw to reach the next one."""
    require(epsilon <= _MOST_EPSILON, "epsilon", epsilon, must=f"be at most {_MOST_EPSILON:g} here")
