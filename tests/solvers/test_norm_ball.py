"""The quadratic solve in a ball: optimality conditions, another solver's answers, and the hard cases."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.checks import DataError, ParameterError
from discreet.solvers.norm_ball import minimize_in_ball


def problems(rng, rows, size, *, least=-3.0):
    turn = np.linalg.qr(rng.standard_normal((rows, size, size)))[0]
    spectrum = rng.uniform(least, 4.0, (rows, size))
    matrices = np.einsum("rij,rj,rkj->rik", turn, spectrum, turn)
    return (matrices + np.swapaxes(matrices, 1, 2)) / 2, rng.standard_normal((rows, size)) * 3


def values(matrices, linear, points):
    return np.einsum("ri,rij,rj->r", points, matrices, points) - 2 * np.einsum("ri,ri->r", linear, points)


def multipliers(matrices, linear, points):
    """Return the shift at which each point is stationary, and by how much it is not."""
    rest = linear - np.einsum("rij,rj->ri", matrices, points)
    shift = np.einsum("ri,ri->r", rest, points) / np.maximum(np.einsum("ri,ri->r", points, points), 1e-300)
    return shift, np.linalg.norm(rest - shift[:, None] * points, axis=1)


@pytest.mark.few(2)
@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0])
def test_agrees_with_the_quadratic_program_of_cvxpy(radius):
    matrices, linear = problems(np.random.default_rng(0), 12, 5, least=0.05)
    ours = minimize_in_ball(matrices, linear, radius)
    for matrix, target, mine in zip(matrices, linear, ours, strict=True):
        point = cvxpy.Variable(5)
        loss = cvxpy.quad_form(point, cvxpy.psd_wrap(matrix)) - 2 * target @ point
        program = cvxpy.Problem(cvxpy.Minimize(loss), [cvxpy.norm(point) <= radius])
        program.solve(solver=cvxpy.CLARABEL)
        np.testing.assert_allclose(mine, point.value, atol=2e-4 * max(radius, 1))
        assert mine @ matrix @ mine - 2 * target @ mine <= program.value + 1e-8 * abs(program.value)


@given(seed=st.integers(0, 10**6), size=st.integers(1, 9), radius=st.sampled_from([1e-3, 0.5, 2.0, 1e3]))
def test_meets_the_conditions_that_make_a_point_the_global_minimum(seed, size, radius):
    matrices, linear = problems(np.random.default_rng(seed), 8, size)
    points = minimize_in_ball(matrices, linear, radius)
    lengths = np.linalg.norm(points, axis=1)
    assert (lengths <= radius * (1 + 1e-12)).all()
    shift, error = multipliers(matrices, linear, points)
    scale = np.abs(matrices).max() * radius + np.abs(linear).max()
    assert (error <= 1e-7 * scale).all()
    lowest = np.linalg.eigvalsh(matrices)[:, 0]
    tolerance = 1e-6 * scale / radius
    assert (shift >= -tolerance).all() and (shift >= -lowest - tolerance).all()
    inside = lengths < radius * (1 - 1e-6)
    assert (np.abs(shift[inside]) <= tolerance).all()


def test_one_matrix_serves_all_rows():
    rng = np.random.default_rng(1)
    matrices, _ = problems(rng, 1, 6)
    many = rng.standard_normal((20, 6))
    shared = minimize_in_ball(matrices[0], many, 0.7)
    each = minimize_in_ball(np.repeat(matrices, 20, axis=0), many, 0.7)
    np.testing.assert_allclose(shared, each, atol=1e-9)


def test_inside_the_ball_it_is_the_plain_solution():
    matrices, linear = problems(np.random.default_rng(2), 10, 4, least=0.5)
    plain = np.linalg.solve(matrices, linear[:, :, None])[:, :, 0]
    np.testing.assert_allclose(minimize_in_ball(matrices, linear, 1e3), plain, rtol=1e-8)


def test_reaches_the_sphere_when_the_linear_term_does_not_say_which_way():
    matrix = np.diag([-1.0, 2.0, 3.0])
    (point,) = minimize_in_ball(matrix, np.array([[0.0, 1.0, 1.0]]), 2.0)
    assert np.linalg.norm(point) == pytest.approx(2.0)
    np.testing.assert_allclose(point[1:], [1 / 3, 1 / 4], atol=1e-9)
    (lost,) = minimize_in_ball(matrix, np.zeros((1, 3)), 2.0)
    np.testing.assert_allclose(np.abs(lost), [2, 0, 0], atol=1e-12)


def test_nothing_to_minimize_stays_at_the_origin():
    np.testing.assert_array_equal(minimize_in_ball(np.zeros((2, 2)), np.zeros((3, 2)), 1.0), np.zeros((3, 2)))
    np.testing.assert_array_equal(minimize_in_ball(np.eye(2), np.zeros((3, 2)), 1.0), np.zeros((3, 2)))
    assert minimize_in_ball(np.zeros((0, 0)), np.zeros((4, 0)), 1.0).shape == (4, 0)


def test_a_pull_without_resistance_ends_on_the_sphere():
    (point,) = minimize_in_ball(np.zeros((2, 2)), np.array([[3.0, 4.0]]), 1.0)
    np.testing.assert_allclose(point, [0.6, 0.8], atol=1e-9)


def test_no_point_of_the_ball_is_better():
    rng = np.random.default_rng(3)
    matrices, linear = problems(rng, 5, 3)
    best = values(matrices, linear, minimize_in_ball(matrices, linear, 1.0))
    for _ in range(2000):
        tried = rng.standard_normal((5, 3))
        tried *= (rng.uniform(size=(5, 1)) ** (1 / 3)) / np.linalg.norm(tried, axis=1, keepdims=True)
        assert (values(matrices, linear, tried) >= best - 1e-9).all()


def test_refuses_what_does_not_belong_together():
    with pytest.raises(DataError):
        minimize_in_ball(np.eye(3), np.zeros((2, 2)), 1.0)
    with pytest.raises(DataError):
        minimize_in_ball(np.eye(2), np.zeros(2), 1.0)
    with pytest.raises(DataError):
        minimize_in_ball(np.full((2, 2), np.nan), np.zeros((1, 2)), 1.0)
    with pytest.raises(ParameterError):
        minimize_in_ball(np.eye(2), np.zeros((1, 2)), 0.0)
