"""Say what can be scored, and refuse predictions that are no numbers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats, Indices, Singles
from discreet.checks import DiscreetError
from discreet.data.interactions import Interactions


class Predictor(Protocol):
    """What can be scored: a fitted model, or anything that predicts like one."""

    @property
    def above(self) -> float | None:
        """Return the rating above which a verdict is +1, or None for predictors of ratings."""

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return a prediction for each cell."""

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return what lists are ordered by, for every item for each of these people."""


def refuse_broken(numbers: npt.NDArray[np.floating]) -> None:
    """Refuse predictions with NaN or infinity among them."""
    # The extremes are finite only if all are, and finding them needs no temporary.
    if not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
        broken = int(np.count_nonzero(~np.isfinite(numbers)))
        raise DiscreetError(
            f"The model predicted NaN or infinity in {broken} of {numbers.size} cells; it has no score."
        )
