"""Learn from ratings what people choose and how they like it, from one budget.

What people choose is seen through far less noise than how they like it, and it says a lot about taste: where
crowds show, they become features of items in all that follows. The proof is in proofs/user_factorization.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.crowd import Crowd
from discreet.data.facts import PublicFacts
from discreet.models.item_view import ItemView, first_look
from discreet.models.progress import Progress
from discreet.models.scorers.choice_and_stars import ChoiceAndStars
from discreet.models.scorers.choices import ClickScorer
from discreet.models.scorers.factors import RatingScorer
from discreet.models.user_factorization.budget_split import (
    ENOUGH_RATINGS,
    LOOK,
    MEAN,
    Purse,
    Shares,
    are_many,
    people_per_noise,
)
from discreet.models.user_factorization.crowds import (
    choice_crowds,
    choice_directions,
    may_show,
)
from discreet.models.user_factorization.taste import (
    PUBLIC_RIDGE,
    Taste,
    directions,
    free_directions,
    glance,
    public_directions,
    refit,
)
from discreet.randomness import PrivacyRandom

# Ratings follow taste if a glance at their second moment shows that it explains this part of the variance;
# from the second number on (the third where people are few for the noise) they tell more about taste than
# choices do. Up to there this many directions of choices say what the second moment of ratings would.
_EXPLAINED, _STRONG, _STRONG_FOR_FEW = 0.015, 0.06, 0.10
_ENOUGH_CROWDS = 6
# So many coordinates of an item's crowd are features for ratings; together they are pulled by this ridge.
_MOST_FEATURES = 32
_CROWD_RIDGE = 1000.0


def learn_ratings(
    data: Crowd, table: Floats | None, multiplier: float, random: PrivacyRandom, progress: Progress
) -> ChoiceAndStars:
    """Release counts, effects and, where they show, crowds and taste; together one Gaussian release."""
    purse = Purse(multiplier)
    view = first_look(data, purse.take(MEAN), purse.take(LOOK), multiplier, random)
    if table is not None:
        view = view.with_columns(public_directions(table), PUBLIC_RIDGE)
    ratio = people_per_noise(view.people, multiplier)
    many = are_many(ratio, view.typical_length)
    shares = Shares.of(many)
    shows = may_show(view.people, data.n_items, multiplier / np.sqrt(shares.choices))
    decisions: dict[str, Any] = {
        "people per noise": round(ratio, 1) if multiplier else "inf",
        "ratings a person, about": round(view.typical_length, 1),
        "route": "taste" if shows else "effects",
    }
    progress("user-factorization", 1, 4)
    public = np.zeros((data.n_items, 0)) if table is None else table
    fit = _Fit(data=data, purse=purse, random=random, many=many, table=public)
    crowds = np.zeros((data.n_items, 0))
    if shows:
        view, taste, crowds, said = fit.taste(view, shares, progress)
    else:
        view, taste, said = *fit.effects(view, purse.take_rest()), {"factors pay": False}
    progress("user-factorization", 4, 4)
    decisions |= said
    decisions |= {"choices kept": crowds.shape[1], "factors kept": taste.features.shape[1] - 1}
    return _scorer(data.facts, view, taste, crowds, decisions)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """Hold what all releases of one fit need."""

    data: Crowd
    purse: Purse
    random: PrivacyRandom
    many: bool
    table: Floats

    def taste(
        self, view: ItemView, shares: Shares, progress: Progress
    ) -> tuple[ItemView, Taste, Floats, dict[str, Any]]:
        """Release effects, glance at the ratings' second moment, and release what that calls for."""
        purse, random = self.purse, self.random
        view, taste = self.effects(view, purse.take(shares.effects))
        explained = glance(self.data, view, taste, purse.take(shares.glance), random)
        strong = explained >= (_STRONG if self.many else _STRONG_FOR_FEW)
        progress("user-factorization", 2, 4)
        crowds = np.zeros((self.data.n_items, 0))
        if self.many or not strong:
            view, crowds = self.crowds(view, shares.for_strong_taste() if strong else shares)
            taste = free_directions(view, view.effects().mean)
        progress("user-factorization", 3, 4)
        pays = strong or (explained >= _EXPLAINED and crowds.shape[1] < _ENOUGH_CROWDS)
        # A glance is rough: where nothing else shows and people have rated much, a second look is worth it.
        looks = pays or (not crowds.shape[1] and view.typical_length >= ENOUGH_RATINGS)
        left = purse.left
        if looks:
            taste = directions(self.data, view, taste, purse.take(shares.moment * left), random)
        found = taste.features.shape[1] > taste.free
        said = {"part explained at a glance": round(explained, 4), "factors pay": found}
        if not found and not (self.many and view.columns.shape[1]):
            return *self.effects(view, purse.take_rest()), crowds, said
        scales = purse.take(shares.scales * left)
        taste, tally = refit(self.data, view, taste, (purse.take_rest(), scales), self.table, random)
        return replace(view, tally=tally), taste, crowds, said

    def effects(self, view: ItemView, multiplier: float) -> tuple[ItemView, Taste]:
        """Release items' effects (once more), and return the directions that they give for nothing."""
        view = view.with_effects(self.data, multiplier, self.random)
        return view, free_directions(view, view.effects().mean)

    def crowds(self, view: ItemView, shares: Shares) -> tuple[ItemView, Floats]:
        """Release which items are chosen together and, if that shows crowds, where an item's crowd stands."""
        purse, random = self.purse, self.random
        found = choice_directions(self.data, view.tally, view.people, purse.take(shares.choices), random)
        if not found.kept:
            return view, found.vectors
        multiplier = purse.take(shares.places)
        vectors, tally = choice_crowds(
            self.data, view.tally, found, view.people, multiplier, self.table, random
        )
        columns = vectors[:, :_MOST_FEATURES]
        columns = columns - np.average(columns, axis=0, weights=tally.raised)
        size = np.sqrt(np.average((columns**2).sum(axis=1), weights=tally.raised))
        ridge = _CROWD_RIDGE / columns.shape[1]
        return replace(view, tally=tally).with_columns(columns / max(size, 1e-150), ridge), vectors


def _scorer(
    facts: PublicFacts, view: ItemView, taste: Taste, crowds: Floats, decisions: dict[str, Any]
) -> ChoiceAndStars:
    stars = RatingScorer(
        mean=view.middle + view.half * view.mean,
        item_bias=view.half * (taste.offsets - view.mean),
        item_factors=taste.features[:, 1:],
        ridge=np.append(view.own_ridge, taste.ridge[1:]),
        low=facts.low,
        high=facts.high,
        decisions=decisions,
    )
    known = np.average(view.effects().known, weights=view.tally.raised)
    rated = view.typical_length / view.tally.votes.size
    choice = ClickScorer.of(view.tally.likely, crowds, {})
    return ChoiceAndStars.of(stars, choice, float(known), rated)
