"""Report every cell as it is, for comparisons without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.checks import DataError
from discreet.privacy.mechanisms.channel import Channel
from discreet.randomness import PrivacyRandom

if TYPE_CHECKING:
    from dp_accounting import DpEvent
from discreet.privacy.mechanisms.cells import POINTS, CellMechanism, Codes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCells(CellMechanism):
    """Report every cell as it is, rounded to the grid: NOT PRIVATE, for comparisons only."""

    low: float
    high: float
    points: int = POINTS
    epsilon: float = math.inf

    @property
    def keep(self) -> float:
        """Return 1."""
        return 1.0

    @property
    def gap(self) -> float:
        """Return 0: empty cells never pretend."""
        return 0.0

    def event(self) -> DpEvent:
        """Refuse: there is no noise to account for."""
        raise DataError("Cells that are reported as they are have no price.")

    def report(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Return all cells."""
        numbers = np.clip(np.asarray(ratings, dtype=np.float64), self.low, self.high)
        codes = np.rint((numbers - self.low) / (self.high - self.low) * (self.points - 1))
        return np.ones(numbers.shape, np.bool_), codes.astype(np.int64)

    def pretend(self, size: int, random: PrivacyRandom) -> Codes:
        """Return nothing: empty cells stay empty."""
        return np.zeros(0, np.int64)

    def outputs(self) -> Floats:
        """Return the grid."""
        return np.linspace(self.low, self.high, self.points)

    def unbiased(self) -> Floats:
        """Return the grid."""
        return self.outputs()

    def channel(self) -> Channel:
        """Return the channel without noise."""
        return Channel(inputs=self.outputs(), outputs=self.outputs(), transition=np.eye(self.points))

    def pretended(self) -> Floats:
        """Return equal probabilities; they are never used."""
        return np.full(self.points, 1 / self.points)
