"""Learn from ratings what people choose and how they like it, from one budget.

What people choose is seen through far less noise than how they like it, and it says a lot about that. Where
item embeddings show, they become features of items in all that follows. The proof is in
proofs/user_factorization.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Self, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.progress import Progress
from discreet.data.facts import PublicFacts
from discreet.models.released_items import ItemView, pilot_release
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.scorers.interactions_and_ratings import InteractionsAndRatings
from discreet.models.scorers.next_items import NextItems
from discreet.models.user_factorization import constants as tuned
from discreet.models.user_factorization.budget_split import (
    BudgetShares,
    ReleaseWeights,
    are_many,
    part_rated,
    users_per_noise,
)
from discreet.models.user_factorization.implicit_feedback import (
    PairsInOrder,
    co_occurrence_directions,
    even_lengths,
    item_embeddings,
    may_show,
    next_items,
    pairs_in_order,
)
from discreet.models.user_factorization.latent_factors import (
    LatentFactors,
    directions,
    free_directions,
    pilot_spectrum,
    public_directions,
    refit,
    with_curves,
)
from discreet.models.user_factorization.public_features import learn_content
from discreet.models.user_factorization.recent import RecentReleases
from discreet.privacy.session import Session, share


def learn_ratings(
    session: Session,
    table: Floats | None,
    progress: Progress,
    *,
    purpose: str,
    words: Floats | None = None,
    recent: RecentReleases | None = None,
) -> InteractionsAndRatings:
    """Release counts, effects and, where they show, embeddings and factors, for all of the session.

    With `recent`, which has a session of its own, items are as popular and as well rated as they are now.
    """
    view = pilot_release(session, share(tuned.MEAN_SHARE), share(tuned.PILOT_SHARE))
    if table is not None:
        view = view.with_columns(public_directions(table), tuned.PUBLIC_RIDGE)
    fit = _Fit.of(session, view, table, purpose)
    decisions = fit.decisions(view)
    progress("user-factorization", 1, 4)
    content = None
    if words is not None and purpose == "both":
        content = learn_content(session, share(tuned.CONTENT_SHARE), words, view.tally.likely)
        decisions["weight of similar words"] = round(content.weight, 3)
    view, factors, embeddings, said = fit.learned(view, progress)
    progress("user-factorization", 4, 4)
    decisions |= said
    decisions |= {"choices kept": embeddings.shape[1], "factors kept": factors.features.shape[1] - 1}
    embeddings = embeddings if content is None else content.beside(embeddings, tuned.LIST_RIDGE)
    following, ordered = fit.following(view, decisions)
    factors = with_curves(
        factors,
        view.tally.raised,
        fit.ratio,
        part_rated(view.typical_length),
        beside=bool(said["factors pay"]),
    )
    popularity = view.tally.likely
    if recent is not None:
        popularity, shift = recent.items(view, factors.offsets)
        factors = factors._replace(offsets=factors.offsets + shift)
    choice = InteractionScorer.of(popularity, embeddings, {}, following, ordered=ordered)
    return _scorer(session.facts, view, factors, choice, decisions)


class _Learned(NamedTuple):
    """Hold what all releases say about items, and the decisions made on the way."""

    view: ItemView
    factors: LatentFactors
    embeddings: Floats
    said: dict[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """Hold what all releases of one fit need, and the co-occurrences it has released, for lists."""

    session: Session
    ratio: float
    many: bool
    table: Floats
    shares: BudgetShares
    weights: ReleaseWeights
    detailed: bool
    released: list[PairsInOrder]

    @classmethod
    def of(cls, session: Session, view: ItemView, table: Floats | None, purpose: str) -> Self:
        """Choose shares and weights by the users per unit of noise of the pilot release."""
        ratio = users_per_noise(view.people, session.multiplier)
        many = are_many(ratio, view.typical_length)
        return cls(
            session=session,
            ratio=ratio,
            many=many,
            table=np.zeros((session.n_items, 0)) if table is None else table,
            shares=BudgetShares.of(many, purpose),
            weights=ReleaseWeights.of(purpose, many),
            detailed=purpose == "both",
            released=[],
        )

    def decisions(self, view: ItemView) -> dict[str, Any]:
        """Return the first decisions and their inputs, for the label."""
        return {
            "people per noise": round(self.ratio, 1) if self.session.is_private else "inf",
            "ratings a person, about": round(view.typical_length, 1),
            "route": "taste" if self._shows(view) else "effects",
        }

    def learned(self, view: ItemView, progress: Progress) -> _Learned:
        """Release what the rest of the budget is for: effects alone, or embeddings and factors, too."""
        if self._shows(view):
            return self.factors_found(view, self.shares, progress)
        view, factors = self.effects(view, self.session.left)
        return _Learned(view, factors, np.zeros((self.session.n_items, 0)), {"factors pay": False})

    def following(self, view: ItemView, decisions: dict[str, Any]) -> tuple[NextItems, bool]:
        """Return the weights between items and whether the order counts in lists; add to the decisions."""
        found, ordered = NextItems.none(), True
        for paired in self.released:
            found, ordered = next_items(paired, view.tally, view.people), paired.weights.ordered
            decisions["order informs"] = paired.informs
        decisions |= {"items paired": found.items.size, "blend of pairs": round(found.blend, 3)}
        return found, ordered

    def _shows(self, view: ItemView) -> bool:
        noise = self.session.multiplier / np.sqrt(float(self.shares.co_occurrences))
        return may_show(view.people, self.session.n_items, noise, self.weights)

    def factors_found(self, view: ItemView, shares: BudgetShares, progress: Progress) -> _Learned:
        """Release effects and a pilot of the ratings' second moment, then what the pilot calls for."""
        session = self.session
        view, factors_found = self.effects(view, shares.effects)
        explained = pilot_spectrum(session, shares.pilot_moment, view, factors_found)
        strong = explained >= (tuned.STRONG if self.many else tuned.STRONG_FOR_FEW)
        progress("user-factorization", 2, 4)
        embeddings = np.zeros((self.session.n_items, 0))
        if self.many or not strong:
            view, embeddings = self.embeddings(view, shares.for_strong_factors() if strong else shares)
            factors_found = free_directions(view)
        progress("user-factorization", 3, 4)
        pays = strong or (explained >= tuned.EXPLAINED and embeddings.shape[1] < tuned.ENOUGH_EMBEDDINGS)
        # The pilot is rough: where nothing else shows and users rated much, a second release is worth it.
        looks = pays or (not embeddings.shape[1] and view.typical_length >= tuned.ENOUGH_RATINGS)
        left = session.left
        if looks:
            factors_found = directions(session, shares.moment * left, view, factors_found)
        found = factors_found.features.shape[1] > factors_found.free
        said = {"part explained at a glance": round(explained, 4), "factors pay": found}
        if not found and not (self.many and view.columns.shape[1]):
            return _Learned(*self.effects(view, session.left), embeddings, said)
        view, factors_found = self.refits(view, factors_found, shares.factor_moment * left, strong)
        return _Learned(view, factors_found, embeddings, said)

    def refits(
        self, view: ItemView, factors: LatentFactors, moment: Fraction, strong: bool
    ) -> tuple[ItemView, LatentFactors]:
        """Refit all item vectors with the rest of the budget, of which factors' second moments get `moment`.

        Where there is little noise or much to find, further refits, each from the vectors before it, are
        worth more than one with less noise.
        """
        session, weights = self.session, self.weights
        times = weights.refits(strong, users_per_noise(view.people, session.multiplier))
        power = weights.refit_power if times == 1 else tuned.REFIT_POWER
        part = weights.count_part if times == 1 else tuned.COUNT_PART
        each = (session.left - moment) / times
        for _ in range(times):
            shares = (each, moment / times)
            factors, tally = refit(session, shares, view, factors, self.table, power=power, part=part)
            view, factors = replace(view, tally=tally), factors.as_free()
        return view, factors

    def effects(self, view: ItemView, share: Fraction) -> tuple[ItemView, LatentFactors]:
        """Release items' effects (once more), and return the directions that they give for nothing."""
        view = view.with_effects(self.session, share)
        return view, free_directions(view)

    def embeddings(self, view: ItemView, shares: BudgetShares) -> tuple[ItemView, Floats]:
        """Release co-occurrences and, if directions stand out of the noise, item embeddings in them."""
        session, parts = self.session, (shares.co_occurrences, shares.embeddings)
        paired = pairs_in_order(session, view.tally, view.people, parts, self.weights, detailed=self.detailed)
        found = co_occurrence_directions(paired.pairs, view.tally, view.people)
        self.released.append(paired)
        if not found.kept:
            return view, found.vectors
        vectors, tally = item_embeddings(
            session, paired.embeddings, view.tally, found, view.people, self.table, paired.weights
        )
        columns = vectors[:, : tuned.MOST_EMBEDDING_FEATURES]
        columns = columns - np.average(columns, axis=0, weights=tally.raised)
        size = np.sqrt(np.average((columns**2).sum(axis=1), weights=tally.raised))
        ridge = self.weights.embedding_ridge / columns.shape[1]
        view = replace(view, tally=tally).with_columns(columns / max(size, 1e-150), ridge)
        return view, even_lengths(vectors, tally.likely)


def _scorer(
    facts: PublicFacts,
    view: ItemView,
    factors_found: LatentFactors,
    choice: InteractionScorer,
    decisions: dict[str, Any],
) -> InteractionsAndRatings:
    stars = RatingScorer(
        mean=view.middle + view.half * view.mean,
        item_bias=view.half * (factors_found.offsets - view.mean),
        item_factors=factors_found.features[:, 1:],
        ridge=np.append(view.own_ridge, factors_found.ridge[1:]),
        low=facts.low,
        high=facts.high,
        decisions=decisions,
    )
    known = np.average(view.effects().known, weights=view.tally.raised)
    rated = view.typical_length / view.tally.votes.size
    return InteractionsAndRatings.of(stars, choice, float(known), rated)
