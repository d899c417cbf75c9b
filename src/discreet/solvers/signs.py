"""Choose the signs of eigenvectors and singular vectors, which a decomposition leaves open.

A library's choice depends on rounding, and so on the processor. What is released, and what noise is added to,
must not: otherwise one seed gives two models. This is a file of its own because every decomposition needs it
whose vectors outlive their products.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats

# Entries so close to the largest count as equal, so that rounding does not choose among them either.
_EQUAL = 1 - 1e-6


def column_signs(vectors: Floats) -> Floats:
    """Return 1 or -1 for each column: times it, the first of its largest entries is positive.

    Example:
        >>> import numpy as np
        >>> column_signs(np.array([[0.6, 0.7071], [-0.8, -0.7071]]))
        array([-1.,  1.])
    """
    if not vectors.size:
        return np.ones(vectors.shape[1])
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= _EQUAL * sizes.max(axis=0), axis=0)
    return np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def with_fixed_signs(vectors: Floats) -> Floats:
    """Return the same columns, or their opposites, with the signs of `column_signs`."""
    fixed: Floats = vectors * column_signs(vectors)
    return fixed
