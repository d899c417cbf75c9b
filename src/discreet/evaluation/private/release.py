"""Release the scores of models with Gaussian noise: a mean, a difference, or the best of a few models.

One user contributes (c_1, ..., c_m, 1/2), each c between -1/2 and 1/2: a vector of length at most
sqrt(m + 1) / 2. Sums are exact and may come from shards or a cluster. Proof: proofs/private_evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from discreet.core.checks import positive_finite
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import Duplicates, PublicFacts
from discreet.data.roles import Choice
from discreet.evaluation.errors import CatalogsDiffer, NothingGiven, ScoreReveals
from discreet.evaluation.metrics import Metric
from discreet.evaluation.private.user_scores import PersonalScores, private_metric, scale_of, scored_data
from discreet.models.estimator import check_budget
from discreet.models.fitted import FittedModel
from discreet.privacy.assumptions import Assumption, Fact, Kind, assumptions_of
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise_plans import gaussian_event
from discreet.privacy.session import Session
from discreet.statistics.data_source import DataSource

PROOF = "proofs/private_evaluation.md"
# A two-sided normal interval with 95% confidence.
_DEVIATIONS = 1.96


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateScore:
    """A released score, its 95% confidence interval, and the part that is noise.

    `noise` is the standard deviation of the value that comes from the noise alone; `people` is a noisy count.
    `certificate` lists everything that was released with the score, for `discreet-verify`.
    """

    metric: str
    value: float
    low: float
    high: float
    noise: float
    people: float
    guarantee: Guarantee
    certificate: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all fields; all of them may be published."""
        return {
            "metric": self.metric,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "noise": self.noise,
            "people": self.people,
            "guarantee": self.guarantee.to_json(),
            **({} if self.certificate is None else {"certificate": self.certificate}),
        }


def evaluate_privately(
    model: FittedModel,
    data: DataSource | object,
    *,
    epsilon: float,
    delta: float = 1e-6,
    metric: str = "hr@10",
    against: FittedModel | None = None,
    models_are_public: bool = False,
    ledger: Ledger | None = None,
    random: PrivacyRandom | None = None,
    columns: Choice | None = None,
    duplicates: Duplicates = "refuse",
) -> PrivateScore:
    """Release a model's score on held-out items, or its difference to the score of another model.

    Each user's latest item (without times, one by a public hash) is held out; the model sees the rest of
    that user's row. `data` are as in `fit`; a file or data frame is read with the model's catalog and
    scale. Scores on a model's own training data are too high; use users or months it has not seen, or
    `fit_and_evaluate`. A model without privacy is rejected, unless `models_are_public` states that it was
    learned from public data: its score could reveal what it learned about these users.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user
        (proofs/private_evaluation.md).

    Example:
        >>> import discreet
        >>> from discreet.core.randomness import PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> data = popularity_skewed(n_users=300, n_items=40, mean_per_user=15)
        >>> noise = PrivacyRandom.simulate(0)
        >>> model = discreet.Popularity(epsilon=1.0).fit(data, random=noise)
        >>> score = evaluate_privately(model, data, epsilon=0.5, metric="hr@10", random=noise)
        >>> bool(score.low < score.value < score.high)
        True
    """
    asked = private_metric(metric)
    check_budget(epsilon, delta, gaussian=True)
    positive_finite("epsilon", epsilon)
    models = (model,) if against is None else (model, against)
    data = scored_data(data, models, asked, columns, duplicates)
    refuse_other_catalogs(models, data)
    _require_ratings(models, asked)
    random = random or PrivacyRandom.from_os()
    book, what = ledger or Ledger.nowhere(), f"score {asked}"
    promise = promise_of_scores(data, epsilon, delta, book, simulated=random.simulated)
    promise = given_models(promise, models, are_public=models_are_public)
    with book.spend(data.name, promise, what=what, events=[gaussian_event(epsilon, delta)]):
        session = Session.open(data.bounded(), promise, random)
        scores = PersonalScores(models=models, metric=asked, difference=against is not None)
        (found,) = released_scores(session.gaussian(), scores, promise)
        session.check(promise)
    return replace(found, certificate=session.certificate(promise))


def _require_ratings(models: Sequence[FittedModel], metric: Metric) -> None:
    """Raise, before any cost is recorded, for models that predict no ratings where these are compared."""
    for model in () if metric.ranks else models:
        model.require_ratings()


def choose_privately(
    models: Mapping[str, FittedModel],
    data: DataSource | object,
    *,
    epsilon: float,
    delta: float = 1e-6,
    metric: str = "hr@10",
    models_are_public: bool = False,
    ledger: Ledger | None = None,
    random: PrivacyRandom | None = None,
    columns: Choice | None = None,
    duplicates: Duplicates = "refuse",
) -> tuple[str, dict[str, PrivateScore]]:
    """Release the scores of a few fitted models together and return the name of the best one.

    Nothing is fitted here. One item of each user in `data` is held out (the latest; without times, one by
    a public hash), and each model lists or predicts it from the rest of that user's row. A model that was
    fitted on the held-out ratings scores too high, and one that learns them better wins wrongly: pass users
    or months that no model has seen, or let `fit_and_evaluate` hold them out before it fits. `data` are as in
    `fit`; a file or data frame is read with the models' catalog and scale. `models_are_public` admits models
    without privacy that were learned from public data.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history; the choice reads released numbers only
        (proofs/private_evaluation.md).

    Example:
        >>> import discreet
        >>> from discreet.core.randomness import PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> users = popularity_skewed(n_users=600, n_items=40, mean_per_user=15)
        >>> seen, unseen = users.select_users(range(300)), users.select_users(range(300, 600))
        >>> noise = PrivacyRandom.simulate(0)
        >>> popular = discreet.Popularity(epsilon=1.0).fit(seen, random=noise)
        >>> biases = discreet.Biases(epsilon=1.0).fit(seen, random=noise)
        >>> models = {"popularity": popular, "biases": biases}
        >>> best, scores = choose_privately(models, unseen, epsilon=2.0, metric="hr@10", random=noise)
        >>> best in models and sorted(scores) == ["biases", "popularity"]
        True
    """
    asked = private_metric(metric)
    check_budget(epsilon, delta, gaussian=True)
    positive_finite("epsilon", epsilon)
    enough = isinstance(models, Mapping) and len(models) >= 2
    if not enough:
        raise NothingGiven(name="models", least=2)
    data = scored_data(data, tuple(models.values()), asked, columns, duplicates)
    refuse_other_catalogs(tuple(models.values()), data)
    _require_ratings(tuple(models.values()), asked)
    random = random or PrivacyRandom.from_os()
    book, what = ledger or Ledger.nowhere(), f"choice by {asked}"
    promise = promise_of_scores(data, epsilon, delta, book, simulated=random.simulated)
    promise = given_models(promise, tuple(models.values()), are_public=models_are_public)
    with book.spend(data.name, promise, what=what, events=[gaussian_event(epsilon, delta)]):
        session = Session.open(data.bounded(), promise, random)
        asks = PersonalScores(models=tuple(models.values()), metric=asked)
        scores = released_scores(session.gaussian(), asks, promise)
        session.check(promise)
    proof = session.certificate(promise)
    named = {name: replace(one, certificate=proof) for name, one in zip(models, scores, strict=True)}
    return best_of(named), named


def released_scores(session: Session, scores: PersonalScores, promise: Guarantee) -> list[PrivateScore]:
    """Release scores on held-out items for all that a Gaussian session has, and return them as means."""
    noisy = session.release(scores, Fraction(1))
    count = 2 * float(noisy.values[-1])
    return [
        read_score(
            scores.metric,
            float(total),
            count,
            noisy.deviation,
            session.facts,
            promise,
            difference=scores.difference,
        )
        for total in noisy.values[:-1]
    ]


def refuse_other_catalogs(models: tuple[FittedModel, ...], data: DataSource) -> None:
    """Raise for models whose catalog differs from that of the data."""
    if any(model.catalog != data.catalog for model in models):
        raise CatalogsDiffer()


def given_models(promise: Guarantee, models: tuple[FittedModel, ...], *, are_public: bool) -> Guarantee:
    """Return the guarantee with the models it assumes; it is simulated if a model's noise is.

    Raises:
        PrivacyError: A model is not private, and `are_public` does not say that it was learned from public
            data.
    """
    scored, simulated = [], promise.simulated
    for model in models:
        earlier = model.guarantee
        if math.isinf(earlier.epsilon) and not are_public:
            raise ScoreReveals(model=model.name)
        if math.isinf(earlier.epsilon):
            scored.append(Assumption.of(Kind.DECLARED, Fact.SCORED_MODEL, model=model.name))
        else:
            # A score depends on the model's numbers, so the model's conditions are the score's.
            scored += earlier.conditions
            scored.append(
                Assumption.of(
                    Kind.EARLIER,
                    Fact.SCORED_MODEL,
                    model=model.name,
                    epsilon=earlier.epsilon,
                    definition="/".join(earlier.definition),
                )
            )
        simulated |= earlier.simulated and not math.isinf(earlier.epsilon)
    return replace(promise.assuming(*scored), simulated=simulated)


def best_of(scores: Mapping[str, PrivateScore]) -> str:
    """Return the name of the best released score."""
    sign = -1 if Metric.parse(next(iter(scores.values())).metric).lower_is_better else 1
    return max(scores, key=lambda name: sign * scores[name].value)


def read_score(
    metric: Metric,
    total: float,
    count: float,
    sigma: float,
    facts: PublicFacts,
    promise: Guarantee,
    *,
    difference: bool,
) -> PrivateScore:
    """Turn a noisy sum into a mean with an interval that covers sampling and noise."""
    people = max(count, 1.0)
    mean = float(np.clip(total / people, -0.5, 0.5))
    # The variance of numbers in an interval of length 1 is largest for two values at its ends.
    sampling = (0.5 + mean) * (0.5 - mean) / people
    added = (sigma / people) ** 2 * (1 + 4 * mean**2)
    spread = math.sqrt(sampling + added)
    middle, scale = (0.0, 2.0) if difference else (0.5, 1.0)
    ends = [float(np.clip(mean + side * _DEVIATIONS * spread, -0.5, 0.5)) for side in (-1, 0, 1)]
    low, value, high = (middle + scale * end for end in ends)
    noise = scale * math.sqrt(added)
    if not metric.ranks:
        low, value, high, noise = _as_errors(low, value, high, noise, scale_of(facts), difference=difference)
    return PrivateScore(
        metric=f"{metric} (difference)" if difference else str(metric),
        value=value,
        low=low,
        high=high,
        noise=noise,
        people=people,
        guarantee=promise,
    )


def _as_errors(
    low: float, value: float, high: float, noise: float, width: float, *, difference: bool
) -> tuple[float, float, float, float]:
    """Convert squared errors in units of the squared scale into errors; differences stay squared."""
    if difference:
        return low * width**2, value * width**2, high * width**2, noise * width**2
    low, value, high = (width * math.sqrt(max(number, 0.0)) for number in (low, value, high))
    return low, value, high, noise * width**2 / max(2 * value, 1e-12)


def promise_of_scores(
    data: DataSource, epsilon: float, delta: float, book: Ledger, *, simulated: bool
) -> Guarantee:
    """Return the guarantee of releasing scores, with the public facts and the ledger's assumptions."""
    promise = Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=(*assumptions_of(data.facts), *book.assumptions(data.name)),
        basis=Basis.PROVED,
        proof=PROOF,
    )
    return promise.as_simulated() if simulated else promise
