"""Run a federation over Flower as its coordinator: SuperLink, relay, rounds, model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from discreet.federated.coordinator import Coordinator, Outcome
from discreet.federated.flower.processes import Flower
from discreet.federated.flower.transport import FlowerTransport
from discreet.federated.identity.agreement import COORDINATOR, KEEPER, Agreement
from discreet.federated.identity.certificates import KEY
from discreet.federated.identity.keys import read_private_key
from discreet.federated.protocols.protocol import Protocol
from discreet.federated.serving.sealed import SealedTransport
from discreet.federated.serving.tls import TlsLine
from discreet.federated.transport import Transport

_RELAY_SECONDS = 120.0


def over_flower(
    folder: Path,
    agreement: Agreement,
    protocol: Protocol,
    *,
    seconds: float = 300.0,
    patience: float = 60.0,
    programs: Path | None = None,
    watched: Callable[[Transport], Transport] = lambda transport: transport,
) -> Outcome:
    """Run all rounds that are not finished yet and return the model; what was heard is kept in `folder`.

    Raises:
        FederationError: Too few parties answered, or Flower or the keeper is gone; run again to go on.
    """
    folder = folder.resolve()
    flower = Flower(folder, programs)
    keys = {name: agreement.keys[name] for name in agreement.parties}
    superlink = flower.start_superlink(agreement.address(COORDINATOR))
    try:
        with FlowerTransport(folder / "relay.socket", patience=patience) as transport:
            transport.nodes = flower.start_relay(keys, folder / "relay.socket")
            transport.wait_for_relay(_RELAY_SECONDS)
            known = {name: agreement.key(name) for name in agreement.parties}
            coordinator = Coordinator(
                protocol,
                watched(SealedTransport(transport, read_private_key(folder / KEY), known)),
                parties=agreement.parties,
                shared=agreement.catalog,
                run=agreement.run,
                seconds=seconds,
                state=folder / "coordinator.state",
                keeper=TlsLine(agreement.address(KEEPER), folder, agreement.keys[KEEPER]),
            )
            return coordinator.train(agreement.facts)
    finally:
        superlink.terminate()
        superlink.wait(30)
