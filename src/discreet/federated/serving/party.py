"""Be a party: its data, ledger and journal behind a local socket, and Flower's SuperNode next to it.

Only the owner may open the socket, where Flower's forwarder finds the party.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import final

from discreet.data import Interactions
from discreet.federated.errors import CannotUse, NotAMember, SocketPathTooLong
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.flower.processes import Flower, answers_at, stop
from discreet.federated.identity.agreement import COORDINATOR, KEEPER, Agreement
from discreet.federated.identity.keys import KEY, key_text, read_private_key
from discreet.federated.keeper import Line
from discreet.federated.party import Party
from discreet.federated.protocols.protocol import Protocol
from discreet.federated.serving.tls import TlsLine, sealed_endpoint
from discreet.federated.transport import Endpoint
from discreet.privacy import Ledger

# How long the relay waits for an answer; a party's computation has no limit.
_ANSWER_SECONDS = 600.0
_POLL_SECONDS = 0.5
_SETTLING_SECONDS = 4.0


#: Opens what answers, from the party's name, its folder and the line to the keeper of masks.
Joining = Callable[[str, Path, Line], AbstractContextManager[Endpoint]]


def joining(agreement: Agreement, protocol: Protocol, data: Interactions, ledger: Ledger) -> Joining:
    """Return what answers a run that fits a model to one set of data."""

    @contextlib.contextmanager
    def join(name: str, folder: Path, keeper: Line) -> Iterator[Endpoint]:
        state, run = folder / "party.state", agreement.run
        # Without masks there isn't a key to keep, and no keeper needs to run.
        line = keeper if protocol.noise.masked else None
        party = Party(name, data, protocol, run=run, ledger=ledger, state=state, keeper=line)
        try:
            yield party.answer
        finally:
            party.close()

    return join


def member_of(folder: Path, agreement: Agreement) -> str:
    """Return which member of a run the key in a folder is that of."""
    own = read_private_key(folder / KEY)
    name = agreement.members().get(key_text(own.public_key()))
    if name is None:
        raise NotAMember(folder=folder)
    return name


@final
class PartyDaemon:
    """Answer the coordinator of one run, as the party whose key is in `folder`."""

    def __init__(self, folder: Path, agreement: Agreement, join: Joining) -> None:
        folder = folder.resolve()
        self.name = member_of(folder, agreement)
        if self.name not in agreement.parties:
            raise NotAMember(folder=folder, role="party")
        self._folder, self._agreement = folder, agreement
        line = TlsLine(agreement.address(KEEPER), folder, agreement.keys[KEEPER])
        with contextlib.ExitStack() as joined:
            answer = joined.enter_context(join(self.name, folder, line))
            endpoint = sealed_endpoint(answer, read_private_key(folder / KEY), agreement.key(COORDINATOR))
            self.path = folder / "party.socket"
            self._server = LocalServer(self.path, endpoint)
            self._joined = joined.pop_all()
        self._over = threading.Event()
        self._node: threading.Thread | None = None

    def start_flower(self, programs: Path | None = None) -> None:
        """Keep a SuperNode running that delivers questions; it ends with this process."""
        flower = Flower(self._folder, programs)
        self._node = threading.Thread(target=self._keep_node, args=(flower,), daemon=True)
        self._node.start()

    def _keep_node(self, flower: Flower) -> None:
        """Start the SuperNode when the coordinator listens, and again when it has ended."""
        address = self._agreement.address(COORDINATOR)
        while not self._over.is_set():
            if not answers_at(address):
                self._over.wait(_POLL_SECONDS)
                continue
            # The coordinator listens first and registers parties a little later.
            self._over.wait(_SETTLING_SECONDS)
            node = flower.start_supernode(address, self.path, _ANSWER_SECONDS)
            while node.poll() is None and not self._over.wait(_POLL_SECONDS):
                pass
            stop(node)

    def run(self) -> None:
        """Answer until closed."""
        self._server.run()

    def close(self) -> None:
        """Stop answering."""
        self._over.set()
        if self._node is not None:
            self._node.join(30)
        self._server.close()
        self._joined.close()

    def __enter__(self) -> PartyDaemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# What the operating systems we know take for the path of a socket.
_LONGEST_PATH = 100
_SECONDS = 30.0


@final
class LocalServer:
    """Listen at a path; messages are answered one after the other, as a party must."""

    def __init__(self, path: Path, endpoint: Endpoint) -> None:
        self.path, self._endpoint = path, endpoint
        self._listener = listen(path)

    def run(self) -> None:
        """Answer until the server is closed."""
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.settimeout(_SECONDS)
                _, question = frames.receive(peer)
                frames.send(peer, {}, self._endpoint(question))

    def close(self) -> None:
        """Stop listening and remove the socket."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.path.unlink(missing_ok=True)


def listen(path: Path) -> socket.socket:
    """Return a socket at this path that only the owner may open; one that a crash left is replaced."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise SocketPathTooLong(path=path)
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
        listener.listen(8)
    except OSError as error:
        listener.close()
        raise CannotUse(path=path, why=error.strerror) from error
    finally:
        os.umask(mask)
    return listener
