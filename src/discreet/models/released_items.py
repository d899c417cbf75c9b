"""Release counts and effects of items, and combine all releases so far.

Ratings are in units in which the scale runs from -1 to 1. The proof is in proofs/biases.md.

What belongs together is learned from whole histories. If ratings fade, how popular items are, and how they
are rated, comes from a release of its own (`RecentReleases`), in which a rating counts half after a public
half-life. Ages count from a public date.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np

from discreet.core import Floats
from discreet.data import PublicFacts
from discreet.models.errors import ScaleTooSmall
from discreet.models.scorers.factors import liking
from discreet.models.tuned_settings import ItemSettings
from discreet.privacy import Session
from discreet.solvers import EmpiricalBayes, VoteEstimate, shrink
from discreet.statistics import (
    TYPICAL_RESIDUAL,
    USER_RIDGE,
    ItemResiduals,
    Recency,
    RecentResiduals,
    RecentVotes,
    UserMeans,
)
from discreet.statistics.typical import COUNT_PART

# Weights of count^-1/2 give the sums of all items one variance.
_EQUAL_VARIANCE = -0.5
# Prior deviation of the overall mean from the middle of the scale: half of the way to its end.
_MEAN_SPREAD = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One release of residuals: the question, the items' sums and weights, and the noise."""

    question: ItemResiduals
    sums: Floats
    counted: Floats
    multiplier: float

    @property
    def count_noise(self) -> float:
        """Return the noise on the sum of an item's weights."""
        return self.multiplier / self.question.count_part


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """All that is released about the items so far.

    `mean_variance` is the variance of the overall mean's estimate. `part` is the weight of counts in a user's
    contribution to the effects; `power` is the power of an item's count that weights it there. `columns` are
    further item features for effects and users' coefficients; `column_ridges` shrinks a user's coefficients
    for them, in units of the variance of a rating.
    """

    middle: float
    half: float
    mean: float
    people: float
    mean_variance: float
    part: float
    power: float
    tally: VoteEstimate
    releases: tuple[Released, ...]
    columns: Floats
    column_ridges: Floats
    recency: Recency | None = None

    @property
    def counts(self) -> Floats:
        """Return items' weighted counts in residual rows of unit length, at least as large as the noise."""
        return self.tally.raised / _rating_length()

    @property
    def raw_counts(self) -> Floats:
        """Return the same counts without raising them: items keep their order."""
        return self.tally.votes / _rating_length()

    @property
    def typical_length(self) -> float:
        """Return about how many ratings a user has, from the votes and the number of users."""
        return (max(float(self.tally.votes.sum()), 0.0) / self.people) ** 2

    @property
    def count_share(self) -> float:
        """Return the part of a release of effects that shows counts."""
        return self.part**2 / (self.part**2 + TYPICAL_RESIDUAL**2)

    @property
    def own_ridge(self) -> float:
        """Return the ridge on a user's own mean; it is smaller where the overall mean is uncertain."""
        return TYPICAL_RESIDUAL**2 / (TYPICAL_RESIDUAL**2 / USER_RIDGE + self.mean_variance)

    @property
    def features(self) -> Floats:
        """Return a constant, the centered logarithm of the counts and the further columns."""
        raised = self.tally.raised
        # Without noise an item that no user rated is taken as the least rated one: an effect is not known for
        # counts below all others. With noise no count is below it.
        rated = self.tally.votes > 0
        multipliers = [one.multiplier for one in self.releases]
        noiseless = bool(multipliers) and not any(multipliers) and bool(rated.any())
        logarithm = np.log(np.maximum(raised, raised[rated].min()) if noiseless else raised)
        fame = logarithm - np.average(logarithm, weights=raised)
        return np.column_stack([np.ones(fame.size), fame, self.columns])

    def effects(self) -> EmpiricalBayes:
        """Return items' effects from all releases, weighted by precision and shrunk by the noise."""
        right, precision = np.zeros(self.tally.votes.size), np.zeros(self.tally.votes.size)
        for one in self.releases:
            weights = self.tally.expected(one.counted, one.count_noise, one.question.item_weights)
            variance = self._variance(weights, one)
            right += weights * (one.sums + weights * one.question.effects) / variance
            precision += weights**2 / variance
        return shrink(right, precision, precision, self.features)

    def listing(self) -> dict[str, Any]:
        """Return what lists are ordered by, as the fields of a scorer: released counts, and stars a bit."""
        known = float(np.average(self.effects().known, weights=self.tally.raised))
        rated = self.typical_length / self.tally.votes.size
        return {"popularity": self.tally.likely, "liking": liking(known, rated)}

    def unit(self, ratings: Floats) -> Floats:
        """Return ratings in units where the scale is [-1, 1]."""
        return (ratings - self.middle) / self.half

    def with_columns(self, columns: Floats, ridge: float) -> ItemView:
        """Return the view with these additional features; one ridge shrinks all of them."""
        return replace(
            self,
            columns=np.column_stack([self.columns, columns]),
            column_ridges=np.append(self.column_ridges, np.full(columns.shape[1], ridge)),
        )

    def with_effects(self, session: Session, share: Fraction) -> ItemView:
        """Release residuals of the effects known so far; a user's contribution has length at most 1."""
        question = ItemResiduals(
            middle=self.middle,
            half=self.half,
            mean=self.mean,
            effects=self.effects().mean,
            item_weights=self.tally.raised**self.power,
            count_part=self.part,
        )
        more = _release(session, share, question, self.recency)
        tally = self.tally.with_more(more.counted, more.count_noise, question.item_weights)
        return replace(self, tally=tally, releases=(*self.releases, more))

    def _variance(self, weights: Floats, one: Released) -> Floats:
        """Return the variance of the items' sums: the known noise and the sampling error."""
        item_weights, part = one.question.item_weights, one.question.count_part
        return sum_variance(weights, item_weights, self.people, one.multiplier, part)


def _rating_length() -> float:
    """Return the typical length of one rating's contribution before the whole contribution is scaled."""
    return math.hypot(TYPICAL_RESIDUAL, COUNT_PART)


def refuse_one_value(facts: PublicFacts) -> None:
    """Raise for a scale on which all ratings are equal: nothing can be learned from them."""
    if facts.low >= facts.high:
        raise ScaleTooSmall(low=facts.low, high=facts.high)


def pilot_release(
    session: Session,
    shares: tuple[Fraction, Fraction],
    settings: ItemSettings,
    recency: Recency | None = None,
    *,
    counts: float = 1.0,
) -> ItemView:
    """Release the overall mean, and a first estimate of every item's effect and count, for these `shares`.

    Counts weigh `counts` times as much as residuals, or more: the noise of the whole session in one release
    decides. With `recency` ratings fade with their age.
    """
    refuse_one_value(session.facts)
    low, high, total = session.facts.low, session.facts.high, session.multiplier
    middle, half = (low + high) / 2, (high - low) / 2
    mean, variance, people = _release_mean(session, shares[0], middle, half)
    # At a weight of 1, counts have as much variance as residuals. With few users per unit of noise little but
    # popularity can be learned. Counts then weigh more and items nearly the same, else the noise would hide
    # popularity.
    counting = settings.users_to_count * total / people
    question = ItemResiduals(
        middle=middle,
        half=half,
        mean=mean,
        effects=np.zeros(session.n_items),
        item_weights=np.ones(session.n_items),
        count_part=max(counts * TYPICAL_RESIDUAL, counting),
    )
    pilot = _release(session, shares[1], question, recency)
    length = math.hypot(TYPICAL_RESIDUAL, question.count_part)
    return ItemView(
        middle=middle,
        half=half,
        mean=mean,
        people=people,
        mean_variance=variance,
        part=max(COUNT_PART, counting),
        power=_EQUAL_VARIANCE * min(TYPICAL_RESIDUAL / max(counting, 1e-300), 1.0),
        tally=VoteEstimate.of(pilot.counted * length, pilot.count_noise * length),
        releases=(pilot,),
        columns=np.zeros((session.n_items, 0)),
        column_ridges=np.zeros(0),
        recency=recency,
    )


def _release(session: Session, share: Fraction, question: ItemResiduals, recency: Recency | None) -> Released:
    asked = question if recency is None else RecentResiduals(plain=question, recency=recency)
    (sums, counted), multiplier = session.release(asked, share)
    return Released(
        question=question, sums=sums, counted=counted / question.count_part, multiplier=multiplier
    )


def _release_mean(
    session: Session, share: Fraction, middle: float, half: float
) -> tuple[float, float, float]:
    """Release the mean of users' means and the number of users; shrink the mean by its noise.

    Return the mean, the variance of its estimate, and the number of users.
    """
    released, sigma = session.release(UserMeans(middle=middle, half=half), share)
    people = max(2 * released[1], 2 * sigma, 1.0)
    total = people**2 + (sigma / _MEAN_SPREAD) ** 2
    return float(np.clip(people * released[0] / total, -1, 1)), float(sigma**2 / total), float(people)


def sum_variance(
    weights: Floats, item_weights: Floats, people: float, multiplier: float, part: float
) -> Floats:
    """Return the variance of the items' sums: the known noise and the sampling error.

    A user with n ratings weights each by about 1/sqrt(n (typical^2 + part^2)), so the typical weight of one
    rating follows from the items' weights and the number of users.
    """
    spread = TYPICAL_RESIDUAL**2
    person = people / ((spread + part**2) * max(float(weights @ (1 / item_weights)), 1.0))
    return multiplier**2 + spread * person * item_weights * weights


class RecentItems(NamedTuple):
    """How popular items are now, and how much better they are rated than over all time."""

    popularity: Floats
    shift: Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecentReleases:
    """How ratings fade with age, and the session that their release may spend."""

    recency: Recency
    session: Session

    def votes(self) -> VoteEstimate:
        """Release votes that fade; a user's have length at most 1."""
        statistic = RecentVotes(n_items=self.session.n_items, norm="l2", recency=self.recency)
        return VoteEstimate.of(*self.session.release(statistic, Fraction(1)))

    def items(self, view: ItemView, offsets: Floats) -> RecentItems:
        """Release counts and residuals of `offsets` that fade; a user's have length at most 1."""
        n_items = self.session.n_items
        plain = ItemResiduals(
            middle=view.middle,
            half=view.half,
            mean=view.mean,
            effects=offsets - view.mean,
            item_weights=np.ones(n_items),
            # Counts have as much variance as residuals.
            count_part=TYPICAL_RESIDUAL,
        )
        asked = RecentResiduals(plain=plain, recency=self.recency)
        (sums, counted), multiplier = self.session.release(asked, Fraction(1))
        length = math.hypot(TYPICAL_RESIDUAL, plain.count_part) / plain.count_part
        tally = VoteEstimate.of(counted * length, multiplier * length)
        counts = tally.raised / (length * plain.count_part)
        variance = sum_variance(counts, plain.item_weights, view.people, multiplier, plain.count_part)
        shift = shrink(sums, counts, variance, np.zeros((n_items, 0))).mean
        return RecentItems(tally.likely, shift)
