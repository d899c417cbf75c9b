"""Minimize quadratic functions over a ball, exactly and many at once.

The minimizer of `x' A x - 2 b' x` over `|x| <= radius` solves `(A + shift I) x = b` for the one `shift` at
which `A + shift I` has no negative eigenvalue and the point lies inside (shift 0) or on the sphere. In A's
own basis the length of the point is a decreasing function of the shift (the secular equation), and Newton's
steps for its inverse find it. `A` may be indefinite, as matrices with noise are. Nothing here compiles:
LAPACK finds eigenvalues.

References:
    Moré, Sorensen. Computing a trust region step. SIAM J. Sci. Stat. Comput. 4 (1983).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, finite_array, positive_finite
from discreet.solvers.errors import SizesDiffer

# Newton's steps end when none moves a shift by more than this share of it, usually after five or six.
_STEPS, _CONVERGED = 100, 4e-16
# A coordinate of b below this share of the largest number in the problem counts as zero.
_NEGLIGIBLE = 1e-12


def minimize_in_ball(matrices: npt.ArrayLike, linear: npt.ArrayLike, radius: float) -> Floats:
    """Return, for each row b of `linear`, the minimizer of `x' A x - 2 b' x` over `|x| <= radius`.

    `matrices` has one symmetric matrix for all rows, or one for each. Of several minimizers one is given.

    Raises:
        DataError: The shapes do not belong together or a number is not finite.
    """
    quadratic, targets = finite_array("matrices", matrices), finite_array("linear", linear)
    bound = positive_finite("radius", radius)
    rows, size = targets.shape if targets.ndim == 2 else (-1, -1)
    if quadratic.shape not in {(size, size), (rows, size, size)}:
        raise SizesDiffer(name="matrices")
    if rows == 0 or size == 0:
        return np.zeros((rows, size))
    symmetric = (quadratic + np.swapaxes(quadratic, -1, -2)) / 2
    values, basis = np.linalg.eigh(symmetric)
    coordinates = np.einsum("...ij,ri->rj" if basis.ndim == 2 else "rij,ri->rj", basis, targets)
    values = np.broadcast_to(values, coordinates.shape)
    found = _in_own_basis(values, coordinates, bound)
    answer: Floats = np.einsum("ij,rj->ri" if basis.ndim == 2 else "rij,rj->ri", basis, found)
    return _inside(answer, bound)


def _in_own_basis(values: Floats, coordinates: Floats, radius: float) -> Floats:
    """Solve where A is diagonal: `values` are its eigenvalues, ascending, one row a problem."""
    scale = np.maximum(np.abs(values).max(axis=1), np.abs(coordinates).max(axis=1) / radius)
    scale = np.where(scale > 0, scale, 1.0)[:, None]
    values, coordinates = values / scale, coordinates / scale
    coordinates = np.where(np.abs(coordinates) < _NEGLIGIBLE * radius, 0.0, coordinates)
    least = np.maximum(-values[:, :1], 0.0)
    outside = (_lengths(values, coordinates, least) > radius)[:, 0]
    shift = least.copy()
    shift[outside] = _shift(values[outside], coordinates[outside], least[outside], radius)
    points = _ratio(coordinates, values + shift)
    return _completed(points, values + shift, (least > 0) & ~outside[:, None], radius)


def _shift(values: Floats, coordinates: Floats, least: Floats, radius: float) -> Floats:
    """Find the shift at which the point lies on the sphere, where the least one leaves it outside.

    Every coordinate alone bounds the shift from below. Newton's steps for 1 / length, which is concave in the
    shift, rise from there to the solution without passing it.
    """
    shift: Floats = np.maximum(least, np.max(np.abs(coordinates) / radius - values, axis=1, keepdims=True))
    for _ in range(_STEPS):
        divisors = values + shift
        points = _ratio(coordinates, divisors)
        squares = points**2
        slope = np.sum(_ratio(squares, divisors), axis=1, keepdims=True)
        square = np.sum(squares, axis=1, keepdims=True)
        beyond = np.maximum(np.sqrt(square) / radius - 1, 0.0)
        moved: Floats = shift + np.divide(beyond * square, slope, out=np.zeros_like(slope), where=slope > 0)
        if np.all(moved - shift <= _CONVERGED * moved):
            return moved
        shift = moved
    return shift


def _lengths(values: Floats, coordinates: Floats, shift: Floats) -> Floats:
    with np.errstate(over="ignore"):
        lengths: Floats = np.linalg.norm(
            _ratio(coordinates, values + shift, far=np.inf), axis=1, keepdims=True
        )
    return lengths


def _ratio(coordinates: Floats, values: Floats, far: float = 0.0) -> Floats:
    """Divide; where the divisor vanishes the result is 0, or `far` if there is something to divide."""
    safe = values > _NEGLIGIBLE
    quotient = np.divide(coordinates, values, out=np.zeros_like(coordinates), where=safe)
    return np.where(~safe & (coordinates != 0), far, quotient)


def _completed(points: Floats, values: Floats, hollow: npt.NDArray[np.bool_], radius: float) -> Floats:
    """Move to the sphere along the lowest eigenvector where A is indefinite and b is orthogonal to it."""
    missing = np.sqrt(np.maximum(radius**2 - np.sum(points**2, axis=1), 0.0))
    points[:, 0] = np.where(hollow[:, 0], np.hypot(points[:, 0], missing), points[:, 0])
    return points


def _inside(points: Floats, radius: float) -> Floats:
    """Project points that rounding put outside back onto the sphere."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    kept: Floats = points * (radius / np.maximum(lengths, radius))
    return kept
