"""The printed procedure: train without privacy, then solve every item (or user) once with noise. NOT PRIVATE.

The user factors are trained on the very rows that the noise is meant to hide and are used without noise; the
sensitivity is the largest of the actual users; one user is in every item's problem. So nothing here keeps the
promise that is printed. It is kept because the printed tables measure it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.privacy.mechanisms.subsampling import ImportanceSampling
from discreet.randomness import experiment_generator
from discreet.solvers.norm_ball import minimize_in_ball

Floats = npt.NDArray[np.float64]
Variant = Literal["str", "com", "sym", "opt"]
VARIANTS: tuple[Variant, ...] = ("str", "com", "sym", "opt")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Hold what the paper sets, or leaves to be found."""

    factors: int
    regularization: float
    epochs: int
    alpha0: float = 0.8
    budget: tuple[float, float, float] = (0.1, 0.8, 0.1)

    @property
    def radius(self) -> float:
        """Return the radius of the ball that holds every profile."""
        return float(np.sqrt(1 / self.regularization))


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Hold factors trained without privacy, the rows they were trained on, and the weight of empty cells."""

    clicks: csr_matrix
    users: Floats
    items: Floats
    alpha0: float


def train(clicks: csr_matrix, setting: Setting, alpha0: float, seed: int) -> Trained:
    """Alternate between users and items on the loss whose empty cells weigh `alpha0`."""
    generator = experiment_generator(seed, "printed start")
    items = generator.uniform(size=(clicks.shape[1], setting.factors))
    users = np.zeros((clicks.shape[0], setting.factors))
    turned = clicks.T.tocsr()
    for _ in range(setting.epochs):
        users = _solve_all(clicks, items, setting, alpha0)
        items = _solve_all(turned, users, setting, alpha0)
    return Trained(
        clicks=clicks, users=_solve_all(clicks, items, setting, alpha0), items=items, alpha0=alpha0
    )


def _solve_all(rows: csr_matrix, others: Floats, setting: Setting, alpha0: float) -> Floats:
    quadratic, linear = coefficients(rows, others, setting.regularization, alpha0, strawman=False)
    return np.linalg.solve(quadratic, linear[:, :, None])[:, :, 0]


def coefficients(
    rows: csr_matrix, others: Floats, regularization: float, alpha0: float, *, strawman: bool
) -> tuple[Floats, Floats]:
    """Return each row's matrix (equation 14, or 7 for the strawman) and its linear term, halved."""
    gram, size = others.T @ others, others.shape[1]
    counts = np.diff(rows.indptr)[:, None, None]
    linear = np.asarray(rows @ others)
    if alpha0 == 1 and not strawman:
        shared = gram + regularization * len(others) * np.eye(size)
        return np.broadcast_to(shared, (rows.shape[0], size, size)), linear
    products = (others[:, :, None] * others[:, None, :]).reshape(len(others), -1)
    own = np.asarray(rows @ products).reshape(-1, size, size)
    rest = len(others) if strawman else len(others) - counts
    elsewhere = gram if strawman else gram - own
    ridge = regularization * (counts + alpha0 * rest) * np.eye(size)
    return own + alpha0 * elsewhere + ridge, linear


def noisy_solve(
    model: Trained, variant: Variant, epsilon: float, setting: Setting, seed: int, *, side: str = "items"
) -> Floats:
    """Solve every item (or user) once from noisy coefficients, in the ball of radius sqrt(1/lambda)."""
    rows, others = (model.clicks.T.tocsr(), model.users) if side == "items" else (model.clicks, model.items)
    generator = experiment_generator(seed, "printed noise", variant, str(epsilon), side)
    lam, size = setting.regularization, setting.factors
    quadratic, linear = coefficients(rows, others, lam, model.alpha0, strawman=variant == "str")
    scales = noise_scales(others, variant, epsilon, setting)
    count = rows.shape[0]
    linear = linear + generator.laplace(scale=scales[0], size=(count, size)) / 2
    if variant == "opt":
        return minimize_in_ball(quadratic[0], linear, setting.radius)
    noise = generator.laplace(scale=scales[1], size=(count, size, size))
    if variant == "sym":
        noise = np.triu(noise) + np.swapaxes(np.triu(noise, 1), 1, 2)
    ridge = lam * generator.laplace(scale=scales[2], size=(count, 1, 1)) * np.eye(size)
    return minimize_in_ball(quadratic + noise + ridge, linear, setting.radius)


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


def sampled_solve(model: Trained, epsilon: float, setting: Setting, seed: int) -> Floats:
    """Solve every item with alpha0 = 1 from cells drawn by importance (the variant called opt-IS)."""
    scale = noise_scales(model.users, "opt", epsilon, setting)[0]
    sampling = ImportanceSampling(epsilon=epsilon * (1 + 1e-8), scale=scale, max_weight=8.0)
    weights = sampling.weights(2 * np.abs(model.users).sum(axis=1))
    generator = experiment_generator(seed, "printed sample", str(epsilon))
    turned = model.clicks.T.tocsr()
    chosen = weights[turned.indices]
    drawn = generator.uniform(size=chosen.size) < 1 / chosen
    sampled = csr_matrix((np.where(drawn, chosen, 0.0), turned.indices, turned.indptr), shape=turned.shape)
    noise = generator.laplace(scale=scale, size=(turned.shape[0], setting.factors)) / 2
    shared = model.users.T @ model.users + setting.regularization * len(model.users) * np.eye(setting.factors)
    return minimize_in_ball(shared, np.asarray(sampled @ model.users) + noise, setting.radius)


def dpmf_solve(model: Trained, epsilon: float, setting: Setting, seed: int) -> Floats:
    """Solve every item as Hua et al. do: user factors of length 1, Laplace noise 2 sqrt(K) / epsilon."""
    lengths = np.linalg.norm(model.users, axis=1, keepdims=True)
    users = model.users / np.maximum(lengths, 1e-12)
    turned, size = model.clicks.T.tocsr(), setting.factors
    noise = experiment_generator(seed, "dpmf", str(epsilon)).laplace(
        scale=2 * np.sqrt(size) / epsilon, size=(turned.shape[0], size)
    )
    shared = users.T @ users + setting.regularization * len(users) * np.eye(size)
    return minimize_in_ball(shared, np.asarray(turned @ users) - noise / 2, setting.radius)
