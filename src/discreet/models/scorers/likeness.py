"""Tell whether vectors of items say what items are like, or only how good and how well known they are."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats
from discreet.checks import DiscreetError

#: Quality and fame: directions that every rating model has first, whatever it found of taste.
PLAIN = 2
_ROUNDING = 1e-6


def refuse_plain(item_bias: Floats, item_factors: Floats) -> None:
    """Refuse vectors that hold nothing but quality and fame: two films are not alike for being both good."""
    if item_factors.shape[1] > PLAIN:
        return
    if item_factors.shape[1] and not _follows(item_factors[:, 0], item_bias):
        return
    raise DiscreetError(
        "This model found no taste, only how good and how well known items are, so it cannot tell which are "
        "alike. More people, a larger epsilon or public item features would."
    )


def _follows(column: Floats, item_bias: Floats) -> bool:
    """Tell whether a column is a straight function of the items' biases."""
    centered, quality = column - column.mean(), item_bias - item_bias.mean()
    slope = float(centered @ quality) / max(float(quality @ quality), np.finfo(np.float64).tiny)
    left = float(np.abs(centered - slope * quality).max(initial=0.0))
    return left <= _ROUNDING * max(float(np.abs(centered).max(initial=0.0)), np.finfo(np.float64).tiny)
