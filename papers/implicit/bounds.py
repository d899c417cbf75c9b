"""Theorems 4 and 5: bounds on the loss of another objective and of noise, and what is measured.

Also whether the printed lambda leaves anything to learn, which Table II alone tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .printed import VARIANTS, Floats, Setting, Trained, Variant, coefficients, solve_side

#: Density (Table II) and lambda (Section VI-A) as printed.
PRINTED_SETTINGS = {"ml10m": (0.043, 0.07), "yahoo": (0.034, 1.0), "amazon": (0.007, 1.0)}


def room_to_learn(density: float, regularization: float) -> float:
    """Return sqrt(density) / lambda; at 1 or below, zero profiles minimize the loss of opt.

    With the weights of equation 12 the loss is |R - P Q'|^2 + lambda (m |P|^2 + n |Q|^2) for n users and m
    items, at least |R - X|^2 + 2 lambda sqrt(n m) |X|_* with X = P Q'. Zero minimizes that if lambda
    sqrt(n m) is at least the largest singular value of R, which is at most |R| = sqrt(density n m).
    """
    return float(np.sqrt(density) / regularization)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Hold what the bounds depend on: the largest |p_uj|, factors, lambda, alpha0 and budget."""

    largest: float
    factors: int
    regularization: float
    alpha0: float
    first_part: float
    second_part: float

    @property
    def radius(self) -> float:
        """Return N = sqrt(1 / lambda)."""
        return float(np.sqrt(1 / self.regularization))


def bound(variant: Variant, epsilon: float, problem: Problem) -> float:
    """Return the printed bound on E[L(noisy) - L(best)]: equations 25 to 28."""
    d, radius = problem.factors, problem.radius
    front = np.sqrt(2) * problem.largest * d * radius / epsilon
    linear = 4 * np.sqrt(d) / problem.first_part
    matrix = radius * (1 - problem.alpha0) / problem.second_part
    inside = {
        "str": (radius + 2 / np.sqrt(d)) * (d + 1) ** 2,
        "com": matrix * d**2 + linear,
        "sym": matrix * d * (d + 1) / 2 + linear,
        "opt": 4 * np.sqrt(d),
    }
    return float(front * inside[variant])


def corollary_holds(problem: Problem) -> bool:
    """Tell whether gamma_2 >= gamma_3 >= gamma_4 and gamma_1 > gamma_4, as Corollary 1 says."""
    gamma = {variant: bound(variant, 1.0, problem) for variant in VARIANTS}
    return gamma["com"] >= gamma["sym"] >= gamma["opt"] and gamma["str"] > gamma["opt"]


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
    largest = float(np.abs(model.users).max())
    limit = model.alpha0 * counts / lam * (lam + 2 * setting.factors * largest**2)
    return float(np.max((values[0] - values[1])[counts > 0] / limit[counts > 0]))


def _loss(quadratic: Floats, linear: Floats, points: Floats) -> Floats:
    through = np.einsum("rij,rj->ri", quadratic, points)
    return np.sum(points * through - 2 * points * linear, axis=1)
