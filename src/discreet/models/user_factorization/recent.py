"""Follow recent interactions: one more release, in which ratings fade with age.

What belongs together is learned from whole histories. How popular items are, and how they are rated, comes
from a release of its own, in which a rating counts half after a public half-life. Ages count from a public
date. The proofs are in proofs/user_factorization.md and proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.models.released_items import ItemView, sum_variance
from discreet.privacy.session import Session
from discreet.solvers.empirical_bayes import VoteEstimate, shrink
from discreet.statistics.counts import ItemResiduals, Recency, RecentResiduals, RecentVotes
from discreet.statistics.typical import TYPICAL_RESIDUAL


class RecentItems(NamedTuple):
    """How popular items are now, and how much better they are rated than over all time."""

    popularity: Floats
    shift: Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecentReleases:
    """How ratings fade with age, and the session that their release may spend."""

    recency: Recency
    session: Session

    def votes(self) -> VoteEstimate:
        """Release votes that fade; a user's have length at most 1."""
        statistic = RecentVotes(n_items=self.session.n_items, norm="l2", recency=self.recency)
        return VoteEstimate.of(*self.session.release(statistic, Fraction(1)))

    def items(self, view: ItemView, offsets: Floats) -> RecentItems:
        """Release counts and residuals of `offsets` that fade; a user's have length at most 1."""
        n_items = self.session.n_items
        plain = ItemResiduals(
            middle=view.middle,
            half=view.half,
            mean=view.mean,
            effects=offsets - view.mean,
            item_weights=np.ones(n_items),
            # Counts have as much variance as residuals.
            count_part=TYPICAL_RESIDUAL,
        )
        asked = RecentResiduals(plain=plain, recency=self.recency)
        (sums, counted), multiplier = self.session.release(asked, Fraction(1))
        length = math.hypot(TYPICAL_RESIDUAL, plain.count_part) / plain.count_part
        tally = VoteEstimate.of(counted * length, multiplier * length)
        counts = tally.raised / (length * plain.count_part)
        variance = sum_variance(counts, plain.item_weights, view.people, multiplier, plain.count_part)
        shift = shrink(sums, counts, variance, np.zeros((n_items, 0))).mean
        return RecentItems(tally.likely, shift)
