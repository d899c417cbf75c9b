"""Carry a message over a network so that its size tells little: its length, itself, then zeros.

Whoever watches an encrypted connection sees sizes. A body is a multiple of 512 bytes, so that most messages
of a campaign look alike.
"""

from __future__ import annotations

from discreet.collect.ratings.wire import ReportRefusal, ReportRefused

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
    """Return the message in an envelope; anything but zeros behind it is refused."""
    length = int.from_bytes(body[:_LENGTH], "little")
    rest = body[_LENGTH + length :]
    if len(body) % BLOCK or not body or length > len(body) - _LENGTH or len(rest) >= BLOCK or any(rest):
        raise ReportRefused(ReportRefusal.MALFORMED)
    return body[_LENGTH : _LENGTH + length]
