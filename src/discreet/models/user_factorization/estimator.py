"""Factor users' ratings or interactions with user-level privacy: the model we recommend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar, Literal, final

import numpy as np

from discreet.core.arrays import Floats, one_algebra_thread
from discreet.core.checks import one_of
from discreet.core.errors import WrongKind, shown
from discreet.core.progress import Progress
from discreet.data.facts import PublicFacts
from discreet.data.item_tables import read_item_table, read_items
from discreet.data.item_words import item_words
from discreet.data.vocabulary import Vocabulary
from discreet.models.errors import SettingsConflict
from discreet.models.estimator import Estimator, SumsEstimator, check_budget, joint_promise
from discreet.models.recency import (
    TIMES_ARE_PUBLIC,
    check_recency,
    recency_of,
    refuse_timeless,
    stated_recency,
)
from discreet.models.released_items import refuse_one_value
from discreet.models.scorers.interactions import InteractionsAndRatings, InteractionScorer
from discreet.models.scorers.scorer import Scorer
from discreet.models.user_factorization.budget_split import PURPOSES
from discreet.models.user_factorization.history_release import HISTORY_SHARE, release_histories
from discreet.models.user_factorization.implicit_feedback import learn_implicit
from discreet.models.user_factorization.prior import carrying_over, earlier_columns, prior_table
from discreet.models.user_factorization.public_features import content_vectors
from discreet.models.user_factorization.ratings import learn_ratings
from discreet.models.user_factorization.recent import RecentReleases
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.privacy.guarantee import Assumption, Fact, Guarantee, Kind
from discreet.privacy.session import Session, share
from discreet.statistics.data_source import DataSource


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserFactorization(SumsEstimator):
    """Matrix factorization: item averages first, then the latent factors that stand out from the noise.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else (proofs/user_factorization.md, and for `feedback="implicit"`
        proofs/user_factorization_implicit.md). The budget split, the number of items in each release and the
        number of factors depend on `epsilon`, `delta`, public facts and released numbers only.

    Noise
        A user's vector in every sum has length at most 1, so release j adds N(0, (M / sqrt(s_j))^2) to each
        entry, with M the multiplier of one Gaussian release that is (`epsilon`, `delta`)-private and shares
        s_j that add up to 1.

    Parameters:
        feedback: "explicit" learns from ratings; "implicit" uses interactions without ratings.
        purpose: What the budget is spent on. "lists" learns which items users interact with and ignores how
            they rated them, so the model predicts no ratings. "ratings" spends all on predicted ratings;
            lists are made of what that releases. "both" divides the budget. From implicit feedback all
            models make lists.
        item_features: A .csv or .parquet file, or a data frame, of public item features, ids in its first
            column: numbers, words, lists of words such as genres, texts such as titles. Item vectors are
            shrunk toward what the features predict, as learned from released numbers, and lists bring forward
            items that share words with a user's own. The table must not come from the ratings.
        prior: The file of an earlier release of this model (ratings only). It is public, so starting from it
            costs no budget: the new fit shrinks toward it as far as its own released numbers agree. A model
            without privacy is rejected, and what weakens the earlier guarantee (simulated noise, conditions)
            is carried over.
        for_synthesis: Also release lengths of histories, whether they have an order, and levels of ratings,
            for `discreet.synthesize`. They cost 0.03 of the budget (proofs/history_summary.md).
        half_life: After so many days an interaction counts half in how popular items are, and a rating in how
            well they are rated (None: nothing fades). What belongs together is still learned from whole
            histories. It costs 0.15 of the budget.
        now: The public date from which ages count, such as "2026-01-31"; the clock's if it is not given.

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
    """

    name: ClassVar[str] = "user-factorization"
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
        Estimator._refuse(self, data)
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
        scorer: Any = self._learn(model, progress)
        with_histories: Scorer = replace(scorer, **released.fields())
        return with_histories

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
