"""Compare synthetic data with what was released and, for the data owner only, with real data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.data.interactions import Interactions
from discreet.models.fitted import FittedModel
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.models.user_factorization.history_release import history_question
from discreet.statistics.counts import ItemVotes
from discreet.statistics.history_summary import LENGTH_STARTS
from discreet.synthesis.making import is_rated, released_popularity

# Items that are listed one by one, and items whose pairs are compared, so many users at a time.
_LISTED, _PAIRED, _USERS = 10, 200, 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Shares that describe data: of items, of lengths, of levels of ratings; and lifts of pairs.

    A part that is not known is empty. Items count as in a release: a user with n items gives each 1/sqrt(n).
    """

    popularity: Floats
    lengths: Floats
    levels: Floats
    lifts: Floats

    @classmethod
    def of_data(cls, data: Interactions, model: FittedModel) -> Profile:
        """Return the profile of interactions with the model's catalog and scale."""
        question = history_question(model.facts, rated=is_rated(model))
        sums = question.split(data.total(question).floats())
        votes = data.total(ItemVotes(n_items=data.n_items, norm="l2")).floats()
        return cls(
            popularity=_shares(votes),
            lengths=_shares(sums.lengths),
            levels=_shares(sums.levels) if sums.levels.size > 1 else np.zeros(0),
            lifts=pair_lifts(data, _most_popular(released_popularity(model), _PAIRED)),
        )

    @classmethod
    def of_release(cls, model: FittedModel) -> Profile:
        """Return the numbers of the release, which has no pairs."""
        released = ReleasedHistories.of(model.scorer)
        rated = released is not None and released.levels.size > 1
        return cls(
            popularity=_shares(released_popularity(model)),
            lengths=_shares(released.lengths) if released is not None else np.zeros(0),
            levels=_shares(released.levels) if released is not None and rated else np.zeros(0),
            lifts=np.zeros(0),
        )


def pair_lifts(data: Interactions, items: Indices) -> Floats:
    """Return, for each pair of these items, the logarithm of how often they meet over what chance gives.

    One is added to both counts. Only users' sets of items are used.
    """
    place = np.full(data.n_items, -1)
    place[items] = np.arange(items.size)
    together = np.zeros((items.size, items.size))
    for start in range(0, data.n_users, _USERS):
        block = data.span(start, min(start + _USERS, data.n_users))
        rows, columns = block.rows(), place[block.items]
        matrix = np.zeros((block.n_users, items.size), dtype=np.float32)
        matrix[rows[columns >= 0], columns[columns >= 0]] = 1.0
        together += matrix.T @ matrix
    alone = np.diag(together)
    expected = np.outer(alone, alone) / max(data.n_users, 1)
    above = np.triu_indices(len(items), 1)
    lifts: Floats = np.log((together[above] + 1) / (expected[above] + 1))
    return lifts


def distance(one: Floats, other: Floats) -> float | None:
    """Return the total variation distance between shares, from 0 to 1; None if either is not known."""
    if not one.size or one.size != other.size:
        return None
    return float(np.abs(one - other).sum() / 2)


def agreement(one: Floats, other: Floats) -> float | None:
    """Return the correlation of two lists of lifts; None where one is not known or constant."""
    if one.size < 2 or one.size != other.size or not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])


def length_names(count: int) -> list[str]:
    """Return the bins of lengths in words."""
    starts = LENGTH_STARTS[:count].tolist()
    ends = [start - 1 for start in starts[1:]]
    named = [f"{low}" if low == high else f"{low} to {high}" for low, high in zip(starts, ends, strict=False)]
    return [*named, f"{starts[-1]} and more"]


def most_listed(model: FittedModel) -> list[int]:
    """Return the most popular items of the release."""
    return [int(item) for item in _most_popular(released_popularity(model), _LISTED)]


def _most_popular(popularity: Floats, count: int) -> Indices:
    return np.argsort(-popularity, kind="stable")[:count]


def _shares(counts: Floats) -> Floats:
    total = float(counts.sum())
    return counts / total if total > 0 else np.zeros_like(counts)
