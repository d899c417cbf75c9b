"""Select names that enough users have, from a secret set, by noisy sums above a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet.core import PrivacyRandom, integer, positive_finite, require
from discreet.privacy.accounting.events import FailureEvent
from discreet.privacy.errors import TooManyNames
from discreet.privacy.mechanisms.additive import FixedPoint, Gaussian, NoiseGrid

#: The most names that data can have. The fixed-point unit of the noise must not depend on their number, and a
#: refusal must not depend on one person's names.
MOST_NAMES = (1 << 31) - 1
#: The most names that one user can have.
MOST_NAMES_OF_ONE = 1 << 20
# The rounding error of a quantile or a root, with a margin.
_SAFE = 1 + 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyThreshold:
    """Selection of the names whose noisy sums reach a threshold. The set of names is itself private.

    Guarantee
        (`epsilon`, `delta`) between datasets with and without one user, who adds a vector of norm at
        most 1 with equal entries 1 / sqrt(n) for n <= `most` names (proofs/private_catalog.md).

    Noise
        Gaussian with the deviation of an (`epsilon`, `delta` / 2)-private release of sensitivity 1. A name
        that only one user has passes with probability at most `delta` / (2 e^`epsilon`).
    """

    epsilon: float
    delta: float
    most: int

    def __post_init__(self) -> None:
        positive_finite("epsilon", self.epsilon)
        require(0 < self.delta < 1, "delta", self.delta, must="be between 0 and 1", do="1e-7 is usual.")
        integer("most", self.most, least=1, most=MOST_NAMES_OF_ONE)
        self.noise()

    def noise(self) -> Gaussian:
        """Return the noise on each sum."""
        return Gaussian.calibrated(epsilon=self.epsilon, delta=self.delta / 2, l2_sensitivity=1.0)

    def events(self) -> Sequence[Any]:
        """Return the cost: the noise on names that others have, and the chance that another name passes."""
        return (self.noise().event(), FailureEvent(probability=self._rare()))

    def threshold(self) -> float:
        """Return the smallest noisy sum at which a name passes."""
        grid = self._grid()
        return math.ldexp(self._threshold_units(grid), grid.exponent)

    def passing(self, sums: FixedPoint, random: PrivacyRandom) -> npt.NDArray[np.bool_]:
        """Return which names pass."""
        if sums.counts.size > MOST_NAMES:
            raise TooManyNames(most=MOST_NAMES)
        if random.recording is not None:
            random.recording.exact(self.noise(), np.ldexp(sums.counts.astype(np.float64), -sums.bits))
        grid = self._grid()
        noisy = grid.release(sums.counts, random, sums.bits)
        passing: npt.NDArray[np.bool_] = noisy >= math.ldexp(self._threshold_units(grid), grid.exponent)
        # A name that no user has never passes.
        return passing & (sums.counts > 0)

    def _grid(self) -> NoiseGrid:
        grid = self.noise()._grid(MOST_NAMES)
        assert grid is not None
        return grid

    def _threshold_units(self, grid: NoiseGrid) -> int:
        """Return the smallest threshold, in fixed-point units, that one user's own names rarely reach."""
        held = np.arange(1, self.most + 1, dtype=np.float64)
        own = math.ldexp(1.0, -grid.exponent) / np.sqrt(held)
        # Any of n names passes with at most n times the probability of one.
        rare = self._rare() / held
        # One unit for rounding the sum, one because discrete noise may exceed continuous noise by it.
        reach = own + grid.noise * -ndtri(rare)
        return math.ceil(float(reach.max()) * _SAFE) + 2

    def _rare(self) -> float:
        """Return the allowed probability that any of one user's own names passes."""
        return self.delta / (2 * math.exp(self.epsilon))


def threshold_events(*, epsilon: float, delta: float, most: int) -> Sequence[Any]:
    """Return the events of `Session.names`. Raise for a budget that it can't spend."""
    return NoisyThreshold(epsilon=epsilon, delta=delta, most=most).events()
