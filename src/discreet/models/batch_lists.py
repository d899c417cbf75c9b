"""Rank items for many users with compiled loops: the lists that `best_places` of all scores would give.

Scores of a few users and items at a time are multiplied in single precision, in a buffer that the
processor's cache has room for. They only show which items may reach a list: items and their order are
decided by exact scores of those few. Equal scores keep the order of the catalog. Items with weights between
them (`batch_pairs`) come first, the others after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from discreet.core.arrays import Array, Floats, Indices, Singles
from discreet.core.rows import one_algebra_thread, run
from discreet.data.interactions import Interactions
from discreet.models.batch_kernels import Chance, ExactScores, rank_common, rank_scores, rank_tile
from discreet.models.batch_pairs import PairedLists, Seen
from discreet.models.lists import Wanted, listable
from discreet.models.scorers.ranking import Liking, LinearScores, Ranking
from discreet.models.scorers.scorer import Scorer

StarsAt = Callable[[Indices, Indices], Floats | None]

# Users and items whose scores are computed together.
_PEOPLE, _ITEMS = 64, 4096
# Twice the rounding of single precision: what one term of a sum may be wrong by, with a margin.
_ROUNDING_MARGIN = 2.0**-23
# The largest magnitude that single precision handles safely.
_MOST = 1e30
# Lengths of users' vectors for which limits are computed.
_LENGTHS = 33
# Users folded in at once.
_FOLDED = 1 << 14


def many_lists(
    scorer: Scorer, histories: Interactions, wanted: Wanted, *, scores_at_once: int
) -> Iterator[tuple[Indices, Indices, Floats, StarsAt]]:
    """Yield users in blocks: their rows, the places and scores of their lists, and what predicts ratings."""
    start, most = 0, max(1, scores_at_once // max(len(histories.catalog), 1))
    while start < histories.n_users:
        people = histories.span(start, min(start + _FOLDED, histories.n_users))
        every = np.arange(people.n_users)
        ranking = scorer.ranking(people, every, wanted.rank_by)
        found = ranking and best_of(ranking, people, wanted)
        if ranking is not None and found is not None:
            stars: StarsAt = ranking.expected_stars
        else:
            people, every = people.span(0, min(most, people.n_users)), every[:most]
            worth = scorer.worth_by(people, every, wanted.rank_by)
            listable(worth, people if wanted.exclude_seen else None, every, wanted.closed)
            found, stars = best_of_scores(worth, wanted.k), partial(scorer.expected_stars, people)
        yield start + every, found[0], found[1].astype(np.float64), stars
        start += people.n_users


def best_of(ranking: Ranking, people: Interactions, wanted: Wanted) -> tuple[Indices, Singles] | None:
    """Return the best items of each of these users and their scores, or None if numbers are too large.

    Rows with fewer items end with scores of minus infinity.
    """
    k, closed = min(wanted.k, len(people.catalog)), wanted.closed
    values = np.full((people.n_users, k), -np.inf, dtype=np.float32)
    places = np.full((people.n_users, k), -1, dtype=np.int64)
    seen = Seen(people.indptr if wanted.exclude_seen else np.zeros_like(people.indptr), people.items)
    if isinstance(ranking.base, LinearScores):
        found = _rank_linear(ranking.base, ranking, seen, closed, (values, places))
        return (places, values) if found else None
    _rank_common(ranking.base, ranking.liking, seen, closed, (values, places))
    return places, values


def best_of_scores(scores: Singles, k: int) -> tuple[Indices, Singles]:
    """Return the places and scores of the `k` largest of each row, largest first and ties in their order."""
    k = min(k, scores.shape[1])
    values = np.full((len(scores), k), -np.inf, dtype=np.float32)
    places = np.full((len(scores), k), -1, dtype=np.int64)
    scores = np.ascontiguousarray(scores, dtype=np.float32)

    def part(start: int, stop: int, out: Array) -> None:
        rank_scores(scores[start:stop], values[start:stop], out[start:stop])

    run(part, np.arange(len(scores) + 1) * scores.shape[1], places)
    return places, values


def _rank_linear(
    base: LinearScores, ranking: Ranking, seen: Seen, closed: Indices, out: tuple[Singles, Indices]
) -> bool:
    """Fill the lists by products with item vectors; return False where single precision would overflow."""
    margins = _margins(base, closed)
    if not margins.max(initial=0.0) < _MOST * 2.0**-23:
        return False
    chance = Chance.of(ranking.liking, len(base.people))
    shifts, paired = np.zeros(len(base.people)), None
    others = np.ones(len(base.items), dtype=bool)
    others[closed] = False
    if ranking.following is not None:
        paired = PairedLists.of(base, ranking.following, seen, closed, margins, chance, shifts)
        others[ranking.following.next_items.items] = False
    exact = _by_bias(base, np.flatnonzero(others), shifts)
    right = np.ascontiguousarray(np.column_stack([exact.items, exact.bias]).T.astype(np.float32))
    left = np.column_stack([base.people, np.ones(len(base.people))]).astype(np.float32)
    nearby, limits = margins.astype(np.float32), _limits(exact, margins)
    values, own = out[0], seen.among(exact.names, len(base.items))

    def part(start: int, stop: int, places: Array) -> None:
        room = np.empty((_PEOPLE, _ITEMS), dtype=np.float32)
        for first in range(start, stop, _PEOPLE):
            last = min(first + _PEOPLE, stop)
            if paired is not None:
                paired.rank(first, last, values, places)
            for tile, item in enumerate(range(0, right.shape[1], _ITEMS)):
                reached = limits[first:last, tile] + shifts[first:last] >= values[first:last, -1]
                asked, items = first + np.flatnonzero(reached), right[:, item : item + _ITEMS]
                if not asked.size:
                    continue
                scores = room.reshape(-1)[: asked.size * items.shape[1]].reshape(asked.size, -1)
                np.matmul(left[asked], items, out=scores)
                rank_tile(scores, asked, item, *own, nearby, exact, chance, values, places)

    with one_algebra_thread():
        run(part, np.arange(len(left) + 1) * len(base.items), out[1])
    return True


def _margins(base: LinearScores, closed: Indices) -> Floats:
    """Return how far a user's scores in single precision may lie from the exact ones.

    A sum of products differs from the exact one by less than the number of terms times the rounding.
    """
    bias = base.bias.copy()
    bias[closed] = 0.0
    reach = np.linalg.norm(base.people, axis=1) * np.linalg.norm(base.items, axis=1).max(initial=0.0)
    terms = base.items.shape[1] + 8
    margins: Floats = terms * _ROUNDING_MARGIN * (reach + np.abs(bias).max(initial=0.0)) + 1e-30
    return margins


def _by_bias(base: LinearScores, items: Indices, shifts: Floats) -> ExactScores:
    """Return exact scores of some items, those of the largest bias first."""
    names = items[np.argsort(-base.bias[items], kind="stable")]
    people, vectors = np.ascontiguousarray(base.people), np.ascontiguousarray(base.items[names])
    return ExactScores(people, vectors, base.bias[names], names, shifts)


def _limits(exact: ExactScores, margins: Floats) -> Floats:
    """Return what no score of a user exceeds in each tile: a product is at most that of both lengths.

    The largest of bias plus length times the user's length is convex in that, so it is computed for a few
    lengths, and a user has the limit of the next larger one.
    """
    lengths, own = np.linalg.norm(exact.items, axis=1), np.linalg.norm(exact.people, axis=1)
    grid = np.linspace(0.0, own.max(initial=0.0), _LENGTHS)
    starts = np.arange(0, lengths.size, _ITEMS)
    most = [np.maximum.reduceat(exact.bias + length * lengths, starts) for length in grid if starts.size]
    table = np.array(most).reshape(grid.size, starts.size)
    found: Floats = table[np.minimum(np.searchsorted(grid, own), grid.size - 1)] + margins[:, None]
    return found


def _rank_common(
    base: Floats,
    liking: Liking | None,
    seen: Seen,
    closed: Indices,
    out: tuple[Singles, Indices],
) -> None:
    """Fill the lists where the base is the same for all: walk it downward until nothing can follow."""
    order = np.argsort(-base.astype(np.float32), kind="stable")
    shut = np.zeros(base.size, dtype=bool)
    shut[closed] = True
    order = order[~shut[order]]
    values, chance = out[0], Chance.of(liking, len(out[0]))

    def part(start: int, stop: int, places: Array) -> None:
        rank_common(start, stop, order, base, *seen, chance, values, places)

    run(part, seen[0] + out[0].shape[1] * np.arange(len(values) + 1), out[1])
