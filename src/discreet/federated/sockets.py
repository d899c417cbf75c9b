"""Carry messages between processes over sockets, by default on this machine alone.

The coordinator listens; parties connect and say their name. Nothing here encrypts or proves who somebody is:
on a network put it behind TLS with certificates of both sides. A length is checked before it is believed, and
a connection that breaks the form is closed.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import final

from discreet.checks import positive
from discreet.federated.transport import Answered, Endpoint, Transport
from discreet.federated.wire import (
    MOST_BYTES,
    PREFIX_BYTES,
    FederationError,
    Message,
    Refused,
    decode,
    encode,
    message_bytes,
)

Address = tuple[str, int]
HOST = "127.0.0.1"
_CHUNK = 1 << 18
_MOST_CONNECTIONS = 1024
# A stranger says its name in one short message, and soon.
_MOST_HELLO = 1 << 12
_HELLO_SECONDS = 10.0


@final
class _Connection:
    """Hold one connection: bytes that came and bytes that wait to be sent."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.name: str | None = None
        self.most = _MOST_HELLO
        self.since = time.monotonic()
        self._incoming = bytearray()
        self.outgoing = bytearray()

    def receive(self) -> list[bytes]:
        """Return the whole messages that have come; raise if the peer is gone or breaks the form."""
        part = self.socket.recv(_CHUNK)
        if not part:
            raise ConnectionResetError
        self._incoming += part
        whole: list[bytes] = []
        while len(self._incoming) >= PREFIX_BYTES:
            size = message_bytes(bytes(self._incoming[:PREFIX_BYTES]), self.most)
            if len(self._incoming) < size:
                break
            whole.append(bytes(self._incoming[:size]))
            del self._incoming[:size]
        return whole

    def send(self) -> None:
        """Send as much as the peer takes now."""
        if self.outgoing:
            sent = self.socket.send(memoryview(self.outgoing)[:_CHUNK])
            del self.outgoing[:sent]


@final
class SocketTransport(Transport):
    """Listen for parties and ask all that are there, in one thread and without waiting for any of them.

    Parameters:
        port: Where to listen; 0 takes a free one, see `address`.
        patience: How long a party that is not connected is waited for in a round, in seconds.
    """

    def __init__(self, port: int = 0, *, host: str = HOST, patience: float = 5.0) -> None:
        self._patience = positive("patience", patience)
        self._listener = socket.create_server((host, port))
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._connections: dict[socket.socket, _Connection] = {}
        self._question, self._asked = b"", frozenset[str]()

    @property
    def address(self) -> Address:
        """Return where parties connect to."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    def wait_for(self, parties: Sequence[str], seconds: float) -> list[str]:
        """Wait until these parties have connected; return those that have not."""
        end = time.monotonic() + seconds
        while (absent := sorted(set(parties) - self._present())) and time.monotonic() < end:
            list(self._turn(min(0.1, seconds)))
        return absent

    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Yield what comes; who is away longer than `patience` is gone, who comes back is asked again."""
        self._question, self._asked = question, frozenset(parties)
        for connection in self._connections.values():
            self._put(connection)
        end = time.monotonic() + seconds
        seen = dict.fromkeys(parties, time.monotonic())
        gone: set[str] = set()
        while time.monotonic() < end:
            yield from self._turn(0.05)
            now, present = time.monotonic(), self._present()
            for name in parties:
                if name in present:
                    seen[name] = now
                elif now - seen[name] > self._patience and name not in gone:
                    gone.add(name)
                    yield name, None

    def close(self) -> None:
        """Close every connection; parties take this as the end of the run."""
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._selector.unregister(self._listener)
        self._listener.close()
        self._selector.close()

    def __enter__(self) -> SocketTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _present(self) -> set[str]:
        return {connection.name for connection in self._connections.values() if connection.name is not None}

    def _turn(self, seconds: float) -> Iterator[tuple[str, bytes]]:
        """Do what can be done now: accept, send, receive."""
        for connection in list(self._connections.values()):
            if connection.name is None and time.monotonic() - connection.since > _HELLO_SECONDS:
                self._drop(connection)
                continue
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outgoing else 0)
            self._selector.modify(connection.socket, wanted)
        for key, events in self._selector.select(seconds):
            if key.fileobj is self._listener:
                self._accept()
                continue
            connection = self._connections.get(key.fileobj)  # type: ignore[call-overload]
            if connection is None:
                continue
            try:
                if events & selectors.EVENT_WRITE:
                    connection.send()
                whole = connection.receive() if events & selectors.EVENT_READ else []
                for raw in whole:
                    if connection.name is None:
                        self._greet(connection, raw)
                    else:
                        yield connection.name, raw
            except BlockingIOError:
                continue
            except (OSError, Refused):
                self._drop(connection)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            peer, _ = self._listener.accept()
            if len(self._connections) >= _MOST_CONNECTIONS:
                peer.close()
                return
            peer.setblocking(False)
            self._connections[peer] = _Connection(peer)
            self._selector.register(peer, selectors.EVENT_READ)

    def _greet(self, connection: _Connection, raw: bytes) -> None:
        """Take a newcomer's name; the latest connection under a name is the one that counts."""
        name = decode(raw, _MOST_HELLO).sender
        for other in [other for other in self._connections.values() if other.name == name]:
            self._drop(other)
        connection.name = name
        self._put(connection)

    def _put(self, connection: _Connection) -> None:
        """Ask a party; only who is asked may send long messages."""
        if connection.name in self._asked:
            connection.outgoing += self._question
            connection.most = MOST_BYTES

    def _drop(self, connection: _Connection) -> None:
        if self._connections.pop(connection.socket, None) is not None:
            self._selector.unregister(connection.socket)
            connection.socket.close()


def serve_party(
    address: Address, name: str, run: str, answer: Endpoint, *, seconds: float = 60.0, again: float = 0.0
) -> None:
    """Answer a coordinator's questions until it closes the connection.

    `seconds` bounds the wait for the coordinator to be there at all, `again` that for it to come back
    after the connection was lost.
    """
    line = _connected(address, seconds)
    while True:
        with line, contextlib.suppress(OSError, Refused):
            line.sendall(encode(Message(kind="hello", run=run, step=-1, sender=name)))
            while True:
                line.sendall(answer(_receive(line)))
        if again <= 0:
            return
        try:
            line = _connected(address, again)
        except OSError:
            return


def serve(endpoint: Endpoint, ready: Callable[[Address], None], port: int = 0) -> None:
    """Answer single messages, one connection each, for ever: what a keeper does. `ready` gets the address."""
    with socket.create_server((HOST, port)) as listener:
        ready(listener.getsockname()[:2])
        while True:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError, Refused):
                # One slow stranger must not hold up the others for long.
                peer.settimeout(10.0)
                peer.sendall(endpoint(_receive(peer)))


@final
class SocketLine:
    """Reach a keeper that `serve` runs in another process."""

    def __init__(self, address: Address, *, seconds: float = 60.0) -> None:
        self._address, self._seconds = address, seconds

    def __call__(self, raw: bytes) -> bytes:
        """Return the answer to one message."""
        try:
            with _connected(self._address, self._seconds) as line:
                line.settimeout(self._seconds)
                line.sendall(raw)
                return _receive(line)
        except OSError as error:
            raise FederationError("The keeper of masks cannot be reached. Resume the run later.") from error


def _connected(address: Address, seconds: float) -> socket.socket:
    end = time.monotonic() + seconds
    while True:
        try:
            line = socket.create_connection(address, timeout=seconds)
            line.settimeout(None)
            return line
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _receive(line: socket.socket) -> bytes:
    """Return one whole message, or raise if the other side is gone or breaks the form."""
    raw = bytearray()
    wanted = PREFIX_BYTES
    while len(raw) < wanted:
        part = line.recv(min(_CHUNK, wanted - len(raw)))
        if not part:
            raise ConnectionResetError
        raw += part
        if len(raw) == PREFIX_BYTES:
            wanted = message_bytes(bytes(raw))
    return bytes(raw)
