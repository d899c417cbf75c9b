"""Find the protocol that runs a model over parties."""

from __future__ import annotations

from discreet.checks import ParameterError
from discreet.data.facts import PublicFacts
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.estimator_sums import EstimatorSums
from discreet.federated.protocols.protocol import ItemProtocol
from discreet.federated.protocols.summed import SummedStatistics
from discreet.models.biases import Biases
from discreet.models.estimator import Estimator
from discreet.models.implicit_objective.estimator import ImplicitObjective
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization


def protocol_for(estimator: Estimator, facts: PublicFacts, noise: SharedNoise) -> ItemProtocol:
    """Return the protocol with the estimator's settings and noise that the parties share."""
    if isinstance(estimator, ImplicitObjective):
        plain = ImplicitObjective(epsilon=estimator.epsilon).settings
        shared = ("epsilon", "delta", "rounds", "factors")
        other = [
            name for name, value in estimator.settings.items() if name not in shared and value != plain[name]
        ]
        if other:
            raise ParameterError(f"{estimator.name} over parties cannot have {other[0]} set.")
        return SummedStatistics(
            epsilon=estimator.epsilon,
            delta=estimator.delta,
            rounds=estimator.rounds or 1,
            factors=estimator.factors,
            noise=noise,
        )
    if isinstance(estimator, UserFactorization | Biases | Popularity):
        return EstimatorSums.of(estimator, facts, noise)
    raise ParameterError(
        f"{estimator.name} cannot run over parties: it looks at people through more than a few sums."
    )
