"""The printed DPIMF: train without privacy, then solve every item (or user) once with noise. NOT PRIVATE.

The user factors are trained on the very rows that the noise is meant to hide and are used without noise; the
sensitivity is the largest of the actual users; one user is in every item's problem. So nothing here keeps the
guarantee that is printed. It is kept because the printed tables measure it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.core import experiment_generator
from discreet.papers.dpimf.theory import LOSSES, Loss
from discreet.privacy import largest_weights
from discreet.solvers import minimize_in_ball

Floats = npt.NDArray[np.float64]
Variant = Literal["str", "com", "sym", "opt"]
VARIANTS: tuple[Variant, ...] = ("str", "com", "sym", "opt")
#: What the package calls the variants.
LOSS_OF: dict[Variant, Loss] = dict(zip(VARIANTS, LOSSES, strict=True))
# The largest weight of importance sampling, and how finely weights are tabulated over |p_u|_1 / max |p|_1.
_MOST_WEIGHT, _TABULATED = 8.0, 4096
_BISECTIONS = 100
#: Whose profiles are solved with noise: the text writes for items, the tables are stated for users.
Side = Literal["items", "users"]


class NoiseSource(Protocol):
    """Draws of noise: a generator of numpy in experiments, a session without a guarantee in `fit`."""

    def random(self, size: Any = None, /) -> Any:
        """Return uniform numbers in [0, 1)."""

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        """Return Laplace numbers."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Settings of the printed procedure: what the paper sets, or leaves to be found."""

    factors: int
    regularization: float
    epochs: int
    alpha0: float = 0.8
    budget: tuple[float, float, float] = (0.1, 0.8, 0.1)

    @property
    def radius(self) -> float:
        """Return the radius of the ball that contains every profile."""
        return float(np.sqrt(1 / self.regularization))


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Factors trained without privacy, the rows they were trained on, and the weight of empty cells."""

    clicks: csr_matrix
    users: Floats
    items: Floats
    alpha0: float


def train(
    clicks: csr_matrix, setting: Setting, alpha0: float, seed: int, *, original: bool = False
) -> Trained:
    """Alternate between users and items; empty cells (`original`: all cells) weigh `alpha0` in the loss."""
    generator = experiment_generator(seed, "printed start")
    items = generator.uniform(size=(clicks.shape[1], setting.factors))
    users = np.zeros((clicks.shape[0], setting.factors))
    turned = clicks.T.tocsr()
    for _ in range(setting.epochs):
        users = exact_rows(clicks, items, setting, alpha0, original=original)
        items = exact_rows(turned, users, setting, alpha0, original=original)
    users = exact_rows(clicks, items, setting, alpha0, original=original)
    return Trained(clicks=clicks, users=users, items=items, alpha0=alpha0)


def exact_rows(
    rows: csr_matrix, others: Floats, setting: Setting, alpha0: float, *, original: bool = False
) -> Floats:
    """Solve every row once, without noise."""
    quadratic, linear = coefficients(rows, others, setting.regularization, alpha0, strawman=original)
    if alpha0 == 1 and not original:
        return _solved(quadratic[0], linear)
    return np.asarray(np.linalg.solve(quadratic, linear[:, :, None])[:, :, 0], dtype=np.float64)


def coefficients(
    rows: csr_matrix, others: Floats, regularization: float, alpha0: float, *, strawman: bool
) -> tuple[Floats, Floats]:
    """Return each row's matrix (equation 14, or 7 for the strawman) and its linear term, halved."""
    gram, size = others.T @ others, others.shape[1]
    linear = np.asarray(rows @ others)
    if alpha0 == 1 and not strawman:
        shared = gram + regularization * len(others) * np.eye(size)
        return np.broadcast_to(shared, (rows.shape[0], size, size)), linear
    counts = np.diff(rows.indptr)[:, None, None]
    products = (others[:, :, None] * others[:, None, :]).reshape(len(others), -1)
    own = np.asarray(rows @ products).reshape(-1, size, size)
    rest = len(others) if strawman else len(others) - counts
    elsewhere = gram if strawman else gram - own
    ridge = regularization * (counts + alpha0 * rest) * np.eye(size)
    return own + alpha0 * elsewhere + ridge, linear


def noise_scales(others: Floats, variant: Variant, epsilon: float, setting: Setting) -> tuple[float, ...]:
    """Return the noise on the linear term, the matrix and the ridge; the sensitivities read private data."""
    length = np.abs(others).sum(axis=1)
    if variant == "str":
        return (float(np.max(2 * length + length**2 + 1)) / epsilon,) * 3
    if variant == "opt":
        return (2 * float(length.max()) / epsilon, 0.0, 0.0)
    upper = (length**2 + np.sum(others**2, axis=1)) / 2
    second = float(np.max(length**2 if variant == "com" else upper))
    first_part, second_part, third_part = setting.budget
    less = 1 - setting.alpha0
    return (
        2 * float(length.max()) / (epsilon * first_part),
        less * second / (epsilon * second_part),
        less / (epsilon * third_part),
    )


def noisy_rows(
    rows: csr_matrix, others: Floats, variant: Variant, epsilon: float, setting: Setting, noise: NoiseSource
) -> Floats:
    """Solve every row once from noisy coefficients, in the ball of radius sqrt(1/lambda)."""
    lam, size, count = setting.regularization, setting.factors, rows.shape[0]
    quadratic, linear = coefficients(
        rows, others, lam, alpha0_of(variant, setting), strawman=variant == "str"
    )
    scales = noise_scales(others, variant, epsilon, setting)
    linear = linear + laplace(noise, scales[0] / 2, (count, size))
    if variant == "opt":
        return _in_ball(quadratic[0], linear, setting.radius)
    matrix = noise.laplace(scale=scales[1], size=(count, size, size))
    if variant == "sym":
        matrix = np.triu(matrix) + np.swapaxes(np.triu(matrix, 1), 1, 2)
    ridge = lam * noise.laplace(scale=scales[2], size=(count, 1, 1)) * np.eye(size)
    return minimize_in_ball(quadratic + matrix + ridge, linear, setting.radius)


def laplace(noise: NoiseSource, scale: float, shape: tuple[int, int]) -> Floats:
    """Draw what `noise.laplace` would, but for rounding, in half the time: federations mostly draw noise."""
    uniform = noise.random(shape)
    size = np.minimum(uniform, 1 - uniform)
    size *= 2
    # A uniform number is 0 once in 2^53 draws; numpy draws again.
    np.log(np.maximum(size, 2.0**-53, out=size), out=size)
    size *= -scale
    uniform -= 0.5
    return np.asarray(np.copysign(size, uniform, out=size), dtype=np.float64)


def sampled_rows(
    rows: csr_matrix, others: Floats, epsilon: float, setting: Setting, noise: NoiseSource
) -> Floats:
    """Solve every row from cells drawn by importance (opt-IS); the noise is that of opt."""
    lengths = np.abs(others).sum(axis=1)
    weights = np.interp(lengths / lengths.max(), *importance_weights(epsilon))
    scale = noise_scales(others, "opt", epsilon, setting)[0]
    return _weighted_rows(rows, others, weights, scale, setting, noise)


@lru_cache(maxsize=32)
def importance_weights(epsilon: float) -> tuple[Floats, Floats]:
    """Tabulate Algorithm 3: with the noise of opt a weight depends on |p_u|_1 / max |p|_1 alone."""
    shares = np.linspace(0.0, 1.0, _TABULATED)
    more = epsilon * (1 + 1e-8)
    return shares, largest_weights(shares, epsilon=more, scale=1 / epsilon, max_weight=_MOST_WEIGHT)


def inverse_weights(others: Floats, mean: float) -> Floats:
    """Return weights c / |p_u|_1, at least 1, with c such that their mean is `mean`."""
    lengths = np.maximum(np.abs(others).sum(axis=1), 1e-12)
    low, high = 0.0, mean * float(lengths.max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        small = float(np.maximum(1.0, middle / lengths).mean()) < mean
        low, high = (middle, high) if small else (low, middle)
    return np.asarray(np.maximum(1.0, high / lengths))


def lowered_rows(
    rows: csr_matrix, others: Floats, weights: Floats, before: float, setting: Setting, noise: NoiseSource
) -> Floats:
    """Sample users with these weights, with the noise for the epsilon `before` sampling. NOT PRIVATE.

    Theorem 2 allows so large an epsilon (`printed_epsilon_before`) if a user moves the sum by Delta.
    Algorithm 2 takes Delta without the weights, but its sum has them: a user moves it by w Delta. Theorem 2
    has one weight per cell and does not state which weight the one noise is for.
    """
    scale = noise_scales(others, "opt", before, setting)[0]
    return _weighted_rows(rows, others, weights, scale, setting, noise)


def _weighted_rows(
    rows: csr_matrix, others: Floats, weights: Floats, scale: float, setting: Setting, noise: NoiseSource
) -> Floats:
    chosen = weights[rows.indices]
    drawn = noise.random(chosen.size) < 1 / chosen
    sampled = csr_matrix((np.where(drawn, chosen, 0.0), rows.indices, rows.indptr), shape=rows.shape)
    linear = np.asarray(sampled @ others) + laplace(noise, scale / 2, (rows.shape[0], setting.factors))
    return _in_ball(_shared_matrix(others, setting), linear, setting.radius)


def dpmf_rows(
    rows: csr_matrix, others: Floats, epsilon: float, setting: Setting, noise: NoiseSource
) -> Floats:
    """Solve every row as Hua et al. do: others of length 1, Laplace noise 2 sqrt(K) / epsilon."""
    unit = others / np.maximum(np.linalg.norm(others, axis=1, keepdims=True), 1e-12)
    scale = 2 * np.sqrt(setting.factors) / epsilon
    linear = np.asarray(rows @ unit) - noise.laplace(scale=scale, size=(rows.shape[0], setting.factors)) / 2
    return _in_ball(_shared_matrix(unit, setting), linear, setting.radius)


def alpha0_of(method: str, setting: Setting) -> float:
    """Return the weight of empty cells: 1 for all methods but the first three variants."""
    return setting.alpha0 if method in ("str", "com", "sym") else 1.0


def _shared_matrix(others: Floats, setting: Setting) -> Floats:
    ridge = setting.regularization * len(others) * np.eye(setting.factors)
    return others.T @ others + ridge


def _in_ball(shared: Floats, linear: Floats, radius: float) -> Floats:
    """Minimize with one positive definite matrix for all rows; most minima lie inside the ball anyway."""
    points = _solved(shared, linear)
    far = np.einsum("ij,ij->i", points, points) > radius**2
    points[far] = minimize_in_ball(shared, linear[far], radius)
    return points


def _solved(shared: Floats, linear: Floats) -> Floats:
    """Solve one small positive definite system for many rows; the inverse costs less than a solve a row."""
    points: Floats = linear @ np.linalg.inv(shared)
    return points
