"""Bound what one peer may ask: who asks, requests a minute, bytes of a body.

Anybody can write X-Forwarded-For. It is believed only from proxies that the operator declares, and only the
last address in it that isn't one of these proxies: that peer wrote everything before it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple, Self, final

import orjson
from starlette.requests import ClientDisconnect, Request

from discreet.core import Dialect, message
from discreet.core.errors import DiscreetError
from discreet.service.errors import BadProxy
from discreet.service.running import log

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# A peer with one address of such a network has all of them.
_NETWORK_BITS = 64


@final
class Peers:
    """Name the peer of a request, for counting.

    Parameters:
        proxies: Addresses or networks of the proxies in front of this service, such as 127.0.0.1 or
            10.0.0.0/8.
    """

    def __init__(self, proxies: Sequence[str] = ()) -> None:
        try:
            self._proxies = [ipaddress.ip_network(one, strict=False) for one in proxies]
        except ValueError as error:
            raise BadProxy() from error
        self._warned = False

    def is_proxy(self, host: str) -> bool:
        """Return whether this is the address of a declared proxy."""
        address = _address(host)
        return address is not None and any(address in network for network in self._proxies)

    def of(self, request: Request) -> str:
        """Return what requests of this peer are counted under."""
        host = request.client.host if request.client else ""
        forwarded = request.headers.getlist("x-forwarded-for")
        if not self.is_proxy(host):
            if forwarded and not self._warned:
                self._warned = True
                log("x-forwarded-for ignored", why="declare the proxy with --trusted-proxy")
            return network_of(host)
        named = self._named(",".join(forwarded).split(","))
        if named is None:
            if not self._warned:
                self._warned = True
                log("proxy names no peer", why="let it set X-Forwarded-For")
            raise RefusedError(503, "The proxy of this service doesn't state who asks (X-Forwarded-For).")
        return network_of(named)

    def _named(self, chain: Iterable[str]) -> str | None:
        """Return the last address that isn't a declared proxy."""
        for text in reversed([one.strip() for one in chain]):
            if _address(text) is None:
                return None
            if not self.is_proxy(text):
                return text
        return None


@lru_cache(maxsize=1024)
def network_of(host: str) -> str:
    """Return an IPv4 address as it is, and the /64 of an IPv6 address.

    Example:
        >>> network_of("192.0.2.7"), network_of("2001:db8::7"), network_of("::ffff:192.0.2.7")
        ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    address = _address(host)
    if address is None or isinstance(address, ipaddress.IPv4Address):
        return host if address is None else str(address)
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))


def _address(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


_WINDOW = 60.0
_MOST_PEERS = 1 << 17


# Versions of Python have different phrases for these.
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}


# Templates that replace the default one over HTTP, by code.
TEMPLATES: Mapping[str, str] = {}


class OverHttp(Dialect):
    """Requests with JSON bodies."""

    def argument(self, name: str, value: str) -> str:
        """Return a field of the body, such as `"ignore_unknown": true`."""
        if not value:
            return f'"{name}"'
        try:
            shown = json.dumps(json.loads(value.lower() if value in ("True", "False") else value))
        except ValueError:
            shown = json.dumps(value)
        return f'"{name}": {shown}'


HTTP = OverHttp(TEMPLATES)


class RefusedError(Exception):
    """A rejected request: a status, a message, a code with fields, and perhaps a body that is answered."""

    def __init__(
        self,
        status: int,
        sentence: str,
        example: dict[str, Any] | None = None,
        *,
        code: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.example = status, sentence, example
        self.title = _TITLES.get(status) or HTTPStatus(status).phrase
        self.code = code or self.title.lower().replace(" ", "-")
        self.fields = dict(fields or {})

    @classmethod
    def of(cls, error: DiscreetError, example: dict[str, Any] | None = None) -> Self:
        """Return the rejection of a request that the library can't answer, in the words of HTTP."""
        fields = {name: value for name, value in error.to_json().items() if name != "code"}
        return cls(422, message(error, HTTP), example, code=error.code, fields=fields)

    def one_of_many(self) -> bytes:
        """Return what an answer to many has in place of one of them, as JSON."""
        return orjson.dumps({"error": self.sentence, "status": self.status, "code": self.code})

    def to_json(self) -> dict[str, Any]:
        """Return the body of the response (RFC 9457). `error` is the old name of `detail`."""
        found = {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.sentence,
            "code": self.code,
            "fields": self.fields,
            "error": self.sentence,
        }
        return found if self.example is None else {**found, "example": self.example}


#: How many counts processes share: a stranger would have to fill this many to meet another peer's.
SLOTS = 1 << 20


class SharedCounts(NamedTuple):
    """Counts of one minute that several processes share: the first is the number of the minute.

    Two processes that count the same peer at the same moment may count it once: a limit need not be exact.
    """

    counts: Any
    secret: bytes

    def add(self, peer: str, weight: int) -> int:
        """Count requests of a peer; return how many there were in this minute."""
        # The clock is the same for all processes of a machine.
        minute = int(time.monotonic() / _WINDOW) + 1
        if self.counts[0] != minute:
            self.counts[:] = [0] * SLOTS
            self.counts[0] = minute
        key = self.secret + minute.to_bytes(8, "little")
        digest = hashlib.blake2b(peer.encode(), key=key, digest_size=8).digest()
        slot = 1 + int.from_bytes(digest, "little") % (SLOTS - 1)
        self.counts[slot] = min(self.counts[slot] + weight, 2**31)
        return int(self.counts[slot])


@final
class RateLimit:
    """Count requests by peer for a minute, in memory only.

    Peers are known by a hash under a key that is thrown away with the counts: nothing about an address is
    written, and last minute's counts cannot be joined with this one's. When there are too many to count, the
    one that has been quiet longest is forgotten, so that many strangers cannot lock a newcomer out.
    """

    def __init__(self, per_minute: int, shared: SharedCounts | None = None) -> None:
        self.per_minute, self._shared = per_minute, shared
        self._begun = -_WINDOW
        self._key = b""
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def check(self, peer: str, weight: int = 1) -> None:
        """Reject a peer's request beyond the limit; a request for several users counts for each of them."""
        if not self.per_minute:
            return
        if self._count(peer, weight) > self.per_minute:
            raise RefusedError(429, "Too many requests; try again in a minute.")

    def _count(self, peer: str, weight: int) -> int:
        if self._shared is not None:
            return self._shared.add(peer, weight)
        now = time.monotonic()
        if now - self._begun >= _WINDOW:
            self._begun, self._key = now, os.urandom(16)
            self._counts.clear()
        name = hashlib.blake2b(peer.encode(), key=self._key, digest_size=8).digest()
        count = self._counts.pop(name, 0) + weight
        if len(self._counts) >= _MOST_PEERS:
            self._counts.popitem(last=False)
        self._counts[name] = count
        return count


async def body_of(request: Request, most: int) -> bytes:
    """Return a request's body; a larger one is rejected before the rest of it is read.

    The connection ends if the body does not come in time (`connections.py`).
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise RefusedError(413, f"The message is larger than {most:,} bytes.")
    # Pieces stay where they are: a text that grows leaves holes of each of its sizes in memory.
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            # The error's own frames would keep them until garbage is collected.
            pieces.clear()
            raise ClientDisconnect()
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > most:
            raise RefusedError(413, f"The message is larger than {most:,} bytes.")
        more = message.get("more_body", False)
    return b"".join(pieces)
