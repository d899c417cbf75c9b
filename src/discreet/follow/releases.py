"""Draw one release from the exact sums of all that entered, and estimate current sums from all releases.

A release is C[t, 0] x_0 + ... + C[t, t] x_t in whole numbers, plus exact discrete noise. Estimates are
computed from releases alone: they cost nothing, whatever they are and however often they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import DataError
from discreet.core.randomness import PrivacyRandom
from discreet.follow.factorization import Factorization
from discreet.follow.settings import PART_BITS, REACH, RELEASE_BITS, FollowSettings
from discreet.follow.state import ItemSums, Whole
from discreet.privacy.sampling.draws import add_discrete_gaussian

_TOO_FAR = 1 << 62


def exact_release(settings: FollowSettings, sums: Sequence[ItemSums], *, rated: bool) -> ItemSums:
    """Return what the latest release is before noise, from the sums of every release so far.

    Where nothing is rated there are no values to release.
    """
    counts = _mixed(settings.counts, [one.counts for one in sums])
    values = _mixed(settings.values, [one.values for one in sums]) if rated else np.zeros(0, dtype=np.int64)
    return ItemSums(counts, values)


def draw(
    settings: FollowSettings, sums: Sequence[ItemSums], random: PrivacyRandom, *, rated: bool, shares: int = 1
) -> ItemSums:
    """Return the latest release: the exact one with noise, or one of `shares` of it, on every number."""
    exact = exact_release(settings, sums, rated=rated)
    for part in exact:
        if part.size and int(np.abs(part).max()) >= _TOO_FAR:
            raise DataError("A sum is beyond 2^62, which is more than a year of users can add up to.")
        add_discrete_gaussian(part, settings.share_width(shares), random)
    return exact


def _mixed(factorization: Factorization, parts: Sequence[Whole]) -> Whole:
    row = factorization.whole[len(parts) - 1, : len(parts)]
    mixed: Whole = row @ np.stack(parts)
    return mixed


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Hold an estimate of items' current sums, and the standard deviation of its noise.

    Sums are in units of a rating that has all of its user's weight.
    """

    sums: Floats
    noise: float


def estimate_counts(
    settings: FollowSettings,
    drawn: Sequence[ItemSums],
    part: int,
    half_life: float | None,
    multiplier: float,
) -> Estimate:
    """Return how much items were chosen of late; `half_life` is in releases, None counts everything."""
    return _estimate(settings.counts, [one.counts for one in drawn], part, half_life, multiplier)


def estimate_values(
    settings: FollowSettings, drawn: Sequence[ItemSums], part: int, multiplier: float
) -> Estimate:
    """Return the sums of what items are rated above the usual, which do not fade; the scale is -1 to 1."""
    found = _estimate(settings.values, [one.values for one in drawn], part, None, multiplier)
    return Estimate(sums=REACH * found.sums, noise=REACH * found.noise)


def _estimate(
    factorization: Factorization,
    drawn: Sequence[Whole],
    part: int,
    half_life: float | None,
    multiplier: float,
) -> Estimate:
    weights = factorization.estimator(len(drawn), half_life)
    unit = 2.0**PART_BITS / part
    sums: Floats = weights @ np.ldexp(np.stack(drawn).astype(np.float64), -RELEASE_BITS)
    return Estimate(sums=unit * sums, noise=unit * multiplier * float(np.linalg.norm(weights)))
