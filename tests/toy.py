"""Small data that every model can learn from in a moment."""

import numpy as np

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions


def toy_interactions(
    n_users: int = 150, n_items: int = 40, per_user: int = 12, seed: int = 0, *, name: str = "toy"
) -> Interactions:
    """Return ratings of two groups of people with opposite taste for two groups of items."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n_users), per_user)
    items = np.concatenate([rng.choice(n_items, per_user, replace=False) for _ in range(n_users)])
    taste = np.where(rows % 2 == items % 2, 1.2, -1.2)
    values = np.clip(np.round(3 + taste + 0.8 * rng.standard_normal(rows.size)), 1, 5)
    ids = np.array([f"item {index:02d}" for index in range(n_items)])
    return Interactions.from_arrays(
        rows,
        ids[items],
        values,
        facts=PublicFacts(n_items=n_items, low=1, high=5, step=1, n_users=128),
        name=name,
    )
