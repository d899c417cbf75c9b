"""The bounded Laplace mechanism in closed form, and what each method sends: the mixture paper's theory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.core import Floats, finite, integer, require
from discreet.papers.bounds import Bound, PublicSizes, printed, proved

# Points at which moments are integrated; the integrands are smooth on both sides of the rating.
_POINTS = 4001


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSettings:
    """Settings of the mixture theory: the scale of ratings, and the factors that PG-MF sends per item."""

    low: float = 1.0
    high: float = 5.0
    factors: int = 10

    def __post_init__(self) -> None:
        require(
            finite("low", self.low) < finite("high", self.high), "low", self.low, must="be less than high"
        )
        integer("factors", self.factors, least=1)


def normalizer(rating: float, scale: float, low: float, high: float) -> float:
    """Return C_r(b) of equation 3: the share of Laplace noise that stays on the scale."""
    return 1 - (math.exp(-(rating - low) / scale) + math.exp(-(high - rating) / scale)) / 2


def density(report: Floats, rating: float, scale: float, low: float, high: float) -> Floats:
    """Return the density of reports, equation 2."""
    inside = (report >= low) & (report <= high)
    heights = np.exp(-np.abs(report - rating) / scale) / (2 * scale * normalizer(rating, scale, low, high))
    return np.where(inside, heights, 0.0)


def report_moments(rating: float, scale: float, low: float, high: float) -> tuple[float, float]:
    """Return mean and standard deviation of a report."""
    parts = [np.linspace(low, rating, _POINTS), np.linspace(rating, high, _POINTS)]
    first = sum(float(np.trapezoid(x * density(x, rating, scale, low, high), x)) for x in parts)
    second = sum(float(np.trapezoid(x**2 * density(x, rating, scale, low, high), x)) for x in parts)
    return first, math.sqrt(max(second - first**2, 0.0))


def largest_log_ratio(scale: float, low: float, high: float) -> float:
    """Return the largest log-ratio of densities between two ratings: those at both ends, at one of them."""
    ends = np.array([low, high])
    ratio = density(ends, low, scale, low, high) / density(ends, high, scale, low, high)
    return float(np.max(np.abs(np.log(ratio))))


def bounds(sizes: PublicSizes, settings: MixtureSettings) -> list[Bound]:
    """Return noise scale, loss, bias and spread of a report, and bytes on the wire.

    The middle of the scale is at most half the scale away from every rating, so a standard error of an item's
    mean above that is vacuous.
    """
    low, high = settings.low, settings.high
    width, per_item = high - low, sizes.ratings / sizes.items
    scale = width / sizes.epsilon
    mean, spread = report_moments(high, scale, low, high)
    middle, _ = report_moments(low, scale, low, high)
    slope = (mean - middle) / width
    each = sizes.ratings / sizes.users
    ratio = f"Largest log-ratio {largest_log_ratio(scale, low, high):.4g}."
    user = f"{each:.1f} ratings of epsilon {sizes.epsilon:g} each; the paper states one rating."
    bias = f"Spread {spread:.3g}. The paper's Gaussians have mean 0, so the fit ignores this bias."
    read = f"{per_item:.1f} reports per item, read through the channel (slope {slope:.3g})."
    error = spread / math.sqrt(per_item) / slope
    down, sent = 8 * sizes.items * settings.factors, f"{settings.factors} factors per item as 8-byte numbers."
    up = "bytes from a user, bounded Laplace or ISGD"
    return [
        proved("noise scale b", "Definition 1", scale, ratio),
        proved("epsilon of one user", "Section 3.2", each * sizes.epsilon, user),
        proved("bias of the highest rating's report", "Definition 1", mean - high, bias),
        proved("standard error of an item's mean", "ours", error, read, width / 2),
        printed(up, "Table 1", math.ceil(each), "1 byte per rating, nothing back."),
        printed("bytes to a user and round, PG-MF", "Table 1", down, sent),
    ]
