"""Simulate a whole federation in one process: to try settings, and to measure the loss of accuracy."""

from __future__ import annotations

import numpy as np

from discreet.core.progress import Progress, silent
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.federated.coordinator import Coordinator, RunOutcome
from discreet.federated.keeper import Keeper
from discreet.federated.party import Party
from discreet.federated.protocols.protocol import Protocol
from discreet.federated.transport import InProcess
from discreet.privacy.ledger.book import Ledger

_RUN = "simulation"


def split_users(data: Interactions, parties: int) -> dict[str, Interactions]:
    """Assign users to parties in turn; return each party's data by its name."""
    owner = np.arange(data.n_users) % parties
    return {f"party-{k + 1}": data.select_users(np.flatnonzero(owner == k)) for k in range(parties)}


def simulate_parties(
    protocol: Protocol,
    data: Interactions,
    parties: int,
    *,
    random: PrivacyRandom | None = None,
    progress: Progress = silent,
) -> RunOutcome:
    """Assign users to parties and run all rounds; every party pays in its own ledger."""
    own = split_users(data, parties)
    noise = random or PrivacyRandom.from_os()
    masked = protocol.noise.masked
    keeper = Keeper(roster=list(own), least=protocol.noise.least_parties) if masked else None
    members = {
        name: Party(
            name,
            people,
            protocol,
            run=_RUN,
            ledger=Ledger.in_memory(),
            random=noise.spawn(name) if noise.simulated else noise,
            keeper=keeper,
        )
        for name, people in own.items()
    }
    coordinator = Coordinator(
        protocol,
        InProcess({name: member.answer for name, member in members.items()}),
        parties=list(own),
        shared=data.catalog,
        run=_RUN,
        keeper=keeper,
    )
    return coordinator.train(data.facts, progress)
