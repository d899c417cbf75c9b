"""Take reports from strangers: keep what is well formed and new, refuse the rest one by one, and count."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.checks import DataError, integer
from discreet.collect.estimate import Collected
from discreet.collect.ratings import wire
from discreet.collect.ratings.campaign import Campaign
from discreet.collect.ratings.mechanisms import decode
from discreet.collect.ratings.wire import ReportRefusal, ReportRefused
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

_MOST_SENDERS = 1 << 24
_FEW = 64


@final
class Collector:
    """Gather the reports of one campaign, message by message.

    Nothing a sender writes can stop the collection: a bad message is refused as a whole, a bad report alone.
    Memory grows with what was really sent: some dozen bytes for a report and some hundred for a sender.

    Parameters:
        campaign: What was asked for.
        max_senders: The most senders taken; a flood of invented ones is refused beyond.
    """

    def __init__(self, campaign: Campaign, *, max_senders: int = _MOST_SENDERS) -> None:
        self.campaign = campaign
        self.max_senders = integer("max_senders", max_senders, least=1)
        self.refusals: Counter[ReportRefusal] = Counter()
        self._n_items = len(campaign.catalog)
        self._n_codes = campaign.mechanism.channel().outputs.size
        self._rows: dict[bytes, int] = {}
        self._seen: list[array[int] | set[int]] = []
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
        """Take one message and return how many of its reports were kept."""
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
            raise DataError("No report was kept, so there is nothing to learn from.")
        codes = np.frombuffer(self._codes, dtype=np.uint16).astype(np.int32)
        return gathered(self.campaign, list(self._rows), np.array(self._users), np.array(self._items), codes)

    def _take(self, sender: bytes, item: int, code: int) -> ReportRefusal | None:
        """Keep one report, or say why not."""
        if not (0 <= item < self._n_items and 0 <= code < self._n_codes):
            return ReportRefusal.OUT_OF_RANGE
        row = self._rows.get(sender)
        if row is None:
            if len(self._rows) >= self.max_senders:
                return ReportRefusal.TOO_MANY_SENDERS
            row = self._rows[sender] = len(self._rows)
            self._seen.append(array("i"))
        seen = self._seen[row]
        if item in seen:
            return ReportRefusal.REPLAYED
        if len(seen) >= self.campaign.max_reports:
            return ReportRefusal.OVER_CAP
        self._remember(row, item)
        self._users.append(row)
        self._items.append(item)
        self._codes.append(code)
        return None

    def _remember(self, row: int, item: int) -> None:
        """Note that a sender reported an item: in a short list as long as looking through it is cheap."""
        seen = self._seen[row]
        if isinstance(seen, set):
            seen.add(item)
        elif len(seen) < _FEW:
            seen.append(item)
        else:
            self._seen[row] = {*seen, item}


def gathered(
    campaign: Campaign,
    senders: Sequence[bytes],
    rows: npt.NDArray[np.integer],
    items: npt.NDArray[np.integer],
    codes: npt.NDArray[np.integer],
) -> Collected:
    """Return kept reports in a form to learn from: report k is of senders[rows[k]], about items[k]."""
    people = Vocabulary.of([sender.hex() for sender in senders])
    reports = Interactions.from_arrays(
        people.series.gather(rows),
        campaign.catalog.series.gather(items),
        codes.astype(np.float64),
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
