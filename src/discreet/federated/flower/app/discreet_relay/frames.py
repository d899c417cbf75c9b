"""Send frames over a local socket: a short JSON header and a body, whose lengths are stated and bounded."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

MOST_HEADER = 1 << 16
MOST_BODY = 1 << 28
_PREFIX = struct.Struct("<IQ")
_CHUNK = 1 << 18


class BrokenFrame(ConnectionError):
    """Report a peer that is gone or sends an invalid frame."""


def send(line: socket.socket, header: Mapping[str, Any], body: bytes = b"") -> None:
    """Send one frame."""
    text = json.dumps(header).encode()
    line.sendall(_PREFIX.pack(len(text), len(body)) + text + body)


def receive(line: socket.socket, most: int = MOST_BODY) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of one frame, which has at most so many bytes."""
    header_bytes, body_bytes = _PREFIX.unpack(_exactly(line, _PREFIX.size))
    if header_bytes > MOST_HEADER or body_bytes > most:
        raise BrokenFrame("A frame is longer than allowed.")
    try:
        header = json.loads(_exactly(line, header_bytes))
    except (ValueError, RecursionError) as error:
        raise BrokenFrame("A frame has no readable header.") from error
    if not isinstance(header, dict):
        raise BrokenFrame("A frame has no readable header.")
    return header, _exactly(line, body_bytes)


def _exactly(line: socket.socket, size: int) -> bytes:
    """Return `size` bytes; memory grows with the bytes received."""
    raw = bytearray()
    while len(raw) < size:
        part = line.recv(min(_CHUNK, size - len(raw)))
        if not part:
            raise BrokenFrame("The other side is gone.")
        raw += part
    return bytes(raw)
