"""Shared parts of mechanisms on a grid of ratings: the scale, its points, and their channel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, PrivacyRandom, finite, finite_array, integer, require
from discreet.privacy.accounting.events import pure_event
from discreet.privacy.errors import OffGrid
from discreet.privacy.mechanisms.channel import ROUNDING, Channel, CountTable, local_epsilon

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_MOST_POINTS = 2049


@dataclass(frozen=True, slots=True, kw_only=True)
class GridMechanism(ABC):
    """A mechanism that perturbs ratings whose values and reports are on the same grid of [low, high].

    Parameters:
        epsilon: The largest log-ratio between any two ratings.
        low: The smallest rating and report.
        high: The largest rating and report.
        points: The number of grid points, both ends included.
    """

    epsilon: float
    low: float
    high: float
    points: int = 1025

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        check_scale(self, least_points=2)

    @abstractmethod
    def _probabilities(self, decay: float) -> Floats:
        """Return P(report | rating) on the grid when the noise loses `decay` of its log-density per step."""

    def event(self) -> DpEvent:
        """Return the cost: a pure epsilon."""
        return pure_event(self.epsilon)

    def release(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> Floats:
        """Return a report on the grid for every rating."""
        return self._numbers(_grid_table(self).draw(self._index("ratings", ratings), random))

    def grid(self) -> Floats:
        """Return the grid points of ratings and reports."""
        return self._numbers(np.arange(self.points))

    def channel(self) -> Channel:
        """Return the channel from grid to grid."""
        return _grid_channel(self)

    def table(self, ratings: npt.ArrayLike) -> CountTable:
        """Return the rows that reports of these ratings are drawn from."""
        return CountTable(starts=_grid_table(self).starts[self._index("ratings", ratings)])

    def mean(self, ratings: npt.ArrayLike) -> Floats:
        """Return E[report | rating], interpolated between grid points."""
        return np.interp(self._inside("ratings", ratings), self.grid(), _grid_moments(self)[0])

    def variance(self, ratings: npt.ArrayLike) -> Floats:
        """Return the variance of the report, interpolated between grid points."""
        return np.interp(self._inside("ratings", ratings), self.grid(), _grid_moments(self)[1])

    def inverse_mean(self, means: npt.ArrayLike) -> Floats:
        """Return the rating whose report has this mean, clipped to [low, high]."""
        return np.interp(finite_array("means", means), _grid_moments(self)[0], self.grid())

    def likelihood(self, reports: npt.ArrayLike, ratings: npt.ArrayLike) -> Floats:
        """Return P(report | rating) for arrays that broadcast against each other, both put on the grid."""
        return self.channel().transition[self._index("ratings", ratings), self._index("reports", reports)]

    def density(self, reports: npt.ArrayLike, ratings: npt.ArrayLike) -> Floats:
        """Return the likelihood per unit of the scale: probability over the width of a grid step."""
        return self.likelihood(reports, ratings) * ((self.points - 1) / (self.high - self.low))

    def largest_log_ratio(self) -> float:
        """Return the largest log-ratio over all ratings and reports, computed from the counts drawn from."""
        return _grid_table(self).largest_log_ratio()

    def _inside(self, name: str, numbers: npt.ArrayLike) -> Floats:
        return inside(name, numbers, self.low, self.high)

    def _numbers(self, steps: Indices) -> Floats:
        width = (self.high - self.low) / (self.points - 1)
        return np.minimum(self.low + steps.astype(np.float64) * width, self.high)

    def _index(self, name: str, numbers: npt.ArrayLike) -> Indices:
        return nearest_step(self._inside(name, numbers), self.low, self.high, self.points)


def check_scale(mechanism: Any, *, least_points: int) -> None:
    """Check and store `low`, `high`, and `points` of a frozen mechanism."""
    low, high = (finite(name, getattr(mechanism, name)) for name in ("low", "high"))
    require(low < high, "high", high, must=f"be greater than low={low!r}")
    require(np.isfinite(high - low), "high", high, must="be closer to low")
    points = integer("points", mechanism.points, least=least_points, most=_MOST_POINTS)
    # A narrower scale would have neighboring grid points that are the same number, or an infinite resolution.
    distinct = (high - low) / (points - 1) > 4 * np.spacing(max(abs(low), abs(high), 1e-300))
    require(bool(distinct), "high", high, must=f"be farther from low={low!r} for {points} points")
    for name, value in (("low", low), ("high", high), ("points", points)):
        object.__setattr__(mechanism, name, value)


def inside(name: str, numbers: npt.ArrayLike, low: float, high: float) -> Floats:
    """Return the numbers as floats. Raise for numbers outside [low, high]."""
    values = finite_array(name, numbers)
    if bool(np.any((values < low) | (values > high))):
        raise OffGrid(name=name, must=f"be in [{low:g}, {high:g}]")
    return values


def nearest_step(values: Floats, low: float, high: float, points: int) -> Indices:
    """Return the index of the grid point nearest to each value."""
    steps = np.rint((values - low) * ((points - 1) / (high - low)))
    return np.clip(steps, 0, points - 1).astype(np.int64)


@lru_cache(maxsize=4)
def _grid_table(mechanism: GridMechanism) -> CountTable:
    # The counts must keep the guarantee, so the formula behind them aims slightly below epsilon.
    decay = (mechanism.epsilon - ROUNDING) / (mechanism.points - 1)
    return CountTable.of_probabilities(mechanism._probabilities(decay)).kept(mechanism.epsilon)


@lru_cache(maxsize=4)
def _grid_channel(mechanism: GridMechanism) -> Channel:
    grid, transition = mechanism.grid(), _grid_table(mechanism).transition()
    transition.setflags(write=False)
    return Channel(inputs=grid, outputs=grid, transition=transition)


@lru_cache(maxsize=64)
def _grid_moments(mechanism: GridMechanism) -> tuple[Floats, Floats]:
    channel = mechanism.channel()
    return channel.mean(), channel.variance()
