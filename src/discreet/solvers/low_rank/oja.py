"""Find the leading eigenvector of a symmetric matrix from (noisy) products with vectors.

Only a few vectors are held in memory. The products come from a given function: the solver does not know
whether they are noisy, only how many it may ask for.

References:
    Oja. Simplified neuron model as a principal component analyzer. Journal of Mathematical Biology 1982.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import integer
from discreet.core.randomness import experiment_generator

Product = Callable[[Floats], Floats]


class LeadingDirection(NamedTuple):
    """A direction, the matrix's product with it, and its Rayleigh quotient.

    `product` is the mean of `averaged` products with nearly this direction, so the variance of independent
    noise is smaller by that factor.
    """

    vector: Floats
    product: Floats
    value: float
    averaged: int


def oja(product: Product, start: Floats, *, steps: int) -> LeadingDirection:
    """Turn `start` toward the leading direction by exactly `steps` products.

    Each step is v <- v + c W v and a normalization. In the first half c is so large that only W v is left (a
    power step), which finds the direction soonest; in the second half c falls like one over the number of
    steps, which averages the noise of the products away.
    """
    searching = integer("steps", steps, least=1) // 2
    vector, total = unit(start), np.zeros_like(start)
    along: list[float] = []
    for step in range(steps):
        answer = product(vector)
        if step < searching:
            vector = unit(answer)
            continue
        along.append(float(vector @ answer))
        total += answer
        vector = unit(total)
    return LeadingDirection(vector, total / len(along), float(np.mean(along)), len(along))


def unit(vector: Floats) -> Floats:
    """Return the vector scaled to norm 1; a zero vector stays as it is."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector


def random_signs(size: int, *purpose: str | int) -> Floats:
    """Return a public starting point: random signs determined by `purpose` alone."""
    return experiment_generator(0, "signs", *purpose).choice(np.array([-1.0, 1.0]), size)
