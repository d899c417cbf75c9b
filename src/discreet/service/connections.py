"""Keep connections from being held: a request must come soon, and whoever was silent longest makes room.

uvicorn waits for ever for the first byte, and for the rest of a header. Whoever opens many connections and
says nothing would lock everybody else out.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, OrderedDict
from typing import Any, final

from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.service.peers import Peers, network_of

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
