"""Learn a linear map by ridge regression, with the ridge that predicts left-out rows best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats

# Ridges tried, in units of the mean square of the inputs' singular values; the last says that nothing helps.
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e12)


class RidgeMap(NamedTuple):
    """Predict `offset + (inputs - center) @ slopes`."""

    center: Floats
    slopes: Floats
    offset: Floats

    def predict(self, inputs: Floats) -> Floats:
        """Return one row of predictions for each row of inputs."""
        predicted: Floats = self.offset + (inputs - self.center) @ self.slopes
        return predicted


def ridge_map(inputs: Floats, targets: Floats, weights: Floats) -> RidgeMap:
    """Fit `targets` by `inputs`; rows count by their weights, each target has a ridge of its own.

    The ridge is the one whose predictions of every row from all others are best, in closed form.
    """
    share = weights / max(float(weights.sum()), 1e-300)
    center, offset = share @ inputs, share @ targets
    root = np.sqrt(share)[:, None]
    left, sizes, right = np.linalg.svd(root * (inputs - center), full_matrices=False)
    told = root * (targets - offset)
    along = left.T @ told
    unit = max(float(np.mean(sizes**2)) if sizes.size else 0.0, 1e-300)
    best, slopes = np.full(targets.shape[1], np.inf), np.zeros((inputs.shape[1], targets.shape[1]))
    for ridge in _RIDGES:
        kept = sizes**2 / (sizes**2 + ridge * unit)
        # How much a row's own target moves its prediction; the offset takes its share, too.
        own = np.minimum((left**2) @ kept + share, 1 - 1e-9)
        missed = ((told - left @ (kept[:, None] * along)) / (1 - own)[:, None]) ** 2
        error = missed.sum(axis=0)
        turned = right.T @ ((kept / np.maximum(sizes, 1e-300))[:, None] * along)
        slopes = np.where(error < best, turned, slopes)
        best = np.minimum(error, best)
    return RidgeMap(center, slopes, offset)
