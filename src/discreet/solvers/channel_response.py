"""Tabulate what a report through a known channel says about the expected rating behind it.

Ratings are in units in which their scale is [0, 1]. A rating spreads around its expectation; the channel says
how likely each report is for each rating. So every report has a score, the slope of its log-likelihood in the
expected rating, and every expectation an information: how much one report tells about it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats, Singles

# A rating's typical distance from its expectation.
SPREAD = 0.22
_GRID = 129
_MARGIN = 0.02
_BISECTIONS = 60


class Response(NamedTuple):
    """Tabulate, over a grid of expected ratings, what every report says."""

    grid: Floats
    score: Singles
    information: Floats
    mean: Floats
    variance: Floats


def respond(
    levels: Floats,
    transition: Floats,
    outputs: Floats,
    *,
    spread: float = SPREAD,
    rated: float = 1.0,
    background: Floats | None = None,
) -> Response:
    """Tabulate a channel for ratings that spread around their expectation.

    `levels` are the possible ratings in units of the scale, `transition[level, output]` the channel. Where
    missing ratings are reported too, only a share `rated` of the reports stands for ratings and the others
    follow `background`.
    """
    grid = np.linspace(_MARGIN, 1 - _MARGIN, _GRID)
    shares = _spread_levels(levels, grid, spread)
    # Weights shifted to a mean are an exponential family: their logarithm rises by (level - mean) / variance.
    away = levels[None, :] - grid[:, None]
    slopes = shares * away / np.sum(shares * away**2, axis=1, keepdims=True)
    likelihood, slope = shares @ transition, slopes @ transition
    if background is not None:
        likelihood, slope = rated * likelihood + (1 - rated) * background, rated * slope
    likelihood = np.maximum(likelihood, np.finfo(np.float64).tiny)
    score = slope / likelihood
    mean = likelihood @ outputs
    return Response(
        grid=grid,
        score=score.astype(np.float32),
        information=np.einsum("mo,mo->m", likelihood, score**2),
        mean=mean,
        variance=likelihood @ outputs**2 - mean**2,
    )


def _spread_levels(levels: Floats, means: Floats, spread: float) -> Floats:
    """Return normal weights over the levels, shifted so that their mean is exactly each of `means`."""
    low = np.full(means.size, levels[0] - 4.0)
    high = np.full(means.size, levels[-1] + 4.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_low = _normal_weights(levels, middle, spread) @ levels < means
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return _normal_weights(levels, (low + high) / 2, spread)


def _normal_weights(levels: Floats, centers: Floats, spread: float) -> Floats:
    exponent = -0.5 * ((levels[None, :] - centers[:, None]) / spread) ** 2
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
