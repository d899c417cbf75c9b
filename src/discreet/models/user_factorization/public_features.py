"""Rank by public words that describe items: items similar to a user's items move up.

The words cost no budget. How much they predict what users choose does: one number, the mean similarity of
two items of the same user, is released with noise. It decides the weight, by maximum likelihood in a model in
which the next item has a probability proportional to its popularity times exp(weight x similarity). Where
users don't choose similar items, the weight is 0. The proof is in proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from discreet.core import Floats, experiment_generator
from discreet.privacy import Session
from discreet.solvers import with_fixed_signs
from discreet.statistics import ContentSimilarity

# Of the search for directions: further columns and iterations, which make the last ones accurate.
_MORE, _ITERATIONS = 16, 4
# Items of which the model's expectation is computed, evenly spaced by popularity.
_CONTEXTS = 256
_HALVINGS = 40
# The largest weight of similar words; a bound of the search, not tuned.
_MOST_WEIGHT = 12.0
# This many standard deviations of the noise are taken off the released mean: a weight needs evidence.
_SURE = 2.0


def content_vectors(words: sp.csr_matrix, most: int = 256) -> Floats:
    """Return up to `most` principal directions of items' words, one row per item, of length at most 1.

    `words` has rows of length 1, or 0 where nothing is known. The directions are not centered: an item
    without words stays at 0.
    """
    used = np.unique(words.indices)
    matrix = words[:, used]
    size = min(most, *matrix.shape)
    if size == 0:
        return np.zeros((words.shape[0], 0))
    width = min(size + _MORE, *matrix.shape)
    basis = experiment_generator(0, "words").standard_normal((matrix.shape[0], width))
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(np.asarray(matrix @ (matrix.T @ basis)))[0]
    inside = np.asarray(matrix.T @ basis)
    values, turn = np.linalg.eigh(inside.T @ inside)
    order = np.argsort(-values, kind="stable")[:size]
    found: Floats = with_fixed_signs(basis @ turn[:, order]) * np.sqrt(np.maximum(values[order], 0.0))
    # No entry of a row of length 1 is larger, but for rounding.
    return np.clip(found, -1.0, 1.0)


class Content(NamedTuple):
    """Items' directions of public words, and the weight of their similarity in lists."""

    vectors: Floats
    weight: float

    def beside(self, factors: Floats, ridge: float) -> Floats:
        """Return item factors with the words next to them, scaled so that similarity counts by `weight`.

        A user's embedding is a sum of item factors over the `ridge`, so the product of two items' rows, over
        the ridge, is what one of them adds to the score of the other.
        """
        if not self.weight:
            return factors
        return np.column_stack([factors, self.vectors * np.sqrt(self.weight * ridge)])


def learn_content(session: Session, share: Fraction, vectors: Floats, popularity: Floats) -> Content:
    """Release how similar the items of a user are, and return the weight that this gives their words."""
    (total, halves), sigma = session.release(ContentSimilarity(vectors=vectors), share)
    people = max(2 * halves, 2 * sigma, 1.0)
    sure = (total - _SURE * sigma) / people
    return Content(vectors, likeliest_weight(sure, popularity, vectors))


def likeliest_weight(mean: float, popularity: Floats, vectors: Floats) -> float:
    """Return the weight at which two items are as similar on average as `mean`; 0 if that is mere chance."""
    share = popularity / popularity.sum()
    places = np.searchsorted(np.cumsum(share), (np.arange(_CONTEXTS) + 0.5) / _CONTEXTS)
    contexts = np.minimum(places, share.size - 1)
    similar = vectors[contexts] @ vectors.T
    chance = np.tile(share, (_CONTEXTS, 1))
    # No user chooses the same item twice.
    chance[np.arange(_CONTEXTS), contexts] = 0.0

    def expected(weight: float) -> float:
        likely = chance * np.exp(weight * (similar - similar.max(axis=1, keepdims=True)))
        return float(np.mean((likely * similar).sum(axis=1) / np.maximum(likely.sum(axis=1), 1e-300)))

    low, high = 0.0, _MOST_WEIGHT
    if mean <= expected(low):
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) < mean else (low, middle)
    return low
