"""Answer messages behind mutual TLS, signed by members whose keys are known.

A stranger gets no further than the handshake. A slow peer is disconnected after a fixed time. When too many
peers connect at once, the one that has waited longest without authenticating is disconnected. Each member has
a few connections of its own, so that no member can take those of others. Its messages are answered one after
the other, so that memory has at most one reply per member.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import final

from discreet.federated.errors import AddressTaken, KeeperUnreachable, NoMemberFolder, WrongKeeper
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.identity.agreement import COORDINATOR
from discreet.federated.identity.keys import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    PrivateKey,
    PublicKey,
    key_of_certificate,
    opened,
    require_private,
    sealed,
)
from discreet.federated.keeper import MOST_BYTES, PARTY_KINDS, Keeper
from discreet.federated.transport import Answered, Endpoint, Transport
from discreet.federated.wire import Refusal, Refused, decode, refusal

#: From the authenticated sender's name and its message to the answer.
Service = Callable[[str, bytes], bytes]
_MOST_PENDING = 64
# A member needs one connection at a time; a few more may be about to end.
_MOST_OF_ONE = 8
_HANDSHAKE_SECONDS = 5.0
_MESSAGE_SECONDS = 60.0


def tls_context(folder: Path, *, server: bool) -> ssl.SSLContext:
    """Return a TLS 1.3 context with this member's certificate; the peer must have one of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Members are identified by their keys, not by host names.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    require_private(folder / KEY)
    try:
        context.load_verify_locations(folder / AUTHORITY)
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    except OSError as error:
        raise NoMemberFolder(folder=folder) from error
    return context


@final
class TlsServer:
    """Listen at an address; `members` maps the keys that may ask to names, with messages of `most` bytes."""

    def __init__(
        self,
        address: tuple[str, int],
        folder: Path,
        members: Mapping[str, str],
        service: Service,
        *,
        most: int = frames.MOST_BODY,
    ) -> None:
        self._most = most
        self._context = tls_context(folder, server=True)
        self._members, self._service = dict(members), service
        self._pending: OrderedDict[socket.socket, None] = OrderedDict()
        self._lock = threading.Lock()
        self._served = {name: threading.BoundedSemaphore(_MOST_OF_ONE) for name in members.values()}
        self._turns = {name: threading.Lock() for name in members.values()}
        try:
            self._listener = socket.create_server(address)
        except OSError as error:
            raise AddressTaken(address=f"{address[0]}:{address[1]}", why=str(error.strerror)) from error
        self.address: tuple[str, int] = self._listener.getsockname()[:2]

    def run(self) -> None:
        """Answer until the server is closed."""
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._pending[peer] = None
                if len(self._pending) > _MOST_PENDING:
                    _hang_up(self._pending.popitem(last=False)[0])
            threading.Thread(target=self._meet, args=(peer,), daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _meet(self, peer: socket.socket) -> None:
        """Authenticate one peer, and answer one message."""
        with contextlib.suppress(OSError, ValueError), peer:
            try:
                with _cut_off(peer, _HANDSHAKE_SECONDS):
                    line = self._context.wrap_socket(peer, server_side=True)
            finally:
                with self._lock:
                    self._pending.pop(peer, None)
            with line:
                name = self._members.get(key_of_certificate(line.getpeercert(binary_form=True) or b""))
                if name is not None and self._served[name].acquire(blocking=False):
                    try:
                        self._answer(line, name)
                    finally:
                        self._served[name].release()

    def _answer(self, line: ssl.SSLSocket, name: str) -> None:
        with _cut_off(line, _MESSAGE_SECONDS):
            _, raw = frames.receive(line, self._most)
            with self._turns[name]:
                frames.send(line, {}, self._service(name, raw))


@final
class TlsLine:
    """Reach a server whose key is known; any failure is a `FederationError`."""

    def __init__(self, address: tuple[str, int], folder: Path, key: str, *, seconds: float = 60.0) -> None:
        self._address, self._key, self._seconds = address, key, seconds
        self._context = tls_context(folder, server=False)

    def __call__(self, raw: bytes) -> bytes:
        """Return the answer to one message."""
        end = time.monotonic() + self._seconds
        while True:
            try:
                return self._once(raw)
            except ssl.SSLCertVerificationError as error:
                raise WrongKeeper from error
            except OSError as error:
                if time.monotonic() > end:
                    raise KeeperUnreachable from error
                time.sleep(0.2)

    def _once(self, raw: bytes) -> bytes:
        with (
            socket.create_connection(self._address, timeout=self._seconds) as peer,
            self._context.wrap_socket(peer) as line,
        ):
            if key_of_certificate(line.getpeercert(binary_form=True) or b"") != self._key:
                raise WrongKeeper
            frames.send(line, {}, raw)
            return frames.receive(line)[1]


@contextlib.contextmanager
def _cut_off(line: socket.socket, seconds: float) -> Iterator[None]:
    """Disconnect a peer that takes longer in total: a read timeout would restart with every byte."""
    watch = threading.Timer(seconds, _hang_up, (line,))
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


@final
class SealedTransport(Transport):
    """Sign the coordinator's questions, and accept a party's answer only with that party's signature."""

    def __init__(self, inner: Transport, own: PrivateKey, parties: Mapping[str, PublicKey]) -> None:
        self._inner, self._own, self._parties = inner, own, dict(parties)

    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Yield what the parties send, with their signatures."""
        return self._inner.ask(sealed(question, self._own), parties, seconds)

    def opened(self, name: str, raw: bytes) -> bytes:
        """Return the message that this party signed, or raise `Refused`."""
        return opened(raw, self._parties[name])


def sealed_endpoint(endpoint: Endpoint, own: PrivateKey, coordinator: PublicKey) -> Endpoint:
    """Return a party's endpoint that answers only the coordinator and signs its answers."""

    def answer(raw: bytes) -> bytes:
        try:
            question = opened(raw, coordinator)
        except Refused as error:
            return sealed(refusal("declined", error.reason), own)
        return sealed(endpoint(question), own)

    return answer


def keeper_service(keeper: Keeper) -> Service:
    """Return a keeper that accepts a key only from its own party, and requests only from the coordinator."""

    def answer(name: str, raw: bytes) -> bytes:
        try:
            message = decode(raw, MOST_BYTES)
        except Refused as error:
            return refusal("refused", error.reason, sender="keeper")
        allowed = message.sender == name if message.kind in PARTY_KINDS else name == COORDINATOR
        return keeper(raw) if allowed else refusal("refused", Refusal.WRONG_SENDER, sender="keeper")

    return answer
