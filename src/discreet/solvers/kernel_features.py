"""Compute smooth nonlinear functions of item vectors, as further item features of rating predictions.

A ridge over these features is, up to the directions omitted, a Gaussian process over items: what a user
rated carries more information about items nearby. They are functions of released numbers alone.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats
from discreet.solvers.spectrum import with_fixed_signs

# Eigenvalues below this part of the largest hold rounding errors only.
_LEAST = 1e-9


def kernel_features(vectors: Floats, weights: Floats, *, width: float, landmarks: int, most: int) -> Floats:
    """Return at most `most` leading features of a Gaussian kernel between items, by Nystrom's method.

    `width` is that of the kernel, in the units of `vectors`. The landmarks are the items of largest weight.
    Columns are centered, and rows have unit length on average, both with these weights.

    Example:
        >>> import numpy as np
        >>> line = np.linspace(-1, 1, 5)[:, None]
        >>> kernel_features(line, np.ones(5), width=1.0, landmarks=5, most=2).shape
        (5, 2)
    """
    share = weights / weights.sum()
    chosen = np.sort(np.argsort(-weights, kind="stable")[:landmarks])
    values, basis = np.linalg.eigh(_kernel(vectors[chosen], vectors[chosen], width))
    order = np.argsort(-values, kind="stable")[:most]
    order = order[values[order] > _LEAST * max(float(values.max(initial=0.0)), 1e-300)]
    basis = with_fixed_signs(basis[:, order]) / np.sqrt(values[order])
    features = _kernel(vectors, vectors[chosen], width) @ basis
    whole = _length(share, features)
    features -= share @ features
    size = _length(share, features)
    # Items in one place differ by rounding alone, which must not be scaled up to unit length.
    return features / size if size > _LEAST * whole else np.zeros_like(features)


def _length(share: Floats, features: Floats) -> float:
    """Return the root mean square length of rows."""
    return float(np.sqrt(share @ (features**2).sum(axis=1)))


def _kernel(left: Floats, right: Floats, width: float) -> Floats:
    """Return exp(-distance^2 / (2 width^2)) of all pairs of rows."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
    similar: Floats = np.exp(-np.maximum(squares, 0.0) / (2 * width**2))
    return similar
