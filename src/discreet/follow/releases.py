"""The plan of a year's releases, and estimates of current sums from all releases.

A release is C[t, 0] x_0 + ... + C[t, t] x_t in whole numbers, and a session adds the noise
(`discreet.privacy.continual`). Estimates are computed from releases alone: they cost nothing, whatever they
are and however often they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from discreet.core import Floats
from discreet.follow.factorization import Factorization
from discreet.follow.settings import (
    COUNT_PART,
    LEVEL_COUNT,
    LEVEL_VALUE,
    PART_BITS,
    RELEASE_BITS,
    WEIGHT_BITS,
    FollowSettings,
)
from discreet.follow.state import ItemSums, Whole
from discreet.privacy import Release, certified

# Half-lives that are tried where the declared one leaves a list in the noise, as multiples of it.
_LONGER = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, None)
# A list of so many items should stand so many standard deviations out of the noise.
_LISTED, _CLEAR = 10, 4.0
# How far sums that do not fade take for granted that as much enters at every release. Chosen, with what
# `follow.model` states of the level, on the first halves of two replayed years.
_STEADY = 0.75


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class YearPlan:
    """How a year is released: which sums are mixed with which weights, and how parties share the noise.

    Without ratings, no values and no means of users are released.
    """

    settings: FollowSettings
    rated: bool
    shares: int = 1
    name: ClassVar[str] = "follow"
    bits: ClassVar[int] = RELEASE_BITS
    #: Weights of all pairs of a user have a sum of squares of at most 1; parts of a weight are cut from it.
    entries: ClassVar[int] = 1 << (2 * (WEIGHT_BITS + PART_BITS))

    @property
    def matrices(self) -> list[Whole]:
        """Return C of counts and, with ratings, C of values."""
        counts = self.settings.counts(rated=self.rated).whole
        return [counts, self.settings.values.whole] if self.rated else [counts]

    def exact(self, sums: Sequence[ItemSums]) -> ItemSums:
        """Return what the latest release is before noise, from the sums of every release so far."""
        counts, values = self.settings.counts(rated=self.rated), self.settings.values
        nothing = np.zeros(0, dtype=np.int64)
        return ItemSums(
            _mixed(counts, [one.counts for one in sums]),
            _mixed(values, [one.values for one in sums]) if self.rated else nothing,
            _mixed(values, [one.level for one in sums]) if self.rated else nothing,
        )

    def certified(self) -> Release:
        """Return all releases of the year together, as a certificate lists them."""
        return certified(self, self.settings.share_width(self.shares))


def _mixed(factorization: Factorization, parts: Sequence[Whole]) -> Whole:
    row = factorization.whole[len(parts) - 1, : len(parts)]
    mixed: Whole = row @ np.stack(parts)
    return mixed


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate of items' current sums, and the standard deviation of its noise.

    Sums are in units of a rating that has all of its user's weight. `half_life`, in releases, is that of the
    sums; None: nothing fades.
    """

    sums: Floats
    noise: float
    half_life: float | None = None

    @property
    def signal_to_noise(self) -> float:
        """Return how many standard deviations the last item of a list is out of the noise."""
        place = max(self.sums.size - _LISTED, 0)
        return float(np.partition(self.sums, place)[place]) / max(self.noise, 1e-150)


def estimate_recent(
    settings: FollowSettings, drawn: Sequence[ItemSums], multiplier: float, *, rated: bool
) -> Estimate:
    """Return how much items were chosen recently, with a half-life that the noise allows.

    It is the declared one if a list made with it is out of the noise, else the shortest longer one of
    which that is true, else the one whose list is out most. Releases alone decide.
    """
    plan, part = settings.counts(rated=rated), COUNT_PART if rated else 1.0
    released, declared = _numbers([one.counts for one in drawn]), settings.half_life_in_releases
    best: Estimate | None = None
    for multiple in _LONGER if declared is not None else (None,):
        half_life = None if multiple is None or declared is None else multiple * declared
        found = _estimate(plan, released, part, half_life, multiplier)
        if found.signal_to_noise >= _CLEAR:
            return found
        best = found if best is None or found.signal_to_noise > best.signal_to_noise else best
    assert best is not None
    return best


def estimate_rated(
    settings: FollowSettings, drawn: Sequence[ItemSums], multiplier: float
) -> tuple[Estimate, Estimate]:
    """Return all items' counts, and the sums of what they are rated above the usual; the scale is -1 to 1.

    Nothing fades, and both weigh releases alike, so that their ratio is what an item is rated.
    """
    weights = settings.values.steady_estimator(len(drawn), _STEADY)
    counts, values = (_numbers([getattr(one, name) for one in drawn]) for name in ("counts", "values"))
    return _weighed(weights, counts, COUNT_PART, multiplier), _weighed(weights, values, 1.0, multiplier)


def estimate_level(
    settings: FollowSettings, drawn: Sequence[ItemSums], multiplier: float, days: float | None = None
) -> Normal:
    """Return users' mean rating above the usual, and its variance: that of the noise on two sums.

    `days` is a half-life: users who first came later count more. None counts all alike.
    """
    half_life = None if days is None else days * settings.releases / settings.days
    found = _estimate(settings.values, _numbers([one.level for one in drawn]), 1.0, half_life, multiplier)
    count, total = found.sums * 2.0**PART_BITS / (LEVEL_COUNT, LEVEL_VALUE)
    noise = found.noise * 2.0**PART_BITS / np.array([LEVEL_COUNT, LEVEL_VALUE])
    count = max(float(count), float(noise[0]))
    mean = float(np.clip(total / count, -1, 1))
    return Normal(mean, float(noise[1] ** 2 + (mean * noise[0]) ** 2) / count**2)


class Normal(NamedTuple):
    """A number that is known up to noise: its estimate, and the variance of that."""

    mean: float
    variance: float

    @classmethod
    def merged(cls, found: Sequence[Normal]) -> Normal:
        """Return the combination of several estimates of one number."""
        precision = np.array([1 / max(one.variance, 1e-12) for one in found])
        mean = float(precision @ [one.mean for one in found] / precision.sum())
        return cls(mean, float(1 / precision.sum()))


def _numbers(drawn: Sequence[Whole]) -> Floats:
    return np.ldexp(np.stack(drawn).astype(np.float64), -RELEASE_BITS)


def _estimate(
    factorization: Factorization, released: Floats, part: float, half_life: float | None, multiplier: float
) -> Estimate:
    weights = factorization.estimator(len(released), half_life)
    return _weighed(weights, released, part, multiplier, half_life)


def _weighed(
    weights: Floats, released: Floats, part: float, multiplier: float, half_life: float | None = None
) -> Estimate:
    noise = multiplier * float(np.linalg.norm(weights)) / part
    return Estimate(sums=weights @ released / part, noise=noise, half_life=half_life)
