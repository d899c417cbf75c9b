"""The protocol of a federation: sums of an estimator, or averages of the items that parties solve."""

from __future__ import annotations

from typing import Literal, get_args

from discreet.core import one_of
from discreet.data import PublicFacts
from discreet.federated.errors import CannotAverage, SharedUsersAreSimulated
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.printed_dpimf import PrintedItems, PrintedUsers
from discreet.federated.protocols.protocol import Protocol
from discreet.models import Estimator
from discreet.papers.dpimf.estimators import PrintedFactorization
from discreet.papers.dpimf.implicit_objective import ImplicitObjective

#: How parties learn together: by sums with shared noise, or by averages of items that each party solves.
Way = Literal["sums", "averages"]
WAYS: tuple[Way, ...] = get_args(Way)


def way_of(name: str) -> Way:
    """Return the protocol of this name; raise `ParameterError` if there is none."""
    one_of("--protocol", name, WAYS)
    return "averages" if name == "averages" else "sums"


def item_protocol(
    estimator: Estimator, facts: PublicFacts, noise: SharedNoise, way: Way = "sums"
) -> Protocol:
    """Return the protocol of parties that share items.

    The printed models always average, as Algorithm 1 does.

    Raises:
        CannotAverage: The model has no averages.
        SharedUsersAreSimulated: The model solves users, whom parties of an agreement don't share.
    """
    if isinstance(estimator, PrintedFactorization):
        if estimator.solve != "items":
            raise SharedUsersAreSimulated
        return PrintedItems.of(estimator)
    if way == "sums":
        return protocol_for(estimator, facts, noise)
    if not isinstance(estimator, ImplicitObjective) or estimator.loss != "shared":
        raise CannotAverage(model=estimator.name)
    settings = {name: getattr(estimator, name) for name in ("rounds", "factors")}
    chosen = {name: value for name, value in settings.items() if value is not None}
    return AveragedItems(epsilon=estimator.epsilon, delta=estimator.delta, **chosen)


def simulated_protocol(estimator: Estimator, facts: PublicFacts, noise: SharedNoise, way: Way) -> Protocol:
    """Return the protocol of a simulation, in which parties may share users instead of items."""
    if isinstance(estimator, PrintedFactorization) and estimator.solve == "users":
        return PrintedUsers.of(estimator)
    return item_protocol(estimator, facts, noise, way)
