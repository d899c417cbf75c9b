"""Factor users' ratings or interactions with user-level privacy: the model we recommend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import one_of, require
from discreet.core.progress import Progress
from discreet.data.facts import PublicFacts
from discreet.data.reading.item_words import item_words
from discreet.data.reading.items import read_item_table, read_items
from discreet.data.vocabulary import Vocabulary
from discreet.models.estimator import Estimator, check_budget, joint_promise
from discreet.models.recency import check_recency, recency_of, refuse_timeless
from discreet.models.released_items import refuse_one_value
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.scorers.interactions_and_ratings import InteractionsAndRatings
from discreet.models.scorers.scorer import Scorer
from discreet.models.sums_estimator import TIMES_ARE_PUBLIC, SumsEstimator
from discreet.models.user_factorization import constants as tuned
from discreet.models.user_factorization.budget_split import PURPOSES
from discreet.models.user_factorization.history_release import HISTORY_SHARE, release_histories
from discreet.models.user_factorization.implicit_feedback import learn_implicit
from discreet.models.user_factorization.prior import carrying_over, earlier_columns, prior_table
from discreet.models.user_factorization.public_features import content_vectors
from discreet.models.user_factorization.ratings import learn_ratings
from discreet.models.user_factorization.recent import RecentReleases
from discreet.privacy.assumptions import Assumption, Fact, Kind
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.session import Session, share
from discreet.statistics.data_source import DataSource


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserFactorization(SumsEstimator):
    """Factor ratings or interactions: item effects first, then the latent factors above the noise.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else (proofs/user_factorization.md, and for `feedback="implicit"`
        proofs/user_factorization_implicit.md). The budget split, the number of items in each release and the
        number of factors depend on `epsilon`, `delta`, public facts and released numbers only.

    Noise
        A person's vector in every sum has length at most 1, so release j adds N(0, (M / sqrt(s_j))^2) to each
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
            without privacy is refused, and what weakens the earlier promise (simulated noise, conditions)
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
        known = self.feedback in ("explicit", "implicit")
        require(known, "feedback", self.feedback, 'must be "explicit" or "implicit"')
        one_of("purpose", self.purpose, PURPOSES)
        unknown = self.purpose == "ratings" and self.feedback == "implicit"
        require(not unknown, "purpose", self.purpose, 'needs ratings, which feedback="implicit" ignores')
        unused = self.prior is not None and not self.predicts_ratings
        require(not unused, "prior", self.prior, "is used by models that predict ratings only")
        known = isinstance(self.for_synthesis, bool)
        require(known, "for_synthesis", self.for_synthesis, "must be True or False")
        check_recency(self.half_life, self.now)

    @property
    def predicts_ratings(self) -> bool:
        """Return whether ratings are learned at all: not for lists alone, nor from implicit feedback."""
        return self.feedback == "explicit" and self.purpose != "lists"

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise; it depends on epsilon, delta, and the promise of an earlier release."""
        proof = self.proof if self.predicts_ratings else "proofs/user_factorization_implicit.md"
        promise = joint_promise(self, facts, proof, self.public_inputs())
        return promise if self.prior is None else carrying_over(promise, self.prior)

    def public_inputs(self) -> Sequence[Assumption]:
        """Return that times are read where there are any, and the features."""
        features = () if self.item_features is None else (Assumption.of(Kind.DECLARED, Fact.ITEM_FEATURES),)
        return (TIMES_ARE_PUBLIC, *features)

    def _refuse(self, data: DataSource) -> None:
        """Refuse, before payment, also a table of items that cannot be read."""
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
        """Refuse a table of items, or an earlier release, that cannot be read."""
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
            part = share(tuned.RECENT_SHARE)
            fading, session = session.split(part, 1 - part)
            recent = RecentReleases(recency=recency, session=fading)
        if not self.predicts_ratings:
            return learn_implicit(session, table, progress, words, recent)
        return learn_ratings(session, table, progress, purpose=self.purpose, words=words, recent=recent)

    def _words(self, catalog: Vocabulary) -> Floats | None:
        """Return the directions of the words that describe items, or None: they order lists alone.

        Words that all items of the catalog share, or that only one has, are none: they tell no two apart.
        """
        if self.item_features is None or self.purpose == "ratings":
            return None
        vectors = content_vectors(item_words(self.item_features, catalog))
        return vectors if vectors.shape[1] else None

    def _public_table(self, catalog: Vocabulary) -> Floats | None:
        """Return the public features of items: declared ones, and those of an earlier release."""
        tables = [] if self.item_features is None else [read_item_table(self.item_features, catalog)]
        if self.prior is not None:
            tables.append(prior_table(self.prior, catalog))
        return np.column_stack(tables) if tables else None
