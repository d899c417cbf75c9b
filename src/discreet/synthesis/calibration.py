"""Adjust log-odds until items are drawn as often as in the release.

Drawing without replacement flattens popularity, and positions far from the origin sharpen it. The expected
popularity of items in drawn histories is known closely without drawing any: item i with weight w_i is among
the n drawn with a probability of about 1 - exp(-t w_i), where t is such that these add up to n. So a few
rounds of proportional fitting, on some users, are enough.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.core.arrays import Floats, Indices, Singles
from discreet.synthesis.sampling import Sampler

# Users on whom popularity is computed, and the scores that this may take.
_USERS, _SCORES = 512, 1 << 24
_ROUNDS, _ITERATIONS = 6, 8
# No round moves log-odds by more than this.
_MOST_MOVE = 1.0


def calibrated(
    sampler: Sampler, popularity: Floats, lengths: Indices, random: np.random.Generator
) -> Sampler:
    """Return the sampler under which items have the shares of votes of `popularity`.

    As in the release, each of a user's n items has a vote of 1 / sqrt(n).
    """
    users = int(np.clip(_SCORES // sampler.n_items, 32, _USERS))
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
