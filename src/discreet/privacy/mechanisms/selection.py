"""Choose names that enough people hold, from a set that is itself a secret: noisy sums above a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet.core.checks import DataError, integer, positive_finite, require
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting.events import FailureEvent
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.mechanisms.fixed_point import FixedPoint, NoiseGrid

#: The most names that data can have. The grid of the noise must not depend on how many there are, and no
#: number of names that one person could tip over is refused.
MOST_NAMES = (1 << 31) - 1
# What rounding may do to a quantile or a root, with room to spare.
_SAFE = 1 + 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyThreshold:
    """Tell which sums are large enough, where the names of the sums are held by people too.

    Guarantee
        (`epsilon`, `delta`) between data sets with and without one person, who adds a vector of length at
        most 1 with equal entries 1 / sqrt(n) for n <= `most` names (proofs/private_catalog.md).

    Noise
        Gaussian with the deviation of an (`epsilon`, `delta` / 2)-private release of length 1. A name that
        only one person holds passes with probability at most `delta` / (2 e^`epsilon`).
    """

    epsilon: float
    delta: float
    most: int

    def __post_init__(self) -> None:
        positive_finite("epsilon", self.epsilon)
        require(0 < self.delta < 1, "delta", self.delta, "must lie between 0 and 1", "1e-7 is usual.")
        integer("most", self.most, least=1, most=1 << 20)
        self.noise()

    def noise(self) -> Gaussian:
        """Return the noise on each sum."""
        return Gaussian.calibrated(epsilon=self.epsilon, delta=self.delta / 2, l2_sensitivity=1.0)

    def events(self) -> Sequence[Any]:
        """Return what it costs: the noise on names that others hold too, and the chance to see another."""
        return (self.noise().event(), FailureEvent(probability=self._rare()))

    def threshold(self) -> float:
        """Return the noisy sum from which on a name passes."""
        grid = self._grid()
        return math.ldexp(self._threshold_steps(grid), grid.exponent)

    def passing(self, sums: FixedPoint, random: PrivacyRandom) -> npt.NDArray[np.bool_]:
        """Return which names pass."""
        if sums.counts.size > MOST_NAMES:
            raise DataError(f"There are more than {MOST_NAMES:,} names to choose from; declare them.")
        if random.recording is not None:
            random.recording.exact(self.noise(), np.ldexp(sums.counts.astype(np.float64), -sums.bits))
        grid = self._grid()
        noisy = grid.release(sums.counts, random, sums.bits)
        passing: npt.NDArray[np.bool_] = noisy >= math.ldexp(self._threshold_steps(grid), grid.exponent)
        # A name that nobody holds is no name: who declared it need not choose.
        return passing & (sums.counts > 0)

    def _grid(self) -> NoiseGrid:
        grid = self.noise()._grid(MOST_NAMES)
        assert grid is not None
        return grid

    def _threshold_steps(self, grid: NoiseGrid) -> int:
        """Return the least number of steps that one person's own names reach rarely enough."""
        held = np.arange(1, self.most + 1, dtype=np.float64)
        own = math.ldexp(1.0, -grid.exponent) / np.sqrt(held)
        # One of n names passes with at most n times the chance of one.
        rare = self._rare() / held
        # One step for rounding the sum, one because discrete noise may exceed continuous noise by it.
        reach = own + grid.noise * -ndtri(rare)
        return math.ceil(float(reach.max()) * _SAFE) + 2

    def _rare(self) -> float:
        """Return how likely it may be that any of one person's own names passes."""
        return self.delta / (2 * math.exp(self.epsilon))
