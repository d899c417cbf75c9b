"""Perturb one rating on its own scale: bounded and clamped Laplace, and a variant that hides missing ratings.

Ratings and reports are rounded to public grids, so that reports are drawn from a table of 64-bit counts whose
largest log-ratio can be computed. A draw inverts the distribution: it uses one word and the same number of
comparisons for every rating. A loop that redraws until the report fits would leak through its running time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, PrivacyRandom, finite_array, require
from discreet.privacy.accounting.events import pure_event
from discreet.privacy.errors import OffGrid
from discreet.privacy.mechanisms.channel import (
    WORDS,
    Channel,
    CountTable,
    count_above,
    largest_ratio,
    local_epsilon,
    log_up,
)
from discreet.privacy.mechanisms.clamped_noise import ClampedNoise, clamped_noise
from discreet.privacy.mechanisms.grid import GridMechanism, check_scale, inside, nearest_step
from discreet.privacy.sampling.draws import recorded

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_MOST_STEPS_PER_SCALE = 2.0**16
_MOST_ENTRIES = 1 << 26


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLaplace(GridMechanism):
    """A rating with Laplace noise of scale (high - low) / epsilon, given that it stays on the scale.

    Guarantee
        Pure `epsilon` for one rating, between any two ratings of [low, high], against anyone. It doesn't hide
        that the item was rated (proofs/bounded_laplace.md). It is exact for the 64-bit counts drawn from.

    References:
        Holohan, Antonatos, Braghin and Mac Aonghusa, The Bounded Laplace Mechanism in Differential Privacy
        (2018).

    Example:
        >>> stars = BoundedLaplace(epsilon=1.0, low=1.0, high=5.0)
        >>> bool(stars.largest_log_ratio() <= 1.0)
        True

    Stability
        Stable.
    """

    def _probabilities(self, decay: float) -> Floats:
        step = np.arange(self.points)
        weights = np.exp(-decay * np.abs(step[:, None] - step[None, :]))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClampedLaplace(GridMechanism):
    """A rating with Laplace noise of scale (high - low) / epsilon, moved to the nearer end if outside.

    Guarantee
        Pure `epsilon` for one rating, between any two ratings of [low, high], against anyone. It doesn't hide
        that the item was rated (proofs/clamped_laplace.md). It is exact for the 64-bit counts drawn from.

    References:
        Berlioz, Friedman, Kaafar, Boreli and Berkovsky, Applying Differential Privacy to Matrix Factorization
        (2015): the perturbation of ISGD.

    Example:
        >>> stars = ClampedLaplace(epsilon=1.0, low=1.0, high=5.0)
        >>> bool(stars.largest_log_ratio() <= 1.0)
        True
    """

    def _probabilities(self, decay: float) -> Floats:
        step = np.arange(self.points)
        weights = np.exp(-decay * np.abs(step[:, None] - step[None, :]))
        # Both ends get the whole tail of a geometric series, 1 / (1 - q) times its first term.
        weights[:, 1:-1] *= -np.expm1(-decay)
        return np.asarray(weights / (1 + np.exp(-decay)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModifiedLaplace:
    """A rating with Laplace noise, or as missing; with a known probability the opposite is reported.

    A rating is reported with noise of scale (high - low) / epsilon with probability `keep()`, which is
    e^(epsilon/2) / (1 + e^(epsilon/2)), and as missing otherwise. A missing rating is reported as missing
    with the same probability, and as the middle of the scale with noise otherwise. Reports are clamped to
    `report_range()`, which is public. Missing is a mask next to the numbers, never NaN.

    Guarantee
        Pure `epsilon` for one rating, between any two ratings and between any rating and none, against
        anyone. The n ratings of one user cost n times epsilon (proofs/modified_laplace.md). It is exact for
        the 64-bit counts drawn from.

    Parameters:
        epsilon: The largest log-ratio between any two inputs, a missing rating included.
        low: The least rating.
        high: The largest rating.
        points: The number of grid points of [low, high]; odd, so that the middle is one.

    Example:
        >>> films = ModifiedLaplace(epsilon=2.0, low=1.0, high=5.0)
        >>> rated, numbers = films.release([4.0, 3.0], PrivacyRandom.simulate(1), present=[True, False])
    """

    epsilon: float
    low: float = -1.0
    high: float = 1.0
    points: int = 257

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        check_scale(self, least_points=3)
        require(
            self.points % 2 == 1, "points", self.points, must="be odd", do="The middle must be a grid point."
        )
        steps = (self.points - 1) / self.epsilon
        do = "Raise epsilon or lower points."
        require(
            steps <= _MOST_STEPS_PER_SCALE, "(points - 1) / epsilon", steps, must="be at most 2^16", do=do
        )

    def event(self) -> DpEvent:
        """Return the cost: a pure epsilon."""
        return pure_event(self.epsilon)

    @recorded
    def release(
        self, ratings: npt.ArrayLike, random: PrivacyRandom, *, present: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.bool_], Floats]:
        """Return which entries are reported as rated, and their reports (the middle of the scale elsewhere).

        `present` marks the entries that have a rating. The numbers in the others are checked and not used.
        """
        steps, mask = self._steps(ratings), np.asarray(present)
        if mask.dtype != np.bool_ or mask.shape != steps.shape:
            raise OffGrid(name="present", must="be a mask of true and false, one for each rating")
        reported = _coin(self.epsilon).draw(mask.astype(np.int64), random).astype(np.bool_)
        noise = self._noise()
        moved = np.where(mask, steps, 0) + noise.draw(steps.shape, random)
        clamped = np.clip(moved, -noise.reach, noise.reach)
        return reported, self._numbers(np.where(reported, clamped, 0))

    def pretend(self, size: int, random: PrivacyRandom) -> Floats:
        """Return reports of missing entries that are reported as rated: noise around the middle, clamped."""
        noise = self._noise()
        return self._numbers(np.clip(noise.draw((size,), random), -noise.reach, noise.reach))

    def tables(self) -> tuple[CountTable, ClampedNoise]:
        """Return the tables: whether to report (a row for missing, one for rated), and the noise."""
        return _coin(self.epsilon), self._noise()

    def keep(self) -> float:
        """Return the probability that a rated entry is reported as rated (and a missing one as missing)."""
        return 1 - self.fake()

    def fake(self) -> float:
        """Return the probability that a missing entry is reported as rated (and a rated one as missing)."""
        return float(_coin(self.epsilon).transition()[0, 1])

    def grid(self) -> Floats:
        """Return the grid points of ratings."""
        return np.clip(self._numbers(np.arange(self.points) - self.points // 2), self.low, self.high)

    def report_range(self) -> tuple[float, float]:
        """Return the least and the largest report."""
        least, most = self._numbers(np.array([-1, 1]) * self._noise().reach)
        return float(least), float(most)

    def channel(self) -> Channel:
        """Return the channel from ratings to reports, given that a rating is reported as one."""
        reach = self._noise().reach
        entries = self.points * (2 * reach + 1)
        do = "Use likelihood() instead."
        require(
            entries <= _MOST_ENTRIES, "points * reports", entries, must=f"be at most {_MOST_ENTRIES}", do=do
        )
        outputs, inputs = np.arange(-reach, reach + 1), np.arange(self.points) - self.points // 2
        transition = self._noise().mass(outputs[None, :], inputs[:, None])
        return Channel(inputs=self.grid(), outputs=self._numbers(outputs), transition=transition)

    def mean(self, ratings: npt.ArrayLike) -> Floats:
        """Return E[report | rating, reported as rated]: the rating, except for the clamping."""
        return np.interp(inside("ratings", ratings, self.low, self.high), self.grid(), self._means())

    def variance(self, ratings: npt.ArrayLike) -> Floats:
        """Return the variance of the report, given that it is reported as rated."""
        values = inside("ratings", ratings, self.low, self.high)
        return np.interp(values, self.grid(), self._noise().moments()[1] * self._step() ** 2)

    def inverse_mean(self, means: npt.ArrayLike) -> Floats:
        """Return the rating whose reports, if there are any, have this mean, clipped to [low, high]."""
        return np.interp(finite_array("means", means), self._means(), self.grid())

    def likelihood(self, reports: npt.ArrayLike, ratings: npt.ArrayLike) -> Floats:
        """Return P(report | rating) for arrays that broadcast; 1 - keep() is the probability of no report."""
        return self.keep() * self._noise().mass(self._report_steps(reports), self._steps(ratings))

    def likelihood_missing(self, reports: npt.ArrayLike) -> Floats:
        """Return P(report | missing); 1 - fake() is the probability of no report."""
        return self.fake() * self._noise().mass(self._report_steps(reports), np.zeros(1, np.int64)).reshape(
            np.shape(reports)
        )

    def presence(self, reported: npt.ArrayLike) -> Floats:
        """Return for every entry an unbiased, unclipped estimate of whether it was rated."""
        counted = np.asarray(reported, dtype=np.bool_).astype(np.float64)
        return (counted - self.fake()) / (self.keep() - self.fake())

    def largest_log_ratio(self) -> float:
        """Return the largest log-ratio over all inputs and reports, computed from the counts drawn from."""
        truth, lie = _coin(self.epsilon).counts()[0].tolist()
        most, middle, least = self._noise().extremes()
        odds = Fraction(truth, lie)
        by_middle, to_middle = largest_ratio(most, middle), largest_ratio(middle, least)
        return log_up(max(odds, largest_ratio(most, least), odds * by_middle, to_middle / odds))

    def _noise(self) -> ClampedNoise:
        return clamped_noise(self.epsilon, self.points // 2)

    def _means(self) -> Floats:
        return self._middle() + self._noise().moments()[0] * self._step()

    def _middle(self) -> float:
        return self.low + (self.high - self.low) / 2

    def _step(self) -> float:
        return (self.high - self.low) / (self.points - 1)

    def _steps(self, ratings: npt.ArrayLike) -> Indices:
        values = inside("ratings", ratings, self.low, self.high)
        return nearest_step(values, self.low, self.high, self.points) - self.points // 2

    def _report_steps(self, reports: npt.ArrayLike) -> Indices:
        steps = np.rint((finite_array("reports", reports) - self._middle()) / self._step())
        if bool(np.any(np.abs(steps) > self._noise().reach)):
            raise OffGrid(name="reports", must="be in the mechanism's report_range()")
        return steps.astype(np.int64)

    def _numbers(self, steps: Indices) -> Floats:
        return self._middle() + steps.astype(np.float64) * self._step()


@lru_cache(maxsize=64)
def _coin(epsilon: float) -> CountTable:
    """Return the table from (missing, rated) to (reported missing, reported rated)."""
    lie = count_above(epsilon / 2, 1)
    return CountTable.of_counts(np.array([[WORDS - lie, lie], [lie, WORDS - lie]], dtype=np.uint64))
