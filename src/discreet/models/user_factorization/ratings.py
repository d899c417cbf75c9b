"""Learn from ratings what users choose and how they like it, from one budget.

What users choose is seen through far less noise than how they like it, and it predicts a lot of that. Where
item embeddings show, they become features of items in all that follows. The proof is in
proofs/user_factorization.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Self, final

import numpy as np

from discreet.core import Floats, Progress
from discreet.data import PublicFacts
from discreet.models.released_items import ItemView, RecentReleases, pilot_release
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.interactions import InteractionsAndRatings, InteractionScorer, NextItems
from discreet.models.user_factorization.implicit_feedback import (
    KnownVotes,
    PairsInOrder,
    even_lengths,
    may_show,
    whole_catalog,
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
from discreet.models.user_factorization.settings import (
    BudgetShares,
    FactorizationSettings,
    are_many,
    part_rated,
    refits,
    users_per_noise,
)
from discreet.models.user_factorization.votes_first import last_votes, share_for_votes
from discreet.privacy import Session, share
from discreet.solvers import OrderWeights
from discreet.statistics import ItemVotes


def learn_ratings(
    session: Session,
    table: Floats | None,
    progress: Progress,
    settings: FactorizationSettings,
    *,
    purpose: str,
    words: Floats | None = None,
    recent: RecentReleases | None = None,
) -> InteractionsAndRatings:
    """Release counts, effects and, where they show, embeddings and factors, for all of the session.

    With `recent`, which has a session of its own, items are as popular and as well rated as they are now.
    """
    shares = (share(settings.question_share), share(settings.first_share))
    counts = settings.first_counts if purpose == "both" else 1.0
    view = pilot_release(session, shares, settings.items, counts=counts)
    plain = view
    if table is not None:
        view = view.with_columns(public_directions(table, settings.most_public), settings.feature_ridge)
    fit = _Fit.of(session, view, table, purpose, settings)
    if table is not None and purpose == "ratings" and not fit.many:
        # Where users are few, what is public about items takes the place of embeddings.
        fit = replace(fit, effects_alone=_described(plain, view))
    decisions = fit.decisions(view)
    progress("user-factorization", 1, 4)
    content = None
    if words is not None and purpose == "both":
        content = learn_content(session, share(settings.question_share), words, view.tally.likely)
        decisions["weight of similar words"] = round(content.weight, 3)
    fit, view = fit.with_votes(view, decisions) if purpose == "both" else (fit, view)
    view, factors, embeddings, said = fit.learned(view, progress)
    progress("user-factorization", 4, 4)
    decisions |= said
    decisions |= {
        "co-occurrence factors kept": embeddings.shape[1],
        "factors kept": factors.features.shape[1] - 1,
    }
    embeddings = embeddings if content is None else content.beside(embeddings, settings.lists.ridge)
    following, ordered = fit.following(view, decisions)
    factors = with_curves(
        factors,
        view.tally.raised,
        fit.ratio,
        part_rated(view.typical_length, settings),
        settings,
    )
    popularity = view.tally.likely
    if recent is not None:
        popularity, shift = recent.items(view, factors.offsets)
        factors = factors._replace(offsets=factors.offsets + shift)
    choice = InteractionScorer.of(
        popularity, embeddings, {}, following, ordered=ordered, settings=settings.lists
    )
    return _scorer(session.facts, view, factors, choice, decisions)


# The part of an early release of effects, where effects alone follow.
_EARLY = Fraction(1, 4)


def _described(plain: ItemView, view: ItemView) -> bool:
    """Return whether the view's columns explain at least a quarter of the spread of items' effects.

    Columns without meaning explain less by chance.
    """
    return 4 * _spread(view) <= 3 * _spread(plain)


def _spread(view: ItemView) -> float:
    """Return how much items' effects differ from what their features predict; infinite without noise."""
    effects = view.effects()
    return float(np.median(effects.variance / np.maximum(1 - effects.known, 1e-300)))


class _Learned(NamedTuple):
    """All released facts about items, and the decisions of the fit."""

    view: ItemView
    factors: LatentFactors
    embeddings: Floats
    said: dict[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """Shared inputs of all releases of one fit, and the co-occurrences it has released, for lists."""

    session: Session
    settings: FactorizationSettings
    ratio: float
    many: bool
    table: Floats
    shares: BudgetShares
    weights: OrderWeights
    detailed: bool
    released: list[PairsInOrder]
    effects_alone: bool = False

    @classmethod
    def of(
        cls,
        session: Session,
        view: ItemView,
        table: Floats | None,
        purpose: str,
        settings: FactorizationSettings,
    ) -> Self:
        """Choose shares and weights by the users per unit of noise of the pilot release."""
        ratio = users_per_noise(view.people, session.multiplier)
        many = are_many(ratio, view.typical_length, settings)
        return cls(
            session=session,
            settings=settings,
            ratio=ratio,
            many=many,
            table=np.zeros((session.n_items, 0)) if table is None else table,
            shares=BudgetShares.of(settings, purpose, view.typical_length),
            # With many users, predicted ratings do not need the order of interactions.
            weights=OrderWeights() if many and purpose == "ratings" else settings.order,
            detailed=purpose == "both",
            released=[],
        )

    def decisions(self, view: ItemView) -> dict[str, Any]:
        """Return the first decisions and their inputs, for the label."""
        return {
            "users per noise": round(self.ratio, 1) if self.session.is_private else "inf",
            "ratings per user, about": round(view.typical_length, 1),
            "route": "factors" if self._shows(view) else "effects",
        }

    def with_votes(self, view: ItemView, decisions: dict[str, Any]) -> tuple[_Fit, ItemView]:
        """Release the votes that lists need before anything else, and return what they leave to spend.

        If they need nearly all, they get all. Add to the decisions.
        """
        session, votes = self.session, ItemVotes(n_items=self.session.n_items, norm="l2")
        noise = float(view.tally.error[0])
        needed = share_for_votes(
            view.tally.votes,
            noise,
            session.multiplier,
            self.settings.first_share,
            pairs=float(self.shares.co_occurrences),
            counted=view.count_share,
        )
        decisions["votes need"] = "all" if needed is None else needed
        if needed is None:
            decisions["route"] = "votes"
            tally = last_votes(session, view.tally, view.people)
            return self, replace(view, tally=tally)
        if needed == self.settings.first_share:
            return self, view
        more = share(needed) - share(round((session.multiplier / noise) ** 2, 3))
        shares = self.shares.scaled((session.left - more) / session.left)
        tally = view.tally.with_again(*session.release(votes, more))
        return replace(self, shares=shares), replace(view, tally=tally)

    def learned(self, view: ItemView, progress: Progress) -> _Learned:
        """Release what the rest is for: nothing, effects alone, or embeddings and factors as well."""
        if self.session.left and self._shows(view):
            return self.factors_found(view, self.shares, progress)
        if self.effects_alone:
            # Residuals of better effects are smaller, so the next release has less noise.
            view, _ = self.effects(view, self.session.left * _EARLY)
        view, factors = (
            self.effects(view, self.session.left)
            if self.session.left
            else (view, free_directions(view, self.settings))
        )
        return _Learned(view, factors, np.zeros((self.session.n_items, 0)), {"factors found": False})

    def following(self, view: ItemView, decisions: dict[str, Any]) -> tuple[NextItems, bool]:
        """Return the weights between items and whether the order counts in lists; add to the decisions."""
        found, ordered = NextItems(), True
        for paired in self.released:
            found, ordered = self._known(view).next_items(paired), paired.weights.ordered
            decisions["order informs"] = paired.informs
        if self.detailed:
            blend = found.blend
            found = whole_catalog(self.session, self.settings, blend=blend, ordered=ordered) or found
        decisions |= {"items paired": found.items.size, "blend of pairs": round(found.blend, 3)}
        return found, ordered

    def _known(self, view: ItemView) -> KnownVotes:
        return KnownVotes(self.session, self.settings, view.people, view.tally)

    def _shows(self, view: ItemView) -> bool:
        if self.effects_alone:
            return False
        noise = self.session.multiplier / np.sqrt(float(self.shares.co_occurrences))
        return may_show(view.people, self.session.n_items, noise, self.settings)

    def factors_found(self, view: ItemView, shares: BudgetShares, progress: Progress) -> _Learned:
        """Release effects and a pilot of the ratings' second moment, then what the pilot calls for."""
        session, settings = self.session, self.settings
        view, factors_found = self.effects(view, shares.effects)
        explained = pilot_spectrum(session, shares.pilot_moment, view, factors_found, settings)
        strong = explained >= settings.strong
        progress("user-factorization", 2, 4)
        embeddings = np.zeros((self.session.n_items, 0))
        if self.many or not strong:
            view, embeddings = self.embeddings(
                view, shares.for_strong_factors(settings) if strong else shares
            )
            factors_found = free_directions(view, settings)
        progress("user-factorization", 3, 4)
        # The pilot is rough: if nothing else shows and users rated much, a second release is worth it.
        much = explained > 0 or view.typical_length >= settings.enough_ratings
        looks = strong or (much and not embeddings.shape[1])
        left = session.left
        if looks:
            factors_found = directions(session, shares.moment * left, view, factors_found, settings)
        found = factors_found.features.shape[1] > factors_found.free
        said = {"variance explained by pilot": round(explained, 4), "factors found": found}
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
        session, times = self.session, 1
        if self.many and not self.detailed:
            ratio = users_per_noise(view.people, session.multiplier)
            times = refits(strong, ratio, self.settings)
        each = (session.left - moment) / times
        for _ in range(times):
            shares = (each, moment / times)
            factors, tally = refit(session, shares, view, factors, self.table, self.settings)
            view, factors = replace(view, tally=tally), factors.as_free()
        return view, factors

    def effects(self, view: ItemView, share: Fraction) -> tuple[ItemView, LatentFactors]:
        """Release items' effects (once more), and return the directions that they give for nothing."""
        view = view.with_effects(self.session, share)
        return view, free_directions(view, self.settings)

    def embeddings(self, view: ItemView, shares: BudgetShares) -> tuple[ItemView, Floats]:
        """Release co-occurrences and, if directions stand out of the noise, item embeddings in them."""
        known, parts = self._known(view), (shares.co_occurrences, shares.embeddings)
        paired = known.pairs_in_order(parts, self.weights, detailed=self.detailed)
        found = known.directions(paired.pairs)
        self.released.append(paired)
        if not found.kept:
            return view, found.vectors
        vectors, tally = known.embeddings(paired.embeddings, found, self.table, near=paired.weights.near)
        columns = vectors[:, : self.settings.most_embedding_features]
        columns = columns - np.average(columns, axis=0, weights=tally.raised)
        size = np.sqrt(np.average((columns**2).sum(axis=1), weights=tally.raised))
        view = replace(view, tally=tally).with_columns(
            columns / max(size, 1e-150), self.settings.feature_ridge
        )
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
    # If noise hides even which items are popular, expected ratings know less than that.
    hidden = decisions["route"] == "votes"
    known = 0.0 if hidden else np.average(view.effects().known, weights=view.tally.raised)
    rated = view.typical_length / view.tally.votes.size
    return InteractionsAndRatings.of(stars, choice, float(known), rated)
