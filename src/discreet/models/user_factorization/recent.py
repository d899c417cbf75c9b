"""Let lists and predicted ratings follow what is recent: one more release, in which ratings fade with age.

What belongs together is learned from whole histories. How popular items are, and how they are rated, comes
from a release of its own, in which a rating counts half after a public half-life. Ages count from a public
date. The proofs are in proofs/user_factorization.md and proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.randomness import PrivacyRandom
from discreet.models.released_items import ItemView, sum_variance
from discreet.models.user_factorization import constants as tuned
from discreet.privacy.accounting.gaussian import split_gaussian
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.solvers.empirical_bayes import VoteEstimate, shrink
from discreet.statistics.counts import ItemResiduals
from discreet.statistics.data_source import DataSource
from discreet.statistics.recency import Recency, RecentResiduals, RecentVotes


class RecentItems(NamedTuple):
    """Hold how popular items are of late, and how much better they are rated than over all time."""

    popularity: Floats
    shift: Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecentBudget:
    """Hold how ratings fade, the multiplier of the release of recent ratings, and that of all others."""

    recency: Recency
    multiplier: float
    rest: float

    @classmethod
    def of(cls, recency: Recency, multiplier: float) -> Self:
        """Split the budget of one Gaussian release with this multiplier; 0 means no noise."""
        shares = (tuned.RECENT_SHARE, 1 - tuned.RECENT_SHARE)
        recent, rest = split_gaussian(multiplier, shares) if multiplier else (0.0, 0.0)
        return cls(recency=recency, multiplier=recent, rest=rest)

    def votes(self, data: DataSource, random: PrivacyRandom) -> VoteEstimate:
        """Release votes that fade; a user's have length at most 1."""
        statistic = RecentVotes(n_items=data.n_items, norm="l2", recency=self.recency)
        noise = Gaussian(sigma=self.multiplier, l2_sensitivity=1.0)
        return VoteEstimate.of(noise.release(data.total(statistic).steps(), random), self.multiplier)

    def items(self, data: DataSource, view: ItemView, offsets: Floats, random: PrivacyRandom) -> RecentItems:
        """Release counts and residuals of `offsets` that fade; a user's have length at most 1."""
        plain = ItemResiduals(
            middle=view.middle,
            half=view.half,
            mean=view.mean,
            effects=offsets - view.mean,
            item_weights=np.ones(data.n_items),
            count_part=tuned.PILOT_COUNT_PART,
        )
        noise = Gaussian(sigma=self.multiplier, l2_sensitivity=1.0)
        asked = RecentResiduals(plain=plain, recency=self.recency)
        sums, counted = noise.release(data.total(asked).steps(), random)
        length = math.hypot(tuned.TYPICAL_RESIDUAL, plain.count_part) / plain.count_part
        tally = VoteEstimate.of(counted * length, self.multiplier * length)
        counts = tally.raised / (length * plain.count_part)
        variance = sum_variance(counts, plain.item_weights, view.people, self.multiplier, plain.count_part)
        shift = shrink(sums, counts, variance, np.zeros((data.n_items, 0))).mean
        return RecentItems(tally.likely, shift)
