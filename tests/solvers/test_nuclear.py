import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from discreet.core.arrays import Rows
from discreet.core.checks import DataError
from discreet.solvers.low_rank.nuclear import largest_singular, recover
from discreet.testing import refuses


def observed(m=50, n=40, rank=3, share=0.5, noise=0.5, seed=0, weighted=False):
    """Return cells of a noisy low-rank matrix, the matrix, and the weighted length of the noise."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    rows, columns = np.nonzero(rng.random((m, n)) < share)
    values = truth[rows, columns] + noise * rng.normal(size=rows.size)
    weights = rng.uniform(0.2, 2.0, rows.size) if weighted else np.ones(rows.size)
    cells = csr_array((values, (rows, columns)), shape=(m, n))
    spread = csr_array((weights, (rows, columns)), shape=(m, n))
    stored = Rows(
        cells.indptr.astype(np.int64),
        cells.indices.astype(np.int32),
        cells.data.astype(np.float32),
        spread.data.astype(np.float32) if weighted else None,
    )
    rho = math.sqrt(float(weights @ (values - truth[rows, columns]) ** 2))
    return stored, truth, rho


def misfit(cells, matrix):
    rows = np.repeat(np.arange(cells.n_rows), np.diff(cells.indptr))
    weights = 1.0 if cells.weights is None else cells.weights
    return math.sqrt(float(np.sum(weights * (matrix[rows, cells.columns] - cells.values) ** 2)))


@pytest.mark.few(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_agrees_with_a_conic_solver(share, weighted):
    cvxpy = pytest.importorskip("cvxpy")
    cells, _, rho = observed(share=share, weighted=weighted)
    ours = recover(cells, 40, rho)
    rows = np.repeat(np.arange(50), np.diff(cells.indptr))
    values, roots = np.zeros((50, 40)), np.zeros((50, 40))
    roots[rows, cells.columns] = 1.0 if cells.weights is None else np.sqrt(cells.weights)
    values[rows, cells.columns] = cells.values
    matrix = cvxpy.Variable((50, 40))
    fits = cvxpy.norm(cvxpy.multiply(roots, matrix - values), "fro") <= rho
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(matrix)), [fits])
    problem.solve(solver="SCS", eps=1e-6)
    assert abs(ours.nuclear_norm - problem.value) <= 1e-3 * problem.value
    assert np.linalg.norm(ours.left @ ours.right.T - matrix.value) <= 1e-3 * np.linalg.norm(matrix.value)


@pytest.mark.few(1)
@pytest.mark.parametrize(("m", "n"), [(50, 40), (260, 220)])
def test_certificate_is_what_it_says(m, n):
    cells, truth, rho = observed(m, n, weighted=True)
    answer = recover(cells, n, rho, tolerance=1e-3)
    matrix = answer.left @ answer.right.T
    assert answer.gap <= 2e-3 and abs(answer.misfit / rho - 1) <= 1e-3
    assert math.isclose(misfit(cells, matrix), answer.misfit, rel_tol=1e-5)
    assert math.isclose(np.linalg.svd(matrix)[1].sum(), answer.nuclear_norm, rel_tol=1e-6)
    # The true matrix fits as well by construction, so the bound must lie below its norm.
    assert answer.bound <= np.linalg.svd(truth)[1].sum()
    assert np.linalg.norm(matrix - truth) < 0.75 * np.linalg.norm(truth)


@given(
    seed=st.integers(0, 10**6), share=st.floats(0.2, 1.0), part=st.floats(0.02, 0.999), weighted=st.booleans()
)
@example(seed=304, share=0.94921875, part=0.95, weighted=False)
@example(seed=51147, share=0.8987842186731005, part=0.9836997788479508, weighted=True)
def test_no_feasible_matrix_beats_the_bound(seed, share, part, weighted):
    cells, truth, _ = observed(12, 9, 2, share, 0.3, seed, weighted)
    length = misfit(cells, np.zeros((12, 9)))
    answer = recover(cells, 9, part * length)
    rng = np.random.default_rng(seed)
    for mix in (0.0, 0.1, 0.5):
        other = (1 - mix) * truth + mix * rng.normal(size=truth.shape)
        if misfit(cells, other) <= part * length:
            assert answer.bound <= np.linalg.svd(other)[1].sum() * (1 + 1e-6)
    assert answer.gap <= 1e-3


@pytest.mark.thorough
def test_singular_values_that_crowd_at_the_price_are_found():
    """A small misfit asks for many columns, and then the slope has many singular values of one size."""
    cells, _, rho = observed(260, 220, share=0.3, weighted=True)
    answer = recover(cells, 220, rho / 2, tolerance=1e-3)
    assert answer.gap <= 2e-3 and answer.rank > 20


def test_one_full_matrix_is_soft_thresholded():
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(20, 15))
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    kept = np.maximum(s - 2.0, 0)
    rho = float(np.linalg.norm(s - kept))
    full = Rows(
        np.arange(21) * 15, np.tile(np.arange(15, dtype=np.int32), 20), matrix.ravel().astype(np.float32)
    )
    answer = recover(full, 15, rho, tolerance=1e-5)
    np.testing.assert_allclose(answer.left @ answer.right.T, (u * kept) @ v, atol=1e-3)


def test_what_zero_fits_is_zero_and_too_few_columns_leave_a_gap():
    cells, _, rho = observed()
    nothing = recover(cells, 40, misfit(cells, np.zeros((50, 40))) * 1.001)
    assert nothing.rank == 0 and nothing.gap == 0 and nothing.nuclear_norm == 0
    narrow = recover(cells, 40, rho, most_columns=2, sweeps=60)
    assert narrow.rank <= 2 and narrow.gap > 1e-2


@pytest.mark.thorough
def test_a_start_leads_to_the_same_matrix():
    cells, _, rho = observed(260, 220)
    first = recover(cells, 220, rho * 1.05, tolerance=1e-3)
    warm = recover(cells, 220, rho, tolerance=1e-3, start=first)
    cold = recover(cells, 220, rho, tolerance=1e-3)
    assert abs(warm.nuclear_norm - cold.nuclear_norm) <= 5e-3 * cold.nuclear_norm


def test_reordered_rows_follow():
    cells, _, rho = observed(seed=3)
    whole = csr_array((cells.values, cells.columns, cells.indptr), shape=(50, 40))
    order = np.random.default_rng(0).permutation(50)
    moved = whole[order]
    turned = Rows(moved.indptr.astype(np.int64), moved.indices.astype(np.int32), moved.data)
    first, second = recover(cells, 40, rho), recover(turned, 40, rho)
    np.testing.assert_allclose((first.left @ first.right.T)[order], second.left @ second.right.T, atol=5e-3)


def test_largest_singular_values_are_the_largest():
    matrix = csr_array(np.random.default_rng(1).normal(size=(450, 430)))
    exact = np.linalg.svd(matrix.toarray(), compute_uv=False)
    u, s, v = largest_singular(matrix, 3)
    np.testing.assert_allclose(s, exact[:3], rtol=1e-5)
    np.testing.assert_allclose(matrix @ v, u * s, atol=1e-2)


def test_bad_arguments_are_refused():
    cells, _, rho = observed()
    with refuses("out-of-range", name="rho", value=-1.0, least=0):
        recover(cells, 40, -1.0)
    with refuses("out-of-range", name="rho", value=0.0, above=0):
        recover(cells, 40, 0.0)
    with refuses("out-of-range", name="most_columns", value=0, least=1):
        recover(cells, 40, rho, most_columns=0)
    with pytest.raises(DataError):
        recover(cells, 30, rho)
