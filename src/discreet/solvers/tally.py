"""Merge all that was released about how often items were chosen: every release counts a little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from discreet.arrays import Floats

_LEAST_VOTES = 0.05
_LEAST_VARIANCE = 1e-9
# A sum of votes that is mostly noise is taken for at least this part of what its noise alone would give.
_LEAST_PART = 0.05


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Hold items' votes (a person's votes have length 1) and the variance of their noise."""

    votes: Floats
    variance: Floats

    @classmethod
    def of(cls, votes: Floats, noise: float) -> Self:
        """Hold one release with this noise on every item."""
        return cls(votes=votes, variance=np.full(votes.size, max(noise**2, _LEAST_VARIANCE)))

    def with_more(self, counted: Floats, noise: float, pull: Floats) -> Tally:
        """Take in a release of votes weighed by `pull`, up to one factor that the sums tell."""
        factor = self._factor(counted, pull) * pull
        variance = np.maximum((noise / factor) ** 2, _LEAST_VARIANCE)
        together = 1 / (1 / self.variance + 1 / variance)
        votes = together * (self.votes / self.variance + counted / factor / variance)
        return Tally(votes=votes, variance=together)

    @property
    def error(self) -> Floats:
        """Return the standard deviation of the noise on each item."""
        return np.sqrt(self.variance)

    @property
    def raised(self) -> Floats:
        """Return the votes, none below its own noise."""
        return np.maximum(self.votes, np.maximum(self.error, _LEAST_VOTES))

    @property
    def likely(self) -> Floats:
        """Return votes above zero in the same order: clipping would make ties."""
        width = np.maximum(self.error, 0.1)
        raised: Floats = width * np.logaddexp(0, self.votes / width)
        # Far below zero the soft floor is smaller than the smallest number.
        return np.maximum(raised, 1e-150)

    def expected(self, counted: Floats, pull: Floats) -> Floats:
        """Return what a release weighed by `pull` counted of each item, read off the merged votes."""
        return self.raised * pull * self._factor(counted, pull)

    def _factor(self, counted: Floats, pull: Floats) -> float:
        own = max(float(self.votes @ pull), _LEAST_PART * float(self.raised @ pull))
        return max(float(counted.sum()), _LEAST_VARIANCE) / own
