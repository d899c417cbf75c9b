"""Turn ratings into verdicts, liked or not, by a threshold that is public or paid for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.checks import DataError, ParameterError
from discreet.contributions.people import RatingShares
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.additive import Laplace
from discreet.randomness import PrivacyRandom

# Where "liked" begins when nobody says: this far up the scale, which is 3.5 of 1 to 5 stars.
_LIKED = 0.625


def public_threshold(facts: PublicFacts, above: float | None) -> float:
    """Return the rating above which a verdict is +1; without one, a fixed place on the public scale."""
    if facts.low >= facts.high:
        raise ParameterError(f"The scale from {facts.low:g} to {facts.high:g} has no likes and dislikes.")
    if above is None:
        return facts.low + _LIKED * (facts.high - facts.low)
    if not facts.low <= above < facts.high:
        raise ParameterError(
            f"above={above!r} leaves no like or no dislike on the scale from {facts.low:g} to {facts.high:g}."
        )
    return above


def mean_noise(epsilon: float) -> Laplace:
    """Return the noise on ratings mapped to [0, 1], or on their sum."""
    return Laplace.calibrated(epsilon=epsilon, l1_sensitivity=1.0)


def released_mean(data: Interactions, epsilon: float, random: PrivacyRandom, *, local: bool) -> float:
    """Return the mean rating at a price of `epsilon` for one rating; how many there are is public.

    With `local` every rating is noised before it is added up, so that not even the collector sees it.
    """
    if data.n_ratings == 0:
        raise DataError("There is no rating to learn from.")
    low, width = data.facts.low, data.facts.high - data.facts.low
    noise = mean_noise(epsilon)
    if local:
        shares = (data.values.astype(np.float64) - low) / width
        total = float(noise.release(shares, random).sum())
    else:
        total = float(noise.release(data.total(RatingShares(low=low, width=width)).steps(), random)[0])
    return low + width * min(max(total / data.n_ratings, 0.0), 1.0)


def verdicts_of(data: Interactions, above: float) -> npt.NDArray[np.int8]:
    """Return +1 for every rating above the threshold and -1 for the others."""
    return np.where(data.values > above, 1, -1).astype(np.int8)
