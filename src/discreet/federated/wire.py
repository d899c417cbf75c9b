"""Encode messages between parties and a coordinator as bytes, and decode them without trusting the sender.

A message is

    "DFED"  version u8  header length u32  body length u64  header (JSON)  body (the arrays' bytes)

with little-endian numbers. The header names the arrays with their type and shape; only three types of numbers
exist, nothing is ever unpickled, and lengths are checked before anything is allocated.

A party's answer states the latest place in its chain of events. The coordinator puts the places that it
knows into its next question, and signs the question. The keeper records the place that comes with a key, and
returns it when the party asks. So a party that was restored from an older copy sees that others know more.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np
import numpy.typing as npt

from discreet.core.checks import DataError
from discreet.privacy import Anchor

VERSION = 1
MOST_BYTES = 1 << 28
_MAGIC = b"DFED"
_PREFIX = struct.Struct("<4sBIQ")
PREFIX_BYTES = _PREFIX.size
_MOST_HEADER = 1 << 16
_MOST_ARRAYS, _MOST_DIMENSIONS = 32, 3
_LONGEST_NAME = 200
_TYPES = {"<f8": np.dtype("<f8"), "<i8": np.dtype("<i8"), "<u8": np.dtype("<u8")}

Read = TypeVar("Read", dict[str, Any], list[Any])
Value = str | int | float | bool
Arrays = Mapping[str, npt.NDArray[Any]]
#: The field of a question with a place for each party, and of an answer with the party's own.
CHAINS, CHAIN = "chains", "chain"


class Refusal(StrEnum):
    """Name the reason why a message was rejected, or a party was excluded from a round."""

    MALFORMED = "malformed"
    UNKNOWN_FIELD = "unknown field"
    OVERSIZED = "oversized"
    WRONG_VERSION = "wrong version"
    WRONG_RUN = "wrong run"
    WRONG_NAMES = "wrong names"
    WRONG_ROUND = "wrong round"
    WRONG_KIND = "wrong kind"
    WRONG_SHAPE = "wrong shape"
    NOT_FINITE = "not finite"
    OUT_OF_RANGE = "out of range"
    WRONG_SENDER = "wrong sender"
    WRONG_SIGNATURE = "wrong signature"
    WRONG_GUARANTEE = "wrong guarantee"
    WRONG_QUESTION = "wrong question"
    TWICE = "twice"
    BEHIND = "behind"
    DROPPED = "dropped"
    WITHOUT_MASK = "without mask"
    DECLINED = "declined"
    SILENT = "silent"


@final
class Refused(DataError):
    """Report a rejected message, without quoting it."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(f"The message was rejected: {reason.value}.")
        self.reason = reason


@final
@dataclass(frozen=True, kw_only=True)
class Message:
    """One message: its kind, run, step and sender, with fields and arrays.

    Protocols write kind, fields and arrays. The sender adds the rest: without it no one reads a message.
    """

    kind: str
    run: str = ""
    step: int = -1
    sender: str = ""
    fields: Mapping[str, Value] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """Return a fingerprint of the whole message."""
        return hashlib.sha256(encode(self)).hexdigest()


def encode(message: Message) -> bytes:
    """Return the bytes of a message."""
    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    header = {
        "kind": message.kind,
        "run": message.run,
        "step": message.step,
        "sender": message.sender,
        "fields": dict(message.fields),
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()],
    }
    text = json.dumps(header, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    return _PREFIX.pack(_MAGIC, VERSION, len(text), len(body)) + text + body


def message_bytes(prefix: bytes, most: int = MOST_BYTES) -> int:
    """Return the total length of the message with this prefix, or raise `Refused`."""
    if len(prefix) < PREFIX_BYTES:
        raise Refused(Refusal.MALFORMED)
    magic, version, header, body = _PREFIX.unpack(prefix[:PREFIX_BYTES])
    if magic != _MAGIC:
        raise Refused(Refusal.MALFORMED)
    if version != VERSION:
        raise Refused(Refusal.WRONG_VERSION)
    if header > _MOST_HEADER or header + body > most:
        raise Refused(Refusal.OVERSIZED)
    return int(PREFIX_BYTES + header + body)


def is_cut_short(rest: bytes) -> bool:
    """Return whether truncated bytes can be the beginning of a valid message.

    A message with a damaged length is not: its header states how long the arrays are.
    """
    length, body = _PREFIX.unpack(rest[:PREFIX_BYTES])[2:]
    text = rest[PREFIX_BYTES : PREFIX_BYTES + length]
    try:
        # Headers are ASCII; after a damaged length any bytes may follow.
        header, end = json.JSONDecoder().raw_decode(text.decode("latin-1"))
        listed = [_described(entry) for entry in header["arrays"]]
    except (Refused, ValueError, KeyError, TypeError, RecursionError):
        # Truncation leaves incomplete JSON; in a complete header invalid JSON is damage.
        return len(text) < int(length)
    return end == int(length) and sum(math.prod(shape) * kind.itemsize for _, kind, shape in listed) == int(
        body
    )


def decode(raw: bytes, most: int = MOST_BYTES) -> Message:
    """Read a message; raise `Refused` with the reason if it is invalid."""
    if message_bytes(raw, most) != len(raw):
        raise Refused(Refusal.MALFORMED)
    length = _PREFIX.unpack(raw[:PREFIX_BYTES])[2]
    header = _header(raw[PREFIX_BYTES : PREFIX_BYTES + length])
    return Message(
        kind=_name(header.get("kind")),
        run=_name(header.get("run")),
        step=_step(header.get("step")),
        sender=_name(header.get("sender")),
        fields=_fields(header.get("fields")),
        arrays=_arrays(header.get("arrays"), memoryview(raw)[PREFIX_BYTES + length :]),
    )


def read_names(text: Any) -> frozenset[str]:
    """Return names that a field lists as JSON, or raise `Refused`."""
    return frozenset(_all_texts(_read_json(text, list)))


def read_texts(text: Any) -> dict[str, str]:
    """Return texts by name that a field has as JSON, or raise `Refused`."""
    found = _read_json(text, dict)
    _all_texts(found.values())
    return found


def places_to_field(known: Mapping[str, Anchor]) -> str:
    """Return places by party as one field of a question."""
    return json.dumps({name: str(anchor) for name, anchor in sorted(known.items())})


def known_place(question: Message, name: str) -> Anchor:
    """Return the place that a question states for a party; the start if it states none."""
    stated = _read_json(question.fields.get(CHAINS, "{}"), dict)
    return _place(stated[name]) if name in stated else Anchor()


def own_place(answer: Message) -> Anchor:
    """Return the place that an answer states for its sender."""
    return _place(answer.fields.get(CHAIN))


def refusal(kind: str, reason: Refusal, *, run: str = "-", step: int = -1, sender: str = "-") -> bytes:
    """Return the message that declines a message and states why."""
    return encode(Message(kind=kind, run=run, step=step, sender=sender, fields={"reason": reason.value}))


def _read_json(text: Any, kind: type[Read]) -> Read:
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise Refused(Refusal.MALFORMED) from None
    if not isinstance(found, kind):
        raise Refused(Refusal.MALFORMED)
    return found


def _all_texts(found: Iterable[Any]) -> Iterable[str]:
    if not all(isinstance(one, str) for one in found):
        raise Refused(Refusal.MALFORMED)
    return found


def _place(stated: object) -> Anchor:
    try:
        return Anchor.parse(stated)
    except ValueError:
        raise Refused(Refusal.MALFORMED) from None


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text, parse_constant=_no_constant)
    except Refused:
        raise
    except (ValueError, RecursionError):
        raise Refused(Refusal.MALFORMED) from None
    if not isinstance(header, dict):
        raise Refused(Refusal.MALFORMED)
    return header


def _no_constant(_: str) -> float:
    raise Refused(Refusal.NOT_FINITE)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        raise Refused(Refusal.MALFORMED)
    return value


def _step(value: Any) -> int:
    if type(value) is not int or not -1 <= value < 2**31:
        raise Refused(Refusal.MALFORMED)
    return value


def _fields(value: Any) -> dict[str, Value]:
    if not isinstance(value, dict) or not all(isinstance(entry, Value) for entry in value.values()):
        raise Refused(Refusal.MALFORMED)
    # 1e999 is a valid JSON number and becomes infinity.
    if not all(math.isfinite(entry) for entry in value.values() if isinstance(entry, float)):
        raise Refused(Refusal.NOT_FINITE)
    # A number of hundreds of digits is valid JSON, too, and no float can hold it.
    if not all(abs(entry) < 2**63 for entry in value.values() if isinstance(entry, int)):
        raise Refused(Refusal.OUT_OF_RANGE)
    return value


def _arrays(listed: Any, body: memoryview) -> dict[str, npt.NDArray[Any]]:
    if not isinstance(listed, list) or len(listed) > _MOST_ARRAYS:
        raise Refused(Refusal.MALFORMED)
    arrays: dict[str, npt.NDArray[Any]] = {}
    offset = 0
    for entry in listed:
        name, kind, shape = _described(entry)
        size = math.prod(shape) * kind.itemsize
        if name in arrays or offset + size > len(body):
            raise Refused(Refusal.MALFORMED)
        arrays[name] = np.frombuffer(body[offset : offset + size], dtype=kind).reshape(shape)
        offset += size
    if offset != len(body):
        raise Refused(Refusal.MALFORMED)
    return arrays


def _described(entry: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    if not isinstance(entry, list) or len(entry) != 3:
        raise Refused(Refusal.MALFORMED)
    name, kind, shape = _name(entry[0]), entry[1], entry[2]
    known = isinstance(kind, str) and kind in _TYPES and isinstance(shape, list)
    if not known or len(shape) > _MOST_DIMENSIONS:
        raise Refused(Refusal.MALFORMED)
    if not all(type(side) is int and 0 <= side < 2**40 for side in shape):
        raise Refused(Refusal.MALFORMED)
    return name, _TYPES[kind], tuple(shape)
