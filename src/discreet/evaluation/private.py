"""Score models on held-out items and release the scores with Gaussian noise, also with the models' own fits.

One user contributes (c_1, ..., c_m, 1/2), each c between -1/2 and 1/2: a vector of length at most
sqrt(m + 1) / 2. Sums are exact and may come from shards or a cluster. Proof: proofs/private_evaluation.md.
The held-out item depends on the user's own row only. Splits for experiments do not have this property: they
draw from one stream for all users, so one more user would change what is held out for others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Unpack, cast, final

import numpy as np
import numpy.typing as npt

from discreet.core import (
    PRIVATE_METRIC_EXAMPLES,
    Floats,
    PrivacyRandom,
    Progress,
    positive_finite,
    silent,
    within,
)
from discreet.data import (
    AcceptOptions,
    Choice,
    Duplicates,
    Interactions,
    PublicFacts,
    Split,
    TableOptions,
    accept,
    keep_per_user,
    refuse_columns,
    refuse_declared,
    refuse_unknown_names,
)
from discreet.evaluation import ranking_metrics as ranking
from discreet.evaluation.errors import (
    BudgetsDiffer,
    CatalogsDiffer,
    MetricDoesNotFit,
    NothingGiven,
    NotSharable,
    PrivateModelNeeded,
    ScoreOutOfBounds,
    ScoreReveals,
)
from discreet.evaluation.list_scores import person_scores
from discreet.evaluation.metrics import ListMetric, Metric, Predictor
from discreet.evaluation.ranking_metrics import Ranks
from discreet.evaluation.scoring import refuse_meaningless
from discreet.models import Estimator, FittedModel, check_budget, listable
from discreet.privacy import (
    Assumption,
    Basis,
    Fact,
    Guarantee,
    Kind,
    Ledger,
    Neighbors,
    Session,
    Trust,
    Unit,
    assumptions_of,
    gaussian_epsilon,
    spending_in,
    weaker_basis,
)
from discreet.privacy import share as exact
from discreet.privacy.certificate import certificate
from discreet.privacy.mechanisms.additive import Gaussian, gaussian_event, planned_noise
from discreet.report import TableView
from discreet.statistics import (
    VECTOR_BITS,
    Block,
    DataSource,
    Held,
    KnownPart,
    Part,
    Statistic,
    Steps,
    as_fixed_point,
    open_source,
    to_fixed_point,
)


def private_metric(text: str) -> Metric:
    """Read a metric that can be released: one that its definition calls private, over the whole catalog."""
    metric = Metric.parse(text)
    plain = metric.sampled is None and not metric.liked and metric.people is None
    kind = metric.definition
    # The mean of a rating metric is read as a squared error.
    bounded = isinstance(kind, ListMetric) or kind.name == "rmse"
    if not (kind.private and bounded and plain):
        raise MetricDoesNotFit(metric=text, subject="private scores", examples=tuple(PRIVATE_METRIC_EXAMPLES))
    return metric


def scored_data(
    data: object,
    models: Sequence[FittedModel],
    metric: Metric,
    columns: Choice | None,
    duplicates: Duplicates,
    how: TableOptions,
) -> DataSource:
    """Return the data to score models on; a file or frame is read with the models' catalog and facts.

    If nothing reads ratings, they are dropped, and then their scale need not be public.
    """
    unread = metric.ranks and not any(model.scorer.needs_ratings for model in models)
    if isinstance(data, str | Path):
        data = open_source(data) or data
    if not isinstance(data, DataSource):
        rated = (model.facts for model in models if model.facts.low < model.facts.high)
        facts = next(rated, models[0].facts)
        data = accept(
            data,
            implicit=unread,
            columns=columns,
            duplicates=duplicates,
            **how,
            catalog=models[0].catalog,
            facts=facts.without_scale() if unread else facts,
        )
    else:
        refuse_columns(columns, data)
        refuse_declared(how, data)
    return data.without_ratings() if unread and isinstance(data, Interactions) else data


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalScores(Statistic):
    """Sum of the users' scores: c_1, ..., c_m between -1/2 and 1/2, and 1/2 for each user counted.

    With a `difference` there are two models and one number, half of the difference of their scores. The
    vector is at most sqrt(m + 1) / 2 long. A user without a held-out item contributes nothing.
    """

    models: Annotated[tuple[Predictor, ...], Held()]
    metric: Annotated[Metric, Held()]
    difference: Annotated[bool, Held()] = False

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one part: the sums of scores, followed by the sum of halves."""
        count = 1 if self.difference else len(self.models)
        return (Part("scores", (count + 1,), bound=bound_of(count)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        split = hide_one_each(block.alone())
        scores = [personal_scores(model, split, self.metric) - 0.5 for model in self.models]
        contributions = np.column_stack([(scores[0] - scores[1]) / 2] if self.difference else scores)
        sums[0][:] += fixed_point_scores(contributions)


def bound_of(scores: int) -> float:
    """Return the largest norm of one user's contribution to so many scores, rounded up."""
    return math.nextafter(math.sqrt(scores + 1) / 2, math.inf)


def fixed_point_scores(contributions: Floats) -> Steps:
    """Return the sum of contributions (a row per user) and of a half for each user, in fixed point."""
    if np.any(np.abs(contributions) > 0.5):
        raise ScoreOutOfBounds()
    halves = len(contributions) << (VECTOR_BITS - 1)
    return np.append(as_fixed_point(to_fixed_point(contributions).sum(axis=0)), np.int64(halves))


def personal_scores(model: Predictor, split: Split, metric: Metric) -> Floats:
    """Return the score of each user with a held-out item; for rmse the squared error over the squared scale.

    Users are scored one at a time: products of whole blocks round a row depending on its position among
    others, and a score must be the same with and without any other user.
    """
    people = np.flatnonzero(np.diff(split.test.indptr))
    score = _listed if metric.ranks else _error
    found = np.array([score(model, split, metric, person) for person in people.tolist()])
    # A prediction that is not a number gets the worst score.
    worst = 1.0 if metric.lower_is_better else 0.0
    usable = np.nan_to_num(found, nan=worst, posinf=worst, neginf=worst)
    return np.asarray(np.clip(usable, 0.0, 1.0), dtype=np.float64)


def _listed(model: Predictor, split: Split, metric: Metric, person: int) -> float:
    own, hidden = split.train.span(person, person + 1), split.test.span(person, person + 1)
    alone = np.zeros(1, np.int64)
    scores = np.array(model.worth(own, alone), dtype=np.float32)
    target = scores[0, hidden.items]
    listable(scores, own, alone)
    better, tied = ranking.rank_counts(scores, alone, target, metric.k)
    ranks = Ranks(starts=np.zeros(1, np.int64), better=better, tied=tied)
    return float(person_scores(metric, ranks)[0])


def _error(model: Predictor, split: Split, metric: Metric, person: int) -> float:
    own, hidden = split.train.span(person, person + 1), split.test.span(person, person + 1)
    predicted = model.predict(own, np.zeros(1, np.int64), hidden.items.astype(np.int64))
    return float((predicted[0] - float(hidden.values[0])) ** 2) / scale_of(split.train.facts) ** 2


def scale_of(facts: PublicFacts) -> float:
    """Return the width of the declared scale."""
    width = facts.high - facts.low
    if width <= 0:
        raise MetricDoesNotFit(metric="rmse", subject="implicit feedback", examples=("hr@10", "ndcg@10"))
    return width


@final
@dataclass(frozen=True, slots=True)
class OneEach:
    """A split that hides each user's latest item, or without times one by a public hash.

    Users keep a single item.
    """

    def hidden(self, people: Interactions, /) -> npt.NDArray[np.bool_]:
        """Mark the hidden ratings."""
        one = keep_per_user(people.indptr, people.items, people.times, people.users, people.catalog, cap=1)
        lengths = np.diff(people.indptr)
        return np.asarray(one & np.repeat(lengths > 1, lengths))


def hide_one_each(data: Interactions) -> Split:
    """Split the data into the visible ratings and one hidden rating per user."""
    return Split.by_mask(data, OneEach().hidden(data))


PROOF = "proofs/private_evaluation.md"
# A two-sided normal interval with 95% confidence.
_DEVIATIONS = 1.96


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateScore(TableView):
    """A released score, its 95% confidence interval, and the part that is noise. It may be published.

    `noise` is the standard deviation of the value that comes from the noise alone; `people` is a noisy count.
    `certificate` lists everything that was released with the score, for `discreet-verify`. Use it to publish
    how good a model is; `evaluate_privately` has an example.

    Guarantee
        `guarantee`: (epsilon, delta) for a user's whole history (proofs/private_evaluation.md).

    Stability
        Stable.
    """

    metric: str
    value: float
    low: float
    high: float
    noise: float
    people: float
    guarantee: Guarantee
    certificate: dict[str, Any] | None = None

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        row = (self.metric, self.value, self.low, self.high, self.noise)
        return ("metric", "score", "low", "high", "noise alone"), [row], self.guarantee.short()

    def to_json(self) -> dict[str, Any]:
        """Return all fields; all of them may be published."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["guarantee"] = self.guarantee.to_json()
        return {name: value for name, value in found.items() if name != "certificate" or value is not None}


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
    **how: Unpack[TableOptions],
) -> PrivateScore:
    """Release a model's score on held-out items, or how much it differs from another model's score.

    This function hides each user's latest item (without times, an item that a public hash selects), and the
    model sees the rest of the user's row. `data` is as in `fit`; files and data frames are read with the
    model's catalog and scale. Scores on a model's own training data are too high, so pass users or months
    that the model has not seen, or use `fit_and_evaluate`. The function rejects a model without privacy,
    because its score could reveal what it learned about users. If the model learned from public data, pass
    `models_are_public`.

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
    models = (model,) if against is None else (model, against)
    asked = PersonalScores(models=models, metric=private_metric(metric), difference=against is not None)
    check_budget(epsilon, delta, gaussian=True)
    positive_finite("epsilon", epsilon)
    data = scored_data(data, models, asked.metric, columns, duplicates, how)
    budget, record = (epsilon, delta), (ledger, f"score {asked.metric}")
    (found,) = _spent_on(asked, data, budget, record, random, are_public=models_are_public)
    return found


def _spent_on(
    asked: PersonalScores,
    data: DataSource,
    budget: tuple[float, float],
    record: tuple[Ledger | None, str],
    random: PrivacyRandom | None,
    *,
    are_public: bool,
) -> list[PrivateScore]:
    """Spend the budget in a ledger, for what `record` names, and release scores."""
    models = cast("tuple[FittedModel, ...]", asked.models)
    book, random = record[0], random or PrivacyRandom.from_os()
    refuse_other_catalogs(models, data)
    # Models that predict no ratings can't be compared by ratings.
    for model in () if asked.metric.ranks else models:
        model.require_ratings()
    promise = promise_of_scores(data, *budget, book, simulated=random.simulated)
    promise = given_models(promise, models, are_public=are_public)
    with spending_in(book, data.name, promise, what=record[1], events=[gaussian_event(*budget)]):
        session = Session.open(data.bounded(), promise, random)
        found = released_scores(session.gaussian(), asked, promise)
        session.check(promise)
    proof = session.certificate(promise)
    return [replace(one, certificate=proof) for one in found]


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
    **how: Unpack[TableOptions],
) -> tuple[str, dict[str, PrivateScore]]:
    """Release the scores of a few fitted models together and return the name of the best one.

    This function fits nothing. It hides one item of each user in `data` (the latest item or, without times,
    an item that a public hash selects), and each model predicts this item from the rest of the user's row. A
    model that was fitted on the hidden ratings scores too high, so pass users or months that no model has
    seen, or use `fit_and_evaluate`, which hides the ratings before it fits. `data` is as in `fit`; files and
    data frames are read with the models' catalog and scale. `models_are_public` allows models without privacy
    that learned from public data.

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
    by = private_metric(metric)
    check_budget(epsilon, delta, gaussian=True)
    positive_finite("epsilon", epsilon)
    enough = isinstance(models, Mapping) and len(models) >= 2
    if not enough:
        raise NothingGiven(name="models", least=2)
    asked = PersonalScores(models=tuple(models.values()), metric=by)
    data = scored_data(data, tuple(models.values()), by, columns, duplicates, how)
    budget, record = (epsilon, delta), (ledger, f"choice by {by}")
    scores = _spent_on(asked, data, budget, record, random, are_public=models_are_public)
    named = dict(zip(models, scores, strict=True))
    return best_of(named), named


def released_scores(session: Session, scores: PersonalScores, promise: Guarantee) -> list[PrivateScore]:
    """Release scores on held-out items for all that a Gaussian session has, and return them as means."""
    noisy = session.release(scores, Fraction(1))
    count = 2 * float(noisy.values[-1])
    return [
        read_score(scores, float(total), count, noisy.deviation, session.facts, promise)
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
    scores: PersonalScores, total: float, count: float, sigma: float, facts: PublicFacts, promise: Guarantee
) -> PrivateScore:
    """Turn a noisy sum into a mean with an interval that covers sampling and noise."""
    metric, difference, people = scores.metric, scores.difference, max(count, 1.0)
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
    data: DataSource, epsilon: float, delta: float, book: Ledger | None, *, simulated: bool
) -> Guarantee:
    """Return the guarantee of releasing scores, with the public facts and the ledger's assumptions."""
    promise = Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=(*assumptions_of(data.facts), *(() if book is None else book.assumptions(data.name))),
        basis=Basis.PROVED,
        proof=PROOF,
    )
    return promise.as_simulated() if simulated else promise


# Exceeds the rounding error from a multiplier to its epsilon and back.
_HAIR_MORE = 1 + 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Together(TableView):
    """Models and their scores, which one guarantee covers together."""

    models: tuple[FittedModel, ...]
    scores: dict[str, tuple[PrivateScore, ...]]
    guarantee: Guarantee
    certificate: dict[str, Any] | None = None

    def __repr__(self) -> str:
        """Return the scores and the guarantee in one line."""
        scores = ", ".join(f"{name} {one.metric} {one.value:.4g}" for name, one in self._scored())
        return f"Together({scores}; {self.guarantee.short()})"

    def _scored(self) -> list[tuple[str, PrivateScore]]:
        """Return each score with the name of its model; the scores of a metric are in the order of models."""
        names = [model.name for model in self.models]
        return [pair for found in self.scores.values() for pair in zip(names, found, strict=True)]

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        rows = [(name, one.metric, one.value, one.low, one.high, one.noise) for name, one in self._scored()]
        header = ("model", "metric", "score", "low", "high", "noise alone")
        return header, rows, f"Models and scores together: {self.guarantee.short()}"


def fit_and_evaluate(
    estimators: Sequence[Estimator],
    data: DataSource | object,
    *,
    metrics: Sequence[str] = ("hr@10",),
    share: float = 0.02,
    ledger: Ledger | None = None,
    random: PrivacyRandom | None = None,
    columns: Choice | None = None,
    progress: Progress | None = None,
    **declared: Unpack[AcceptOptions],
) -> Together:
    """Hide one item of each user, fit on the rest, and release the scores, under one guarantee.

    All estimators must have the same epsilon and delta, which cover the fits and the scores together. The
    scores get `share` of this budget (of the precision of the noise), and the fits split the rest equally.
    `data`, `columns`, and further keywords are as in `fit`.

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
    promise, what = spending_together(estimators, source, ledger, simulated=random.simulated)
    with spending_in(ledger, source.name, promise, what=what, events=events):
        known = _known_part(source.bounded())
        fitted = (one.fit(known, random=random, progress=progress) for one in cheaper)
        # The fits are recorded here, so the assumptions of this ledger are added to their labels here.
        more = () if ledger is None else ledger.assumptions(source.name)
        models = tuple(replace(one, guarantee=one.guarantee.assuming(*more)) for one in fitted)
        (progress or silent)("scoring", 0, 0)
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


def spending_together(
    estimators: Sequence[Estimator], data: DataSource, book: Ledger | None, *, simulated: bool = False
) -> tuple[Guarantee, str]:
    """Return the guarantee of models with their scores, and what a ledger calls them."""
    epsilon, delta = _common(estimators)
    promise = _with_weaknesses(
        promise_of_scores(data, epsilon, delta, book, simulated=simulated),
        [one.promise(data.facts) for one in estimators],
    )
    return promise, f"{'+'.join(one.name for one in estimators)} with scores"


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
    estimators: Sequence[Estimator], data: object, columns: Choice | None, declared: AcceptOptions
) -> DataSource:
    """Return the data as `fit` accepts them; ratings that no estimator reads are ignored."""
    refuse_unknown_names(declared, fit_and_evaluate, AcceptOptions)
    if isinstance(data, str | Path):
        data = open_source(data) or data
    if isinstance(data, DataSource) and not isinstance(data, Interactions):
        refuse_columns(columns, data)
        refuse_declared(declared, data)
        return data
    implicit = all(one.feedback == "implicit" for one in estimators)
    accepted = accept(data, implicit=implicit, columns=columns, **declared)
    if any(one.reads_ratings for one in estimators):
        return accepted
    # Each fit drops weights that its model doesn't use.
    return accepted.weighted() if any(one.weighs for one in estimators) else accepted.without_ratings()


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
