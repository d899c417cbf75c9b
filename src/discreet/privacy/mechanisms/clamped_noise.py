"""Tabulate Laplace noise on grid steps that is added to a rating and clamped far outside the scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from discreet.core import Floats, Indices, PrivacyRandom
from discreet.privacy.mechanisms.channel import (
    ROUNDING,
    WORDS,
    Counts,
    CountTable,
    largest_ratio,
    log_up,
    require_loss,
)

# Reports are clamped this many noise scales beyond the ratings, which affects one in ten million.
_REACH = 16.0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClampedNoise:
    """Noise on grid steps as counts of 2^64 words. Its tails are lumped where clamping hides them anyway.

    A rating is a step in [-half, half], a report one in [-reach, reach], a move one in [-farthest, farthest]
    with farthest = reach + half.
    """

    half: int
    reach: int
    table: CountTable

    @property
    def farthest(self) -> int:
        """Return the largest move."""
        return self.half + self.reach

    def draw(self, shape: tuple[int, ...], random: PrivacyRandom) -> Indices:
        """Draw moves."""
        return self.table.draw(np.zeros(shape, dtype=np.int64), random) - self.farthest

    def mass(self, reports: Indices, ratings: Indices) -> Floats:
        """Return P(clamped(rating + move) = report) for steps that broadcast against each other."""
        starts = np.append(self.table.starts[0], np.uint64(0))
        at = reports - ratings + self.farthest
        first = np.where(reports == -self.reach, 0, at)
        after = np.where(reports == self.reach, starts.size - 1, at + 1)
        # Words wrap at 2^64, where the last outcome ends; the difference is still right.
        words: Counts = starts[after] - starts[first]
        return words / np.float64(WORDS)

    def extremes(self) -> tuple[Counts, Counts, Counts]:
        """Return each report's largest count over all ratings, its count at the middle, and its smallest."""
        inner = sliding_window_view(self.table.counts()[0], 2 * self.half + 1)[1:-1]
        starts = self.table.starts[0]
        at_most = starts[1 : 2 * self.half + 2]
        at_least = np.negative(starts[-(2 * self.half + 1) :])
        ends = np.stack([at_most, at_least])
        most = np.append(inner.max(axis=1), ends.max(axis=1))
        middle = np.append(inner[:, self.half], ends[:, self.half])
        least = np.append(inner.min(axis=1), ends.min(axis=1))
        return most, middle, least

    def losses(self) -> tuple[float, float]:
        """Return the largest log-ratio between any two ratings, and of any rating over the middle."""
        most, middle, least = self.extremes()
        return log_up(largest_ratio(most, least)), log_up(largest_ratio(most, middle))

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the report for every rating, in steps and squared steps."""
        return _moments(self)


@lru_cache(maxsize=8)
def clamped_noise(epsilon: float, half: int) -> ClampedNoise:
    """Return noise under which no report is e^epsilon times likelier for one rating than for another.

    Against the middle of the scale it is at most e^(epsilon/2) times likelier.
    """
    steps = 2 * half
    beyond = math.ceil(_REACH * steps / epsilon)
    # Rounding a count up by one matters most where the count is small: at the largest count of the farthest
    # report. But it never matters below e^(epsilon/2), as no other count is less than one.
    smallest = WORDS * math.tanh(epsilon / (2 * steps)) * math.exp(-epsilon * beyond / steps)
    slack = 2 * ROUNDING + 4 * (1 + epsilon) / max(smallest, math.exp(epsilon / 2))
    decay = (epsilon - slack) / steps
    weights = np.exp(-decay * np.abs(np.arange(-beyond - steps, beyond + steps + 1)))
    # The lumped ends get the whole tail of a geometric series, 1 / (1 - q) times its first term.
    weights[1:-1] *= -math.expm1(-decay)
    table = CountTable.of_probabilities(weights[None, :] / (1 + math.exp(-decay)))
    noise = ClampedNoise(half=half, reach=beyond + half, table=table)
    between, over_middle = noise.losses()
    require_loss(between, epsilon)
    require_loss(over_middle, epsilon / 2)
    return noise


@lru_cache(maxsize=8)
def _moments(noise: ClampedNoise) -> tuple[Floats, Floats]:
    probabilities = noise.table.transition()[0]
    moves = np.arange(-noise.farthest, noise.farthest + 1, dtype=np.float64)
    sums = np.zeros((3, moves.size + 1))
    np.cumsum([probabilities, probabilities * moves, probabilities * moves**2], axis=1, out=sums[:, 1:])
    ratings = np.arange(-noise.half, noise.half + 1)
    first, after = noise.farthest - noise.reach + 1 - ratings, noise.farthest + noise.reach - ratings
    inner = sums[:, after] - sums[:, first]
    below, above = sums[0, first], sums[0, -1] - sums[0, after]
    mean = ratings * inner[0] + inner[1] + noise.reach * (above - below)
    square = ratings**2 * inner[0] + 2 * ratings * inner[1] + inner[2] + noise.reach**2 * (above + below)
    return mean, square - mean**2
