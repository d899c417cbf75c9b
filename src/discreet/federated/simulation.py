"""Simulate a whole federation in one process: to try settings, and to measure the loss of accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from discreet.core.progress import Progress, silent
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.coordinator import Coordinator, RunOutcome
from discreet.federated.keeper import Keeper
from discreet.federated.party import Party
from discreet.federated.protocols.printed_dpimf import PrintedUsers
from discreet.federated.protocols.protocol import Protocol
from discreet.federated.transport import InProcess
from discreet.models.fitted import FittedModel
from discreet.papers.dpimf.estimators import profiles_scorer
from discreet.privacy.ledger.ledger import Ledger

_RUN = "simulation"


def split_users(data: Interactions, parties: int) -> dict[str, Interactions]:
    """Assign users to parties in turn; return each party's data by its name."""
    owner = np.arange(data.n_users) % parties
    return {f"party-{k + 1}": data.select_users(np.flatnonzero(owner == k)) for k in range(parties)}


def split_items(data: Interactions, parties: int) -> dict[str, Interactions]:
    """Assign items to parties in turn; return each party's data, over all users, by its name."""
    places = np.arange(data.n_items)
    return {f"party-{k + 1}": data.select_items(places[k::parties]) for k in range(parties)}


def simulate_parties(
    protocol: Protocol,
    data: Interactions,
    parties: int,
    *,
    random: PrivacyRandom | None = None,
    progress: Progress = silent,
) -> RunOutcome:
    """Assign users to parties and run all rounds; every party spends from its own ledger."""
    coordinator = _coordinator(protocol, split_users(data, parties), data.catalog, random)
    return coordinator.train(data.facts, progress)


def simulate(
    protocol: Protocol, data: Interactions, parties: int, *, random: PrivacyRandom | None = None
) -> RunOutcome:
    """Run all rounds of a protocol, whether parties share items or users."""
    if isinstance(protocol, PrintedUsers):
        return simulate_shared_users(protocol, data, parties, random=random)
    return simulate_parties(protocol, data, parties, random=random)


def simulate_shared_users(
    protocol: PrintedUsers, data: Interactions, parties: int, *, random: PrivacyRandom | None = None
) -> RunOutcome:
    """Assign items to parties that share all users, run all rounds, and join the items of all parties.

    Outside a simulation each party keeps its items: no model has the items of all parties.
    """
    own = split_items(data, parties)
    rounds = _coordinator(protocol, own, data.users, random).run_rounds()
    users = protocol.profiles([entry.result for entry in rounds], data.n_users)
    items = np.zeros((data.n_items, protocol.estimator.factors))
    for part in own.values():
        items[data.catalog.index_of(part.catalog.series)] = protocol.tuned(part, users)
    promise = protocol.promise(data.facts)
    model = FittedModel(
        guarantee=promise.as_simulated() if any(entry.simulated for entry in rounds) else promise,
        facts=data.facts,
        catalog=data.catalog,
        name=f"federated-{protocol.name}",
        parameters={"settings": protocol.settings(), "parties": parties},
        scorer=profiles_scorer(
            protocol.estimator,
            profiles=items,
            items=items,
            users=Vocabulary.of(data.users.series),
            user_factors=users,
        ),
    )
    return RunOutcome(model=model, rounds=rounds)


def _coordinator(
    protocol: Protocol, own: Mapping[str, Interactions], shared: Vocabulary, random: PrivacyRandom | None
) -> Coordinator:
    """Return the coordinator of parties in this process."""
    noise = random or PrivacyRandom.from_os()
    masked = protocol.noise.masked
    keeper = Keeper(roster=list(own), least=protocol.noise.least_parties) if masked else None
    members = {
        name: Party(
            name,
            # One owner read all of it, and the coordinator states how.
            people.with_facts(replace(people.facts, from_file=(), layout="", reading=())),
            protocol,
            run=_RUN,
            ledger=Ledger.in_memory(),
            random=noise.spawn(name) if noise.simulated else noise,
            keeper=keeper,
        )
        for name, people in own.items()
    }
    return Coordinator(
        protocol,
        InProcess({name: member.answer for name, member in members.items()}),
        parties=list(own),
        shared=shared,
        run=_RUN,
        keeper=keeper,
        simulated=noise.simulated,
    )
