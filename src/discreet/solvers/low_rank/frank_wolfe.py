"""Complete a matrix inside a nuclear-norm ball by Frank-Wolfe steps of rank one.

The problem is: minimize half the squared error over the observed cells, subject to a nuclear norm of at most
`radius`. Each round adds the rank-one matrix that the gradient points to, then finds the best matrix with the
row and column spaces seen so far (the corrective step), which makes the gap fall much faster than plain
steps do. The gap bounds how far the objective is above the optimum.

References:
    Jaggi, Sulovský. A simple algorithm for nuclear norm regularized problems. ICML 2010.
    Jain, Thakkar, Thakurta. Differentially private matrix completion revisited. ICML 2018.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds

from discreet.arrays import Floats
from discreet.checks import integer, non_negative, positive_finite
from discreet.solvers.low_rank.matrix import project_dense
from discreet.solvers.rows import Rows, predict_cells, require_fit
from discreet.solvers.signs import column_signs, with_fixed_signs

# Up to this many columns the leading pair comes from a dense eigenproblem.
_SMALL = 500
_CORRECTIONS = 60
# Singular values below this share of the radius are dropped.
_NEGLIGIBLE = 1e-12


class NuclearSolution(NamedTuple):
    """Hold the matrix `left @ right.T`, its objective, and an upper bound on how far that is from optimal."""

    left: Floats
    right: Floats
    objective: float
    gap: float
    rounds: int

    def nuclear_norm(self) -> float:
        """Return the sum of the singular values."""
        return float(np.sum(np.linalg.svd(self.left @ self.right.T, compute_uv=False)))


def frank_wolfe(
    rows: Rows, n_columns: int, *, radius: float, rounds: int = 100, tolerance: float = 0.0
) -> NuclearSolution:
    """Return a matrix inside the ball whose gap is at most `tolerance`, or what `rounds` rounds reach."""
    positive_finite("radius", radius)
    integer("rounds", rounds, least=1)
    non_negative("tolerance", tolerance)
    require_fit(rows, n_columns)
    cells = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    left, right = np.zeros((rows.n_rows, 0)), np.zeros((n_columns, 0))
    done, gap = 0, np.inf
    while True:
        errors = _errors(rows, cells, left, right)
        value, u, v = leading_pair(rows, errors, n_columns)
        gap = float(errors @ (errors + rows.values)) + radius * value
        if gap <= tolerance or done == rounds:
            return NuclearSolution(left, right, float(errors @ errors) / 2, gap, done)
        bases = [np.linalg.qr(np.column_stack(pair))[0] for pair in ((left, u), (right, v))]
        left, right = _corrected(rows, cells, bases[0], bases[1], left, right, radius)
        done += 1


def leading_pair(rows: Rows, values: Floats, n_columns: int) -> tuple[float, Floats, Floats]:
    """Return the largest singular value of a sparse matrix and its vectors: dense if small, else Lanczos."""
    matrix = sp.csr_matrix((values, rows.columns, rows.indptr), shape=(rows.n_rows, n_columns))
    if n_columns <= _SMALL:
        eigenvalues, vectors = np.linalg.eigh((matrix.T @ matrix).toarray())
        v = with_fixed_signs(vectors[:, -1:])[:, 0]
        value = float(np.sqrt(max(eigenvalues[-1], 0.0)))
        return value, np.asarray(matrix @ v) / max(value, np.finfo(np.float64).tiny), v
    operator = LinearOperator(matrix.shape, matvec=matrix.dot, rmatvec=matrix.T.dot, dtype=np.float64)
    start = np.ones(min(matrix.shape))
    u, found, vt = svds(operator, k=1, v0=start)
    sign = column_signs(vt.T)[0]
    return float(found[0]), sign * u[:, 0], sign * vt[0]


def _errors(rows: Rows, cells: npt.NDArray[np.int64], left: Floats, right: Floats) -> Floats:
    if not left.shape[1]:
        return -rows.values.astype(np.float64)
    return predict_cells(left, right, cells, rows.columns) - rows.values


def _corrected(
    rows: Rows,
    cells: npt.NDArray[np.int64],
    left_basis: Floats,
    right_basis: Floats,
    left: Floats,
    right: Floats,
    radius: float,
) -> tuple[Floats, Floats]:
    """Return the best matrix in the ball with these row and column spaces, by accelerated projection."""
    center = (left_basis.T @ left) @ (right.T @ right_basis)
    current, ahead, momentum = center, center, 1.0
    for _ in range(_CORRECTIONS):
        errors = _errors(rows, cells, left_basis @ ahead, right_basis)
        matrix = sp.csr_matrix((errors, rows.columns, rows.indptr), shape=(len(left), len(right)))
        # Observing cells and orthonormal bases never lengthen, so a step of 1 is safe.
        stepped = project_dense(ahead - left_basis.T @ (matrix @ right_basis), radius)
        further = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = stepped + (momentum - 1) / further * (stepped - current)
        current, momentum = stepped, further
    u, values, vt = np.linalg.svd(current, full_matrices=False)
    kept = values > _NEGLIGIBLE * radius
    right = right_basis @ vt[kept].T
    signs = column_signs(right)
    return left_basis @ (u[:, kept] * values[kept]) * signs, right * signs
