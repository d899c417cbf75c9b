"""Lower the singular values of a matrix onto a nuclear ball, from its noisy second moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.solvers.low_rank.matrix import threshold
from discreet.solvers.signs import with_fixed_signs


class Projection(NamedTuple):
    """Hold a projection: orthonormal columns, and how much of each one is kept."""

    basis: Floats
    kept: Floats


def project_moment(moment: Floats, *, radius: float, noise: float, most: int) -> Projection:
    """Return the map that lowers the rows' singular values onto the ball, from their noisy second moment.

    The noise is taken off the eigenvalues first, and what it alone could have made is dropped.
    """
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1][:most], vectors[:, ::-1][:, :most]
    above = values > noise
    values, vectors = values[above], vectors[:, above]
    singular = np.sqrt(values)
    lengths = np.sqrt(values - noise)
    lowered = np.maximum(lengths - threshold(lengths, radius), 0.0)
    return Projection(with_fixed_signs(vectors), lowered / singular)
