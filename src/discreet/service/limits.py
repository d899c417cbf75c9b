"""Bound what a stranger can cost: requests a minute, and bytes before they are looked at."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections import OrderedDict
from typing import final

from starlette.requests import Request

_WINDOW = 60.0
_MOST_PEERS = 1 << 17
_PATIENCE = 30.0


class RefusedError(Exception):
    """Refuse a request with a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@final
class RateLimit:
    """Count requests by peer for a minute, in memory only.

    Peers are known by a hash under a key that is thrown away with the counts: nothing about an address is
    written, and last minute's counts cannot be joined with this one's. When there are too many to count, the
    one that has been quiet longest is forgotten, so that a crowd of strangers cannot lock a newcomer out.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._begun = -_WINDOW
        self._key = b""
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def check(self, peer: str) -> None:
        """Refuse a peer's request beyond the limit."""
        if not self.per_minute:
            return
        now = time.monotonic()
        if now - self._begun >= _WINDOW:
            self._begun, self._key = now, os.urandom(16)
            self._counts.clear()
        name = hashlib.blake2b(peer.encode(), key=self._key, digest_size=8).digest()
        count = self._counts.pop(name, 0) + 1
        if len(self._counts) >= _MOST_PEERS:
            self._counts.popitem(last=False)
        self._counts[name] = count
        if count > self.per_minute:
            raise RefusedError(429, "Too many requests; try again in a minute.")


async def body_of(request: Request, most: int) -> bytes:
    """Return a request's body; one that is larger is refused before the rest of it is read."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise RefusedError(413, f"The message is larger than {most:,} bytes.")
    body = bytearray()
    try:
        async with asyncio.timeout(_PATIENCE):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise RefusedError(413, f"The message is larger than {most:,} bytes.")
    except TimeoutError as error:
        raise RefusedError(408, "The message did not arrive in time.") from error
    return bytes(body)
