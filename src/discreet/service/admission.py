"""Decide which reports are kept: well formed, new, and no more of a sender than the campaign allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, final

from discreet.collect.catalog.campaign import read as read_catalog
from discreet.collect.opening import AnyCampaign
from discreet.collect.ratings import wire
from discreet.collect.ratings.campaign import Campaign
from discreet.collect.ratings.wire import ReportRefusal

#: Under this number a store keeps a sender's one message about a whole catalog.
WHOLE = -1


class Submission(NamedTuple):
    """Hold what one request brings: pairs of item and code, or a whole message about a catalog."""

    sender: bytes
    pairs: tuple[tuple[int, int], ...]
    body: bytes | None
    refused: Counter[ReportRefusal]


@final
@dataclass(slots=True)
class Receipt:
    """Say what became of a submission; `closed` if nothing is taken any more."""

    kept: int = 0
    repeated: int = 0
    refused: Counter[ReportRefusal] = field(default_factory=Counter)
    closed: bool = False


class Admission(NamedTuple):
    """Hold the reports to be stored and what to answer."""

    new: list[tuple[int, int]]
    receipt: Receipt


def submission(campaign: AnyCampaign, raw: bytes) -> Submission:
    """Read a stranger's message; raise `ReportRefused` if it cannot be taken as a whole."""
    if not isinstance(campaign, Campaign):
        return Submission(read_catalog(campaign, raw).sender, (), raw, Counter())
    message = wire.read(campaign, raw)
    items, codes = len(campaign.catalog), campaign.mechanism.channel().outputs.size
    pairs = tuple(zip(message.items, message.codes, strict=True))
    good = tuple((item, code) for item, code in pairs if 0 <= item < items and 0 <= code < codes)
    refused: Counter[ReportRefusal] = Counter()
    if len(good) < len(pairs):
        refused[ReportRefusal.OUT_OF_RANGE] = len(pairs) - len(good)
    return Submission(message.sender, good, None, refused)


def admit(known: dict[int, int], pairs: Iterable[tuple[int, int]], cap: int) -> Admission:
    """Return which pairs are new to a sender with `known` answers, and add them to these.

    The same answer once more is a repeated request and harmless; another answer is refused: the first counts.
    """
    new: list[tuple[int, int]] = []
    receipt = Receipt()
    for item, code in pairs:
        if item in known:
            if known[item] == code:
                receipt.repeated += 1
            else:
                receipt.refused[ReportRefusal.REPLAYED] += 1
        elif len(known) >= cap:
            receipt.refused[ReportRefusal.OVER_CAP] += 1
        else:
            known[item] = code
            new.append((item, code))
    receipt.kept = len(new)
    return Admission(new, receipt)
