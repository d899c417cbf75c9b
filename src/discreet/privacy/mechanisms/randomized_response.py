"""Randomize responses with known probabilities: flipped binary ratings, and ratings or "not rated"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, PrivacyRandom, finite_array, integer, probability, require
from discreet.privacy.accounting.events import pure_event
from discreet.privacy.errors import BothFlipsNeeded, OffGrid
from discreet.privacy.mechanisms.channel import WORDS, Channel, CountTable, count_above, local_epsilon

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_MOST_LEVELS = 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """A binary rating, +1 or -1, flipped with a known probability.

    Without flip rates both are flipped with probability 1 / (1 + e^epsilon). With them, a +1 is flipped with
    probability `flip_positive` and a -1 with `flip_negative`, and all four ratios are checked.

    Guarantee
        Pure `epsilon` for one binary rating, between +1 and -1, against anyone (proofs/sign_flip.md). It is
        exact for the 64-bit counts drawn from.

    Raises:
        ParameterError: Epsilon is out of range, or the flip rates reveal more than epsilon.

    Example:
        >>> flip = SignFlip(epsilon=1.0)
        >>> flip.release(np.array([1, -1, 1]), PrivacyRandom.simulate(1)).shape
        (3,)
    """

    epsilon: float
    flip_positive: float | None = None
    flip_negative: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        if (self.flip_positive is None) != (self.flip_negative is None):
            raise BothFlipsNeeded()
        if self.flip_positive is None or self.flip_negative is None:
            return
        for name in ("flip_positive", "flip_negative"):
            rate = probability(name, getattr(self, name))
            require(
                rate > 0,
                name,
                rate,
                must="be greater than 0",
                do="A rating that is never flipped is revealed.",
            )
            object.__setattr__(self, name, rate)
        total = self.flip_positive + self.flip_negative
        do = "Lower one of them: at 1 the report would carry no information."
        require(total < 1, "flip_positive + flip_negative", total, must="be below 1", do=do)
        loss = self.largest_log_ratio()
        do = f"Raise epsilon to at least {loss!r} or move the flip rates towards each other."
        require(
            loss <= self.epsilon, "epsilon", self.epsilon, must="cover what these flip rates reveal", do=do
        )

    def event(self) -> DpEvent:
        """Return the cost: a pure epsilon."""
        return pure_event(self.epsilon)

    def release(self, verdicts: npt.ArrayLike, random: PrivacyRandom) -> npt.NDArray[np.int8]:
        """Return the binary ratings, each flipped or not."""
        rows = _positive(verdicts)
        return (2 * _flip_table(self).draw(rows.astype(np.int64), random) - 1).astype(np.int8)

    def table(self) -> CountTable:
        """Return the table that reports are drawn from, a row for -1 and one for +1."""
        return _flip_table(self)

    def flip_rates(self) -> tuple[float, float]:
        """Return the probabilities with which a +1 and a -1 are flipped, as drawn."""
        transition = self.transition()
        return float(transition[1, 0]), float(transition[0, 1])

    def channel(self) -> Channel:
        """Return the channel between (-1, +1) and (-1, +1)."""
        signs = np.array([-1.0, 1.0])
        return Channel(inputs=signs, outputs=signs, transition=self.transition())

    def transition(self) -> Floats:
        """Return P(report | binary rating). Rows and columns are -1 and +1."""
        return _flip_table(self).transition()

    def inverse(self) -> Floats:
        """Return the matrix that decodes counts of (-1, +1) reports without bias."""
        return self.channel().inverse()

    def mean(self, verdicts: npt.ArrayLike) -> Floats:
        """Return E[report]. A number between -1 and +1 is the mean of many binary ratings."""
        positive, negative = self.flip_rates()
        means = finite_array("verdicts", verdicts)
        return (1 - positive - negative) * means + (negative - positive)

    def variance(self, verdicts: npt.ArrayLike) -> Floats:
        """Return the variance of the report."""
        return 1 - self.mean(verdicts) ** 2

    def decode(self, reports: npt.ArrayLike) -> Floats:
        """Return for every report (or mean of reports) an unbiased, unclipped estimate of the rating."""
        positive, negative = self.flip_rates()
        return (finite_array("reports", reports) - (negative - positive)) / (1 - positive - negative)

    def inverse_mean(self, means: npt.ArrayLike) -> Floats:
        """Return the mean binary rating behind a mean report, clipped to [-1, 1]."""
        return np.clip(self.decode(means), -1.0, 1.0)

    def likelihood(self, reports: npt.ArrayLike, verdicts: npt.ArrayLike) -> Floats:
        """Return P(report | binary rating) for arrays that broadcast against each other."""
        return self.transition()[_positive(verdicts).astype(np.int64), _positive(reports).astype(np.int64)]

    def largest_log_ratio(self) -> float:
        """Return the largest of the four log-ratios, computed from the counts that are drawn from."""
        return _flip_table(self).largest_log_ratio()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """One of the codes 0 (missing), 1, ..., `levels`: the true code most often, the others equally.

    The true code is kept with probability e^epsilon / (e^epsilon + levels).

    Guarantee
        Pure `epsilon` for one rating, between any two codes, including 0 = "not rated", against anyone. The n
        ratings of one user cost n times epsilon (proofs/randomized_response.md). It is exact for the
        64-bit counts drawn from.

    Raises:
        ParameterError: Epsilon is out of range, or `levels` isn't a whole number from 1 to 1024.

    Example:
        >>> stars = RandomizedResponse(epsilon=2.0, levels=5)
        >>> bool(stars.largest_log_ratio() <= 2.0)
        True
    """

    epsilon: float
    levels: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        object.__setattr__(self, "levels", integer("levels", self.levels, least=1, most=_MOST_LEVELS))

    def event(self) -> DpEvent:
        """Return the cost: a pure epsilon."""
        return pure_event(self.epsilon)

    def release(self, codes: npt.ArrayLike, random: PrivacyRandom) -> npt.NDArray[np.int64]:
        """Return a report for every code."""
        return _response_table(self).draw(self._checked("codes", codes), random)

    def keep(self) -> float:
        """Return the probability that a code is reported as it is."""
        return float(self.transition()[0, 0])

    def fake(self) -> float:
        """Return the probability that a missing rating is reported as some rating."""
        return float(self.levels * self.transition()[0, 1])

    def channel(self) -> Channel:
        """Return the channel from codes to codes."""
        codes = np.arange(self.levels + 1, dtype=np.float64)
        return Channel(inputs=codes, outputs=codes, transition=self.transition())

    def transition(self) -> Floats:
        """Return P(report | code), a matrix with levels + 1 rows and columns."""
        return _response_table(self).transition()

    def table(self) -> CountTable:
        """Return the table that reports are drawn from, a row for each code."""
        return _response_table(self)

    def inverse(self) -> Floats:
        """Return the matrix that decodes counts of reports without bias: `counts @ inverse`."""
        return self.channel().inverse()

    def mean(self, codes: npt.ArrayLike) -> Floats:
        """Return E[report | code], with the code as a number."""
        return self.channel().mean()[self._checked("codes", codes)]

    def variance(self, codes: npt.ArrayLike) -> Floats:
        """Return the variance of the report, with the code as a number."""
        return self.channel().variance()[self._checked("codes", codes)]

    def decode(self, reports: npt.ArrayLike, scores: npt.ArrayLike) -> Floats:
        """Return for every report an unbiased estimate of the score of the true code.

        `scores` has one number for each code 0..levels: a one at a single code counts it, the numbers
        0, 1, 1, ... count ratings, and 0, 1 - m, 2 - m, ... sum centered stars.
        """
        weights = finite_array("scores", scores)
        require(weights.shape == (self.levels + 1,), "scores.shape", weights.shape, must="be (levels + 1,)")
        return self.channel().unbiased(weights)[self._checked("reports", reports)]

    def inverse_mean(self, means: npt.ArrayLike) -> Floats:
        """Return the mean code behind a mean report, clipped to [0, levels]."""
        expected = self.channel().mean()
        return np.interp(finite_array("means", means), expected, np.arange(self.levels + 1, dtype=np.float64))

    def likelihood(self, reports: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return P(report | code) for arrays that broadcast against each other."""
        return self.transition()[self._checked("codes", codes), self._checked("reports", reports)]

    def largest_log_ratio(self) -> float:
        """Return the largest log-ratio over all codes and reports, computed from the counts drawn from."""
        return _response_table(self).largest_log_ratio()

    def _checked(self, name: str, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        numbers = finite_array(name, codes)
        if bool(np.any((numbers < 0) | (numbers > self.levels) | (numbers != np.floor(numbers)))):
            raise OffGrid(name=name, must=f"be whole numbers from 0 (missing) to {self.levels}")
        return numbers.astype(np.int64)


def _positive(verdicts: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    numbers = finite_array("verdicts", verdicts)
    positive: npt.NDArray[np.bool_] = numbers == 1
    if not bool(np.all(positive | (numbers == -1))):
        raise OffGrid(name="Binary ratings", must="be +1 or -1")
    return positive


@lru_cache(maxsize=64)
def _flip_table(mechanism: SignFlip) -> CountTable:
    if mechanism.flip_positive is None or mechanism.flip_negative is None:
        positive = negative = count_above(mechanism.epsilon, 1)
    else:
        positive, negative = _inward(mechanism.flip_positive), _inward(mechanism.flip_negative)
    rows = [[WORDS - negative, negative], [positive, WORDS - positive]]
    return CountTable.of_counts(np.array(rows, dtype=np.uint64))


def _inward(rate: float) -> int:
    """Return a probability as a count of words, rounded toward one half: the side that reveals less."""
    words = rate * float(WORDS)
    return int(np.ceil(words)) if rate < 0.5 else int(words)


@lru_cache(maxsize=64)
def _response_table(mechanism: RandomizedResponse) -> CountTable:
    size = mechanism.levels + 1
    other = count_above(mechanism.epsilon, mechanism.levels)
    counts = np.full((size, size), other, dtype=np.uint64)
    np.fill_diagonal(counts, WORDS - mechanism.levels * other)
    return CountTable.of_counts(counts).kept(mechanism.epsilon)
