"""Fit one or several models and score them on held-out items, all under one guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack, cast, final

from discreet.core.checks import within
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import Declarations, PublicFacts, refuse_unknown_names
from discreet.data.inputs import accept, refuse_columns, refuse_declared
from discreet.data.interactions import Interactions
from discreet.data.roles import Choice
from discreet.evaluation.errors import BudgetsDiffer, NothingGiven, NotSharable, PrivateModelNeeded
from discreet.evaluation.private.release import PrivateScore, promise_of_scores, released_scores
from discreet.evaluation.private.user_scores import (
    OneEach,
    PersonalScores,
    bound_of,
    hide_one_each,
    private_metric,
    scale_of,
)
from discreet.evaluation.scoring import refuse_meaningless
from discreet.models.estimator import Estimator
from discreet.models.fitted import FittedModel
from discreet.privacy.accounting.gaussian import gaussian_epsilon
from discreet.privacy.assumptions import Assumption
from discreet.privacy.certificate import certificate
from discreet.privacy.guarantee import Guarantee, Trust, Unit, weaker_basis
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.noise_plans import planned_noise
from discreet.privacy.noise_plans import share as exact
from discreet.privacy.session import Session
from discreet.statistics.data_source import DataSource, KnownPart, open_source

# Exceeds the rounding error from a multiplier to its epsilon and back.
_HAIR_MORE = 1 + 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Models and their scores, which one guarantee covers together."""

    models: tuple[FittedModel, ...]
    scores: dict[str, tuple[PrivateScore, ...]]
    guarantee: Guarantee
    certificate: dict[str, Any] | None = None


def fit_and_evaluate(
    estimators: Sequence[Estimator],
    data: DataSource | object,
    *,
    metrics: Sequence[str] = ("hr@10",),
    share: float = 0.02,
    ledger: Ledger | None = None,
    random: PrivacyRandom | None = None,
    columns: Choice | None = None,
    **declared: Unpack[Declarations],
) -> Together:
    """Hide one item of each user, fit on the rest, and release the scores, under one guarantee.

    All estimators must have the same epsilon and delta, which is the cost of everything together. `share` of
    it (of the precision of the noise) goes to the scores; the fits split the rest equally. `data`, `columns`
    and what is declared are as in `fit`.

    Guarantee
        (epsilon, delta) of the estimators for a user's whole history (proofs/private_evaluation.md).

    Raises:
        PrivacyError: An estimator doesn't protect a user's whole history by Gaussian noise.
    """
    asked = [private_metric(text) for text in metrics]
    if not estimators or not asked:
        raise NothingGiven(name="estimators")
    source = _accepted(estimators, data, columns, declared)
    within("share", share, above=0, below=1)
    _refuse_other_promises(estimators, source)
    for one in estimators:
        refuse_meaningless(one, asked)
    epsilon, delta = _common(estimators)
    random = random or PrivacyRandom.from_os()
    shares = _shares(len(estimators), len(asked), share)
    noises = planned_noise(epsilon, delta, shares)
    cheaper = [
        _with_multiplier(one, cast(Gaussian, noise).sigma)
        for one, noise in zip(estimators, noises, strict=False)
    ]
    events: list[Any] = [event for one in cheaper for event in one.events(source.facts)]
    events += [noise.event() for noise in noises[len(estimators) :]]
    book = ledger or Ledger.nowhere()
    promise = _with_weaknesses(
        promise_of_scores(source, epsilon, delta, book, simulated=random.simulated),
        [one.promise(source.facts) for one in estimators],
    )
    named = "+".join(one.name for one in estimators)
    what = f"{named} with scores"
    with book.spend(source.name, promise, what=what, events=events):
        known = _known_part(source.bounded())
        fitted = (one.fit(known, random=random) for one in cheaper)
        # The fits are recorded here, so the assumptions of this ledger are added to their labels here.
        models = tuple(_assuming(model, book.assumptions(source.name)) for model in fitted)
        session = Session.open(source.bounded(), promise, random)
        # The fits spent their parts in sessions of their own.
        *_, scoring = session.gaussian().split(sum(shares[: len(models)], Fraction(0)), exact(share))
        scores = {
            str(metric): tuple(released_scores(part, PersonalScores(models=models, metric=metric), promise))
            for metric, part in zip(asked, scoring.rounds(len(asked)), strict=True)
        }
        session.check(promise)
    return Together(
        models=models, scores=scores, guarantee=promise, certificate=_certificate(promise, models, session)
    )


def _certificate(
    promise: Guarantee, models: Sequence[FittedModel], session: Session
) -> dict[str, Any] | None:
    """Return one certificate for the releases of all fits and of the scores; None if a fit has none."""
    own = session.certificate(promise)
    parts = [*(model.certificate for model in models), own]
    releases = [release for part in parts if part is not None for release in part["releases"]]
    return certificate(promise, releases) if None not in parts else None


def _shares(models: int, metrics: int, share: float) -> list[Fraction]:
    """Return the exact share of each fit, then that of each metric."""
    part = exact(share)
    return [(1 - part) / models] * models + [part / metrics] * metrics


# For a forecast: predictions of ratings are off by about a quarter of the scale.
_USUAL_ERROR = 0.25


def expected_noise(
    estimators: Sequence[Estimator], metrics: Sequence[str], *, share: float, facts: PublicFacts
) -> dict[str, float] | None:
    """Return the standard deviation of the noise on each score; None if the number of users isn't declared.

    It uses public numbers only: the budget, its share for scores, and the declared number of users.
    """
    if facts.n_users is None:
        return None
    epsilon, delta = _common(estimators)
    noise = planned_noise(epsilon, delta, _shares(len(estimators), len(metrics), share)[-1:])[0]
    sigma = math.sqrt(noise.variance) * bound_of(len(estimators))
    # The noisy number of users adds as much again where scores are near 0 or 1.
    added = math.sqrt(2) * sigma / facts.n_users

    def of(name: str) -> float:
        return added if private_metric(name).ranks else added * scale_of(facts) / (2 * _USUAL_ERROR)

    return {name: of(name) for name in metrics}


def _accepted(
    estimators: Sequence[Estimator], data: object, columns: Choice | None, declared: Declarations
) -> DataSource:
    """Return the data as `fit` accepts them; ratings that no estimator reads are ignored."""
    refuse_unknown_names(declared, fit_and_evaluate)
    if isinstance(data, str | Path):
        data = open_source(data) or data
    if isinstance(data, DataSource) and not isinstance(data, Interactions):
        refuse_columns(columns, data)
        refuse_declared(declared, data)
        return data
    implicit = all(one.feedback == "implicit" for one in estimators)
    accepted = accept(data, implicit=implicit, columns=columns, **declared)
    return accepted if any(one.reads_ratings for one in estimators) else accepted.without_ratings()


def _with_weaknesses(promise: Guarantee, fits: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee with all assumptions of the fits, and the weakest basis among them."""
    for one in fits:
        promise = replace(
            promise.assuming(*one.assumes),
            basis=weaker_basis(promise.basis, one.basis),
            simulated=promise.simulated or one.simulated,
        )
    return promise


def _known_part(data: DataSource) -> DataSource:
    """Return the part that models are fitted on; rows in memory stay rows, for models that need them."""
    return (
        hide_one_each(data).train
        if isinstance(data, Interactions)
        else KnownPart(source=data, hiding=OneEach())
    )


def _assuming(model: FittedModel, more: tuple[Assumption, ...]) -> FittedModel:
    return replace(model, guarantee=model.guarantee.assuming(*more))


def _common(estimators: Sequence[Estimator]) -> tuple[float, float]:
    settings = {(one.epsilon, one.delta) for one in estimators}
    if len(settings) > 1:
        raise BudgetsDiffer()
    ((epsilon, delta),) = settings
    return epsilon, delta


def _with_multiplier(estimator: Estimator, multiplier: float) -> Estimator:
    """Return the estimator at the epsilon of slightly more noise than this."""
    epsilon = gaussian_epsilon(multiplier * _HAIR_MORE, estimator.delta)
    return type(estimator)(**{**estimator.settings, "epsilon": epsilon})


def _refuse_other_promises(estimators: Sequence[Estimator], data: DataSource) -> None:
    """Raise for models whose budget cannot be split as the precision of Gaussian noise."""
    for one in estimators:
        promise = one.promise(data.facts)
        if math.isinf(one.epsilon):
            raise PrivateModelNeeded(model=one.name)
        if promise.unit is not Unit.USER or promise.trust is not Trust.JOINT or promise.delta == 0:
            raise NotSharable(model=one.name)
