"""Theorems 2 to 5 and Algorithm 3 of DPIMF, measured."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from discreet.papers.dpimf.printed_losses import (
    LOSS_OF,
    VARIANTS,
    Floats,
    Setting,
    Trained,
    Variant,
    alpha0_of,
    coefficients,
    train,
)
from discreet.papers.dpimf.theory import DpimfSettings, corollary_holds, gamma, redesign_bound
from discreet.privacy.experiments import largest_weights, sampling_loss, sampling_scale
from discreet.reproduce.dpimf.experiments import solve_side
from discreet.reproduce.dpimf.protocol import LOSS_EPSILONS, Bench

# The largest weight of the importance sample whose losses are measured.
_MOST_WEIGHT = 1024.0


def theory(setting: Setting, bench: Bench, seed: int) -> dict[str, list[float]]:
    """Measure excess losses next to Theorem 5's bounds, Theorem 4, Algorithm 3, and a row's loss."""
    found: dict[str, list[float]] = {"corollary": []}
    for variant in VARIANTS:
        model = train(bench.clicks, setting, alpha0_of(variant, setting), seed)
        numbers = DpimfSettings(
            factors=setting.factors,
            regularization=setting.regularization,
            alpha0=model.alpha0,
            largest=float(np.abs(model.users).max()),
            beta1=setting.budget[0],
            beta2=setting.budget[1],
        )
        found[f"excess {variant}"] = [_excess(model, variant, e, setting, seed) for e in LOSS_EPSILONS]
        found[f"bound {variant}"] = [gamma(LOSS_OF[variant], e, numbers) for e in LOSS_EPSILONS]
        found["corollary"].append(float(corollary_holds(numbers)))
        if variant == "com":
            found["theorem 4"] = [_redesign_share(model, setting, numbers)]
    norms = 2 * np.abs(model.users).sum(axis=1)
    scale = sampling_scale(epsilon=1.0, largest_norm=float(norms.max()))
    weights = largest_weights(norms, epsilon=1.0, scale=scale, max_weight=_MOST_WEIGHT)
    loss = sampling_loss(norms, weights, epsilon=1.0, scale=scale)
    found["slack"] = [float(np.abs(loss[weights < _MOST_WEIGHT] - 1.0).max())]
    found["amplified"] = [amplification_error(norms / scale, weights)]
    lost = row_loss(bench.clicks, model.users, 1.0)
    found["row loss"] = [float(np.median(lost)), float(lost.max())]
    return found


def _excess(model: Trained, variant: Variant, epsilon: float, setting: Setting, seed: int) -> float:
    """Return the mean over items of L(noisy solution) - L(best), for the loss without noise."""
    # Without noise all four minimize this loss; the strawman's own counts chosen cells twice.
    parts = coefficients(
        model.clicks.T.tocsr(), model.users, setting.regularization, model.alpha0, strawman=variant == "str"
    )
    best = np.linalg.solve(parts[0], parts[1][:, :, None])[:, :, 0]
    noisy = solve_side(model, variant, epsilon, setting, seed, "items")[1]
    return float(np.mean(_loss(*parts, noisy) - _loss(*parts, best)))


def _redesign_share(model: Trained, setting: Setting, numbers: DpimfSettings) -> float:
    """Return the largest measured L(q*) - L_O(q') of an item over Theorem 4's bound on it."""
    turned = model.clicks.T.tocsr()
    counts = np.diff(turned.indptr)
    values = []
    for strawman in (False, True):
        parts = coefficients(turned, model.users, setting.regularization, model.alpha0, strawman=strawman)
        values.append(_loss(*parts, np.linalg.solve(parts[0], parts[1][:, :, None])[:, :, 0]))
    limit = redesign_bound(1.0, numbers) * counts
    return float(np.max((values[0] - values[1])[counts > 0] / limit[counts > 0]))


def _loss(quadratic: Floats, linear: Floats, points: Floats) -> Floats:
    through = np.einsum("rij,rj->ri", quadratic, points)
    return np.asarray(np.sum(points * through - 2 * points * linear, axis=1))


def row_loss(clicks: csr_matrix, users: Floats, epsilon: float) -> Floats:
    """Return each user's loss in one solve of all items, if the user factors were public.

    An item's noise has scale 2 max |p|_1 / epsilon and a user in it moves the linear term by 2 |p_u|_1.
    The items' noises are independent and the user is in all items they chose, so losses add up.
    """
    norms = np.abs(users).sum(axis=1)
    return np.asarray(epsilon * np.diff(clicks.indptr) * norms / norms.max())


def amplification_error(sizes: np.ndarray, weights: np.ndarray) -> float:
    """Return how far Theorem 2 is from the largest log-ratio of the densities themselves, over all users.

    With and without a user a coordinate's density is Laplace, or a mixture of it and itself moved by w size.
    The ratio is largest beyond the moved center, and 0 beyond the other side bounds the way back.
    """
    moved = weights * sizes
    points = np.linspace(-4.0, 4.0 + float(moved.max()), 4001)[None, :]
    shifted = np.exp(np.abs(points) - np.abs(points - moved[:, None]))
    ratio = (1 - 1 / weights)[:, None] + shifted / weights[:, None]
    largest = np.abs(np.log(ratio)).max(axis=1)
    return float(np.abs(largest - np.log1p(np.expm1(moved) / weights)).max())
