"""Make synthetic users from a release: their number, their histories, and their ratings.

The release models the users of an item as normal around its embedding. So a user at position z chooses item i
with a probability proportional to `popularity_i exp(f_i . z - c |f_i|^2)`. A history of n items is drawn
without replacement: the n largest of these log-odds plus Gumbel noise (Efraimidis and Spirakis 2006).

If the release knows an order, a history is a few stretches in time. Its position then is the sum of one that
stays and one that drifts from stretch to stretch. All users of a block are drawn at once, to bound memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np

from discreet.core import Floats, Indices, Singles, WrongKind, experiment_generator, instance, integer, shown
from discreet.data import N_ITEMS, SCALE, Interactions, PublicFacts, Vocabulary
from discreet.models import (
    FittedModel,
    InteractionsAndRatings,
    InteractionScorer,
    RatingScorer,
    ReleasedHistories,
    Scorer,
)
from discreet.statistics import LENGTH_STARTS, TYPICAL_RESIDUAL
from discreet.synthesis.errors import NoHistoriesIn, UsersUnknown
from discreet.synthesis.labels import summary

#: The deviation of users' positions in each direction, in that of an item's users.
SPREAD = 2.5
#: The part of an item's squared length that its log-odds lose.
LENGTH = 0.5
#: The part of the variance of positions that drifts, and the correlation from stretch to stretch.
DRIFTING, KEPT = 0.3, 0.5
# Items of a stretch, and the most stretches of a history.
_STRETCH, _MOST_STRETCHES = 8, 16
# Scores of one block, and scores of all blocks beyond which histories have fewer stretches.
_SCORES, _MOST_SCORES = 1 << 23, 1 << 36


class Histories(NamedTuple):
    """The histories of one block: lengths, and all items, each user's in the order of time."""

    lengths: Indices
    items: Indices


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Source of drawn histories: log-odds at the origin and embeddings of all items."""

    log_odds: Singles
    vectors: Singles
    ordered: bool
    spread: float = SPREAD

    @classmethod
    def of(cls, popularity: Floats, vectors: Floats, *, ordered: bool, spread: float = SPREAD) -> Sampler:
        """Return the sampler of a release."""
        log_odds = np.log(popularity / popularity.max()) - LENGTH * (vectors**2).sum(axis=1)
        return cls(
            log_odds=log_odds.astype(np.float32),
            vectors=vectors.astype(np.float32),
            ordered=ordered,
            spread=spread,
        )

    @property
    def n_items(self) -> int:
        """Return the number of items."""
        return self.log_odds.size

    def positions(self, users: int, random: np.random.Generator) -> Singles:
        """Return positions of users in the directions of the embeddings."""
        drawn = random.standard_normal((users, self.vectors.shape[1]), dtype=np.float32)
        return drawn * np.float32(self.spread)

    def scores(self, positions: Singles) -> Singles:
        """Return the log-odds of every item at these positions, up to one constant for each."""
        scores: Singles = positions @ self.vectors.T
        scores += self.log_odds
        return scores

    def draw(self, lengths: Indices, random: np.random.Generator) -> Iterator[Histories]:
        """Yield histories of these lengths, in blocks; no length may exceed the catalog."""
        rows = max(_SCORES // self.n_items, 1)
        budget = _MOST_SCORES // max(lengths.size * self.n_items, 1)
        stretches = int(np.clip(budget, 1, _MOST_STRETCHES)) if self.ordered else 1
        for start in range(0, lengths.size, rows):
            yield self._block(lengths[start : start + rows], stretches, random)

    def _block(self, lengths: Indices, stretches: int, random: np.random.Generator) -> Histories:
        """Draw the histories of one block; the longest come first while drawing."""
        order = np.argsort(-lengths, kind="stable")
        falling = lengths[order]
        longest = int(falling.max(initial=0))
        chosen = np.zeros((lengths.size, longest), dtype=np.int64)
        staying, drifting = (self.positions(lengths.size, random) for _ in range(2))
        size = max(-(-longest // stretches), _STRETCH) if self.ordered else max(longest, 1)
        for start in range(0, longest, size):
            live = int(np.count_nonzero(falling > start))
            scores = self.scores(self._mixed(staying[:live], drifting[:live]))
            scores += _gumbel(scores.shape, random)
            np.put_along_axis(scores, chosen[:live, :start], -np.inf, axis=1)
            stop = min(start + size, longest)
            counts = np.minimum(falling[:live], stop) - start
            chosen[:live, start:stop] = _largest(scores, counts, random)
            drifting = _moved(drifting, self.positions(lengths.size, random))
        kept = np.arange(longest) < lengths[:, None]
        return Histories(lengths, chosen[np.argsort(order, kind="stable")][kept])

    def _mixed(self, staying: Singles, drifting: Singles) -> Singles:
        if not self.ordered:
            return staying
        mixed: Singles = (
            np.float32(np.sqrt(1 - DRIFTING)) * staying + np.float32(np.sqrt(DRIFTING)) * drifting
        )
        return mixed


def _moved(positions: Singles, fresh: Singles) -> Singles:
    moved: Singles = np.float32(KEPT) * positions + np.float32(np.sqrt(1 - KEPT**2)) * fresh
    return moved


def _gumbel(shape: tuple[int, ...], random: np.random.Generator) -> Singles:
    """Return Gumbel noise: minus the logarithm of exponential draws."""
    drawn = random.standard_exponential(shape, dtype=np.float32)
    noise: Singles = -np.log(np.maximum(drawn, np.finfo(np.float32).tiny))
    return noise


def _largest(scores: Singles, counts: Indices, random: np.random.Generator) -> Indices:
    """Return the places of the largest scores of each row: as many as it counts, mixed, then others."""
    width, most = scores.shape[1], int(counts.max())
    places = np.argpartition(scores, width - most, axis=1)[:, width - most :]
    falling = np.argsort(-np.take_along_axis(scores, places, axis=1), axis=1)
    keys = random.random(falling.shape, dtype=np.float32)
    keys[np.arange(most) >= counts[:, None]] = 2.0
    mixed = np.take_along_axis(falling, np.argsort(keys, axis=1), axis=1)
    return np.take_along_axis(places, mixed, axis=1)


#: No user of the data is called this.
USER = "synthetic-{}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """Synthetic interactions, and sentences about how they were made."""

    data: Interactions
    sentences: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)


def synthesize(
    model: FittedModel,
    users: int | None = None,
    *,
    length: int | None = None,
    order: bool | None = None,
    seed: int = 0,
) -> Interactions:
    """Return interactions of synthetic users, drawn from what the model released.

    This is post-processing: it costs no privacy budget, and the model's guarantee covers the result. `users`
    is the number of users to draw (default: as many as the release counted). `length` declares the mean
    length of a history (default: the lengths in the release, if the model was fitted with `for_synthesis`).
    `order` states whether interactions have times (default: if the release states an order). Times are
    positions in a user's history.

    Raises:
        ParameterError: The model does not say which items users choose, or not how many users there are.

    Example:
        >>> from discreet import PrivacyRandom, UserFactorization, synthesize
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> recipe = UserFactorization(epsilon=1.0, feedback="implicit", for_synthesis=True)
        >>> model = recipe.fit(films, random=PrivacyRandom.simulate(0))
        >>> synthesize(model, users=50).n_users
        50
    """
    return make(model, users, length=length, order=order, seed=seed).data


def make(
    model: FittedModel,
    users: int | None = None,
    *,
    length: int | None = None,
    order: bool | None = None,
    seed: int = 0,
) -> Synthetic:
    """Return what `synthesize` does, with sentences for its label."""
    instance("model", model, FittedModel)
    if not (order is None or isinstance(order, bool)):
        raise WrongKind(name="order", kind="True, False, or None", found=shown(order))
    interactions, ratings = _parts(model.scorer, model.name)
    released = ReleasedHistories.of(model.scorer)
    count = number_of_users(released, users)
    longest = min(model.facts.n_items, model.facts.max_per_user or model.facts.n_items)
    source = LengthSource.of(released, length, longest)
    ordered = order if order is not None else released is not None and released.ordered >= 0.5
    random = experiment_generator(seed, "synthetic users")
    lengths = source.draw(count, random)
    sampler = Sampler.of(interactions.popularity, interactions.item_factors, ordered=ordered)
    sampler = calibrated(sampler, interactions.popularity, lengths, random)
    items = np.concatenate([block.items for block in sampler.draw(lengths, random)])
    values: Floats = np.ones(items.size)
    if ratings is not None:
        values = on_scale(draw_ratings(ratings.stars, lengths, items, random), lengths, model.facts, released)
    data = _interactions(model, lengths, items, values, ordered)
    return Synthetic(
        data=data,
        sentences=tuple(_sentences(source, released, users, ordered, order, ratings is not None)),
        settings={"users": count, "length": length, "order": ordered, "seed": seed},
    )


def released_popularity(model: FittedModel) -> Floats:
    """Return how often items are chosen, as released."""
    return _parts(model.scorer, model.name)[0].popularity


def is_rated(model: FittedModel) -> bool:
    """Return whether synthetic users of this model rate items."""
    return _parts(model.scorer, model.name)[1] is not None


def _parts(scorer: Scorer, name: str) -> tuple[InteractionScorer, InteractionsAndRatings | None]:
    if isinstance(scorer, InteractionScorer):
        return scorer, None
    if isinstance(scorer, InteractionsAndRatings):
        return scorer.choice, scorer
    raise NoHistoriesIn(model=name)


def _interactions(
    model: FittedModel, lengths: Indices, items: Indices, values: Floats, ordered: bool
) -> Interactions:
    """Return the histories as interactions, each user's items in ascending order."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.repeat(np.arange(lengths.size), lengths)
    order = np.argsort(rows * model.facts.n_items + items, kind="stable")
    times = (np.arange(items.size) - indptr[rows])[order] if ordered else None
    # A catalog or a scale that was taken from real data is not public because synthetic data have it.
    taken = tuple(name for name in model.facts.from_file if name in (N_ITEMS, SCALE))
    facts = replace(model.facts, max_per_user=None, n_users=lengths.size, from_file=taken)
    if not is_rated(model):
        facts = facts.without_scale()
    return Interactions(
        indptr=indptr,
        items=items[order].astype(np.int32),
        values=values[order].astype(np.float32),
        times=times,
        users=Vocabulary.of([USER.format(number) for number in range(1, lengths.size + 1)]),
        catalog=model.catalog,
        facts=facts,
        name="synthetic",
        origin=summary(model.guarantee),
    )


def _sentences(
    source: LengthSource,
    released: ReleasedHistories | None,
    users: int | None,
    ordered: bool,
    order: bool | None,
    rated: bool,
) -> list[str]:
    """Return where each property of the data comes from."""
    said = [source.sentence()]
    said.append(
        "the number of users is a noisy count of the release"
        if users is None
        else "the number of users is declared"
    )
    if ordered:
        known = "the release states that histories have one" if order is None else "declared"
        said.append(f"times are positions in a history ({known})")
    if rated and released is None:
        said.append("the spread of ratings is a public constant, not learned from the data")
    return said


#: The mean length if neither the release nor the caller states one.
DEFAULT_LENGTH = 20
# Declared lengths are log-normal with this deviation: most histories are short, few are long.
_SPREAD = 0.8
# The most users that are drawn: if the caller states how many, and if only the model does. Its file may come
# from anybody, and all interactions are held in memory.
_MOST_USERS, _MOST_UNDECLARED = 1 << 31, 1 << 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LengthSource:
    """Source of lengths: `counts` of a release, or else a declared `mean`."""

    counts: Floats
    mean: int
    longest: int
    #: Whether the mean was declared; otherwise it is only assumed.
    is_declared: bool = True

    @classmethod
    def of(cls, released: ReleasedHistories | None, declared: int | None, longest: int) -> LengthSource:
        """Take declared lengths if there are any, then released ones, then the default."""
        if declared is not None:
            integer("length", declared, least=1, most=longest)
        use = released is not None and declared is None
        counts = released.lengths if released is not None and use else np.zeros(0)
        mean = min(declared or DEFAULT_LENGTH, longest)
        return cls(counts=counts, mean=mean, longest=longest, is_declared=declared is not None)

    @property
    def is_released(self) -> bool:
        """Return whether lengths come from the release."""
        return self.counts.size > 0

    def sentence(self) -> str:
        """Return where lengths come from."""
        if self.is_released:
            return "lengths of histories are drawn from noisy counts of the release"
        if not self.is_declared:
            return f"lengths of histories are assumed (mean {self.mean}; --length declares another)"
        return f"lengths of histories are declared (mean {self.mean}), not learned from the data"

    def draw(self, users: int, random: np.random.Generator) -> Indices:
        """Return a length for each user, at least 1 and at most the catalog."""
        if not self.is_released:
            middle = np.log(self.mean) - _SPREAD**2 / 2
            drawn = np.rint(random.lognormal(middle, _SPREAD, users)).astype(np.int64)
            return np.clip(drawn, 1, self.longest)
        bins = random.choice(self.counts.size, users, p=self.counts / self.counts.sum())
        starts = LENGTH_STARTS[: self.counts.size]
        # The last bin ends where the next one would start, if there were one.
        beyond = LENGTH_STARTS[self.counts.size : self.counts.size + 1]
        ends = np.append(starts[1:], min([self.longest, *beyond.tolist()]) + 1)
        # Evenly on the scale of logarithms: within a bin, longer histories are rarer.
        low, high = np.log(starts[bins]), np.log(np.maximum(ends, starts + 1)[bins])
        drawn = np.floor(np.exp(random.uniform(low, high))).astype(np.int64)
        return np.clip(drawn, starts[bins], self.longest)


def number_of_users(released: ReleasedHistories | None, users: int | None) -> int:
    """Return the number of users to draw: the given one, or the released one."""
    if users is not None:
        return integer("users", users, least=1, most=_MOST_USERS)
    if released is None:
        raise UsersUnknown()
    counted = max(round(float(released.lengths.sum())), 1)
    return integer("users", counted, most=_MOST_UNDECLARED)


def draw_ratings(
    scorer: RatingScorer, lengths: Indices, items: Indices, random: np.random.Generator
) -> Floats:
    """Return a rating for every interaction, not yet on the scale.

    A user's bias and factors are normal, with the variances that the scorer's ridge implies. A rating
    deviates from its expectation as ratings usually do.
    """
    deviation = TYPICAL_RESIDUAL * (scorer.high - scorer.low) / 2
    spread = deviation / np.sqrt(np.maximum(scorer.ridge, 1e-12))
    own = random.standard_normal((lengths.size, spread.size)) * np.minimum(spread, scorer.high - scorer.low)
    users = np.repeat(np.arange(lengths.size), lengths)
    ratings = scorer.mean + scorer.item_bias[items] + own[users, 0]
    for factor in range(scorer.item_factors.shape[1]):
        ratings += own[users, 1 + factor] * scorer.item_factors[items, factor]
    noisy: Floats = ratings + deviation * random.standard_normal(items.size)
    return noisy


def on_scale(
    ratings: Floats, lengths: Indices, facts: PublicFacts, released: ReleasedHistories | None
) -> Floats:
    """Return ratings on the scale.

    With a step and released levels, the drawn ratings are cut where their order gives each level its released
    share; as in the release, all users count alike. Otherwise they are rounded to the step and clipped.
    """
    if facts.step is None:
        return np.clip(ratings, facts.low, facts.high)
    steps = round((facts.high - facts.low) / facts.step)
    if released is None or released.levels.size != steps + 1:
        return facts.low + facts.step * np.clip(np.rint((ratings - facts.low) / facts.step), 0, steps)
    order = np.argsort(ratings, kind="stable")
    weight = np.repeat(1.0 / np.maximum(lengths, 1), lengths)[order]
    place = np.cumsum(weight) / weight.sum()
    level = np.searchsorted(np.cumsum(released.levels)[:-1], place, side="left")
    values = np.empty(ratings.size)
    values[order] = facts.low + facts.step * level
    return np.clip(values, facts.low, facts.high)


# Users on whom popularity is computed, and the scores that this may take.
_USERS, _SCORED = 512, 1 << 24
_ROUNDS, _ITERATIONS = 6, 8
# No round moves log-odds by more than this.
_MOST_MOVE = 1.0


def calibrated(
    sampler: Sampler, popularity: Floats, lengths: Indices, random: np.random.Generator
) -> Sampler:
    """Return the sampler under which items have the shares of votes of `popularity`.

    As in the release, each of a user's n items has a vote of 1 / sqrt(n).
    """
    users = int(np.clip(_SCORED // sampler.n_items, 32, _USERS))
    own = random.choice(lengths, users).astype(np.float32)[:, None]
    positions = sampler.positions(users, random)
    target = popularity / popularity.sum()
    scale = np.zeros((users, 1), dtype=np.float32)
    for _ in range(_ROUNDS):
        scores = sampler.scores(positions)
        scores -= scores.max(axis=1, keepdims=True)
        weights = np.exp(scores)
        scale = _solved(weights, own, scale)
        votes = ((1 - np.exp(-np.exp(scale) * weights)) / np.sqrt(own)).sum(axis=0, dtype=np.float64)
        move = np.log(target) - np.log(np.maximum(votes / votes.sum(), 1e-12))
        moved = sampler.log_odds + np.clip(move, -_MOST_MOVE, _MOST_MOVE).astype(np.float32)
        sampler = replace(sampler, log_odds=moved)
    return sampler


def _solved(weights: Singles, counts: Singles, scale: Singles) -> Singles:
    """Return log t for each row, so that sum_i 1 - exp(-t w_i) is about its count (Newton's method)."""
    # No user can have the whole catalog at a finite t.
    counts = np.minimum(counts, 0.95 * weights.shape[1])
    for _ in range(_ITERATIONS):
        rates = np.exp(scale) * weights
        left = np.exp(-rates)
        excess = (1 - left).sum(axis=1, keepdims=True) - counts
        slope = (rates * left).sum(axis=1, keepdims=True)
        scale = scale - np.clip(excess / np.maximum(slope, 1e-6), -2.0, 2.0)
    return scale
