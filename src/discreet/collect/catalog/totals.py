"""Add up messages of a campaign over a catalog while they stream in; totals of several machines add up too.

Only whole numbers are added, so totals do not depend on the order in which they are merged. Memory is that of
the catalog, whatever the number of devices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.checks import DataError
from discreet.collect.catalog.campaign import CatalogCampaign, CatalogReport, read
from discreet.collect.ratings.wire import ReportRefusal, ReportRefused

Counts = npt.NDArray[np.int64]


@final
class CatalogTotals:
    """Count, for every item, who was asked, who reported a rating, and the sum of what was reported.

    A bad message is refused as a whole and counted by its reason. Senders are not remembered: who wants each
    device counted once must see to it before, where senders are known.
    """

    def __init__(self, campaign: CatalogCampaign) -> None:
        self.campaign = campaign
        self.devices = 0
        self.refusals: Counter[ReportRefusal] = Counter()
        size = len(campaign.catalog)
        self.asked, self.reported, self.code_sums = (np.zeros(size, np.int64) for _ in range(3))

    def receive(self, raw: bytes) -> bool:
        """Take one message and tell whether it was in order."""
        try:
            message = read(self.campaign, raw)
        except ReportRefused as refused:
            self.refusals[refused.reason] += 1
            return False
        self.add(message)
        return True

    def add(self, message: CatalogReport) -> None:
        """Add a checked message; its items are all different."""
        self.devices += 1
        self.asked[slice(None) if message.asked is None else message.asked] += 1
        self.reported[message.items] += 1
        self.code_sums[message.items] += message.codes

    def merged(self, other: Self) -> CatalogTotals:
        """Return the totals of both; merging is associative and commutative, to the last digit."""
        if self.campaign.digest != other.campaign.digest:
            raise DataError("These totals belong to different campaigns.")
        both = CatalogTotals(self.campaign)
        both.devices = self.devices + other.devices
        both.refusals = self.refusals + other.refusals
        both.asked = self.asked + other.asked
        both.reported = self.reported + other.reported
        both.code_sums = self.code_sums + other.code_sums
        return both

    def estimate(self) -> CatalogEstimate:
        """Return unbiased estimates of how many rated each item, and of their mean."""
        mechanism = self.campaign.mechanism
        keep, fake = mechanism.keep, mechanism.fake
        first, second = mechanism.unbiased()[:2]
        # What a code stands for rises evenly, so that a sum of codes is all that is needed.
        sums = (first - mechanism.middle) * self.reported + (second - first) * self.code_sums
        rated = (self.reported - fake * self.asked) / (keep - fake)
        spread = fake * (1 - fake) * self.asked + (keep * (1 - keep) - fake * (1 - fake)) * np.maximum(
            rated, 0
        )
        noise = np.maximum(rated, 0) * keep * mechanism.rated_variance()
        noise += np.maximum(self.asked - rated, 0) * fake * mechanism.fake_variance()
        return CatalogEstimate(
            asked=self.asked.copy(),
            rated=rated,
            rated_error=np.sqrt(np.maximum(spread, 0)) / (keep - fake),
            rating_sums=sums / keep,
            sum_error=np.sqrt(noise) / keep,
            middle=mechanism.middle,
            half=(mechanism.high - mechanism.low) / 2,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CatalogEstimate:
    """Hold unbiased estimates by item: how many of those asked rated it, and the sum of rating - middle.

    `rated_error` and `sum_error` are standard errors from the noise of the reports alone.
    """

    asked: Counts
    rated: Floats
    rated_error: Floats
    rating_sums: Floats
    sum_error: Floats
    middle: float
    half: float

    def means(self) -> Floats:
        """Return debiased means inside the scale; the middle where the count is lost in its noise."""
        clear = self.rated > 2 * self.rated_error
        ratio = self.rating_sums / np.where(clear, self.rated, 1.0)
        return np.where(clear, self.middle + np.clip(ratio, -self.half, self.half), self.middle)
