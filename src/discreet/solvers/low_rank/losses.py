"""Evaluate one-bit losses on the observed entries, and limit the number of gradient calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from discreet.core import Floats, integer, non_negative, one_of, positive, positive_finite, run
from discreet.core.kernels import compiled, inner
from discreet.solvers.errors import GradientOverspent, ObjectivePrivate, SizesDiffer

Link = Literal["logistic", "probit"]
LINKS = ("logistic", "probit")

_NO_LINE = np.zeros(0)


class Oracle(Protocol):
    """What a solver may ask about the scores of the observed entries."""

    def value_and_gradient(self, scores: Floats) -> tuple[float, Floats]:
        """Return the objective and its slope in each observed entry."""

    def gradient(self, scores: Floats) -> Floats:
        """Return the slope in each observed entry."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitLoss:
    """Sum of -log P(binary rating | score) over the observed entries.

    A binary rating is +1 with probability h(score / scale), h the logistic or the normal distribution
    function. With `flips` the `verdicts` are reports: a +1 was flipped with the first probability, a -1 with
    the second, and the likelihood accounts for it. `linear` adds `linear . scores`, `ridge` adds
    `ridge / 2 |scores|^2`. Beyond `straight_beyond` the logarithm continues linearly, with constant slope.
    """

    verdicts: npt.NDArray[np.int8]
    link: Link = "logistic"
    scale: float = 1.0
    flips: tuple[float, float] = (0.0, 0.0)
    linear: Floats | None = None
    ridge: float = 0.0
    straight_beyond: float = math.inf

    def __post_init__(self) -> None:
        one_of("link", self.link, LINKS)
        positive_finite("scale", self.scale)
        non_negative("ridge", self.ridge)
        positive("straight_beyond", self.straight_beyond)
        if self.linear is not None and self.linear.shape != self.verdicts.shape:
            raise SizesDiffer(name="The linear term")

    def value_and_gradient(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss and its slope in each entry."""
        if scores.shape != self.verdicts.shape:
            raise SizesDiffer(name="scores")
        out = np.empty((2, scores.size))
        linear = _NO_LINE if self.linear is None else self.linear
        public = (self.link == "probit", self.scale, *self.flips, self.ridge, self.straight_beyond)
        run(
            one_bit_range,
            np.arange(scores.size + 1),
            np.asarray(scores, dtype=np.float64),
            self.verdicts,
            linear,
            *public,
            out,
        )
        return float(out[0].sum()), out[1]

    def gradient(self, scores: Floats) -> Floats:
        """Return the slope in each entry."""
        return self.value_and_gradient(scores)[1]


@final
class MeteredGradient:
    """A gradient that can be evaluated a fixed number of times, without the objective.

    Privacy enters through `release`, which adds the noise. A call beyond the limit, or for the exact
    objective (a line search, a stopping rule), raises an error instead of making an unbudgeted
    release.
    """

    __slots__ = ("_allowed", "_release", "asked")

    def __init__(self, release: Callable[[Floats], Floats], *, allowed: int) -> None:
        self._release = release
        self._allowed = integer("allowed", allowed, least=1)
        self.asked = 0

    def gradient(self, scores: Floats) -> Floats:
        """Return one more noised gradient, or raise."""
        if self.asked >= self._allowed:
            raise GradientOverspent(allowed=self._allowed)
        self.asked += 1
        return self._release(scores)

    def value_and_gradient(self, scores: Floats) -> tuple[float, Floats]:
        """Raise: the exact objective was never released."""
        raise ObjectivePrivate()


def curvature_at_0(link: Link, scale: float) -> float:
    """Return the second derivative of one entry's loss at score 0."""
    return (0.25 if link == "logistic" else 2 / math.pi) / scale**2


def steepness(link: Link, scale: float, bound: float) -> float:
    """Return the largest difference between the slopes of the two binary ratings over |score| <= bound.

    This is sup h'/(h (1 - h)). For the logistic link it is 1 / scale everywhere; for the probit link it grows
    with |score|, so the supremum sits at the bound.
    """
    if link == "logistic":
        return 1 / scale
    edge = bound / scale
    return sum(-float(probit_pair(x)[1]) for x in (edge, -edge)) / scale


def curvature_ratio(link: Link, scale: float, bound: float, ridge: float) -> float:
    """Return the largest log-ratio of (curvature + ridge) between both binary ratings over |score| <= bound.

    It is 0 for the logistic link, whose curvature does not depend on the rating.
    """
    if link == "logistic":
        return 0.0

    def ratio(x: float) -> float:
        plus, minus = (_probit_curvature(sign * x) / scale**2 for sign in (1, -1))
        return abs(math.log((plus + ridge) / (minus + ridge)))

    edge = bound / scale
    inside = minimize_scalar(lambda x: -ratio(x), bounds=(0.0, edge), method="bounded")
    return max(ratio(edge), -float(inside.fun))


def _probit_curvature(x: float) -> float:
    """Return the second derivative of -log Phi(x)."""
    ratio = -probit_pair(float(x))[1]
    return float(ratio * (ratio + x))


Array = npt.NDArray[Any]

_SQRT_HALF = math.sqrt(0.5)
_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
_LOG_DENSITY_AT_0 = math.log(_DENSITY_AT_0)
# Below this the complementary error function loses digits, and a continued fraction is exact.
_TAIL = -5.0
_FRACTION_TERMS = 60


@inner
def logistic_pair(x: float) -> tuple[float, float]:
    """Return -log h(x) and its slope for the logistic link."""
    small = math.exp(-abs(x))
    value = math.log1p(small) + (0.0 if x > 0 else -x)
    slope = -small / (1 + small) if x > 0 else -1 / (1 + small)
    return value, slope


@compiled
def probit_pair(x: float) -> tuple[float, float]:
    """Return -log h(x) and its slope for the probit link."""
    log_density = _LOG_DENSITY_AT_0 - 0.5 * x * x
    if x > _TAIL:
        chance = 0.5 * math.erfc(-x * _SQRT_HALF)
        return -math.log(chance), -math.exp(log_density) / chance
    # Mills' ratio: density / chance = t + 1/(t + 2/(t + 3/(t + ...))) with t = -x.
    ratio = -x
    for term in range(_FRACTION_TERMS, 0, -1):
        ratio = -x + term / ratio
    return math.log(ratio) - log_density, -ratio


@inner
def plain_pair(x: float, probit: bool) -> tuple[float, float]:
    """Return -log h(x) and its slope for either link."""
    if probit:
        return probit_pair(x)
    return logistic_pair(x)


@inner
def flipped_pair(x: float, probit: bool, kept: float, flipped: float) -> tuple[float, float]:
    """Return -log c(x) and its slope, c(x) = kept h(x) + flipped (1 - h(x)), for a report."""
    value, slope = plain_pair(x, probit)
    chance = math.exp(-value)
    mixed = flipped + (kept - flipped) * chance
    return -math.log(mixed), (kept - flipped) * chance * slope / mixed


@compiled
def one_bit_range(
    start: int,
    stop: int,
    scores: Array,
    verdicts: Array,
    linear: Array,
    probit: bool,
    scale: float,
    flip_positive: float,
    flip_negative: float,
    ridge: float,
    straight_beyond: float,
    out: Array,
) -> None:
    """Write the loss and the slope of a range of entries into the two rows of `out`."""
    noisy = flip_positive > 0 or flip_negative > 0
    for entry in range(start, stop):
        score = scores[entry]
        sign = 1.0 if verdicts[entry] > 0 else -1.0
        inside = min(max(score, -straight_beyond), straight_beyond)
        x = sign * inside / scale
        if noisy:
            flipped = flip_negative if sign > 0 else flip_positive
            kept = 1 - (flip_positive if sign > 0 else flip_negative)
            value, slope = flipped_pair(x, probit, kept, flipped)
        else:
            value, slope = plain_pair(x, probit)
        slope *= sign / scale
        extra = linear[entry] if linear.size else 0.0
        out[0, entry] = value + slope * (score - inside) + (extra + 0.5 * ridge * score) * score
        out[1, entry] = slope + extra + ridge * score
