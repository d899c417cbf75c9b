"""Estimators that learn from noisy sums over users.

A subclass names its proof and trains on what its session releases. Guarantee, events, and the rule that an
infinite epsilon adds no noise follow from that. It then learns from data in memory, from shards, on a cluster
and over parties alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from discreet.data.facts import PublicFacts
from discreet.models.estimator import Estimator, joint_promise
from discreet.privacy.accounting.events import pure_event
from discreet.privacy.assumptions import Assumption
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.noise_plans import gaussian_event
from discreet.privacy.session import Session
from discreet.statistics.statistic import Statistic


class SumsEstimator(Estimator):
    """A method that learns from noisy sums over users alone, with a guarantee for a user's whole history."""

    __slots__ = ()

    #: The note that proves the guarantee.
    proof: ClassVar[str]
    #: Statistics that this model asks for and the library does not have; parties answer them, too.
    statistics: ClassVar[tuple[type[Statistic], ...]] = ()

    @property
    def is_private(self) -> bool:
        """Return whether noise is added: at an infinite epsilon there is none."""
        return math.isfinite(self.epsilon)

    @property
    def is_pure(self) -> bool:
        """Return whether delta is 0, so that the noise is Laplace and norms are l1."""
        return self.is_private and self.delta == 0

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee; it depends on epsilon and delta alone."""
        return joint_promise(self, facts, self.proof, self.public_inputs())

    def public_inputs(self) -> Sequence[Assumption]:
        """Return what a fit assumes to be public in addition to the facts."""
        return ()

    def rows_needed(self) -> str | None:
        """Return None: sums over users are enough."""
        return None

    def metered(self, session: Session) -> Session:
        """Return the session whose budget all sums share: Gaussian, or pure where delta is 0."""
        return session.laplace() if self.is_pure else session.gaussian()

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return what all sums cost together, whatever released numbers decide; nothing without privacy."""
        if not self.is_private:
            return ()
        return (pure_event(self.epsilon) if self.is_pure else gaussian_event(self.epsilon, self.delta),)


def statistics_of(estimator: Estimator) -> tuple[type[Statistic], ...]:
    """Return the statistics that an estimator brings, also one that derives from `Estimator` alone."""
    brought: tuple[type[Statistic], ...] = getattr(estimator, "statistics", ())
    return brought
