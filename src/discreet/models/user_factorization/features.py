"""Expect items to be what public features suggest: a prior from released numbers, which costs nothing."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats
from discreet.solvers.ridge_map import ridge_map


def feature_prior(table: Floats, vectors: Floats, precision: Floats) -> Floats:
    """Return where each item's vector is expected to lie by its public features.

    `vectors` are estimates from noisy releases and `precision` says how much each item's counts tell; both
    were released, so that this is post-processing. A coordinate that features do not predict, when each item
    is predicted from all others, is expected to be the mean.
    """
    if not table.shape[1] or not vectors.shape[1]:
        return np.zeros_like(vectors)
    return ridge_map(table, vectors, np.maximum(precision, 0.0)).predict(table)
