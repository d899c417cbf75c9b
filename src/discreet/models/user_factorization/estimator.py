"""Factor users' ratings or interactions with user-level privacy: the model we recommend.

With `prior` a fit starts from an earlier release. That release is public, so using it costs no budget. Its
effects and vectors become item features, toward which the new fit shrinks as far as its own released numbers
agree. The new model carries information of the earlier one, so an earlier model without privacy is rejected,
and what weakens the earlier guarantee is carried over (proofs/user_factorization.md).

With `for_synthesis` a share of the budget is spent on lengths, order, and levels of histories
(proofs/history_summary.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np

from discreet.core import Floats, Progress, WrongKind, one_algebra_thread, one_of, shown
from discreet.core.checks import ParameterError
from discreet.data import PublicFacts, Vocabulary, item_words, read_item_table, read_items
from discreet.models.errors import PriorNotPrivate, PriorUnusable, SettingsConflict
from discreet.models.estimator import (
    TIMES_ARE_PUBLIC,
    SumsEstimator,
    check_budget,
    check_recency,
    joint_promise,
    recency_of,
    refuse_timeless,
    stated_recency,
)
from discreet.models.fitted import FittedModel
from discreet.models.released_items import RecentReleases, refuse_one_value
from discreet.models.scorers.interactions import InteractionsAndRatings, InteractionScorer
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.models.scorers.scorer import Scorer
from discreet.models.storage import load, read_label
from discreet.models.user_factorization.implicit_feedback import learn_implicit
from discreet.models.user_factorization.public_features import content_vectors
from discreet.models.user_factorization.ratings import learn_ratings
from discreet.models.user_factorization.settings import PURPOSES, FactorizationSettings
from discreet.privacy import Assumption, Fact, Guarantee, Kind, Session, share, weaker_basis
from discreet.solvers import with_fixed_signs
from discreet.statistics import LENGTH_PART, LENGTH_STARTS, MOST_LEVELS, DataSource, HistorySummary

#: The share of the budget that a fit with `for_synthesis` spends on histories; the model gets the rest.
HISTORY_SHARE = share(0.03)


def history_question(facts: PublicFacts, *, rated: bool) -> HistorySummary:
    """Return the statistic; it depends on public facts alone. Without `rated` it does not look at ratings."""
    longest = min(facts.n_items, facts.max_per_user or facts.n_items)
    width = facts.high - facts.low if rated else 0.0
    levels = MOST_LEVELS
    if not width:
        # All ratings are at one level, whatever they are.
        levels = 1
    elif facts.step is not None:
        levels = min(round(width / facts.step) + 1, MOST_LEVELS)
    return HistorySummary(
        bins=int(np.searchsorted(LENGTH_STARTS, longest, side="right")),
        low=facts.low,
        width=width or 1.0,
        levels=levels,
    )


def release_histories(session: Session, *, rated: bool) -> ReleasedHistories:
    """Release the summary of all users' histories, for all of the session."""
    question = history_question(session.facts, rated=rated)
    noisy, deviation = session.release(question, Fraction(1))
    return ReleasedHistories.cleaned(question.split(noisy), deviation / LENGTH_PART)


# Most principal components of an earlier release: a bound on time, not tuned.
_MOST_PRIOR = 15


def carrying_over(promise: Guarantee, path: str | Path) -> Guarantee:
    """Return the guarantee of a fit that starts from the model in a file, with all that weakens that model's.

    The added assumption has the earlier release's cost, which is not part of this guarantee.

    Raises:
        PrivacyError: The model in the file is not private, or has another privacy definition.
    """
    if math.isinf(promise.epsilon):
        unstated = Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=None, delta=None, simulated=None)
        return promise.assuming(unstated)
    earlier = _promise_of(path)
    if math.isinf(earlier.epsilon):
        raise PriorNotPrivate(path=path)
    if earlier.definition != promise.definition:
        raise PriorNotPrivate(path=path)
    started = Assumption.of(
        Kind.EARLIER,
        Fact.PRIOR,
        epsilon=earlier.epsilon,
        delta=earlier.delta,
        simulated=earlier.simulated,
    )
    return replace(
        promise.assuming(*earlier.conditions, started),
        basis=weaker_basis(promise.basis, earlier.basis),
        simulated=promise.simulated or earlier.simulated,
    )


def _promise_of(path: str | Path) -> Guarantee:
    try:
        return Guarantee.from_json(read_label(path)["guarantee"])
    except ParameterError as error:
        raise PriorUnusable(path=path) from error


def prior_table(path: str | Path, catalog: Vocabulary) -> Floats:
    """Return a row per item from the model in a file: its effect and its principal components.

    Items that the earlier release does not know get the mean row.

    Raises:
        DataError: The file's model has no item effects, or knows none of these items.
    """
    earlier, columns = earlier_columns(path)
    known = earlier.catalog.index_of(catalog.series)
    if not np.any(known >= 0):
        raise PriorUnusable(path=path)
    table = np.tile(columns.mean(axis=0), (len(catalog), 1))
    table[known >= 0] = columns[known[known >= 0]]
    return table


def earlier_columns(path: str | Path) -> tuple[FittedModel, Floats]:
    """Return the model in a file, and the effects and principal components of its items.

    Raises:
        DataError: The file's model has no item effects.
    """
    earlier = load(path)
    arrays = earlier.scorer.arrays()
    if "item_bias" not in arrays:
        raise PriorUnusable(path=path)
    effects = np.asarray(arrays["item_bias"], dtype=np.float64)[:, None]
    vectors = np.asarray(arrays.get("item_factors", np.zeros((len(effects), 0))), dtype=np.float64)
    centered = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    kept = sizes[:_MOST_PRIOR] > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    directions = with_fixed_signs(left[:, :_MOST_PRIOR]) * sizes[:_MOST_PRIOR]
    return earlier, np.column_stack([effects, directions[:, kept]])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserFactorization(SumsEstimator):
    """Matrix factorization: item averages first, then the latent factors that stand out from the noise.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else (proofs/user_factorization.md, and for `feedback="implicit"`
        proofs/user_factorization_implicit.md). The budget split, the number of items in each release, and the
        number of factors depend only on `epsilon`, `delta`, public facts, and released numbers.

    Noise
        A user's vector in every sum has length at most 1, so release j adds N(0, (M / sqrt(s_j))^2) to each
        entry, with M the multiplier of one Gaussian release that is (`epsilon`, `delta`)-private and shares
        s_j that add up to 1.

    Parameters:
        feedback: "explicit" learns from ratings; "implicit" uses interactions without ratings.
        purpose: What the budget is spent on. "lists" learns which items users interact with and ignores
            rating values, so the model predicts no ratings. "ratings" spends the whole budget on predicted
            ratings, and computes lists from these releases. "both" divides the budget. With implicit
            feedback, the whole budget goes to lists.
        item_features: Public item features: a .csv or .parquet file, or a data frame, with IDs in the first
            column, then numbers, words, lists of words such as genres, or texts such as titles. The fit
            shrinks item vectors toward what the features predict, and ranks items higher that share words
            with a user's items. Don't derive the table from the ratings.
        prior: The file of an earlier release of this model (ratings only). The release is public, so starting
            from it costs no budget. The new fit shrinks toward it as far as its own released numbers agree.
            A model without privacy is rejected. Weaknesses of the earlier guarantee (simulated noise,
            conditions) carry over.
        for_synthesis: Also release lengths of histories, whether histories have an order, and levels of
            ratings, for `discreet.synthesize`. This costs 0.03 of the budget (proofs/history_summary.md).
        half_life: The number of days after which an interaction counts half in popularity, and a rating in
            item averages (None: no fading). Co-occurrences are still learned from whole histories. This costs
            0.15 of the budget.
        now: The public date at which ages are measured, such as "2026-01-31" (default: the present).

    Example:
        >>> from discreet import PrivacyRandom, UserFactorization
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = UserFactorization(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/user_factorization.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "user-factorization"
    weighs: ClassVar[bool] = True
    proof: ClassVar[str] = "proofs/user_factorization.md"
    source: ClassVar[str] = "ours"
    #: The tuned settings; `with_settings` returns a class with different ones.
    tuned: ClassVar[FactorizationSettings] = FactorizationSettings()

    epsilon: float
    delta: float = 1e-6
    # Other estimators use one kind of feedback; here it is a setting.
    feedback: Literal["explicit", "implicit"] = "explicit"
    purpose: Literal["lists", "ratings", "both"] = "both"
    item_features: str | Any | None = None
    prior: str | None = None
    for_synthesis: bool = False
    half_life: float | None = None
    now: str | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        one_of("feedback", self.feedback, ("explicit", "implicit"))
        one_of("purpose", self.purpose, PURPOSES)
        unknown = self.purpose == "ratings" and self.feedback == "implicit"
        if unknown:
            raise SettingsConflict(setting="purpose", other='feedback="implicit"')
        unused = self.prior is not None and not self.predicts_ratings
        if unused:
            raise SettingsConflict(setting="prior", other="a model that predicts no ratings")
        if not isinstance(self.for_synthesis, bool):
            raise WrongKind(name="for_synthesis", kind="True or False", found=shown(self.for_synthesis))
        if self.prior is not None and not isinstance(self.prior, str | PathLike):
            raise WrongKind(name="prior", kind="the path of a model file", found=shown(self.prior))
        check_recency(self.half_life, self.now)

    @classmethod
    def with_settings(cls, settings: FactorizationSettings) -> type[UserFactorization]:
        """Return this estimator with different tuned settings, for experiments; the guarantee is the same."""
        return type(cls.__name__, (cls,), {"__slots__": (), "tuned": settings})

    @property
    def predicts_ratings(self) -> bool:
        """Return whether ratings are learned at all: not for lists alone, nor from implicit feedback."""
        return self.feedback == "explicit" and self.purpose != "lists"

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee; it depends on epsilon, delta, and the guarantee of an earlier release."""
        proof = self.proof if self.predicts_ratings else "proofs/user_factorization_implicit.md"
        promise = joint_promise(self, facts, proof, self.public_inputs())
        return promise if self.prior is None else carrying_over(promise, self.prior)

    def public_inputs(self) -> Sequence[Assumption]:
        """Return that times are read where there are any, and the features."""
        features = () if self.item_features is None else (Assumption.of(Kind.DECLARED, Fact.ITEM_FEATURES),)
        return (*(stated_recency(self.half_life, self.now) or (TIMES_ARE_PUBLIC,)), *features)

    def _refuse(self, data: DataSource) -> None:
        """Raise, before any cost is recorded, also for a table of items that cannot be read."""
        refuse_timeless(self.half_life, data)
        self._public_table(data.catalog)
        if self.item_features is not None:
            # Reading words is the part that a table can make fail; what follows is arithmetic on them.
            item_words(self.item_features, data.catalog)

    def _refuse_facts(self, facts: PublicFacts) -> None:
        if self.predicts_ratings:
            refuse_one_value(facts)

    def _refuse_inputs(self) -> None:
        """Raise for a table of items, or an earlier release, that cannot be read."""
        if self.item_features is not None:
            read_items(self.item_features)
        if self.prior is not None:
            earlier_columns(self.prior)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        session = self.metered(session)
        if not self.for_synthesis:
            return self._learn(session, progress)
        histories, model = session.split(HISTORY_SHARE, 1 - HISTORY_SHARE)
        released = release_histories(histories, rated=self.predicts_ratings)
        return self._learn(model, progress).with_parts(**released.fields())

    def _learn(self, session: Session, progress: Progress) -> InteractionScorer | InteractionsAndRatings:
        table, words = self._public_table(session.catalog), self._words(session.catalog)
        recency, recent = recency_of(self.half_life, self.now), None
        if recency is not None:
            part = share(self.tuned.recent_share)
            fading, session = session.split(part, 1 - part)
            recent = RecentReleases(recency=recency, session=fading)
        # Matrices are small here, and the bits of a model don't depend on the number of threads.
        with one_algebra_thread():
            if not self.predicts_ratings:
                return learn_implicit(session, table, progress, self.tuned, words, recent)
            return learn_ratings(
                session, table, progress, self.tuned, purpose=self.purpose, words=words, recent=recent
            )

    def _words(self, catalog: Vocabulary) -> Floats | None:
        """Return the directions of the words that describe items, or None: they order lists alone.

        Words shared by all items of the catalog, or used by only one, are ignored.
        """
        if self.item_features is None or self.purpose == "ratings":
            return None
        vectors = content_vectors(item_words(self.item_features, catalog), self.tuned.most_content)
        return vectors if vectors.shape[1] else None

    def _public_table(self, catalog: Vocabulary) -> Floats | None:
        """Return the public features of items: declared ones, and those of an earlier release."""
        tables = [] if self.item_features is None else [read_item_table(self.item_features, catalog)]
        if self.prior is not None:
            tables.append(prior_table(self.prior, catalog))
        return np.column_stack(tables) if tables else None
