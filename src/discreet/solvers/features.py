"""Describe rows by public patterns, and learn linear maps from features by ridge regression.

Smooth nonlinear functions of item vectors are further features of rating predictions. A ridge over them is,
up to the directions omitted, a Gaussian process over items: what a user rated carries more information about
items nearby. They are functions of released numbers alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.core import Floats, experiment_generator, integer
from discreet.solvers.spectrum import with_fixed_signs

# Ridges tried, in units of the mean square of the inputs' singular values; the last one predicts the mean.
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e12)


class RidgeMap(NamedTuple):
    """Predictions `offset + (inputs - center) @ slopes`."""

    center: Floats
    slopes: Floats
    offset: Floats

    def predict(self, inputs: Floats) -> Floats:
        """Return one row of predictions for each row of inputs."""
        predicted: Floats = self.offset + (inputs - self.center) @ self.slopes
        return predicted


def ridge_map(inputs: Floats, targets: Floats, weights: Floats) -> RidgeMap:
    """Fit `targets` by `inputs` with row weights; each target has its own ridge.

    The ridge minimizes the leave-one-out error, in closed form.
    """
    share = weights / max(float(weights.sum()), 1e-300)
    center, offset = share @ inputs, share @ targets
    root = np.sqrt(share)[:, None]
    left, sizes, right = np.linalg.svd(root * (inputs - center), full_matrices=False)
    centered = root * (targets - offset)
    along = left.T @ centered
    unit = max(float(np.mean(sizes**2)) if sizes.size else 0.0, 1e-300)
    best, slopes = np.full(targets.shape[1], np.inf), np.zeros((inputs.shape[1], targets.shape[1]))
    for ridge in _RIDGES:
        kept = sizes**2 / (sizes**2 + ridge * unit)
        # Leverage: how much a row's own target moves its prediction, through the offset too.
        own = np.minimum((left**2) @ kept + share, 1 - 1e-9)
        missed = ((centered - left @ (kept[:, None] * along)) / (1 - own)[:, None]) ** 2
        error = missed.sum(axis=0)
        turned = right.T @ ((kept / np.maximum(sizes, 1e-300))[:, None] * along)
        slopes = np.where(error < best, turned, slopes)
        best = np.minimum(error, best)
    return RidgeMap(center, slopes, offset)


# Added to counts before dividing by them, so that a row with one entry does not stand out.
_DAMPING = 5.0
_ITERATIONS = 12
# Features are in standard deviations, clipped to this.
_FURTHEST = 3.0


def pattern_features(
    indptr: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], n_columns: int, directions: int
) -> tuple[Floats, Floats]:
    """Return features of rows and of columns: the logarithm of the count, and leading singular directions.

    The directions are those of the matrix of ones at the stored entries, divided by the roots of its counts.
    """
    n_rows = indptr.size - 1
    directions = min(integer("directions", directions, least=0), n_rows, n_columns)
    row_counts = np.diff(indptr).astype(np.float64)
    column_counts = np.bincount(columns, minlength=n_columns).astype(np.float64)
    row_root, column_root = (1 / np.sqrt(counts + _DAMPING) for counts in (row_counts, column_counts))
    entries = np.repeat(row_root, np.diff(indptr)) * column_root[columns]
    matrix = sp.csr_matrix((entries, columns, indptr), shape=(n_rows, n_columns))
    right = experiment_generator(0, "patterns").standard_normal((n_columns, directions))
    for _ in range(_ITERATIONS):
        right = np.linalg.qr(np.asarray(matrix.T @ (matrix @ right)))[0]
    left = np.asarray(matrix @ right)
    return (
        _standardized(np.column_stack([np.log1p(row_counts), left * row_root[:, None]]), row_counts),
        _standardized(
            np.column_stack([np.log1p(column_counts), right * column_root[:, None]]), column_counts
        ),
    )


def _standardized(features: Floats, counts: Floats) -> Floats:
    """Return features with mean 0 and variance 1 over the entries; a constant feature becomes 0."""
    weights = counts / max(counts.sum(), 1.0)
    centered = features - weights @ features
    scale = np.sqrt(weights @ centered**2)
    shown = np.divide(centered, scale, out=np.zeros_like(centered), where=scale > 1e-9)
    return np.asarray(np.clip(shown, -_FURTHEST, _FURTHEST))


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
