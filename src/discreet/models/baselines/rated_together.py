"""Describe items by who rated them: co-raters say where an item with few ratings belongs.

Features are principal directions of the matrix of who rated what, scaled so that neither active users nor
popular items dominate. Of an item with few ratings they are noise, so they are shrunk by its count. How much,
and whether features help at all, is chosen on hidden ratings.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.rows import Rows
from discreet.data.interactions import Interactions
from discreet.models.baselines.tuning import interaction_draws, sample_users
from discreet.solvers.bayesian_als import Beliefs, believe
from discreet.statistics.blocks import rows_of

#: Counts at which features are halved, tried in this order; None leaves features out.
SHRINKAGES = (None, 5.0, 20.0, 80.0)
_DIRECTIONS = 64
# Directions and the choice use about this many ratings at most: their time is bounded.
_MOST_RATINGS, _MOST_TO_CHOOSE = 1_000_000, 200_000
# One of so many ratings is hidden; fewer than these cannot show what is better.
_HIDDEN, _FEWEST_HIDDEN = 10, 100

Fit = Callable[[Interactions, Floats | None], Beliefs]


def choose_features(data: Interactions, fit: Fit, seed: int) -> tuple[Floats | None, float | None]:
    """Return the features of items that predict hidden ratings best, and their shrinkage; None for none."""
    part = sample_users(data, _MOST_TO_CHOOSE, seed)
    hidden = interaction_draws(part, seed) % np.uint64(_HIDDEN) == 0
    if np.count_nonzero(hidden) < _FEWEST_HIDDEN:
        return None, None
    train, held = part.where(~hidden), part.where(hidden)
    tried = directions(train)
    losses = [_loss(fit(train, shrunk(train, tried, one)), train, held) for one in SHRINKAGES]
    best = SHRINKAGES[int(np.argmin(losses))]
    if best is None:
        return None, None
    part = sample_users(data, _MOST_RATINGS, seed)
    return shrunk(part, directions(part), best), best


def _loss(known: Beliefs, train: Interactions, held: Interactions) -> float:
    """Return the mean squared error of predictions for hidden ratings."""
    own: Rows = rows_of(train)
    people = believe(own, 0, own.n_rows, known)[held.rows()].astype(np.float64)
    items = known.lines[held.items].astype(np.float64)
    size = known.factors + 2
    found = known.mean + people[:, 0] + items[:, 0] + (people[:, 2:size] * items[:, 2:size]).sum(axis=1)
    found = np.clip(found, train.facts.low, train.facts.high)
    return float(np.mean((found - held.values) ** 2))


def directions(data: Interactions) -> Floats:
    """Return the principal directions of who rated what, without the first, which is popularity."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import svds

    counts = _counts(data)
    active = np.maximum(np.diff(data.indptr), 1)
    rated = data.to_scipy().astype(np.float64)
    rated.data[:] = 1.0
    scaled = sp.diags_array(active**-0.5) @ rated @ sp.diags_array(counts**-0.5)
    wanted = min(_DIRECTIONS + 1, min(scaled.shape) - 1)
    if wanted < 2:
        return np.zeros((data.n_items, 0))
    # A start that depends on nothing but the size: the same data give the same directions.
    _, strengths, found = svds(scaled, k=wanted, v0=np.ones(min(scaled.shape)))
    order = np.argsort(-strengths, kind="stable")[1:]
    vectors: Floats = found[order].T / np.sqrt(counts)[:, None]
    return vectors


def shrunk(data: Interactions, vectors: Floats, half: float | None) -> Floats | None:
    """Return features of unit mean square: the logarithm of popularity, and directions shrunk by counts."""
    if half is None:
        return None
    counts = _counts(data)
    weights = counts / counts.sum()
    near = vectors * np.sqrt(counts / (counts + half))[:, None]
    popular = np.log(counts)[:, None]
    near, popular = near - weights @ near, popular - weights @ popular
    return np.column_stack([_unit(popular, weights), _unit(near, weights)])


def _unit(columns: Floats, weights: Floats) -> Floats:
    size = np.sqrt((weights @ columns**2).mean()) if columns.shape[1] else 1.0
    scaled: Floats = columns / max(float(size), 1e-150)
    return scaled


def _counts(data: Interactions) -> Floats:
    return np.maximum(np.bincount(data.items, minlength=data.n_items), 1).astype(np.float64)
