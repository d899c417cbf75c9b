"""Choose the scale of the ratings from the data, with noise and for a price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from discreet.arrays import Floats
from discreet.checks import DataError, positive_finite
from discreet.contributions.crowd import Crowd
from discreet.contributions.scale_votes import ScaleVotes
from discreet.privacy.mechanisms.additive import Laplace
from discreet.randomness import PrivacyRandom

PROOF = "proofs/private_scale.md"
#: The usual scales, the narrowest first; the last one is for whatever fits no other.
USUAL_SCALES: tuple[tuple[float, float], ...] = (
    (0.0, 1.0),
    (-1.0, 1.0),
    (1.0, 5.0),
    (0.5, 5.0),
    (0.0, 5.0),
    (1.0, 7.0),
    (1.0, 10.0),
    (0.0, 10.0),
    (-5.0, 5.0),
    (-10.0, 10.0),
    (1.0, 100.0),
    (0.0, 100.0),
    (-100.0, 100.0),
)
# A scale is wide enough if all but a hundredth of the people fit, so far as the noise lets anybody see.
_FEW = 0.01
_DEVIATIONS = 3.0
# With fewer people than this many deviations of the noise the first scale would do for anybody.
_LEAST_DEVIATIONS = 6.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateScale:
    """Take the narrowest of the usual scales that holds the ratings of nearly everybody, decided with noise.

    Ratings outside it are clipped. The rule is in proofs/private_scale.md.

    Guarantee
        Pure `epsilon` for a person's whole history, between data sets with and without that person
        (proofs/private_scale.md). A fit pays for it together with the model.

    Example:
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=500, n_items=60, mean_per_user=20)
        >>> PrivateScale(epsilon=1.0).choose(films, PrivacyRandom.from_os())
        (1.0, 5.0)
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive_finite("epsilon", self.epsilon)
        self._noise()

    @property
    def delta(self) -> float:
        """Return what may be revealed on top: nothing."""
        return 0.0

    def note(self) -> str:
        """Return what a label says about the price."""
        return f"of this the scale cost epsilon={self.epsilon:g} ({PROOF})"

    def events(self) -> Sequence[Any]:
        """Return the one release."""
        return (self._noise().event(),)

    def choose(self, data: Crowd, random: PrivacyRandom) -> tuple[float, float]:
        """Return the lowest and the highest rating of the scale that was chosen."""
        noise = self._noise()
        noisy = noise.release(data.total(ScaleVotes(scales=USUAL_SCALES)).steps(), random)
        return narrowest(noisy, math.sqrt(noise.variance))

    def _noise(self) -> Laplace:
        return Laplace.calibrated(epsilon=self.epsilon, l1_sensitivity=1.0)


def narrowest(votes: Floats, deviation: float) -> tuple[float, float]:
    """Return the first usual scale that leaves few people outside; `votes` have noise of this deviation.

    Raises:
        DataError: There are too few people to tell; this was decided with noise, too.
    """
    people = float(votes.sum())
    if people < _LEAST_DEVIATIONS * deviation * math.sqrt(votes.size):
        raise DataError("Too few people for choosing a scale with this budget. Declare it (--scale).")
    for scale in USUAL_SCALES:
        missed = [place for place, one in enumerate(USUAL_SCALES) if not _holds(scale, one)]
        outside = votes[[*missed, len(USUAL_SCALES)]]
        if outside.sum() <= _FEW * people + _DEVIATIONS * deviation * math.sqrt(outside.size):
            return scale
    return USUAL_SCALES[-1]


def _holds(scale: tuple[float, float], other: tuple[float, float]) -> bool:
    return scale[0] <= other[0] and other[1] <= scale[1]
