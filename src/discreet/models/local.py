"""Learn under local privacy: state a guarantee, perturb on the device, then only post-process the reports."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, final, runtime_checkable

import numpy as np

from discreet.collect.campaign import DEVICES, local_guarantee
from discreet.collect.device import collect_cells
from discreet.collect.errors import DifferentEpsilon, TooFewReports, WrongReports
from discreet.collect.estimate import Collected, DeviceReports, collect_from, unit_levels
from discreet.collect.hidden_items import cell_guarantee, cell_mechanism
from discreet.collect.mechanisms import Exact, RatingMechanism
from discreet.core import Floats, Progress, integer, positive, terminal_progress
from discreet.data import Interactions, PublicFacts
from discreet.models.errors import ScaleTooSmall, ScaleTooWide
from discreet.models.estimator import Estimator, without_cap
from discreet.models.fitted import FittedModel
from discreet.models.scorers.local import PINNED
from discreet.models.scorers.scorer import Scorer
from discreet.privacy import Guarantee, Session, Unit, perturbed_release, times_up
from discreet.privacy.certificate import certificate
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.privacy.mechanisms.channel import local_epsilon
from discreet.privacy.mechanisms.local import rating_mechanism
from discreet.report import user_who_answers, user_with_ratings
from discreet.statistics import DataSource

# The number of values a report can have: it fits one byte, and usual rating scales fall on these values.
_POINTS = 241
_ILLUSTRATION = 50


class LocalEstimator(Estimator):
    """A model that perturbs every rating as its user's device would, and learns from the reports alone.

    A concrete estimator names its mechanism and learns from `Collected`. `fit` takes ratings and simulates
    the whole collection, so its label states that it read them; `fit_reports` takes reports that devices have
    already accounted for, and its guarantee also covers the collector.
    """

    __slots__ = ()

    noise: ClassVar[str] = "bounded-laplace"
    #: How devices report: each rating, or each item whether it is rated or not.
    collect: ClassVar[Callable[..., Any]] = staticmethod(collect_from)

    epsilon: float
    ratings_per_user: int | None

    def mechanism(self, facts: PublicFacts) -> RatingMechanism:
        """Return the mechanism with which devices perturb a rating."""
        low, high = facts.low, facts.high
        if math.isinf(self.epsilon):
            return Exact(low=low, high=high, points=unit_levels(facts).size)
        return rating_mechanism(self.noise, epsilon=self.epsilon, low=low, high=high, points=_POINTS)

    @abstractmethod
    def _learn(self, collected: Collected, progress: Progress) -> Scorer:
        """Learn from the reports alone."""

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return epsilon per rating value, and in a note the epsilon of a user with many ratings."""
        usable = facts if facts.low < facts.high else replace(facts, high=facts.low + 1)
        promise = local_guarantee(self.mechanism(usable), facts).from_raw_ratings()
        return _with_person(promise, self.ratings_per_user or facts.max_per_user or _ILLUSTRATION)

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the one release of each rating, or the one report on each item."""
        mechanism: Any = self.mechanism(facts)
        return () if math.isinf(self.epsilon) else (mechanism.event(),)

    def _refuse(self, data: DataSource) -> None:
        if data.facts.low >= data.facts.high:
            raise ScaleTooSmall(low=data.facts.low, high=data.facts.high)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        reports = DeviceReports(mechanism=self.mechanism(session.facts), collect=self.collect)
        return self._learn(session.laplace().perturb(reports), progress)

    @final
    def fit_reports(self, collected: Collected, *, progress: Progress | None = None) -> FittedModel:
        """Learn from reports that a campaign collected; devices accounted for it, so nothing is spent.

        Raises:
            DifferentEpsilon: The reports were made with an epsilon that this estimator doesn't state.
            WrongReports: The reports are those of a mechanism that this estimator doesn't read.
        """
        self._accept(collected)
        if isinstance(collected.mechanism, CellMechanism):
            promise = cell_guarantee(collected.mechanism, collected.facts)
            promise = _with_person(promise, collected.facts.n_items)
        else:
            promise = local_guarantee(collected.mechanism, collected.facts, DEVICES)
            promise = _with_person(
                promise, self.ratings_per_user or collected.facts.max_per_user or _ILLUSTRATION
            )
        return fitted_reports(self, collected, promise, self._learn, progress)

    def _accept(self, collected: Collected) -> None:
        """Raise `WrongReports` for reports of a different mechanism."""
        own = self.mechanism(collected.facts)
        if type(collected.mechanism) is not type(own):
            came = type(collected.mechanism).__name__
            raise WrongReports(model=self.name, wanted=type(own).__name__, came=came)


@runtime_checkable
class ReportLearner(Protocol):
    """An estimator that learns from reports of devices."""

    def fit_reports(self, collected: Collected, *, progress: Progress | None = None) -> FittedModel:
        """Learn from reports that a campaign collected; the devices have spent, so nothing is spent here."""


def fitted_reports(
    estimator: Estimator,
    collected: Collected,
    promise: Guarantee,
    learn: Callable[[Collected, Progress], Scorer],
    progress: Progress | None,
) -> FittedModel:
    """Return the model that an estimator learns from reports; devices have spent their budget already."""
    if collected.mechanism.epsilon != estimator.epsilon:
        raise DifferentEpsilon(epsilon=estimator.epsilon, reported=collected.mechanism.epsilon)
    if collected.reports.n_users < 2 or collected.reports.n_items < 2:
        raise TooFewReports(senders=collected.reports.n_users, items=collected.reports.n_items)
    with terminal_progress(progress) as report:
        scorer = learn(collected, report)
    return FittedModel(
        guarantee=promise.as_simulated() if collected.simulated else promise,
        facts=collected.facts,
        catalog=collected.reports.catalog,
        name=estimator.name,
        parameters=estimator.settings,
        scorer=scorer,
        certificate=certificate(promise, [perturbed_release("reports", collected.mechanism)])
        if promise.is_private
        else None,
    )


def check_local(estimator: LocalEstimator) -> None:
    """Check epsilon and the number of ratings that the label's note uses."""
    positive("epsilon", estimator.epsilon)
    if math.isfinite(estimator.epsilon):
        local_epsilon(estimator.epsilon)
    if estimator.ratings_per_user is not None:
        integer("ratings_per_user", estimator.ratings_per_user, least=1)


def _with_person(promise: Guarantee, ratings: int) -> Guarantee:
    """Return the guarantee with a note on the epsilon of a user with so many ratings."""
    if math.isinf(promise.epsilon) or promise.unit is Unit.USER:
        return promise
    note = user_who_answers if promise.unit is Unit.RATING else user_with_ratings
    return replace(promise, notes=(*promise.notes, note(ratings, promise.for_user(ratings).epsilon)))


#: Tolerance and largest number of sweeps of the matrix recovery.
TOLERANCE, SWEEPS = 2e-3, 90
# Squares of ratings, and one over them, must fit single precision.
_NARROWEST = 1e-15


class CellEstimator(LocalEstimator):
    """A model that reports on every item, rated or not, as each user's device would, and learns from that."""

    __slots__ = ()

    collect: ClassVar[Callable[..., Any]] = staticmethod(collect_cells)

    def mechanism(self, facts: PublicFacts) -> CellMechanism:
        """Return randomized response for a scale with few levels, modified Laplace noise for any other."""
        return cell_mechanism(self.epsilon, facts)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return epsilon per rating, and in a note the epsilon of a user, who reports on every item."""
        facts = without_cap(facts)
        usable = facts if facts.low < facts.high else replace(facts, high=facts.low + 1)
        if math.isinf(self.epsilon):
            return cell_guarantee(self.mechanism(usable), facts)
        note = user_who_answers(facts.n_items, times_up(self.epsilon, facts.n_items))
        return cell_guarantee(self.mechanism(usable), facts, note).from_raw_ratings()

    def _refuse(self, data: DataSource) -> None:
        LocalEstimator._refuse(self, data)
        width = data.facts.high - data.facts.low
        if not _NARROWEST <= width <= 1 / _NARROWEST:
            raise ScaleTooWide(width=width)

    def _bound(self, data: Interactions) -> Interactions:
        return data.with_facts(without_cap(data.facts)).bounded()


def cells_of(collected: Collected) -> CellMechanism:
    """Return the mechanism of reports that hide what was rated; raise for others."""
    if not isinstance(collected.mechanism, CellMechanism):
        raise WrongReports(model="This model", wanted="hidden items", came=type(collected.mechanism).__name__)
    return collected.mechanism


def own_ridge(vectors: Floats, variance: float) -> Floats:
    """Return the ridge of each coordinate in fold-in on a user's device: noise over spread."""
    return np.asarray(variance / np.maximum(np.mean(vectors**2, axis=0), variance / PINNED))
