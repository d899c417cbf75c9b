"""Find the protocol that runs a model over parties."""

from __future__ import annotations

from discreet.core.checks import ParameterError
from discreet.data.facts import PublicFacts
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.estimator_sums import EstimatorSums
from discreet.models.estimator import Estimator


def protocol_for(estimator: Estimator, facts: PublicFacts, noise: SharedNoise) -> EstimatorSums:
    """Return the protocol with the estimator's settings and noise that the parties share.

    Every estimator that needs no rows learns from sums, which is all that parties give.
    """
    reason = estimator.rows_needed()
    if reason is not None:
        raise ParameterError(f"{estimator.name} cannot run over parties: {reason}.")
    return EstimatorSums.of(estimator, facts, noise)
