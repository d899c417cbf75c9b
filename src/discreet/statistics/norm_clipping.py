"""Clip a user's vectors to a norm, so that the bound on what they contribute is proved for any row.

A contribution that is scaled to length 1, whatever its length was, needs no clipping (`Block.unit_weights`).
Lengths that are not finite stay so: their user then contributes zero.
"""

from __future__ import annotations

import numpy as np

from discreet.core import Array, Floats
from discreet.core.kernels import dot, inner
from discreet.statistics.statistic import ROUNDING

# A sum of squares below this has no interaction with a noticeable weight.
_LEAST_LEFT = 1e-12


def clipped_rows(rows: Floats) -> Floats:
    """Return rows clipped to norm 1."""
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    shorter: Floats = rows / lengths * ROUNDING
    return shorter


@inner
def clip_factor(row: Array, bound: float) -> float:
    """Return the factor that clips a row to the norm `bound`."""
    length = np.sqrt(dot(row, row))
    return bound / length if length > bound else 1.0


@inner
def clip_embedding(own: Array, left: float, longest: float) -> tuple[float, float]:
    """Return the factor that makes an embedding at most `longest`, and the squared norm that it then has.

    The embedding is divided by the root of `left` first.
    """
    if not left > _LEAST_LEFT:
        return 0.0, 0.0
    factor = 1 / np.sqrt(left)
    length = 0.0
    for a in range(own.size):
        length += (own[a] * factor) * (own[a] * factor)
    # An infinite norm stays infinite: its user then contributes nothing.
    if np.isfinite(length) and length > longest * longest:
        return factor * (longest / np.sqrt(length)), longest * longest
    return factor, length


@inner
def clip_factors(own: Array, length: float, longest: float) -> float:
    """Make the first factor 1 and the rest so short that the whole is at most `longest`; return its square.

    `length` is the square of the rest, and `longest` at least 1. A length that is not finite stays so: its
    user contributes zero.
    """
    room = longest * longest - 1
    own[0] = 1.0
    if length > room and np.isfinite(length):
        shorter = np.sqrt(room / length)
        for a in range(1, own.size):
            own[a] *= shorter
        length = room
    return length + 1.0
