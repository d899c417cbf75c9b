"""Keep the messages of a campaign over a catalog, to learn a model from them."""

from __future__ import annotations

from collections import Counter
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.checks import DataError, ParameterError
from discreet.collect.catalog.campaign import CatalogCampaign, read
from discreet.collect.estimate import Collected
from discreet.collect.ratings.wire import ReportRefusal, ReportRefused
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary


@final
class CatalogCollector:
    """Gather messages one by one; a bad one is refused as a whole and counted, as is a sender's second one.

    Memory is six bytes for every cell that was reported as rated, and a few dozen for every sender.
    """

    def __init__(self, campaign: CatalogCampaign) -> None:
        if campaign.answers is not None:
            raise ParameterError(
                "A model is learned from devices that answer for the whole catalog; for a campaign that asks "
                "about some items use CatalogTotals."
            )
        self.campaign = campaign
        self.refusals: Counter[ReportRefusal] = Counter()
        self._senders: dict[bytes, None] = {}
        self._items: list[npt.NDArray[np.int32]] = []
        self._codes: list[npt.NDArray[np.uint16]] = []

    @property
    def senders(self) -> int:
        """Return how many messages were kept, one a sender."""
        return len(self._senders)

    def receive(self, raw: bytes) -> bool:
        """Take one message and tell whether it was kept."""
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
            raise DataError("No message was kept, so there is nothing to learn from.")
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
