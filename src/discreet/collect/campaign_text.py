"""Write a campaign as one text that devices hash, pack it into few bytes, and read it from strangers.

A campaign's name is the SHA-256 of its text, exactly as it travels: sorted keys, no spaces, ASCII only.
Version 1 had no tables and a name of eight bytes, short enough to find two with the same; it is still read.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any, Literal

from discreet.checks import ParameterError, require

FORMAT = "discreet-campaign"
VERSION, VERSIONS = 2, (1, 2)
#: How many bytes name a campaign of each version.
DIGEST_BYTES = {1: 8, 2: 32}
_MAGIC = b"DSCC"
# A campaign is read by devices from strangers too: nothing larger is unpacked, and nothing that grows like a
# bomb. Titles and numbers shrink to a tenth at best.
_MOST_BYTES, _MOST_GROWTH, _ALWAYS_ALLOWED = 1 << 26, 50, 1 << 16

Kind = Literal["ratings", "catalog"]


def check_version(version: int) -> None:
    """Refuse a version that this library does not write."""
    known = isinstance(version, int) and not isinstance(version, bool) and version in VERSIONS
    require(known, "version", version, f"must be one of {VERSIONS}")


def to_text(record: dict[str, Any]) -> bytes:
    """Return the text of a campaign."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def digest_of(record_or_text: dict[str, Any] | bytes, version: int) -> bytes:
    """Return the bytes that name a campaign."""
    text = record_or_text if isinstance(record_or_text, bytes) else to_text(record_or_text)
    return hashlib.sha256(text).digest()[: DIGEST_BYTES[version]]


def version_of(record: Any, kind: Kind) -> int:
    """Return the version of a campaign of this kind; anything else is refused."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ParameterError("This is not a campaign that discreet wrote.")
    version = record.get("version")
    if type(version) is not int or version not in VERSIONS:
        raise ParameterError("This campaign was written by another version of discreet.")
    if kind_of_record(record) != kind:
        raise ParameterError(f"This campaign is of another kind; it does not ask for {kind}.")
    return version


def kind_of_record(record: Any) -> Any:
    """Return what a campaign asks for: version 1 wrote only those that ask for ratings."""
    kind = record.get("kind") if isinstance(record, dict) else None
    return "ratings" if kind is None and isinstance(record, dict) and record.get("version") == 1 else kind


def pack(text: bytes) -> bytes:
    """Return the text in few bytes."""
    return _MAGIC + zlib.compress(text, level=9)


def unpack(raw: bytes) -> Any:
    """Return the record behind packed bytes, and never unpack more than a campaign can hold."""
    if raw[: len(_MAGIC)] != _MAGIC:
        raise ParameterError("This is not a campaign that discreet wrote.")
    unpacker = zlib.decompressobj()
    try:
        most = min(_MOST_BYTES, max(_MOST_GROWTH * len(raw), _ALWAYS_ALLOWED))
        text = unpacker.decompress(raw[len(_MAGIC) :], most)
        whole = unpacker.eof and not unpacker.unused_data
        return json.loads(text) if whole else None
    except (zlib.error, ValueError, RecursionError) as error:
        raise ParameterError("This campaign is damaged.") from error
