"""State what the one-bit estimators ask a session for: flipped ratings, a linear term, gradients, the mean.

Fields are public or released numbers. Binary ratings are private, so they are computed from the data inside
each query. One rating changes one number of each query, by no more than the bound of its part.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.models.scorers.one_bit import binary_ratings
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.privacy.session import Session
from discreet.solvers.low_rank.losses import Link, OneBitLoss
from discreet.statistics.counts import RatingShares
from discreet.statistics.statistic import ExactNumbers, Norm, Part


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FlippedRatings:
    """Each binary rating, flipped with a known probability on its user's device."""

    name: ClassVar[str] = "sign-flip"
    of: ClassVar[str] = "rating"

    flip: SignFlip
    above: float

    @property
    def epsilon(self) -> float:
        """Return the epsilon of one binary rating."""
        return self.flip.epsilon

    def over(self, data: Interactions, random: PrivacyRandom, /) -> npt.NDArray[np.int8]:
        """Return the flipped ratings."""
        return self.flip.release(binary_ratings(data, self.above), random)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTerm:
    """The slope that a -1 adds to the logistic loss of a +1: 1 / scale for each disliked item, or 0."""

    size: int
    above: float
    scale: float
    bound: float

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number per rating; `bound` is 1 / scale with its rounding."""
        return (Part("linear term", (self.size,), norm="l1", bound=self.bound, of="rating"),)

    def over(self, data: Interactions, /) -> ExactNumbers:
        """Return the exact slopes."""
        return ExactNumbers((binary_ratings(data, self.above) < 0) / self.scale)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClampedGradient:
    """The gradient of the loss in each observed entry, clamped; one rating moves one entry by 2 `clamp`."""

    scores: Floats
    above: float
    link: Link
    scale: float
    clamp: float
    norm: Norm

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number per rating; l1 and l2 norm of a change of one number are the same."""
        return (Part("gradient", self.scores.shape, norm=self.norm, bound=2 * self.clamp, of="rating"),)

    def over(self, data: Interactions, /) -> ExactNumbers:
        """Return the exact clamped gradient."""
        loss = OneBitLoss(verdicts=binary_ratings(data, self.above), link=self.link, scale=self.scale)
        return ExactNumbers(np.clip(loss.gradient(self.scores), -self.clamp, self.clamp))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RatingPositions:
    """The position of each rating on the scale, from 0 to 1, before noise is added to every one of them."""

    size: int
    low: float
    width: float

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number per rating."""
        return (Part("positions", (self.size,), norm="l1", of="rating"),)

    def over(self, data: Interactions, /) -> ExactNumbers:
        """Return the exact positions."""
        return ExactNumbers(np.clip((data.values.astype(np.float64) - self.low) / self.width, 0.0, 1.0))


def released_mean(session: Session, *, local: bool) -> float:
    """Return the mean rating for all of a pure session's budget; how many ratings there are is public.

    With `local` every rating is noised before it is added up, so that not even the collector sees it.
    """
    low, width = session.facts.low, session.facts.high - session.facts.low
    size = session.pattern().n_ratings
    if local:
        found = session.release(RatingPositions(size=size, low=low, width=width), Fraction(1))
    else:
        found = session.release(RatingShares(low=low, width=width), Fraction(1))
    return mean_on_scale(float(found.values.sum()), size, low, width)


def mean_on_scale(total: float, count: int, low: float, width: float) -> float:
    """Return the mean rating of a noisy sum of positions."""
    return low + width * min(max(total / count, 0.0), 1.0)
