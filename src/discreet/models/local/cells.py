"""Share what estimators need whose devices hide even which items were rated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.checks import DataError, ParameterError
from discreet.collect.catalog.campaign import cell_guarantee
from discreet.collect.catalog.choosing import cell_mechanism
from discreet.collect.catalog.device import collect_cells
from discreet.collect.estimate import Collected
from discreet.contributions.crowd import Crowd
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import without_cap
from discreet.models.local.estimator import LocalEstimator
from discreet.models.progress import Progress
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.accounting.rounding import times_up
from discreet.privacy.guarantee import Guarantee, number_above
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.randomness import PrivacyRandom

#: How exactly matrices are recovered, and how long that may take.
TOLERANCE, SWEEPS = 2e-3, 90
# Squares of ratings, and one over them, must fit single precision.
_NARROWEST = 1e-15
#: A ridge that leaves nothing of a coordinate.
PINNED = 1e9


class CellEstimator(LocalEstimator):
    """Answer for every cell as its person's device would, then learn from the reports alone."""

    __slots__ = ()

    def mechanism(self, facts: PublicFacts) -> CellMechanism:
        """Return randomized response for a scale of few steps, modified Laplace noise for any other."""
        return cell_mechanism(self.epsilon, facts)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return epsilon a cell, and in a note what it means for a person: every item counts."""
        facts = without_cap(facts)
        usable = facts if facts.low < facts.high else replace(facts, high=facts.low + 1)
        note = f"for a person, who answers for {facts.n_items:,} items: epsilon = "
        if math.isinf(self.epsilon):
            return cell_guarantee(self.mechanism(usable), facts)
        return cell_guarantee(
            self.mechanism(usable), facts, note + number_above(times_up(self.epsilon, facts.n_items))
        )

    def _refuse(self, data: Crowd) -> None:
        LocalEstimator._refuse(self, data)
        width = data.facts.high - data.facts.low
        if not _NARROWEST <= width <= 1 / _NARROWEST:
            raise DataError(
                f"The rating scale is {width:g} wide, which single precision cannot square. "
                "Rescale the ratings."
            )

    def _bound(self, data: Interactions) -> Interactions:
        return data.with_facts(without_cap(data.facts)).bounded()

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the one release of each cell."""
        return () if math.isinf(self.epsilon) else (self.mechanism(facts).event(),)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        return self._learn(collect_cells(data, self.mechanism(data.facts), random), progress)


def cells_of(collected: Collected) -> CellMechanism:
    """Return the mechanism of reports that hide what was rated; refuse others."""
    if not isinstance(collected.mechanism, CellMechanism):
        raise ParameterError(
            "These reports tell which items were rated; use local-channel, which learns more from them."
        )
    return collected.mechanism


def own_ridge(vectors: Floats, variance: float) -> Floats:
    """Return what each coordinate of a person's vector pays on their own device: noise over spread."""
    return np.asarray(variance / np.maximum(np.mean(vectors**2, axis=0), variance / PINNED))
