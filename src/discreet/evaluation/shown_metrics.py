"""Score each user's shown list: how different its items are, and how well it follows the user's history.

Diversity is the mean distance of two items of a list, 1 minus the cosine of their vectors. Calibration
compares the groups of a user's history with those of the list by the divergence of Kullback and Leibler, as
in Steck, "Calibrated recommendations" (RecSys 2018). Both come in two forms. The plain one needs nothing but
the training data: items are near if the same users chose them, and groups are head, middle and tail of the
popularity. The form with `content-` takes a public table of items: vectors are its words, groups are its
words, too, such as genres.

Neither has a private form. The plain ones depend on the training data of all users, so a user's score is not
a function of that user's row; the others could be released, but private evaluation does not know them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp

from discreet.core import Floats, Indices, experiment_generator
from discreet.data import Interactions
from discreet.evaluation.metrics import EachListMetric

# Items are compared by so many users at most, drawn with a fixed seed: time and memory stay bounded.
_USERS = 4096
# Head items have the first fifth of all interactions, tail items the last, as is usual.
_HEAD, _TAIL = 0.2, 0.8
# Steck's weight of the history in the smoothed list, which bounds the divergence by log(100).
_SMOOTHING = 0.01


def popularity_thirds(train: Interactions) -> Indices:
    """Return 0 for head, 1 for middle, and 2 for tail items; items of equal popularity are together."""
    counts = np.bincount(train.items, minlength=train.n_items)
    values, places, sizes = np.unique(-counts, return_inverse=True, return_counts=True)
    shares = -values * sizes / max(int(counts.sum()), 1)
    before = (np.cumsum(shares) - shares)[places]
    return np.where(before < _HEAD, 0, np.where(before < _TAIL, 1, 2))


@final
@dataclass(frozen=True)
class ListContext:
    """Data that lists are compared with: training data and, if given, words of a public table of items."""

    train: Interactions
    words: sp.csr_matrix | None = None

    @cached_property
    def neighbors(self) -> sp.csr_matrix:
        """Return for each item the users who chose it, scaled to length 1."""
        train = self.train
        users = np.arange(train.n_users)
        if train.n_users > _USERS:
            users = experiment_generator(0, "diversity").choice(train.n_users, _USERS, replace=False)
        chosen = train.select_users(np.sort(users))
        ones = np.ones(chosen.n_ratings)
        matrix = sp.csr_matrix((ones, chosen.items, chosen.indptr), shape=(chosen.n_users, chosen.n_items))
        counts = np.bincount(chosen.items, minlength=chosen.n_items)
        return sp.csr_matrix(sp.diags(np.maximum(counts, 1) ** -0.5) @ matrix.T)

    @cached_property
    def popularity_groups(self) -> sp.csr_matrix:
        """Return the group of each item: head, middle or tail. Items of equal popularity share a group."""
        group = popularity_thirds(self.train)
        return sp.csr_matrix((np.ones(group.size), (np.arange(group.size), group)), shape=(group.size, 3))

    @cached_property
    def word_groups(self) -> sp.csr_matrix:
        """Return each item's words with equal shares."""
        assert self.words is not None
        each = np.maximum(np.diff(self.words.indptr), 1)
        shares = sp.csr_matrix(
            (np.ones(self.words.nnz), self.words.indices, self.words.indptr), self.words.shape
        )
        return sp.csr_matrix(sp.diags(1.0 / each) @ shares)


def diversity(lists: Indices, users: Indices, context: ListContext) -> Floats:
    """Return the mean distance of two items of each list by who chose them; NaN for less than two items."""
    return _spread(lists, context.neighbors)


def content_diversity(lists: Indices, users: Indices, context: ListContext) -> Floats:
    """Return the mean distance of two items of each list by their words; items without words are skipped."""
    assert context.words is not None
    known = np.append(np.diff(context.words.indptr) > 0, False)
    return _spread(np.where(known[lists], lists, -1), context.words)


def calibration(lists: Indices, users: Indices, context: ListContext) -> Floats:
    """Return how far each list is from its user's history in popularity; NaN without a history or a list."""
    return _divergence(lists, users, context.train, context.popularity_groups)


def content_calibration(lists: Indices, users: Indices, context: ListContext) -> Floats:
    """Return how far each list is from its user's history in words; NaN where no words are known."""
    return _divergence(lists, users, context.train, context.word_groups)


def _spread(lists: Indices, vectors: sp.csr_matrix) -> Floats:
    """Return 1 minus the mean inner product of two different items of each list.

    The sum of all inner products is the squared length of the sum of the vectors.
    """
    inside = _membership(lists, vectors.shape[0])
    together = sp.csr_matrix(inside @ vectors)
    whole = np.asarray(together.multiply(together).sum(axis=1)).ravel()
    own = inside @ np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel()
    counts = np.count_nonzero(lists >= 0, axis=1)
    pairs = np.where(counts > 1, counts * (counts - 1.0), np.nan)
    # Rounding must not make it negative.
    found: Floats = np.clip(1 - (whole - own) / pairs, 0.0, 2.0)
    return found


def _divergence(lists: Indices, users: Indices, train: Interactions, groups: sp.csr_matrix) -> Floats:
    """Return the Kullback-Leibler divergence of the list's groups from the history's, in nats."""
    part = train.select_users(users)
    ones = np.ones(part.n_ratings)
    history = sp.csr_matrix((ones, part.items, part.indptr), shape=(users.size, train.n_items))
    wanted = _shares(sp.csr_matrix(history @ groups))
    given = _shares(sp.csr_matrix(_membership(lists, train.n_items) @ groups))
    # Only groups of the history count, so the sum runs over its entries.
    rows, columns = wanted.nonzero()
    had = wanted.data
    shown = np.asarray(given[rows, columns]).ravel() if rows.size else np.zeros(0)
    smoothed = (1 - _SMOOTHING) * shown + _SMOOTHING * had
    found = np.bincount(rows, weights=had * np.log(had / smoothed), minlength=users.size)
    known = (np.diff(wanted.indptr) > 0) & (np.diff(given.indptr) > 0)
    result: Floats = np.where(known, np.maximum(found, 0.0), np.nan)
    return result


def _membership(lists: Indices, n_items: int) -> sp.csr_matrix:
    """Return a row of ones for each list; -1 means no item."""
    rows, places = np.nonzero(lists >= 0)
    return sp.csr_matrix((np.ones(rows.size), (rows, lists[rows, places])), shape=(len(lists), n_items))


def _shares(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return rows that sum to 1, in the order of columns; rows without anything stay empty."""
    totals = np.asarray(counts.sum(axis=1)).ravel()
    found = sp.csr_matrix(sp.diags(1 / np.where(totals > 0, totals, 1.0)) @ counts)
    found.eliminate_zeros()
    found.sort_indices()
    return found


DIVERSITY = EachListMetric(name="diversity", usual_depth=10, function=diversity)
CALIBRATION = EachListMetric(name="calibration", usual_depth=10, lower_is_better=True, function=calibration)
CONTENT_DIVERSITY = EachListMetric(
    name="content-diversity", usual_depth=10, needs_table=True, function=content_diversity
)
CONTENT_CALIBRATION = EachListMetric(
    name="content-calibration",
    usual_depth=10,
    lower_is_better=True,
    needs_table=True,
    function=content_calibration,
)
