"""Ask parties through Flower, and run a federation over it as its coordinator."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import final

from discreet.core import positive
from discreet.federated.coordinator import Coordinator
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.flower.processes import LATE, START_SECONDS, Flower, stop
from discreet.federated.identity.agreement import COORDINATOR, KEEPER, Agreement
from discreet.federated.identity.keys import KEY, read_private_key
from discreet.federated.protocols.protocol import Protocol
from discreet.federated.serving.party import listen
from discreet.federated.serving.tls import SealedTransport, TlsLine
from discreet.federated.transport import Answered, Transport

# The relay runs on this machine, so a frame that has begun is complete soon.
_LOCAL_SECONDS = 60.0


@final
class FlowerTransport(Transport):
    """Reach parties by the numbers that Flower gave their nodes.

    Parameters:
        path: The local socket to which the relay connects.
        flower: The programs that carry messages.
        patience: How long a round waits for a node that is absent from Flower, in seconds.
    """

    def __init__(self, path: Path, flower: Flower, *, patience: float = 10.0) -> None:
        self._path, self._flower = path, flower
        self.nodes: Mapping[str, str] = {}
        """The number of each party's node, as text."""
        self._patience = positive("patience", patience)
        self._listener = listen(path)
        self._line: socket.socket | None = None
        self._asked = 0

    def wait_for_relay(self) -> socket.socket:
        """Return the line to the relay, which connects when Flower has started it."""
        if self._line is not None:
            return self._line
        self._listener.settimeout(START_SECONDS)
        try:
            self._line, _ = self._listener.accept()
        except TimeoutError as error:
            raise self._flower.relay_failed(LATE) from error
        return self._line

    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Yield what nodes send, as it arrives; a node that is absent longer than `patience` is gone."""
        line = self.wait_for_relay()
        names = {self.nodes[name]: name for name in parties if name in self.nodes}
        yield from ((name, None) for name in parties if name not in self.nodes)
        self._asked += 1
        end = time.monotonic() + seconds
        try:
            line.settimeout(_LOCAL_SECONDS)
            frames.send(line, {"ask": self._asked, "nodes": list(names), "seconds": seconds}, question)
            yield from self._answers(line, names, end)
        except OSError as error:
            raise self._flower.relay_failed("ended during the run") from error

    def _answers(self, line: socket.socket, names: dict[str, str], end: float) -> Iterator[Answered]:
        patient_until = time.monotonic() + self._patience
        while (left := end - time.monotonic()) > 0:
            if not select.select([line], [], [], left)[0]:
                return
            header, body = frames.receive(line)
            if header.get("ask") != self._asked:
                continue
            for node in header.get("absent", ()):
                if time.monotonic() > patient_until and node in names:
                    yield names.pop(node), None
            name = names.get(str(header.get("node")))
            if name is not None:
                yield name, None if header.get("error") else body

    def close(self) -> None:
        """Close the connection, which shows the relay that the run is over."""
        with contextlib.suppress(OSError):
            if self._line is not None:
                self._line.close()
            self._listener.close()
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> FlowerTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def flower_parties(
    folder: Path,
    agreement: Agreement,
    *,
    patience: float = 60.0,
    programs: Path | None = None,
    watched: Callable[[Transport], Transport] = lambda transport: transport,
) -> Iterator[Transport]:
    """Lend what reaches the parties of a run over Flower: questions are signed, and so must answers be."""
    folder = folder.resolve()
    flower = Flower(folder, programs)
    keys = {name: agreement.keys[name] for name in agreement.parties}
    superlink = flower.start_superlink(agreement.address(COORDINATOR))
    try:
        with FlowerTransport(folder / "relay.socket", flower, patience=patience) as transport:
            transport.nodes = flower.start_relay(keys, folder / "relay.socket")
            transport.wait_for_relay()
            known = {name: agreement.key(name) for name in agreement.parties}
            yield watched(SealedTransport(transport, read_private_key(folder / KEY), known))
    finally:
        stop(superlink)


def coordinated(
    folder: Path, agreement: Agreement, protocol: Protocol, transport: Transport, *, seconds: float = 300.0
) -> Coordinator:
    """Return the coordinator whose folder this is, with all rounds that are finished."""
    return Coordinator(
        protocol,
        transport,
        parties=agreement.parties,
        shared=agreement.catalog,
        run=agreement.run,
        seconds=seconds,
        state=folder / "coordinator.state",
        least=agreement.noise.least_parties,
        keeper=TlsLine(agreement.address(KEEPER), folder, agreement.keys[KEEPER]),
    )
