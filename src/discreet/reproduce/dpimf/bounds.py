"""Theorems 4 and 5: bounds on the loss of another objective and of noise, and what is measured.

Also whether the printed lambda leaves anything to learn, which Table II alone tells.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from discreet.papers.dpimf.printed import (
    Floats,
    Setting,
    Trained,
    Variant,
    coefficients,
    solve_side,
)
from discreet.papers.dpimf.theory import DpimfSettings, redesign_bound

#: Density (Table II) and lambda (Section VI-A) as printed.
PRINTED_SETTINGS = {"ml10m": (0.043, 0.07), "yahoo": (0.034, 1.0), "amazon": (0.007, 1.0)}


def theory_of(model: Trained, setting: Setting) -> DpimfSettings:
    """Return the numbers that the bounds depend on, with the largest |p_uj| of the trained users."""
    return DpimfSettings(
        factors=setting.factors,
        regularization=setting.regularization,
        alpha0=model.alpha0,
        largest=float(np.abs(model.users).max()),
        beta1=setting.budget[0],
        beta2=setting.budget[1],
    )


def excess(model: Trained, variant: Variant, epsilon: float, setting: Setting, seed: int) -> float:
    """Return the mean over items of L(noisy solution) - L(best), for the loss without noise."""
    turned = model.clicks.T.tocsr()
    # Without noise all four minimize this loss; the strawman's own counts chosen cells twice.
    quadratic, linear = coefficients(
        turned, model.users, setting.regularization, model.alpha0, strawman=variant == "str"
    )
    best = np.linalg.solve(quadratic, linear[:, :, None])[:, :, 0]
    noisy = solve_side(model, variant, epsilon, setting, seed, "items")[1]
    return float(np.mean(_loss(quadratic, linear, noisy) - _loss(quadratic, linear, best)))


def redesign_share(model: Trained, setting: Setting) -> float:
    """Return the largest measured L(q*) - L_O(q') of an item over Theorem 4's bound on it."""
    turned, lam = model.clicks.T.tocsr(), setting.regularization
    counts = np.diff(turned.indptr)
    values = []
    for strawman in (False, True):
        parts = coefficients(turned, model.users, lam, model.alpha0, strawman=strawman)
        best = np.linalg.solve(parts[0], parts[1][:, :, None])[:, :, 0]
        values.append(_loss(*parts, best))
    limit = redesign_bound(1.0, theory_of(model, setting)) * counts
    return float(np.max((values[0] - values[1])[counts > 0] / limit[counts > 0]))


def _loss(quadratic: Floats, linear: Floats, points: Floats) -> Floats:
    through = np.einsum("rij,rj->ri", quadratic, points)
    return np.sum(points * through - 2 * points * linear, axis=1)


def row_loss(clicks: csr_matrix, users: Floats, epsilon: float) -> Floats:
    """Return each person's loss in one solve of all items, were the user factors public.

    An item's noise has scale 2 max |p|_1 / epsilon and a person in it moves the linear term by 2 |p_u|_1;
    the items' noises are independent and the person is in all items they chose, so losses add up.
    """
    norms = np.abs(users).sum(axis=1)
    lost: Floats = epsilon * np.diff(clicks.indptr) * norms / norms.max()
    return lost
