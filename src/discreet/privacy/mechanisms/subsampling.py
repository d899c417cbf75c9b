"""Sum an importance sample: small records are drawn rarely and weighted up, at the same cost for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, PrivacyRandom, finite, finite_array, positive_finite, require
from discreet.privacy.accounting.events import pure_event
from discreet.privacy.errors import OffGrid, SumOverflows, TableReveals
from discreet.privacy.mechanisms.additive import MOST_SHIFT_LAPLACE, FixedPoint
from discreet.privacy.mechanisms.channel import WORDS, CountTable, local_epsilon
from discreet.privacy.sampling.draws import add_discrete_laplace

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Mask = npt.NDArray[np.bool_]

# Norms are rounded up and epsilon down by these margins; the error of float64 is far smaller in both.
_NORM_MARGIN = 2.0**-30
_LOSS_MARGIN = 2.0**-40
_BISECTIONS = 48
# Records are truncated to fixed point, with a unit at least this many binary digits finer than the noise.
_UNIT_DIGITS = 30
_LARGEST_SUM = 2.0**61


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceSampling:
    """A sum of vectors, each drawn with its own probability 1 / w and weighted by w, with Laplace noise.

    A vector of l1 norm s costs w s / scale once it is drawn, and log(1 + (e^(w s / scale) - 1) / w) with
    amplification by sampling. Its weight is the largest, up to `max_weight`, that keeps this at most epsilon:
    the smaller a vector, the rarer it is drawn and the larger its weight.

    Guarantee
        Pure `epsilon` between datasets one of which has one vector more. Replacing a vector costs twice as
        much. A weight depends on its own vector and on public numbers only (proofs/importance_sampling.md).

    Assumes
        Draws of the noise are exact up to 2^-60 each (proofs/sampling.md); no vector depends on another.

    Parameters:
        epsilon: The privacy loss of adding or removing one vector.
        scale: The scale of the Laplace noise on each coordinate of the sum.
        max_weight: The largest weight. It bounds the variance of rare vectors.

    References:
        Fay, Mair and Sjölund, Privacy Amplification via Importance Sampling (2023); Algorithm 3 of the paper
        on private implicit factorization, whose printed g(w) lacks the "- 1" after the exponential.

    Example:
        >>> sampling = ImportanceSampling(epsilon=1.0, scale=4.0)
        >>> bool((sampling.loss([0.5, 2.0], sampling.weights([0.5, 2.0])) <= 1.0).all())
        True
    """

    epsilon: float
    scale: float
    max_weight: float = 1024.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        require(
            self.epsilon <= MOST_SHIFT_LAPLACE,
            "epsilon",
            self.epsilon,
            must=f"be at most {MOST_SHIFT_LAPLACE}",
        )
        object.__setattr__(self, "scale", positive_finite("scale", self.scale))
        object.__setattr__(self, "max_weight", finite("max_weight", self.max_weight))
        require(1e-200 <= self.scale <= 1e200, "scale", self.scale, must="be in [1e-200, 1e200]")
        require(1 <= self.max_weight <= 2**32, "max_weight", self.max_weight, must="be in [1, 2^32]")

    @classmethod
    def calibrated(cls, *, epsilon: float, largest_norm: float, max_weight: float = 1024.0) -> Self:
        """Return the mechanism with the least noise that accepts vectors of this l1 norm."""
        target = local_epsilon(epsilon) - _LOSS_MARGIN
        norm = positive_finite("largest_norm", largest_norm)
        return cls(epsilon=epsilon, scale=norm * (1 + 2 * _NORM_MARGIN) / target, max_weight=max_weight)

    def event(self) -> DpEvent:
        """Return the cost of one added or removed vector: a pure epsilon."""
        return pure_event(self.epsilon)

    def release(self, vectors: npt.ArrayLike, random: PrivacyRandom) -> Floats:
        """Return the noisy, almost unbiased sum of the rows of a matrix.

        Truncation moves each coordinate of a drawn row by less than 2^-30 of the noise scale.
        """
        rows = finite_array("vectors", vectors)
        if rows.ndim != 2:
            raise OffGrid(name="vectors", must="be a matrix with one row for each record")
        drawn, weights = self.sample(np.abs(rows).sum(axis=1), random)
        unit = 2.0 ** (math.floor(math.log2(self.scale)) - _UNIT_DIGITS)
        self._require_no_overflow(len(rows), unit)
        total: Indices = np.trunc(rows[drawn] * (weights[drawn] / unit)[:, None]).astype(np.int64).sum(axis=0)
        add_discrete_laplace(total, self.scale / unit, random)
        return total.astype(np.float64) * unit

    def sample(self, norms: npt.ArrayLike, random: PrivacyRandom) -> tuple[Mask, Floats]:
        """Return which vectors are drawn, by their l1 norms, and the weights of all."""
        weights = self.weights(norms)
        table = CountTable(starts=_draw_starts(weights.ravel()))
        drawn: Indices = table.draw(np.arange(weights.size), random)
        return drawn.reshape(weights.shape) == 1, weights

    def noisy(self, sums: FixedPoint, random: PrivacyRandom) -> Floats:
        """Return the sum of drawn and weighted vectors, which is in fixed point, with the noise."""
        steps = np.array(sums.counts, dtype=np.int64)
        add_discrete_laplace(steps, math.ldexp(self.scale, sums.bits), random)
        return np.ldexp(steps.astype(np.float64), -sums.bits)

    def weights(self, norms: npt.ArrayLike) -> Floats:
        """Return for every l1 norm the largest weight that keeps its loss at most epsilon."""
        sizes = self._sizes(norms)
        target = self.epsilon - _LOSS_MARGIN
        lower, upper = np.ones_like(sizes), np.full_like(sizes, self.max_weight)
        lower[_amplified(sizes, upper) <= target] = self.max_weight
        # The loss is at most the target on one interval that starts at 1, as e^(w size) is convex in w.
        for _ in range(_BISECTIONS):
            middle = np.sqrt(lower * upper)
            fits = _amplified(sizes, middle) <= target
            lower, upper = np.where(fits, middle, lower), np.where(fits, upper, middle)
        if bool(np.any(_amplified(sizes, lower) > self.epsilon)):
            raise TableReveals(loss=float(np.max(_amplified(sizes, lower))), epsilon=self.epsilon)
        return lower

    def loss(self, norms: npt.ArrayLike, weights: npt.ArrayLike) -> Floats:
        """Return the privacy loss of adding or removing each vector at these weights."""
        given = finite_array("weights", weights)
        # A weight is part of a record, so the message counts weights and quotes none.
        below = int(np.count_nonzero(given < 1))
        require(below == 0, "weights_below_1", below, must="be 0")
        return _amplified(self._sizes(norms), given)

    def largest_norm(self) -> float:
        """Return the largest l1 norm a vector may have. At this norm it is always drawn, with weight 1."""
        return self.scale * (self.epsilon - _LOSS_MARGIN) / (1 + 2 * _NORM_MARGIN)

    def _sizes(self, norms: npt.ArrayLike) -> Floats:
        """Return the loss of every vector at weight 1, rounded upward."""
        lengths = finite_array("norms", norms)
        if bool(np.any(lengths < 0)):
            raise OffGrid(name="norms", must="be at least 0")
        # A vector clipped to the largest norm may exceed it by a rounding; the margin covers that.
        if bool(np.any(lengths > self.largest_norm() * (1 + _NORM_MARGIN / 4))):
            raise OffGrid(name="The l1 norm of each vector", must="be at most largest_norm()")
        return lengths * ((1 + _NORM_MARGIN) / self.scale)

    def _require_no_overflow(self, count: int, unit: float) -> None:
        # A weight keeps w s / scale at most epsilon + log w, so this is the largest sum in units.
        most = count * (self.epsilon + math.log(self.max_weight)) * self.scale / unit
        if most > _LARGEST_SUM:
            raise SumOverflows(vectors=count)


def _amplified(sizes: Floats, weights: Floats) -> Floats:
    """Return log(1 + (e^(w size) - 1) / w) without overflow."""
    loss = sizes * weights
    return np.asarray(loss + np.log(1 / weights + (1 - 1 / weights) * np.exp(-loss)))


def _draw_starts(weights: Floats) -> npt.NDArray[np.uint64]:
    """Return a table row for each vector: about 2^64 / w of the words draw it, those from entry 1 on."""
    words = np.floor(float(WORDS) / weights)
    always = words >= float(WORDS)
    counts = np.where(always, 0.0, words).astype(np.uint64)
    starts = np.zeros((weights.size, 2), dtype=np.uint64)
    starts[:, 1] = np.negative(counts)
    return starts
