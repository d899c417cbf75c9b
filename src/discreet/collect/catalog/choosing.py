"""Choose how the cells of a public scale are answered: by stars, by numbers, or without noise."""

from __future__ import annotations

import math

from discreet.collect.catalog.open_cells import OpenCells
from discreet.data.facts import PublicFacts
from discreet.privacy.mechanisms.cells import (
    MOST_LEVELS,
    POINTS,
    CellMechanism,
    HiddenNumbers,
    HiddenStars,
)


def levels_of(facts: PublicFacts) -> int | None:
    """Return how many ratings the public scale has, or None if it is continuous or has very many."""
    if facts.step is None:
        return None
    levels = round((facts.high - facts.low) / facts.step) + 1
    return levels if 2 <= levels <= MOST_LEVELS else None


def cell_mechanism(epsilon: float, facts: PublicFacts) -> CellMechanism:
    """Return stars for a scale of few steps and numbers for any other; without noise if epsilon is inf."""
    levels = levels_of(facts)
    if math.isinf(epsilon):
        return OpenCells(low=facts.low, high=facts.high, points=levels or POINTS)
    if levels is not None and facts.step is not None:
        return HiddenStars(epsilon=epsilon, low=facts.low, high=facts.high, step=facts.step)
    return HiddenNumbers(epsilon=epsilon, low=facts.low, high=facts.high)
