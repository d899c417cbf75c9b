"""Draw lengths of histories: from a released histogram, or around a declared mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.core.checks import integer
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.statistics.history_summary import LENGTH_STARTS
from discreet.synthesis.errors import UsersUnknown

#: The mean length if neither the release nor the caller states one.
DEFAULT_LENGTH = 20
# Declared lengths are log-normal with this deviation: most histories are short, few are long.
_SPREAD = 0.8
# The most users that are drawn: if the caller states how many, and if only the model does. Its file may come
# from anybody, and all interactions are held in memory.
_MOST_USERS, _MOST_UNDECLARED = 1 << 31, 1 << 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LengthSource:
    """Source of lengths: `counts` of a release, or else a declared `mean`."""

    counts: Floats
    mean: int
    longest: int
    #: Whether the mean was declared; otherwise it is only assumed.
    is_declared: bool = True

    @classmethod
    def of(cls, released: ReleasedHistories | None, declared: int | None, longest: int) -> LengthSource:
        """Take declared lengths if there are any, then released ones, then the default."""
        if declared is not None:
            integer("length", declared, least=1, most=longest)
        use = released is not None and declared is None
        counts = released.lengths if released is not None and use else np.zeros(0)
        mean = min(declared or DEFAULT_LENGTH, longest)
        return cls(counts=counts, mean=mean, longest=longest, is_declared=declared is not None)

    @property
    def is_released(self) -> bool:
        """Return whether lengths come from the release."""
        return self.counts.size > 0

    def sentence(self) -> str:
        """Return where lengths come from."""
        if self.is_released:
            return "lengths of histories are drawn from noisy counts of the release"
        if not self.is_declared:
            return f"lengths of histories are assumed (mean {self.mean}; --length declares another)"
        return f"lengths of histories are declared (mean {self.mean}), not learned from the data"

    def draw(self, users: int, random: np.random.Generator) -> Indices:
        """Return a length for each user, at least 1 and at most the catalog."""
        if not self.is_released:
            middle = np.log(self.mean) - _SPREAD**2 / 2
            drawn = np.rint(random.lognormal(middle, _SPREAD, users)).astype(np.int64)
            return np.clip(drawn, 1, self.longest)
        bins = random.choice(self.counts.size, users, p=self.counts / self.counts.sum())
        starts = LENGTH_STARTS[: self.counts.size]
        # The last bin ends where the next one would start, if there were one.
        beyond = LENGTH_STARTS[self.counts.size : self.counts.size + 1]
        ends = np.append(starts[1:], min([self.longest, *beyond.tolist()]) + 1)
        # Evenly on the scale of logarithms: within a bin, longer histories are rarer.
        low, high = np.log(starts[bins]), np.log(np.maximum(ends, starts + 1)[bins])
        drawn = np.floor(np.exp(random.uniform(low, high))).astype(np.int64)
        return np.clip(drawn, starts[bins], self.longest)


def number_of_users(released: ReleasedHistories | None, users: int | None) -> int:
    """Return the number of users to draw: the given one, or the released one."""
    if users is not None:
        return integer("users", users, least=1, most=_MOST_USERS)
    if released is None:
        raise UsersUnknown()
    counted = max(round(float(released.lengths.sum())), 1)
    return integer("users", counted, most=_MOST_UNDECLARED)
