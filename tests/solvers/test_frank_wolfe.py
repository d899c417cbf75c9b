"""Frank-Wolfe reaches the optimum of the constrained problem, and its gap says how far it still is."""

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.checks import ParameterError
from discreet.solvers.low_rank import frank_wolfe as module
from discreet.solvers.low_rank.frank_wolfe import frank_wolfe, leading_pair
from discreet.solvers.rows import Rows


def sparse_rows(dense, seen):
    matrix = sp.csr_matrix(np.where(seen, dense, 0.0))
    return Rows(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32)
    )


@pytest.fixture(scope="module")
def problem():
    draw = np.random.default_rng(0)
    dense = draw.normal(size=(12, 2)) @ draw.normal(size=(2, 8)) + 0.3 * draw.normal(size=(12, 8))
    seen = draw.random(dense.shape) < 0.5
    return dense.astype(np.float32).astype(np.float64), seen


@pytest.mark.parametrize("radius", [3.0, 8.0])
def test_agrees_with_cvxpy(problem, radius):
    import cvxpy

    dense, seen = problem
    found = frank_wolfe(sparse_rows(dense, seen), 8, radius=radius, rounds=60, tolerance=1e-5)
    cells = cvxpy.Variable(dense.shape)
    error = cvxpy.sum_squares(cvxpy.multiply(seen, cells - dense)) / 2
    reference = cvxpy.Problem(cvxpy.Minimize(error), [cvxpy.normNuc(cells) <= radius])
    reference.solve()
    assert 0 <= found.gap <= 1e-5
    assert found.objective == pytest.approx(reference.value, rel=1e-3)
    np.testing.assert_allclose(found.left @ found.right.T, cells.value, atol=1e-2)
    assert found.nuclear_norm() <= radius * (1 + 1e-9)


def test_the_gap_bounds_the_distance_to_the_optimum_from_the_first_round_on(problem):
    rows = sparse_rows(*problem)
    best = frank_wolfe(rows, 8, radius=8.0, rounds=80, tolerance=1e-7).objective
    objectives = []
    for rounds in (1, 2, 4):
        early = frank_wolfe(rows, 8, radius=8.0, rounds=rounds)
        assert early.rounds == rounds
        assert 0 <= early.objective - best <= early.gap
        objectives.append(early.objective)
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[0] - best > 1e-3, "the test must be able to tell an early stop from the optimum"


def test_a_large_ball_is_no_constraint(problem):
    assert frank_wolfe(sparse_rows(*problem), 8, radius=1e3, rounds=30).objective < 1e-3


def test_lanczos_and_the_dense_eigenproblem_agree(problem, monkeypatch):
    rows = sparse_rows(*problem)
    value, left, right = leading_pair(rows, rows.values.astype(np.float64), 8)
    monkeypatch.setattr(module, "_SMALL", 0)
    again = leading_pair(rows, rows.values.astype(np.float64), 8)
    assert again[0] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(np.outer(again[1], again[2]), np.outer(left, right), atol=1e-6)


@pytest.mark.parametrize("setting", [{"radius": 0.0}, {"radius": 1.0, "rounds": 0}])
def test_refuses_bad_settings(problem, setting):
    with pytest.raises(ParameterError):
        frank_wolfe(sparse_rows(*problem), 8, **setting)
