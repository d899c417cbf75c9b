"""Bound what connections hold: how many there are, how long they wait, and what one request may bring.

A server waits for ever for the rest of a request, and for a peer that does not read its answer. Here each
connection has a deadline for whatever its peer must do next. When no more connections fit, the peer with the
most waiting connections loses its oldest one, so that attackers displace themselves.

Measured on a hello of FastAPI, processor time of an answer: uvicorn with httptools and uvloop 300 us, granian
380 us, uvicorn with h11 520 us, hypercorn 700 us. Their own limits are those of requests at once (uvicorn,
granian) and of a single read (hypercorn). None of them bounds connections of a peer, pieces of a body, the
time of a whole body or of a peer that reads slowly, or the memory of all bodies. So this is a subclass of the
fastest one, and it needs no proxy in front to be safe.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any, final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from discreet.service.limits import Peers, network_of

#: How many seconds a peer has for a header, for the body after it, and to read on where it has stopped.
HEADER_SECONDS, BODY_SECONDS, STALL_SECONDS = 10.0, 30.0, 20.0
#: How many seconds a request may take in all.
REQUEST_SECONDS = 600.0
#: How many connections are open at once, and how many of them one peer may have.
MOST_CONNECTIONS, MOST_OF_A_PEER = 2000, 200
#: How many connections wait to be accepted: they have descriptors before they are counted.
BACKLOG = 256
# What one request may bring: bytes of its address and of its header, lines of the header, bytes in all, and
# requests sent ahead.
_MOST_URL_BYTES, _MOST_HEADER_BYTES, _MOST_HEADER_LINES = 1 << 14, 1 << 16, 128
_MOST_BYTES, _MOST_AHEAD = 1 << 24, 8
# Of what comes after a header, one byte in so many may be something else than the body.
_BODY_BYTES_PER_OTHER = 8
# A body comes in pieces that are large on average: each piece costs as much as a kilobyte, however small.
_FREE_READS, _READ_BYTES = 1024, 256
_FREE_CHUNKS, _CHUNK_BYTES = 256, 1024
#: How many bytes all bodies together have in memory, from their first piece until their answers are sent.
MOST_BODY_BYTES = 1 << 26
# How much of an answer waits in memory for its peer.
_MOST_UNSENT = 1 << 15
_SECONDS_BETWEEN_LOOKS = 0.25
# Files, the store and the model need descriptors, too.
_OTHER_DESCRIPTORS = 128 + BACKLOG


def room(most: int = MOST_CONNECTIONS) -> int:
    """Return how many connections this process can have, after asking the system for enough descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OTHER_DESCRIPTORS
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(most, soft - _OTHER_DESCRIPTORS))


@final
class Door:
    """The open connections of a server, those that wait for their peers, and their deadlines."""

    def __init__(
        self,
        peers: Peers,
        *,
        most: int = MOST_CONNECTIONS,
        of_a_peer: int = MOST_OF_A_PEER,
        most_bytes: int = MOST_BODY_BYTES,
    ) -> None:
        self._peers, self._most, self._of_a_peer, self._most_bytes = peers, most, of_a_peer, most_bytes
        self._open: dict[BoundedProtocol, str] = {}
        self._by_peer: Counter[str] = Counter()
        # Bytes of bodies in memory, by peer and in all.
        self._held: Counter[str] = Counter()
        self._bytes = 0
        # By peer, the one that has waited for longest first.
        self._waiting: dict[str, dict[BoundedProtocol, None]] = {}
        self._looks = False

    def admit(self, connection: BoundedProtocol, host: str) -> bool:
        """Count a new connection, or return False; a proxy may have any number, as long as they fit."""
        peer = network_of(host)
        if self._by_peer[peer] >= self._of_a_peer and not self._peers.is_proxy(host):
            return False
        if len(self._open) >= self._most:
            if not self._waiting:
                return False
            largest = max(self._waiting.values(), key=len)
            next(iter(largest)).turn_away()
        self._open[connection] = peer
        self._by_peer[peer] += 1
        if not self._looks:
            self._looks = True
            connection.loop.call_later(_SECONDS_BETWEEN_LOOKS, self._look, connection.loop)
        return True

    def leave(self, connection: BoundedProtocol) -> None:
        """Forget a connection."""
        peer = self._open.pop(connection, None)
        if peer is None:
            return
        self._forget_wait(connection, peer)
        self._by_peer[peer] -= 1
        self._drop(connection, peer)
        if not self._by_peer[peer]:
            del self._by_peer[peer], self._held[peer]

    def note(self, connection: BoundedProtocol, *, waits: bool) -> None:
        """Note whether a connection waits for its peer: only then may it be closed for others."""
        peer = self._open.get(connection)
        if peer is None:
            return
        if waits:
            self._waiting.setdefault(peer, {})[connection] = None
        else:
            self._forget_wait(connection, peer)

    def hold(self, connection: BoundedProtocol, count: int) -> None:
        """Count bytes of a body; if all bodies are too large, the peer with the most loses its largest."""
        peer = self._open.get(connection)
        if peer is None:
            return
        connection.held += count
        self._held[peer] += count
        self._bytes += count
        while self._bytes > self._most_bytes:
            most = max(self._waiting, key=self._held.__getitem__, default=None)
            largest = connection if most is None else max(self._waiting[most], key=lambda one: one.held)
            # Of bodies that are being answered, nothing can be taken back.
            (largest if largest.held else connection).turn_away()
            if connection not in self._open:
                return

    def release(self, connection: BoundedProtocol) -> None:
        """Forget the bytes of bodies that were answered."""
        peer = self._open.get(connection)
        if peer is not None:
            self._drop(connection, peer)

    def _drop(self, connection: BoundedProtocol, peer: str) -> None:
        self._held[peer] -= connection.held
        self._bytes -= connection.held
        connection.held = 0

    def _forget_wait(self, connection: BoundedProtocol, peer: str) -> None:
        waiting = self._waiting.get(peer)
        if waiting is not None:
            waiting.pop(connection, None)
            if not waiting:
                del self._waiting[peer]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what is late; one look for all costs less than a timer for each request."""
        now = loop.time()
        for connection in [one for one in self._open if one.deadline <= now]:
            connection.turn_away()
        self._looks = bool(self._open)
        if self._looks:
            loop.call_later(_SECONDS_BETWEEN_LOOKS, self._look, loop)


class BoundedProtocol(HttpToolsProtocol):
    """HTTP with a deadline for whatever the peer must do next; `bounded_protocol` gives it a door."""

    door: Door
    deadline = float("inf")
    _request_deadline = float("inf")
    held = _reads = _bytes = _body_bytes = _chunks = 0
    _in_header, _has_begun, _is_offered = True, False, False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit a connection, and begin to wait for its first request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_MOST_UNSENT)
        if self.door.admit(self, self.client[0] if self.client else ""):
            self._expect(HEADER_SECONDS)
        else:
            self.turn_away()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.door.leave(self)
        super().connection_lost(exc)

    def turn_away(self) -> None:
        """Close at once, without an answer."""
        self.door.leave(self)
        if self.cycle is not None:
            self.cycle.body.clear()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes, unless a request has brought too many, or in too many pieces."""
        self._reads += 1
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES or self._reads > _FREE_READS + self._bytes // _READ_BYTES:
            self.turn_away()
        elif not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._parse(data)
            # Headers, and what comes after the last chunk, which the parser collects as well.
            others = self._bytes - self._body_bytes
            if others > _MOST_HEADER_BYTES + self._body_bytes // _BODY_BYTES_PER_OTHER:
                self.turn_away()

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as ended:
            # Some clients offer a different protocol with each request, and mean the request nevertheless.
            # The parser skips its body, so a new parser reads it without the offer.
            method, version = self.parser.get_method(), self.parser.get_http_version().encode()
            lines = [b"%s: %s\r\n" % line for line in self.headers if line[0] != b"upgrade"]
            head = b"%s %s HTTP/%s\r\n%s\r\n" % (method, self.url, version, b"".join(lines))
            self.parser = httptools.HttpRequestParser(self)
            self._parse(head + data[ended.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    # What the parser finds. An error that is raised here ends the connection with status 400.

    def on_message_begin(self) -> None:
        """Begin to count anew."""
        if len(self.pipeline) >= _MOST_AHEAD:
            raise ValueError("too many requests were sent ahead")
        self._reads = self._chunks = self._bytes = self._body_bytes = 0
        self._in_header, self._has_begun = True, True
        super().on_message_begin()
        if self.cycle is None or self.cycle.response_complete:
            self._expect(HEADER_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a line of a header."""
        if len(self.headers) >= _MOST_HEADER_LINES:
            raise ValueError("the header has too many lines")
        # Lines after a body are not part of the header: no proxy has checked them.
        if self._in_header:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer, and wait for the body."""
        # A header that comes in one piece is complete before its bytes are compared with the limit.
        if sum(len(name) + len(value) for name, value in self.headers) > _MOST_HEADER_BYTES:
            raise ValueError("the header has too many bytes")
        if len(self.url) > _MOST_URL_BYTES or [name for name, _ in self.headers].count(b"host") > 1:
            raise ValueError("the address is too long, or the host is not clear")
        self._is_offered = self.parser.should_upgrade()
        if self._is_offered:
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("this is not a proxy")
            return
        self._in_header = False
        self._request_deadline = self.loop.time() + REQUEST_SECONDS
        super().on_headers_complete()
        self._expect(BODY_SECONDS)

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body: each read brings at least one, and several if they are chunks."""
        self._chunks += 1
        self._body_bytes += len(body)
        if self._chunks > self._reads + _FREE_CHUNKS + self._bytes // _CHUNK_BYTES:
            raise ValueError("the body comes in too many chunks")
        super().on_body(body)
        self.door.hold(self, len(body))

    def on_message_complete(self) -> None:
        """Give the time of a request to the answer, unless it was sent before the body came."""
        if self._is_offered:
            return
        super().on_message_complete()
        self._in_header, self._has_begun, self._bytes = True, False, 0
        if self.cycle.response_complete:
            self._expect(self.timeout_keep_alive)
        else:
            self._answer()

    def on_response_complete(self) -> None:
        """Wait for the next request, or answer one that was sent ahead."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self.door.release(self)
            self._expect(HEADER_SECONDS if self._has_begun else self.timeout_keep_alive)
        else:
            self._request_deadline = self.loop.time() + REQUEST_SECONDS
            self._answer()

    def pause_writing(self) -> None:
        """Wait for a peer that does not read."""
        super().pause_writing()
        self._expect(STALL_SECONDS)

    def resume_writing(self) -> None:
        """Go on with an answer."""
        super().resume_writing()
        if self.cycle is not None and not self.cycle.response_complete:
            self._answer()

    def _expect(self, seconds: float) -> None:
        """Wait for the peer."""
        self.deadline = min(self.loop.time() + seconds, self._request_deadline)
        self.door.note(self, waits=True)

    def _answer(self) -> None:
        """Make the peer wait."""
        self.deadline = self._request_deadline
        self.door.note(self, waits=False)


def bounded_protocol(peers: Peers, most: int, share: int = 1) -> type[Any]:
    """Return the protocol for one server, whose connections share a door; `share` servers have one port."""
    door = Door(
        peers,
        most=most,
        of_a_peer=max(1, MOST_OF_A_PEER // share),
        most_bytes=max(1 << 22, MOST_BODY_BYTES // share),
    )
    return type("BoundedProtocol", (BoundedProtocol,), {"door": door})
