"""Decide which reports are kept, and open the envelopes they come in.

An observer of an encrypted connection sees sizes. A body is a multiple of 512 bytes, so that most messages
of a campaign look alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, final

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.gradient_rounds import GradientCampaign, read_answer
from discreet.collect.hidden_items import read as read_catalog
from discreet.collect.opening import AnyCampaign
from discreet.collect.wire import ReportRefusal, ReportRefused

#: Under this number a store keeps a sender's one message about a whole catalog.
WHOLE = -1


class Submission(NamedTuple):
    """The contents of one request: pairs of item and code, or the answer to a whole catalog or a round."""

    sender: bytes
    pairs: tuple[tuple[int, int], ...]
    body: bytes | None
    refused: Counter[ReportRefusal]


@final
@dataclass(slots=True)
class Receipt:
    """What became of a submission; `closed` if nothing is accepted any more."""

    kept: int = 0
    repeated: int = 0
    refused: Counter[ReportRefusal] = field(default_factory=Counter)
    closed: bool = False


class Admission(NamedTuple):
    """The reports to be stored and what to answer."""

    new: list[tuple[int, int]]
    receipt: Receipt


def submission(campaign: AnyCampaign, raw: bytes) -> Submission:
    """Read a stranger's message; raise `ReportRefused` if it cannot be taken as a whole."""
    if isinstance(campaign, GradientCampaign):
        return Submission(read_answer(campaign, raw).sender, (), raw, Counter())
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

    The same answer once more is a repeated request and harmless. A different answer is rejected: the first
    counts.
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


BLOCK = 512
_LENGTH = 4


def seal(message: bytes) -> bytes:
    """Return a message in its envelope.

    Example:
        >>> len(seal(b"short")), unseal(seal(b"short"))
        (512, b'short')
    """
    padding = -(len(message) + _LENGTH) % BLOCK
    return len(message).to_bytes(_LENGTH, "little") + message + bytes(padding)


def unseal(body: bytes) -> bytes:
    """Return the message in an envelope; anything but zeros behind it is rejected."""
    length = int.from_bytes(body[:_LENGTH], "little")
    rest = body[_LENGTH + length :]
    if len(body) % BLOCK or not body or length > len(body) - _LENGTH or len(rest) >= BLOCK or any(rest):
        raise ReportRefused(ReportRefusal.MALFORMED)
    return body[_LENGTH : _LENGTH + length]
