"""Refuse to promise: a bar has no private version, and its label says so."""

from __future__ import annotations

import math

from discreet.checks import require
from discreet.data.facts import PublicFacts
from discreet.models.estimator import Estimator, check_budget
from discreet.privacy.guarantee import Guarantee, Neighbors, Trust, Unit


def only_without_privacy(estimator: Estimator) -> None:
    """Refuse every epsilon but infinity."""
    check_budget(estimator.epsilon, estimator.delta, gaussian=False)
    require(
        math.isinf(estimator.epsilon),
        "epsilon",
        estimator.epsilon,
        f"cannot be kept by {estimator.name}, which has no private version",
        "Pass math.inf (--epsilon inf), or choose another model.",
    )


def no_promise(facts: PublicFacts) -> Guarantee:
    """Return the promise of a bar: none."""
    return Guarantee(
        epsilon=math.inf,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=facts.assumptions(),
    )
