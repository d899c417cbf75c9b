"""Score items by Bayes' rule, from how popular an item is and how similar its users are, or also by ratings.

A user who returns after a pause doesn't continue their last session. So lists count the latest items of such
a user less, and popularity more. Only the request's time and the user's own history decide, so this costs no
budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Rows, Singles, run
from discreet.core.exports import Later
from discreet.data import EPOCHS, Interactions, epoch_seconds
from discreet.models.errors import MalformedPart, NoFactorsFound
from discreet.models.scorers.factors import LIKING, RANKINGS, RatingScorer, liking
from discreet.models.scorers.ranking import Followed, Liking, LinearScores, Ranking, log_chance
from discreet.models.scorers.released_histories import HISTORIES
from discreet.models.scorers.scorer import (
    ITEMS,
    RELEASED,
    Constant,
    Notes,
    Scorer,
    Stored,
    StoredNumber,
    StoredNumbers,
)
from discreet.models.scorers.similarity import PLAIN, refuse_plain
from discreet.models.tuned_settings import ListSettings
from discreet.solvers import FEW, weighted_sums

if TYPE_CHECKING:
    from discreet.models.scorers import next_items_kernels as kernels
else:
    kernels = Later("discreet.models.scorers.next_items_kernels")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NextItems:
    """For the items in `items`, the weights with which each supports its `neighbors` among them.

    A user's weight of an item is the sum over their interactions; with times the r-th latest counts (1 + r)
    to the minus `fading`. The share of `blend` of a list's probability follows these weights, where they are
    positive.
    """

    items: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    neighbors: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    weights: npt.NDArray[np.float16] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float16))
    blend: float = 0.0
    fading: float = 1.0
    _places: dict[int, Indices] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __bool__(self) -> bool:
        """Return whether they change any score."""
        return self.items.size > 0 and self.blend > 0

    def check(self) -> None:
        """Raise for parts that do not fit together."""
        if not np.diff(np.sort(self.items)).all():
            raise MalformedPart(part="paired", rule="order")
        if not len(self.neighbors) == len(self.weights) == self.items.size:
            raise MalformedPart(part="neighbors", rule="shape")

    def places(self, histories: Interactions) -> Indices:
        """Return the place of each interaction's item among `items`, or -1."""
        found: Indices = self._place(histories.n_items)[histories.items]
        return found

    def _place(self, n_items: int) -> Indices:
        """Return the place of each item of the catalog among `items`, or -1; computed once."""
        if n_items not in self._places:
            place = np.full(n_items, -1, dtype=np.int64)
            place[self.items] = np.arange(self.items.size)
            self._places[n_items] = place
        return self._places[n_items]

    def following(self, histories: Interactions, recency: Floats) -> Floats:
        """Return the positive sums of the weights of each user's interactions, for all of `items`."""
        own, singles = self.places(histories), recency.astype(np.float32)
        sums = np.zeros((histories.n_users, self.items.size))
        if histories.n_users > FEW:
            cost = histories.indptr + np.arange(histories.indptr.size)
            table = kernels.packed(self.neighbors, self.weights)
            run(kernels.add_rows_of_neighbors, cost, histories.indptr, own, singles, *table, sums)
            return np.maximum(sums, 0.0, out=sums)
        for row, (start, stop) in enumerate(zip(histories.indptr[:-1], histories.indptr[1:], strict=True)):
            known = start + np.flatnonzero(own[start:stop] >= 0)
            weights = self.weights[own[known]].astype(np.float64) * singles[known, None].astype(np.float64)
            names = self.neighbors[own[known]].ravel()
            sums[row] = np.bincount(names, weights=weights.ravel(), minlength=self.items.size)
        return np.maximum(sums, 0.0, out=sums)

    def blended(self, scores: Floats, following: Floats, blend: Floats) -> Floats:
        """Return log-odds of a mixture of `scores` and, by each user's share `blend`, of `following`.

        Both give the same probability to all of `items` together. A user keeps their scores if their
        interactions have no weights.
        """
        total = following.sum(axis=1, keepdims=True)
        speaks = total[:, 0] > 0
        if not speaks.any():
            return scores.copy()
        kept = np.where(speaks, np.log1p(-blend), 0.0)
        found = scores + kept[:, None]
        # Items without weights keep their score, less the share of the others.
        rows, cells = np.nonzero(following)
        base = scores[:, self.items]
        with np.errstate(divide="ignore"):
            follows = np.log(following[rows, cells] / total[rows, 0])
            new = follows + _log_sum(base)[rows, 0] + np.log(blend)[rows]
        found[rows, self.items[cells]] = np.logaddexp(base[rows, cells] + kept[rows], new)
        return found


def _log_sum(numbers: Floats) -> Floats:
    """Return the logarithm of the sum of the exponentials of each row."""
    largest = numbers.max(axis=1, keepdims=True)
    found: Floats = np.log(np.exp(numbers - largest).sum(axis=1, keepdims=True)) + largest
    return found


_DAY = 86400.0
# A pause begins to count after this many usual gaps, which are one step. More steps than the second number
# count like it.
_GAPS_PER_STEP, _MOST_STEPS = 10.0, 30.0
# Weights between items count (1 + steps) to the minus this.
_DAMPING = 0.5


def missed_steps(histories: Interactions) -> Floats:
    """Return the missed steps of each user at `histories.now`; zero if it isn't stated.

    A usual gap is the time between the first and the latest interaction and one day, divided by the number of
    interactions. Users whose times are positions have missed nothing.
    """
    if "missed" not in histories.kept:
        histories.kept["missed"] = _missed(histories)
    missed: Floats = histories.kept["missed"]
    return missed


def _missed(histories: Interactions) -> Floats:
    missed = np.zeros(histories.n_users)
    if histories.now is None or histories.times is None or not histories.n_ratings:
        return missed
    if histories.times.max() < EPOCHS[0][1]:
        return missed
    lengths = np.diff(histories.indptr)
    some = np.flatnonzero(lengths)
    if some.size:
        starts, seconds = histories.indptr[:-1][some], epoch_seconds(histories.times)
        first, last = np.minimum.reduceat(seconds, starts), np.maximum.reduceat(seconds, starts)
        usual = (last - first + _DAY) / lengths[some]
        steps = (histories.now - last) / (_GAPS_PER_STEP * usual) - 1
        missed[some] = np.clip(np.nan_to_num(steps, nan=0.0), 0.0, _MOST_STEPS)
    return missed


def damped(blend: float, missed: Floats) -> Floats:
    """Return the share of a list's probability that follows weights between items, for each user."""
    share: Floats = blend * (1 + missed) ** -_DAMPING
    return share


#: Weights between items, for all scorers that hold them.
PAIRED: Mapping[str, Stored] = {
    "paired": StoredNumbers(
        source=RELEASED, shape=("paired",), dtype=np.int64, least=0, index_of=ITEMS, optional=True
    ),
    "neighbors": StoredNumbers(
        source=RELEASED,
        shape=("paired", "neighbors"),
        dtype=np.int32,
        least=0,
        index_of="paired",
        optional=True,
    ),
    "neighbor_weights": StoredNumbers(
        source=RELEASED,
        shape=("paired", "neighbors"),
        dtype=np.float16,
        least=-65504,
        most=65504,
        optional=True,
    ),
}
BLENDED: Mapping[str, Constant] = {
    "blend": StoredNumber(least=0.0, most=0.999),
    "pair_fading": StoredNumber(least=0.0, most=100.0),
}
#: With times, the r-th latest interaction has weight (1 + r)^-1: each doubling of r adds the same weight.
FADING = 1.0
# Without times, each of n interactions has weight n^-1/2: a sum of n unrelated embeddings is n^1/2 long.
_EVENLY = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionScorer(Scorer):
    """Scores `log popularity + item_factors . own embedding - known part of the item's squared length`.

    The embeddings of an item's users are modeled as normal around `item_factors` with unit variance. So an
    item's log-odds are the logarithm of its popularity, minus half of its squared length, plus the product
    with the user's embedding. That embedding comes from the user's items; if times are known, later ones
    count more. The squared length counts as far as the history determines the embedding: a user without a
    history gets the most popular items. If there are `paired` items, a share of `blend` of the probability
    follows the weights between them (`NextItems`). After a pause the latest items and these weights count
    less (`missed_steps`).
    """

    kind: ClassVar[str] = "clicks"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        # A logarithm is taken of it.
        "popularity": StoredNumbers(source=RELEASED, shape=(ITEMS,), least=1e-150),
        "item_factors": StoredNumbers(source=RELEASED, shape=(ITEMS, "factors")),
        **PAIRED,
        **HISTORIES,
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "ridge": StoredNumber(least=1e-9),
        "fading": StoredNumber(least=0.0, most=100.0),
        "evenly": StoredNumber(least=0.0, most=1.0),
        "length": StoredNumber(least=0.0, most=10.0),
        **BLENDED,
        "decisions": Notes(),
    }
    inside: ClassVar[Mapping[str, tuple[str, str]]] = {
        "paired": ("following", "items"),
        "neighbors": ("following", "neighbors"),
        "neighbor_weights": ("following", "weights"),
        "blend": ("following", "blend"),
        "pair_fading": ("following", "fading"),
    }
    made_of: ClassVar[Mapping[str, type]] = {"following": NextItems}

    popularity: Floats
    item_factors: Floats
    # Files of the first version have only the next two constants; the defaults of the others are theirs.
    # Files of 0.1 and 0.2 may have a different `length`.
    ridge: float
    fading: float
    evenly: float = 0.0
    length: float = 0.5
    # Earlier versions know no pairs, and only a fit with `for_synthesis` knows whole histories.
    following: NextItems = field(default_factory=NextItems)
    decisions: Mapping[str, Any] = field(default_factory=dict)
    history_lengths: Floats = field(default_factory=lambda: np.zeros(0))
    history_order: Floats = field(default_factory=lambda: np.zeros(0))
    rating_levels: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(
        cls,
        popularity: Floats,
        item_factors: Floats,
        decisions: Mapping[str, Any],
        following: NextItems | None = None,
        *,
        ordered: bool = True,
        settings: ListSettings | None = None,
    ) -> Self:
        """Return the scorer with these settings; nothing fades if order doesn't inform."""
        following, settings = following or NextItems(), settings or ListSettings()
        return cls(
            popularity=popularity,
            item_factors=item_factors,
            ridge=settings.ridge,
            fading=FADING if ordered else 0.0,
            evenly=_EVENLY,
            following=following,
            decisions=decisions,
        )

    def check(self) -> None:
        """Raise for pairs that do not fit together."""
        self.following.check()

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's embedding and the part of it that the history determines, from 0 to 1.

        Items count, and times if the histories have them, but not ratings.
        """
        turned_items, spread, turn = self.eigenbasis()
        weights = recency(histories, self.fading, self.evenly, missed_steps(histories))
        chosen = Rows(histories.indptr, histories.items, weights.astype(np.float32))
        counted = np.bincount(histories.rows(), weights, histories.n_users).astype(np.float64)
        place: Floats = weighted_sums(chosen, turned_items)
        place /= counted[:, None] * spread + self.ridge
        found = np.empty((histories.n_users, len(turn) + 1))
        found[:, :-1], found[:, -1] = place @ turn.T, known_part(counted, spread, self.ridge)
        return found

    def eigenbasis(self) -> tuple[Floats, Floats, Floats]:
        """Return items and spreads in the basis in which the problems of all users are diagonal, and it."""
        return self.prepared("eigenbasis", self._eigenbasis)

    def _eigenbasis(self) -> tuple[Floats, Floats, Floats]:
        share = self.popularity / self.popularity.sum()
        centered = self.item_factors - share @ self.item_factors
        spread, turn = np.linalg.eigh((centered * share[:, None]).T @ centered)
        return centered @ turn, np.maximum(spread, 0.0), turn

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        if self.following:
            asked, place = np.unique(rows, return_inverse=True)
            every: Floats = self._blended(histories, asked)
            return every[place, items]
        people, where = self.folded(histories, rows)
        return LinearScores(people, *self.search_parts()).cells(where, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        if self.following:
            return self._blended(histories, rows).astype(np.float32)
        return self.linear(histories, rows).all()

    def _blended(self, histories: Interactions, rows: Indices) -> Floats:
        asked, place = np.unique(rows, return_inverse=True)
        people = histories if asked.size == histories.n_users else histories.select_users(asked)
        every = np.arange(asked.size)
        vectors = self.linear(people, every)
        scores = vectors.people @ vectors.items.T + vectors.bias
        missed = missed_steps(people)
        follows = self.following.following(people, recency(people, self.following.fading, missed=missed))
        found: Floats = self.following.blended(scores, follows, damped(self.following.blend, missed))[place]
        return found

    def linear(self, histories: Interactions, rows: Indices) -> LinearScores:
        """Return what the scores of these users are products of, without weights between items."""
        people, where = self.folded(histories, rows)
        return self.linear_of(people[where])

    def linear_of(self, people: Floats) -> LinearScores:
        """Return the products of these users' vectors."""
        return LinearScores(people, *self.search_parts())

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return the scores as products, and the weights that are blended with them."""
        if rank_by is not None:
            return None
        return Ranking(self.linear(histories, rows), following=self.followed(histories, rows))

    def followed(self, histories: Interactions, rows: Indices) -> Followed | None:
        """Return the weights between items, and the interactions of these users, if they count."""
        if not self.following:
            return None
        people = histories if histories.are_all(rows) else histories.select_users(rows)
        missed = missed_steps(people)
        weights = recency(people, self.following.fading, missed=missed)
        return Followed(self.following, people, weights, damped(self.following.blend, missed))

    def search_parts(self) -> tuple[Floats, Floats]:
        """Return the item factors and what their length costs, and biases by popularity."""
        return self.prepared(
            "search parts",
            lambda: (np.column_stack([self.item_factors, -self.penalty()]), np.log(self.popularity)),
        )

    def rescored(self, person: Interactions, found: Indices) -> tuple[Indices, Singles]:
        """Return the scores of items `found` by their vectors, and of all items that have weights.

        Weights only add to a score, so whatever overtakes the best vectors has some.
        """
        if not self.following:
            return Scorer.rescored(self, person, found)
        paired = self.following.items
        items = np.concatenate([paired, np.setdiff1d(found, paired)])
        vectors, bias = self.search_parts()
        scores, missed = vectors[items] @ self.fold_in(person)[0] + bias[items], missed_steps(person)
        follows = self.following.following(person, recency(person, self.following.fading, missed=missed))
        first = replace(self.following, items=np.arange(paired.size))
        blend = damped(self.following.blend, missed)
        return items, first.blended(scores[None, :], follows, blend)[0].astype(np.float32)

    @property
    def search_leaves_out(self) -> str:
        """Name the weights between items, if they count."""
        return "the weights between items, which lists follow, too" if self.following else ""

    def known_by(self) -> Floats:
        """Return the released counts: the places of items are shrunk by the noise over them."""
        return self.popularity

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        if not self.item_factors.shape[1]:
            raise NoFactorsFound()
        return self.item_factors

    def penalty(self) -> Floats:
        """Return what each item's length costs in the score of a user whose embedding is known."""
        lengths: Floats = self.length * (self.item_factors**2).sum(axis=1)
        return lengths


def known_part(counted: Floats, spread: Floats, ridge: float) -> Floats:
    """Return the part of embeddings that histories with these sums of weights determine, from 0 to 1.

    It is known by direction, here averaged over directions by how much users differ along each.
    """
    seen = counted[:, None] * spread
    found: Floats = (seen / (seen + ridge)) @ spread / max(spread.sum(), np.finfo(np.float64).tiny)
    return found


def recency(
    histories: Interactions, fading: float, evenly: float = 0.0, missed: Floats | None = None
) -> Floats:
    """Return each interaction's weight by its rank from the user's latest.

    Interactions at one time share their weights evenly, in whatever order they are listed. Without times, or
    if nothing fades, each of a user's n interactions has weight n to the minus `evenly`. Each user's `missed`
    steps add to all ranks.
    """
    if histories.times is None or not fading:
        lengths = np.maximum(np.diff(histories.indptr), 1)
        return (lengths.astype(np.float64) ** -evenly)[histories.rows()]
    if histories.n_users > FEW:
        return _faded(histories, fading, missed)
    # Both parts of one answer usually fade alike.
    key = f"recency {fading} {missed is None}"
    if key not in histories.kept:
        histories.kept[key] = _faded(histories, fading, missed)
    weights: Floats = histories.kept[key]
    return weights


def _faded(histories: Interactions, fading: float, missed: Floats | None) -> Floats:
    rows = histories.rows()
    moments: npt.NDArray[np.int64] = histories.times  # type: ignore[assignment]
    alone = histories.n_users == 1
    order = np.argsort(moments, kind="stable") if alone else np.lexsort((moments, rows))
    people, times = rows[order], moments[order]
    later = histories.indptr[1:][people] - 1 - np.arange(people.size)
    first = np.ones(people.size, dtype=bool)
    first[1:] = (people[1:] != people[:-1]) | (times[1:] != times[:-1])
    weights = np.empty(people.size)
    ranks = 1 + later if missed is None else 1 + later + missed[people]
    if first.all():
        weights[order] = ranks**-fading
        return weights
    group = np.cumsum(first) - 1
    shared = np.bincount(group, weights=ranks**-fading) / np.bincount(group)
    weights[order] = shared[group]
    return weights


_OF_CHOICE = ("ridge", "fading", "evenly", "length")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionsAndRatings(Scorer):
    """Ratings as `stars` predicts them, and lists ordered by interaction and rating together.

    The score is the log-odds that the user interacts with an item (`choice`) plus `liking` times the
    log-probability that they then rate it above their own usual rating.
    """

    kind: ClassVar[str] = "choice-and-stars"
    predicts_stars: ClassVar[bool] = True
    stored: ClassVar[Mapping[str, Stored]] = {
        **RatingScorer.stored,
        "popularity": InteractionScorer.stored["popularity"],
        "co_occurrences": StoredNumbers(source=RELEASED, shape=(ITEMS, "directions")),
        **PAIRED,
        **HISTORIES,
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "mean": StoredNumber(),
        "low": StoredNumber(),
        "high": StoredNumber(),
        "liking": LIKING,
        **{f"choice_{name}": InteractionScorer.constants[name] for name in _OF_CHOICE},
        **BLENDED,
        "decisions": Notes(),
    }
    inside: ClassVar[Mapping[str, tuple[str, str]]] = {
        **{
            name: ("stars", name)
            for name in ("mean", "item_bias", "item_factors", "ridge", "low", "high", "decisions")
        },
        "popularity": ("choice", "popularity"),
        "co_occurrences": ("choice", "item_factors"),
        **{f"choice_{name}": ("choice", name) for name in _OF_CHOICE},
        **{name: ("choice", name) for name in (*PAIRED, *BLENDED, *HISTORIES)},
    }
    made_of: ClassVar[Mapping[str, type]] = {"stars": RatingScorer, "choice": InteractionScorer}

    stars: RatingScorer
    choice: InteractionScorer
    liking: float

    @classmethod
    def of(cls, stars: RatingScorer, choice: InteractionScorer, known: float, rated: float) -> Self:
        """Combine both scorers; ratings count by how well items' effects are `known`.

        They count less where a typical user has `rated` a large part of the catalog.
        """
        return cls(stars=stars, choice=choice, liking=liking(known, rated))

    def check(self) -> None:
        """Raise for pairs that do not fit together."""
        self.choice.check()

    def explain(self) -> dict[str, Any]:
        """Return the decisions of the fit by name."""
        return self.stars.explain()

    @property
    def search_leaves_out(self) -> str:
        """Name the weights between items, if they count."""
        return self.choice.search_leaves_out

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's bias and factors, and their interaction embedding."""
        return np.column_stack([self.stars._vectors(histories), self.choice._vectors(histories)])

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return predicted ratings inside the scale."""
        return self.stars.predict(histories, rows, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return predicted ratings, not clipped: the order at the top of the scale is kept."""
        return self.stars.scores(histories, rows)

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the log-odds of interaction and the weighted log-probability of liking, added up."""
        choice = self.choice.scores(histories, rows)
        above = self.scores(histories, rows) - self._usual(histories, rows)[:, None]
        worth: Singles = (choice + self.liking * log_chance(above / self._deviation)).astype(np.float32)
        return worth

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return the log-odds of interaction and the chance of liking, each as products."""
        if rank_by is not None and rank_by not in RANKINGS:
            return None
        people, where = self.folded(histories, rows)
        own, size = people[where], self.stars.ridge.size
        stars = self.stars.linear_of(np.ascontiguousarray(own[:, :size]))
        if rank_by == "stars":
            return Ranking(stars, None, stars, self.shown)
        liked = Liking(self.liking, stars, self._usual(histories, rows), self._deviation, "normal")
        choice = self.choice.linear_of(np.ascontiguousarray(own[:, size:]))
        followed = self.choice.followed(histories, rows)
        return Ranking(choice, None if rank_by == "choice" else liked, stars, self.shown, followed)

    def worth_by(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Singles:
        """Order lists by "both" (default), "choice" (log-odds of interaction) or "stars" (ratings)."""
        if rank_by == "choice":
            return self.choice.scores(histories, rows)
        if rank_by == "stars":
            return self.scores(histories, rows)
        return Scorer.worth_by(self, histories, rows, None if rank_by == "both" else rank_by)

    def shown(self, scores: Floats) -> Floats:
        """Return ratings inside the scale."""
        return self.stars.shown(scores)

    def expected_stars(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return expected ratings as users read them."""
        return self.stars.expected_stars(histories, rows, items)

    @property
    def rankings(self) -> tuple[str, ...]:
        """Return what lists can be ordered by."""
        return RANKINGS

    @property
    def ranked_by(self) -> str:
        """Return what orders lists."""
        alone = self.choice.ranked_by
        return f"{alone}, combined with expected stars" if self.liking else alone

    def score_parts(self, histories: Interactions, rows: Indices) -> dict[str, Floats]:
        """Return the parts of what a user would choose, and what expected stars add to it."""
        found = self.choice.score_parts(histories, rows)
        worth = self.worth(histories, rows).astype(np.float64)
        return {**found, "expected stars": worth - sum(found.values())}

    def known_by(self) -> Floats:
        """Return the released counts: the places of items are shrunk by the noise over them."""
        return self.choice.popularity

    def item_vectors(self) -> Floats:
        """Return items' factors beyond quality and popularity, by how much users differ in them."""
        stars, directions = self.stars, self.choice.item_factors
        if not directions.shape[1]:
            refuse_plain(stars.item_bias, stars.item_factors)
        scaled = stars.item_factors / np.sqrt(stars.ridge[1:])
        return np.column_stack([scaled[:, PLAIN:], directions])

    def _usual(self, histories: Interactions, rows: Indices) -> Floats:
        """Return the mean rating of each of these users, shrunk by one additional average rating."""
        people = histories if histories.are_all(rows) else histories.select_users(rows)
        counts = np.diff(people.indptr)
        sums = np.bincount(people.rows(), weights=people.values, minlength=rows.size)
        usual: Floats = (sums + self.stars.mean) / (counts + 1)
        return usual

    @property
    def _deviation(self) -> float:
        return self.stars._deviation
