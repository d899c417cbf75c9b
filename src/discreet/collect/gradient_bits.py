"""Send one noisy bit of a projected gradient from each user's device.

A device fits its user's factors to the public item factors and computes the gradient of its error. It
projects the gradient to few rows, samples one coordinate, rounds it at random to +1 or -1 and flips that with
a known probability. The flip alone hides the history (proofs/private_gradients.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, Rows, residuals
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.privacy.sampling.draws import uniform_below
from discreet.solvers.als import solve_rows

#: A user's projected gradient is clamped to this, in units in which the scale is [0, 1].
BOUND = 0.5
#: The ridge on a user's own factors: about the variance of a rating over the variance of factors.
RIDGE = 0.5


class ReportedGradients(NamedTuple):
    """The sampled coordinate of each user (row of the projection times factors, plus factor), and its bit."""

    chosen: Indices
    bits: npt.NDArray[np.int8]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientBits:
    """One bit per user about the gradient at public item factors, for a session to perturb.

    `signs` is the public projection: a row of +1 and -1 per projected row, a column per item.
    """

    flip: SignFlip
    items: Floats
    signs: Floats
    name: ClassVar[str] = "sign-flip"
    of: ClassVar[str] = "person"

    @property
    def epsilon(self) -> float:
        """Return the epsilon of one user's bit."""
        return self.flip.epsilon

    def over(self, data: Interactions, random: PrivacyRandom, /) -> ReportedGradients:
        """Return one coordinate and one flipped bit per user."""
        unit, factors = on_unit_scale(data), self.items.shape[1]
        people, errors = own_errors(unit, self.items)
        chosen = uniform_below(len(self.signs) * factors, len(people), random)
        row, factor = chosen // factors, chosen % factors
        owner = np.repeat(np.arange(len(people)), np.diff(unit.indptr))
        projected = np.bincount(
            owner, weights=self.signs[row[owner], unit.columns] * errors, minlength=len(people)
        ) / math.sqrt(len(self.signs))
        own = np.clip(projected * people[np.arange(len(people)), factor] / BOUND, -1, 1)
        return ReportedGradients(chosen, self.flip.release(_rounded(own, random), random))


def on_unit_scale(data: Interactions) -> Rows:
    """Return the ratings in units in which the scale is [0, 1]."""
    low, width = data.facts.low, data.facts.high - data.facts.low
    return Rows(data.indptr, data.items, ((data.values - low) / width).astype(np.float32))


def own_errors(unit: Rows, items: Floats) -> tuple[Floats, Floats]:
    """Return each user's factors, fitted to their own ratings, and the error of each prediction."""
    people = solve_rows(unit, items, ridge=RIDGE)
    return people, -residuals(unit, people, items, np.zeros(len(people)), np.zeros(len(items)))


def _rounded(values: Floats, random: PrivacyRandom) -> npt.NDArray[np.int64]:
    """Round numbers in [-1, 1] to -1 or +1 at random without bias; privacy comes from the flip after it."""
    words = random.bytes(4 * values.size).view(np.uint32).astype(np.float64)
    return np.where(words < (values + 1) / 2 * 2.0**32, 1, -1)
