"""Write messages of reports, in JSON or binary form, and read untrusted ones.

A message names the campaign, a sender and any number of reports; a report is the number of an item in the
campaign's catalog and a code, the index of the answer among the mechanism's outputs. The binary form is

    "DSCR"  version u8  campaign 32 bytes (8 in version 1)  sender 16 bytes  count varint
    items: each one's distance from the one before, varint   codes: u8, or u16 from 257 outputs on

with little-endian numbers. The sender is a random number that the device drew; it doesn't identify a user.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from discreet.collect.campaign import VERSIONS, Campaign
from discreet.core.checks import DataError

SENDER_BYTES = 16
MOST_BYTES = 1 << 20
_MAGIC = b"DSCR"
_LONGEST_VARINT = 5


class ReportRefusal(StrEnum):
    """The reason to reject a message or a report. Collectors count rejections by reason.

    Example:
        >>> from discreet.collect import BoundedLaplace, Campaign, Collector
        >>> from discreet.data.vocabulary import Vocabulary
        >>> films = Campaign(name="films", mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5),
        ...                  catalog=Vocabulary.of(["Alien", "Brazil"]), max_reports=20)
        >>> collector = Collector(films)
        >>> collector.receive(b"noise"), collector.refusals[ReportRefusal.MALFORMED]
        (0, 1)

    Stability
        Stable.
    """

    MALFORMED = "malformed"
    OVERSIZED = "oversized"
    WRONG_VERSION = "wrong version"
    WRONG_CAMPAIGN = "wrong campaign"
    OUT_OF_RANGE = "out of range"
    REPLAYED = "replayed"
    OVER_CAP = "over the cap"
    TOO_MANY_SENDERS = "too many senders"
    NOT_INVITED = "not invited"
    WRONG_ROUND = "wrong round"


class ReportRefused(DataError):
    """A rejected message, which isn't quoted."""

    def __init__(self, reason: ReportRefusal) -> None:
        super().__init__(f"The message was rejected: {reason.value}.")
        self.reason = reason


class RatingReport(NamedTuple):
    """An untrusted message; items and codes are integers, but not yet checked against the campaign.

    Example:
        >>> RatingReport(sender=b"one", items=(0, 4), codes=(7, 3)).items
        (0, 4)

    Stability
        Stable.
    """

    sender: bytes
    items: tuple[int, ...]
    codes: tuple[int, ...]


def to_bytes(campaign: Campaign, message: RatingReport) -> bytes:
    """Return the binary form; reports are sorted by item."""
    pairs = sorted(zip(message.items, message.codes, strict=True))
    out = bytearray(_MAGIC + bytes([campaign.version]) + campaign.digest + message.sender)
    out += _varint(len(pairs))
    before = 0
    for item, _ in pairs:
        out += _varint(item - before)
        before = item
    width = code_bytes(campaign)
    for _, code in pairs:
        out += code.to_bytes(width, "little")
    return bytes(out)


def to_json(campaign: Campaign, message: RatingReport) -> bytes:
    """Return the JSON form; reports are sorted by item, so they do not reveal the history's order."""
    record = {
        "discreet": campaign.version,
        "campaign": campaign.digest.hex(),
        "sender": message.sender.hex(),
        "reports": [list(pair) for pair in sorted(zip(message.items, message.codes, strict=True))],
    }
    return json.dumps(record, separators=(",", ":")).encode()


def code_bytes(campaign: Campaign) -> int:
    """Return the number of bytes of a code in the binary form."""
    return 1 if campaign.mechanism.channel().outputs.size <= 256 else 2


def read(campaign: Campaign, raw: bytes) -> RatingReport:
    """Read either form; raise `ReportRefused` with the reason if the message as a whole is rejected."""
    if not isinstance(raw, bytes):
        raise ReportRefused(ReportRefusal.MALFORMED)
    if len(raw) > MOST_BYTES:
        raise ReportRefused(ReportRefusal.OVERSIZED)
    return _read_binary(campaign, raw) if raw[: len(_MAGIC)] == _MAGIC else _read_json(campaign, raw)


def _read_binary(campaign: Campaign, raw: bytes) -> RatingReport:
    start = len(_MAGIC) + 1
    if len(raw) < start:
        raise ReportRefused(ReportRefusal.MALFORMED)
    digest = _named(campaign, raw[len(_MAGIC)])
    header = start + len(digest) + SENDER_BYTES
    if len(raw) < header:
        raise ReportRefused(ReportRefusal.MALFORMED)
    if raw[start : start + len(digest)] != digest:
        raise ReportRefused(ReportRefusal.WRONG_CAMPAIGN)
    count, place = _read_varint(raw, header)
    width = code_bytes(campaign)
    # Each report takes at least one byte for its item, so a false count cannot exceed the message's size.
    if count * (1 + width) > len(raw) - place:
        raise ReportRefused(ReportRefusal.MALFORMED)
    items, item = [], 0
    for _ in range(count):
        distance, place = _read_varint(raw, place)
        item += distance
        items.append(item)
    if len(raw) - place != count * width:
        raise ReportRefused(ReportRefusal.MALFORMED)
    codes = [int.from_bytes(raw[at : at + width], "little") for at in range(place, len(raw), width)]
    return RatingReport(raw[header - SENDER_BYTES : header], tuple(items), tuple(codes))


def _read_json(campaign: Campaign, raw: bytes) -> RatingReport:
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        raise ReportRefused(ReportRefusal.MALFORMED) from None
    if not isinstance(record, dict) or "discreet" not in record:
        raise ReportRefused(ReportRefusal.MALFORMED)
    if record.get("campaign") != _named(campaign, record["discreet"]).hex():
        raise ReportRefused(ReportRefusal.WRONG_CAMPAIGN)
    reports = record.get("reports")
    if not isinstance(reports, list):
        raise ReportRefused(ReportRefusal.MALFORMED)
    pairs = [_pair(report) for report in reports]
    return RatingReport(_sender(record.get("sender")), tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))


def _named(campaign: Campaign, version: Any) -> bytes:
    """Return the campaign's digest in messages of this version; raise for one newer than the campaign."""
    if type(version) is not int or version not in VERSIONS or version > campaign.version:
        raise ReportRefused(ReportRefusal.WRONG_VERSION)
    return campaign.old_digest if version == 1 else campaign.digest


def _sender(text: Any) -> bytes:
    try:
        sender = bytes.fromhex(text)
    except (TypeError, ValueError):
        raise ReportRefused(ReportRefusal.MALFORMED) from None
    if len(sender) != SENDER_BYTES:
        raise ReportRefused(ReportRefusal.MALFORMED)
    return sender


def _pair(report: Any) -> tuple[int, int]:
    """Return item and code; anything but two integers becomes a pair that is out of range."""
    if isinstance(report, list) and len(report) == 2 and all(type(part) is int for part in report):
        return report[0], report[1]
    return -1, -1


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(raw: Sequence[int], place: int) -> tuple[int, int]:
    number = 0
    for shift in range(_LONGEST_VARINT):
        if place >= len(raw):
            break
        byte = raw[place]
        number |= (byte & 0x7F) << (7 * shift)
        place += 1
        if byte < 0x80:
            return number, place
    raise ReportRefused(ReportRefusal.MALFORMED)
