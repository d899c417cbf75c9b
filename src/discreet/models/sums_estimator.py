"""Define estimators that learn from noisy sums over users: what they release, and what it costs.

A subclass names its proof, splits its budget with `split`, and trains on `data.total(statistic)`.
Where it releases anything but one Gaussian of the whole budget it says so in `releases`. Promise, events, and
the rule that an infinite epsilon adds no noise follow from that. It then learns from data in memory, from
shards, on a cluster and over parties alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from discreet.data.facts import PublicFacts
from discreet.models.estimator import Estimator, joint_promise
from discreet.privacy.accounting.gaussian import gaussian_multiplier, split_gaussian
from discreet.privacy.assumptions import Assumption, Fact, Kind
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.statistics.statistic import Statistic

#: What an estimator that reads times takes as public.
TIMES_ARE_PUBLIC = Assumption.of(Kind.DECLARED, Fact.TIMES)
# Parts of a pure epsilon must not add up to more than the whole, also after rounding.
_ROUNDING = 1 - 1e-9


def gaussian(multiplier: float) -> Gaussian:
    """Return the noise of a release to which one user contributes a vector of length at most 1."""
    return Gaussian(sigma=multiplier, l2_sensitivity=1.0)


def split_noise(epsilon: float, delta: float, shares: Sequence[float]) -> list[Gaussian | Laplace]:
    """Return the noise of one release per share; all together are (epsilon, delta)-private.

    It is Laplace noise where `delta` is 0, and none where epsilon is infinite.
    """
    if math.isinf(epsilon):
        return [gaussian(0.0) for _ in shares]
    if delta == 0:
        parts = [epsilon * share * _ROUNDING for share in shares]
        return [Laplace.calibrated(epsilon=part, l1_sensitivity=1.0) for part in parts]
    return [gaussian(one) for one in split_gaussian(gaussian_multiplier(epsilon, delta), shares)]


class SumsEstimator(Estimator):
    """Learn from noisy sums over users alone, for a promise about a person's whole history.

    In every sum a user's contribution has norm at most 1, so noise is given by multipliers.
    """

    __slots__ = ()

    #: The note that proves the promise.
    proof: ClassVar[str]
    #: Statistics that this model asks for and the library does not have; parties answer them, too.
    statistics: ClassVar[tuple[type[Statistic], ...]] = ()

    @property
    def is_private(self) -> bool:
        """Return whether noise is added: at an infinite epsilon there is none."""
        return math.isfinite(self.epsilon)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise; it depends on epsilon and delta alone."""
        return joint_promise(self, facts, self.proof, self.public_inputs())

    def public_inputs(self) -> Sequence[Assumption]:
        """Return what a fit assumes to be public in addition to the facts."""
        return ()

    def rows_needed(self) -> str | None:
        """Return None: sums over users are enough."""
        return None

    def multiplier(self) -> float:
        """Return the noise multiplier of one Gaussian release of the whole budget; 0 adds no noise."""
        return gaussian_multiplier(self.epsilon, self.delta) if self.is_private else 0.0

    def split(self, weights: Sequence[float]) -> tuple[float, ...]:
        """Return a multiplier per weight; together they cost the whole budget. Zeros add no noise."""
        return split_gaussian(self.multiplier(), weights) if self.is_private else (0.0,) * len(weights)

    def releases(self, facts: PublicFacts) -> Sequence[Gaussian | Laplace]:
        """Return the noise of every release on data with these facts; asked for only where there is noise.

        By default one Gaussian of the whole budget: what all releases cost, if released numbers decide how
        it is split.
        """
        return [gaussian(self.multiplier())]

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return one event per release; none without privacy."""
        return [noise.event() for noise in self.releases(facts)] if self.is_private else ()


def statistics_of(estimator: Estimator) -> tuple[type[Statistic], ...]:
    """Return the statistics that an estimator brings, also one that derives from `Estimator` alone."""
    brought: tuple[type[Statistic], ...] = getattr(estimator, "statistics", ())
    return brought
