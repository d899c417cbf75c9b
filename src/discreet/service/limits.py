"""Bound what one peer may hold: who asks, idle connections, requests a minute, bytes of a body.

uvicorn waits for ever for the first byte, and for the rest of a header. Whoever opens many connections and
says nothing would lock everybody else out.

Anybody can write X-Forwarded-For. It is believed only from proxies that the operator declares, and only the
last address in it that is no such proxy: what stands before it was written by that stranger.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, final

from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.core.checks import ParameterError
from discreet.service.running import log

#: How many seconds a connection may take to bring a whole header, and a request to be answered in all.
HEADER_SECONDS, REQUEST_SECONDS = 10.0, 600.0
#: How many connections are open at once, and how many of them one peer may have.
MOST_CONNECTIONS, MOST_OF_A_PEER = 2000, 200
# Files, the store and the model need descriptors, too.
_OTHER_DESCRIPTORS = 128


def room(most: int = MOST_CONNECTIONS) -> int:
    """Return how many connections this process can have, after asking the system for enough descriptors."""
    if os.name != "posix":
        return most
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OTHER_DESCRIPTORS
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(most, soft - _OTHER_DESCRIPTORS))


@final
class Doorkeeper:
    """Count connections by peer, and know which of them wait for a request, longest first."""

    def __init__(
        self, peers: Peers, *, most: int = MOST_CONNECTIONS, of_a_peer: int = MOST_OF_A_PEER
    ) -> None:
        self._peers, self._most, self._of_a_peer = peers, most, of_a_peer
        self._open: Counter[str] = Counter()
        self._silent: OrderedDict[BoundedProtocol, None] = OrderedDict()

    def admit(self, host: str) -> bool:
        """Count a new connection; a peer that has too many is turned away, a proxy never is."""
        peer = network_of(host)
        if self._open[peer] >= self._of_a_peer and not self._peers.is_proxy(host):
            return False
        self._open[peer] += 1
        if self._open.total() > self._most and self._silent:
            next(iter(self._silent)).turn_away()
        return True

    def leave(self, host: str) -> None:
        """Forget a connection that was admitted."""
        peer = network_of(host)
        self._open[peer] -= 1
        if self._open[peer] <= 0:
            del self._open[peer]

    def is_silent(self, connection: BoundedProtocol, silent: bool) -> None:
        """Note whether a connection waits for a request."""
        if not silent:
            self._silent.pop(connection, None)
        elif connection not in self._silent:
            self._silent[connection] = None


class BoundedProtocol(H11Protocol):
    """Speak HTTP with a deadline for every request; `bounded_protocol` gives it a doorkeeper."""

    doorkeeper: Doorkeeper
    _admitted: str | None = None
    _timer: asyncio.TimerHandle | None = None
    _answering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit a connection, and begin to wait for its first request."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        if not self.doorkeeper.admit(host):
            self.turn_away()
            return
        self._admitted = host
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a header that is whole starts the request's own deadline."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._answering = True
            self.doorkeeper.is_silent(self, False)
            self._set_timer(REQUEST_SECONDS)
        elif not self._answering and self._timer is None:
            self._wait_for_request()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        before = self.cycle
        super().on_response_complete()
        if self.cycle is before:  # else a request that was sent ahead has begun
            self._answering = False
            self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._set_timer(None)
        self.doorkeeper.is_silent(self, False)
        if self._admitted is not None:
            self.doorkeeper.leave(self._admitted)
            self._admitted = None

    def turn_away(self) -> None:
        """Close at once, without an answer."""
        self.doorkeeper.is_silent(self, False)
        self.transport.abort()

    def _wait_for_request(self) -> None:
        self.doorkeeper.is_silent(self, True)
        self._set_timer(max(HEADER_SECONDS, self.timeout_keep_alive))

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.turn_away)


def bounded_protocol(peers: Peers, most: int) -> type[Any]:
    """Return the protocol for one server, whose connections share a doorkeeper."""
    return type("BoundedProtocol", (BoundedProtocol,), {"doorkeeper": Doorkeeper(peers, most=most)})


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Whoever has one address of such a network has all of them.
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
            raise ParameterError(
                "--trusted-proxy takes an address or a network, such as 127.0.0.1 or 10.0.0.0/8."
            ) from error
        self._warned = False

    def is_proxy(self, host: str) -> bool:
        """Tell whether this is the address of a declared proxy."""
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
                log("proxy names nobody", why="let it set X-Forwarded-For")
            raise RefusedError(503, "The proxy of this service does not say who asks (X-Forwarded-For).")
        return network_of(named)

    def _named(self, chain: Iterable[str]) -> str | None:
        """Return the last address that is no proxy of ours."""
        for text in reversed([one.strip() for one in chain]):
            if _address(text) is None:
                return None
            if not self.is_proxy(text):
                return text
        return None


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
_PATIENCE = 30.0


class RefusedError(Exception):
    """Refuse a request with a status and one sentence, and perhaps a body that would be answered."""

    def __init__(self, status: int, sentence: str, example: dict[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.example = status, sentence, example


@final
class RateLimit:
    """Count requests by peer for a minute, in memory only.

    Peers are known by a hash under a key that is thrown away with the counts: nothing about an address is
    written, and last minute's counts cannot be joined with this one's. When there are too many to count, the
    one that has been quiet longest is forgotten, so that many strangers cannot lock a newcomer out.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._begun = -_WINDOW
        self._key = b""
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def check(self, peer: str, weight: int = 1) -> None:
        """Refuse a peer's request beyond the limit; one that asks for several things counts for as many."""
        if not self.per_minute:
            return
        now = time.monotonic()
        if now - self._begun >= _WINDOW:
            self._begun, self._key = now, os.urandom(16)
            self._counts.clear()
        name = hashlib.blake2b(peer.encode(), key=self._key, digest_size=8).digest()
        count = self._counts.pop(name, 0) + weight
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
