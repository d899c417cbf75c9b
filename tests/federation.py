"""Small parties for tests: people of one toy data set, each held by one of them."""

from contextlib import closing

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.transport import InProcess
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from toy import toy_interactions

RUN = "test run"


def toy_parts(parties=4, **options):
    """Return the whole data and each party's people."""
    data = toy_interactions(n_users=400, **options)
    owner = np.arange(data.n_users) % parties
    return data, {f"p{k}": data.select_users(np.flatnonzero(owner == k)) for k in range(parties)}


def members(parts, protocol, seed=0, keeper=None, **options):
    """Return parties with repeatable noise."""
    noise = PrivacyRandom.simulate(seed)
    return {
        name: Party(name, data, protocol, run=RUN, random=noise.spawn(name), keeper=keeper, **options)
        for name, data in parts.items()
    }


def shared_sums(data, epsilon=30.0, parties=4, missing=1, **settings):
    """Return a protocol with noise that parties share."""
    model = ImplicitObjective(epsilon=epsilon, **settings)
    return protocol_for(model, data.facts, SharedNoise(parties=parties, missing=missing))


def keeper_of(protocol, parts):
    """Return a keeper where the noise is shared."""
    if not protocol.noise.masked:
        return None
    return Keeper(roster=list(parts), least=protocol.noise.least_parties)


def coordinator(protocol, endpoints, shared, **options):
    """Return a coordinator of parties in this process."""
    transport = options.pop("transport", None) or InProcess(endpoints)
    options = {"simulated": True} | options
    return Coordinator(protocol, transport, parties=list(endpoints), shared=shared, run=RUN, **options)


def next_question(protocol, n_items, results=()):
    """Return what a run asks after these results."""
    with closing(protocol.begin(n_items)) as run:
        for result in results:
            run.answer(result)
        return run.question()


def train(protocol, parts, data, seed=0, replaced=None, **options):
    """Train with these parties; `replaced` maps names to other endpoints."""
    keeper = keeper_of(protocol, parts)
    endpoints = {name: party.answer for name, party in members(parts, protocol, seed, keeper).items()}
    endpoints |= replaced or {}
    return coordinator(protocol, endpoints, data.catalog, keeper=keeper, **options).train(data.facts)
