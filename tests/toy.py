"""Small data that every model can learn from in a moment; other packages have them, too."""

import numpy as np

from discreet.data.interactions import Interactions
from discreet.testing.small_data import toy_interactions

__all__ = ["grouped", "toy_interactions"]


def grouped(n_users, n_groups=4, items_per_group=15, per_user=8):
    """Return interactions of users who choose only among the items of their own group."""
    random = np.random.default_rng(7)
    rows = np.repeat(np.arange(n_users), per_user)
    within = np.concatenate([random.choice(items_per_group, per_user, replace=False) for _ in range(n_users)])
    return Interactions.from_arrays(rows, rows % n_groups * items_per_group + within)
