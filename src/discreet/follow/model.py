"""Turn the releases of a year so far into an ordinary model; everything here is post-processing.

A model for lists orders by what was chosen recently. A model for ratings knows item effects. Both together
list what a user would choose and then like. Embeddings of another model can take part: `combined`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final, get_args

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, one_of
from discreet.data import PublicFacts, Vocabulary
from discreet.follow.errors import NotCombinable, RatingsForEffects
from discreet.follow.releases import Estimate, Normal, estimate_level, estimate_rated, estimate_recent
from discreet.follow.settings import USUAL, FollowSettings
from discreet.follow.state import ItemSums
from discreet.models import (
    FittedModel,
    InteractionsAndRatings,
    InteractionScorer,
    NextItems,
    PopularityScorer,
    RatingScorer,
    Scorer,
)
from discreet.privacy import Guarantee
from discreet.report import continual_release
from discreet.solvers import EmpiricalBayes, shrink
from discreet.statistics import TYPICAL_RESIDUAL, USER_RIDGE

Kind = Literal["popularity", "biases", "both"]
# About what one rating weighs: what chance puts into an item's sum of few ratings follows from it.
_TYPICAL_WEIGHT = 0.2
# Noise of counts is kept from zero by a soft floor of this width at least.
_LEAST_WIDTH = 0.1
# So far apart are the mean ratings of well-known and of other items, and of two sets of data, a priori.
_APART = 0.15
# The mean over items that are weighted by noisy counts is this far from that over ratings, without noise.
_OF_ITEMS = 0.02
# Users who came with a half-life of so many days show where ratings are now; a priori they differ so much.
_RECENT_DAYS, _DRIFT = 56.0, 0.03
# Weights between items count if so much of the probability of these items is where it was.
_STILL = 0.8
# Embeddings are older than what is popular now, so a user's own place is drawn to the origin by so many times
# the ridge of the model itself. Chosen with the next one on the first halves of both replayed years.
_OLDER = 2.0
# So much of an item's squared length is subtracted: users without a history choose less of what few like.
_LENGTH = 0.5
#: Models of a year are called so, by whether one data owner or several parties release it.
FOLLOWED, FOLLOWED_TOGETHER = "follow", "federated-follow"
# Known are items with a count of so many standard deviations, and so many at least.
_STANDS_OUT, _FEWEST = 3.0, 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What releases show about items now: how much they are chosen recently, and how well rated.

    Effects are what items are rated above the mean; both are on a scale from -1 to 1.
    """

    recent: Estimate
    effects: EmpiricalBayes | None
    mean: float

    @property
    def popularity(self) -> Floats:
        """Return recent counts above zero, in the same order: clipping would make ties."""
        width = max(self.recent.noise, _LEAST_WIDTH)
        raised: Floats = width * np.logaddexp(0, self.recent.sums / width)
        return np.maximum(raised, 1e-150)


def current(
    settings: FollowSettings,
    facts: PublicFacts,
    drawn: Sequence[ItemSums],
    *,
    multiplier: float | None = None,
) -> Current:
    """Estimate the current state of all items from the releases so far.

    `multiplier` is the noise on every released number, if it differs from that of one data owner.
    """
    noise = settings.multiplier if multiplier is None else multiplier
    rated = facts.low != facts.high
    recent = estimate_recent(settings, drawn, noise, rated=rated)
    if not rated:
        return Current(recent=recent, effects=None, mean=0.0)
    counted, values = estimate_rated(settings, drawn, noise)
    raised = np.maximum(counted.sums, counted.noise)
    of_users = estimate_level(settings, drawn, noise)
    mean = Normal.merged([Normal(0.0, _APART**2), _mean(counted, values, raised), of_users]).mean
    # What is left of a sum is centered with the count as it was released: an item that no one rated then
    # has nothing but noise there, however uncertain its count is.
    left = values.sums - mean * counted.sums
    chance = TYPICAL_RESIDUAL**2 * _TYPICAL_WEIGHT * raised
    variance = values.noise**2 + (mean * counted.noise) ** 2 + chance
    effects = shrink(left, raised, variance, _fame(raised))
    moved = _drift(estimate_level(settings, drawn, noise, _RECENT_DAYS), of_users)
    return Current(recent=recent, effects=effects, mean=USUAL + mean + moved)


def _drift(recent: Normal, of_users: Normal) -> float:
    """Return by how much those who came recently rate above all users, as far as noise lets it be known."""
    found = Normal(recent.mean - of_users.mean, recent.variance)
    return Normal.merged([Normal(0.0, _DRIFT**2), found]).mean


def _fame(raised: Floats) -> Floats:
    """Return a constant and the centered logarithm of counts: well-known items are rated higher."""
    logarithm = np.log(raised)
    return np.column_stack([np.ones(raised.size), logarithm - np.average(logarithm, weights=raised)])


def _mean(counted: Estimate, values: Estimate, raised: Floats) -> Normal:
    """Return what ratings are above the usual, on average: of items that stand out of the noise, and others.

    Sums over all others carry all of their noise, so their mean is pulled to that of the known ones.
    """
    count = max(int((counted.sums > _STANDS_OUT * counted.noise).sum()), _FEWEST)
    known = np.zeros(counted.sums.size, dtype=np.bool_)
    known[np.argsort(-counted.sums, kind="stable")[:count]] = True
    weight = max(float(counted.sums[known].sum()), 1e-9)
    top = float(np.clip(values.sums[known].sum() / weight, -1, 1))
    each = values.noise**2 + (top * counted.noise) ** 2
    rest = max(float(counted.sums[~known].sum()), 0.0)
    apart = float(values.sums[~known].sum()) - top * float(counted.sums[~known].sum())
    other = top + rest * apart / max(rest**2 + np.count_nonzero(~known) * each / _APART**2, 1e-9)
    means = np.where(known, top, np.clip(other, -1, 1))
    variance = np.count_nonzero(known) * each / weight**2 + _OF_ITEMS**2
    return Normal(float(np.average(means, weights=raised)), float(variance))


def refuse_kind(kind: Kind, model: FittedModel | None, facts: PublicFacts) -> None:
    """Reject what no model can be made of; called before a release is drawn, so that nothing is lost."""
    one_of("kind", kind, get_args(Kind))
    if kind == "biases" and facts.low == facts.high:
        raise RatingsForEffects()
    if model is not None and not isinstance(model.scorer, InteractionScorer | InteractionsAndRatings):
        raise NotCombinable(model=model.name)


def scorer_of(now: Current, facts: PublicFacts, kind: Kind) -> Scorer:
    """Return what answers: lists of what is current, ratings, or both."""
    if now.effects is None or kind == "popularity":
        return PopularityScorer(popularity=now.recent.sums)
    stars = _stars(now, now.effects, facts)
    if kind == "biases":
        return stars
    choice = InteractionScorer.of(now.popularity, np.zeros((facts.n_items, 0)), {})
    return InteractionsAndRatings.of(stars, choice, _known(now.effects, now.popularity), rated=0.0)


def _stars(now: Current, effects: EmpiricalBayes, facts: PublicFacts) -> RatingScorer:
    half, middle = (facts.high - facts.low) / 2, (facts.high + facts.low) / 2
    return RatingScorer(
        mean=middle + half * now.mean,
        item_bias=half * effects.mean,
        item_factors=np.zeros((facts.n_items, 0)),
        ridge=np.array([USER_RIDGE]),
        low=facts.low,
        high=facts.high,
    )


def _known(effects: EmpiricalBayes, popularity: Floats) -> float:
    """Return which part of the effects of what is chosen now is known."""
    return float(np.average(effects.known, weights=popularity))


def combined(now: Current, model: FittedModel, catalog: Vocabulary, facts: PublicFacts) -> Scorer:
    """Return current popularity and effects with the embeddings of a `user-factorization` model.

    Of the model's own scores only the part that depends on the user is taken, and a part of items' lengths:
    what was popular when it was fitted is out of date. Items that it does not know are listed by popularity
    and effects alone.
    """
    place = model.catalog.index_of(catalog.series)
    known = place >= 0
    other = model.scorer
    if isinstance(other, InteractionScorer):
        return _moved_choice(other, now, place)
    assert isinstance(other, InteractionsAndRatings)
    stars, choice = other.stars, other.choice
    bias, mean = _moved(stars.item_bias[:, None], place, known)[:, 0], stars.mean
    if now.effects is not None:
        half, middle = (facts.high - facts.low) / 2, (facts.high + facts.low) / 2
        ours = middle + half * (now.mean + now.effects.mean)
        # Where the model knows an item, the better known of both effects counts more.
        weight = np.where(known, now.effects.known, 1.0)
        bias = weight * (ours - mean) + (1 - weight) * bias
    return replace(
        other,
        stars=replace(stars, item_bias=bias, item_factors=_moved(stars.item_factors, place, known)),
        choice=_moved_choice(choice, now, place),
    )


def _moved_choice(other: InteractionScorer, now: Current, place: npt.NDArray[np.int32]) -> InteractionScorer:
    """Return the scorer of interactions with current popularity."""
    return replace(
        other,
        popularity=now.popularity,
        item_factors=_moved(other.item_factors, place, place >= 0),
        ridge=_OLDER * other.ridge,
        length=_LENGTH,
        following=_repaired(other, place, now.popularity),
        # Histories are those of the other model's data.
        history_lengths=np.zeros(0),
        history_order=np.zeros(0),
        rating_levels=np.zeros(0),
    )


def _repaired(other: InteractionScorer, place: npt.NDArray[np.int32], popularity: Floats) -> NextItems:
    """Return weights between items for the followed catalog, none if it lacks one of them.

    They lead to what was chosen when the model was fitted. So their part is that of the present probability
    of these items that is still where it was, and none if too much has moved.
    """
    new = np.full(other.popularity.size, -1, dtype=np.int64)
    new[place[place >= 0]] = np.flatnonzero(place >= 0)
    weights = other.following
    paired = new[weights.items]
    if not (paired >= 0).all():
        return NextItems()
    here, there = popularity[paired], other.popularity[weights.items]
    still = float(np.minimum(here / here.sum(), there / there.sum()).sum()) if paired.size else 0.0
    return replace(weights, items=paired, blend=weights.blend * still * (still >= _STILL))


def followed_alone(model: FittedModel) -> bool:
    """Return whether a model orders lists by a continual release alone, without what another model knows."""
    if model.name not in (FOLLOWED, FOLLOWED_TOGETHER):
        return False
    scorer = model.scorer
    if isinstance(scorer, InteractionsAndRatings):
        vectors = (scorer.stars.item_factors, scorer.choice.item_factors)
        return not (any(one.shape[1] for one in vectors) or scorer.choice.following.items.size)
    return isinstance(scorer, PopularityScorer)


def _moved(columns: Floats, place: Any, known: Any) -> Floats:
    """Return rows in the order of the followed catalog, zeros where an item is unknown."""
    moved = np.zeros((place.size, columns.shape[1]))
    moved[known] = columns[place[known]]
    return moved


def labeled(
    promise: Guarantee, settings: FollowSettings, number: int, *, simulated: bool, until: str | None
) -> Guarantee:
    """Return the guarantee with a note on which release the model is from."""
    promise = promise.as_simulated() if simulated else promise
    note = continual_release(number + 1, settings.releases, until)
    return replace(promise, notes=(note, *promise.notes))
