"""Accept untrusted reports: keep those that are well formed and new, reject and count the rest.

`Collector` and `CatalogCollector` keep reports to learn from. `CatalogTotals` keeps sums of integers only, so
totals do not depend on the order in which they are merged, and memory does not grow with the devices.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.errors import DifferentTotals, NothingKept, PartOfCatalog
from discreet.collect.estimate import Collected
from discreet.collect.hidden_items import CatalogCampaign, CatalogReport, read
from discreet.collect.mechanisms import decode
from discreet.collect.wire import ReportRefusal, ReportRefused
from discreet.core import Floats, integer
from discreet.data import Interactions, Vocabulary

_MOST_SENDERS = 1 << 24


@final
class Collector:
    """Collect the reports of one campaign, message by message.

    No message can stop the collection: a malformed message is rejected as a whole, an invalid report alone.
    Memory grows with the accepted reports: about a hundred bytes per report and some hundred per sender.

    Parameters:
        campaign: The campaign to collect for.
        max_senders: The most senders accepted, against a flood of invented ones.

    Example:
        >>> from discreet.collect import BoundedLaplace, Campaign, Device
        >>> from discreet.data.vocabulary import Vocabulary
        >>> films = Campaign(name="films", mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5),
        ...         catalog=Vocabulary.of(["Alien", "Brazil"]), max_reports=20)
        >>> collector = Collector(films)
        >>> collector.receive(Device(films, budget=1.5).message({"Alien": 4.5})), collector.receive(b"noise")
        (1, 0)
        >>> collector.collected().reports.n_ratings
        1

    Stability
        Stable.
    """

    def __init__(self, campaign: Campaign, *, max_senders: int = _MOST_SENDERS) -> None:
        self.campaign = campaign
        self.max_senders = integer("max_senders", max_senders, least=1)
        self.refusals: Counter[ReportRefusal] = Counter()
        self._n_items = len(campaign.catalog)
        self._n_codes = campaign.mechanism.channel().outputs.size
        self._rows: dict[bytes, int] = {}
        self._seen: list[set[int]] = []
        self._users, self._items, self._codes = array("i"), array("i"), array("H")

    @property
    def kept(self) -> int:
        """Return how many reports were kept."""
        return len(self._codes)

    @property
    def senders(self) -> int:
        """Return how many senders had a report kept."""
        return len(self._rows)

    def receive(self, raw: bytes) -> int:
        """Receive one message and return how many of its reports were kept."""
        try:
            message = wire.read(self.campaign, raw)
        except ReportRefused as refused:
            self.refusals[refused.reason] += 1
            return 0
        before = self.kept
        for item, code in zip(message.items, message.codes, strict=True):
            reason = self._take(message.sender, item, code)
            if reason is not None:
                self.refusals[reason] += 1
        return self.kept - before

    def collected(self) -> Collected:
        """Return the reports so far, in a form to learn from."""
        if not self.kept:
            raise NothingKept()
        codes = np.frombuffer(self._codes, dtype=np.uint16).astype(np.int32)
        return gathered(self.campaign, list(self._rows), np.array(self._users), np.array(self._items), codes)

    def _take(self, sender: bytes, item: int, code: int) -> ReportRefusal | None:
        """Keep one report, or return why it is rejected."""
        if not (0 <= item < self._n_items and 0 <= code < self._n_codes):
            return ReportRefusal.OUT_OF_RANGE
        row = self._rows.get(sender)
        if row is None:
            if len(self._rows) >= self.max_senders:
                return ReportRefusal.TOO_MANY_SENDERS
            row = self._rows[sender] = len(self._rows)
            self._seen.append(set())
        seen = self._seen[row]
        if item in seen:
            return ReportRefusal.REPLAYED
        if len(seen) >= self.campaign.max_reports:
            return ReportRefusal.OVER_CAP
        seen.add(item)
        self._users.append(row)
        self._items.append(item)
        self._codes.append(code)
        return None


def gathered(
    campaign: Campaign,
    senders: Sequence[bytes],
    rows: npt.NDArray[np.integer],
    items: npt.NDArray[np.integer],
    codes: npt.NDArray[np.integer],
) -> Collected:
    """Return kept reports in a form to learn from: report k is from senders[rows[k]] about items[k]."""
    people = Vocabulary.of([sender.hex() for sender in senders])
    named = campaign.catalog.series.gather(items)
    reports = Interactions.from_columns(
        [people.series.gather(rows), named, codes.astype(np.float64), None],
        catalog=campaign.catalog,
        people=people,
        low=0.0,
        high=float(campaign.mechanism.channel().outputs.size - 1),
        name=campaign.name,
    )
    ordered = reports.values.astype(np.int32)
    return Collected(
        reports=reports.with_values(decode(campaign.mechanism, ordered), facts=campaign.facts),
        codes=ordered,
        mechanism=campaign.mechanism,
    )


@final
class CatalogCollector:
    """Collect catalog messages one by one; reject and count malformed ones and a sender's second one.

    Memory is six bytes for every item that was reported as rated, and a few dozen for every sender.

    Example:
        >>> from discreet.collect import CatalogCampaign, CatalogDevice
        >>> from discreet.data.vocabulary import Vocabulary
        >>> films = CatalogCampaign.spread(10.0, catalog=Vocabulary.of(range(10)))
        >>> collector, raw = CatalogCollector(films), CatalogDevice(films).message({3: 1})
        >>> collector.receive(raw), collector.receive(raw), collector.senders
        (True, False, 1)

    Stability
        Stable.
    """

    def __init__(self, campaign: CatalogCampaign) -> None:
        if campaign.answers is not None:
            raise PartOfCatalog()
        self.campaign = campaign
        self.refusals: Counter[ReportRefusal] = Counter()
        self._senders: dict[bytes, None] = {}
        self._items: list[npt.NDArray[np.int32]] = []
        self._codes: list[npt.NDArray[np.uint16]] = []

    @property
    def senders(self) -> int:
        """Return how many messages were kept, one per sender."""
        return len(self._senders)

    def receive(self, raw: bytes) -> bool:
        """Receive one message and return whether it was kept."""
        try:
            message = read(self.campaign, raw)
            if message.sender in self._senders:
                raise ReportRefused(ReportRefusal.REPLAYED)
        except ReportRefused as refused:
            self.refusals[refused.reason] += 1
            return False
        self._senders[message.sender] = None
        self._items.append(message.items.astype(np.int32))
        self._codes.append(message.codes.astype(np.uint16))
        return True

    def collected(self) -> Collected:
        """Return the reports so far, in a form to learn from."""
        if not self._senders:
            raise NothingKept()
        codes = np.concatenate(self._codes).astype(np.int32)
        reports = Interactions(
            indptr=np.concatenate([[0], np.cumsum([items.size for items in self._items])]),
            items=np.concatenate(self._items),
            values=self.campaign.mechanism.outputs()[codes].astype(np.float32),
            users=Vocabulary.of([sender.hex() for sender in self._senders]),
            catalog=self.campaign.catalog,
            facts=self.campaign.facts,
            name=self.campaign.name,
        )
        return Collected(reports=reports, codes=codes, mechanism=self.campaign.mechanism)


Counts = npt.NDArray[np.int64]


@final
class CatalogTotals:
    """Count, for every item, the devices asked, the devices that reported a rating, and the sum of codes.

    A malformed message is rejected as a whole and counted by its reason. Senders are not remembered: to count
    each device once, filter messages before, where senders are known.

    Example:
        >>> from discreet.collect import CatalogCampaign, CatalogDevice
        >>> from discreet.data.vocabulary import Vocabulary
        >>> films = CatalogCampaign.spread(10.0, catalog=Vocabulary.of(range(10)))
        >>> totals = CatalogTotals(films)
        >>> totals.receive(CatalogDevice(films).message({3: 1})), totals.receive(b"noise"), totals.devices
        (True, False, 1)

    Stability
        Stable.
    """

    def __init__(self, campaign: CatalogCampaign) -> None:
        self.campaign = campaign
        self.devices = 0
        self.refusals: Counter[ReportRefusal] = Counter()
        size = len(campaign.catalog)
        self.asked, self.reported, self.code_sums = (np.zeros(size, np.int64) for _ in range(3))

    def receive(self, raw: bytes) -> bool:
        """Receive one message and return whether it was accepted."""
        try:
            message = read(self.campaign, raw)
        except ReportRefused as refused:
            self.refusals[refused.reason] += 1
            return False
        self.add(message)
        return True

    def add(self, message: CatalogReport) -> None:
        """Add a checked message, whose items are distinct."""
        self.devices += 1
        self.asked[slice(None) if message.asked is None else message.asked] += 1
        self.reported[message.items] += 1
        self.code_sums[message.items] += message.codes

    def merged(self, other: Self) -> CatalogTotals:
        """Return the totals of both; merging is exactly associative and commutative."""
        if self.campaign.digest != other.campaign.digest:
            raise DifferentTotals()
        both = CatalogTotals(self.campaign)
        both.devices = self.devices + other.devices
        both.refusals = self.refusals + other.refusals
        both.asked = self.asked + other.asked
        both.reported = self.reported + other.reported
        both.code_sums = self.code_sums + other.code_sums
        return both

    def estimate(self) -> CatalogEstimate:
        """Return unbiased estimates of the number of ratings of each item and of their sum."""
        mechanism = self.campaign.mechanism
        keep, fake = mechanism.keep, mechanism.fake
        numbers = mechanism.unbiased()
        # Values are linear in codes, so a sum of codes is enough. A scale of one value has one code.
        first, second = numbers[0], numbers[min(1, numbers.size - 1)]
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
    """Unbiased estimates per item: how many of those asked rated it, and the sum of rating - middle.

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
        """Return debiased means inside the scale; the middle where the count is not above its noise."""
        clear = self.rated > 2 * self.rated_error
        ratio = self.rating_sums / np.where(clear, self.rated, 1.0)
        return np.where(clear, self.middle + np.clip(ratio, -self.half, self.half), self.middle)
