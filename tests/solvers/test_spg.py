"""The solver against an independent one, and the walk that sees only what it is given."""

import math

import numpy as np
import pytest

from discreet.data.datasets.synthetic import one_bit
from discreet.solvers.low_rank.losses import MeteredGradient, OneBitLoss
from discreet.solvers.low_rank.matrix import ObservedEntries
from discreet.solvers.low_rank.spg import BoundedNuclearBall, NuclearBall, minimize, walk
from discreet.testing import refuses


def problem(link="logistic", n_users=60, n_items=40, seed=2, observed=0.3):
    data = one_bit(n_users=n_users, n_items=n_items, rank=2, link=link, observed=observed, seed=seed).data
    cells = ObservedEntries(data.indptr, data.items, data.n_items)
    return cells, OneBitLoss(verdicts=data.values.astype(np.int8), link=link)


def independent_optimum(cells, loss, radius, bound, linear=None):
    import cvxpy as cp

    matrix = cp.Variable(cells.shape)
    signs = loss.verdicts.astype(float)
    scores = cp.hstack([matrix[r, c] for r, c in zip(cells.rows, cells.columns, strict=True)])
    margins = cp.multiply(signs, scores)
    value = cp.sum(cp.logistic(-margins)) if loss.link == "logistic" else -cp.sum(cp.log_normcdf(margins))
    if linear is not None:
        value = value + linear @ scores
    limits = [cp.normNuc(matrix) <= radius]
    if bound is not None:
        limits.append(cp.abs(matrix) <= bound)
    return float(cp.Problem(cp.Minimize(value), limits).solve(solver=cp.SCS, eps=1e-6, max_iters=20000))


@pytest.mark.slow
@pytest.mark.parametrize("bound", [None, 0.6])
def test_agrees_with_cvxpy_on_the_convex_problem(bound):
    cells, loss = problem()
    tilt = np.random.default_rng(1).laplace(0, 0.5, cells.size)
    loss = OneBitLoss(verdicts=loss.verdicts, linear=tilt)
    radius = 0.6 * math.sqrt(60 * 40)
    if bound is None:
        domain = NuclearBall(cells=cells, radius=radius)
    else:
        domain = BoundedNuclearBall(cells=cells, radius=radius, limits=bound, accuracy=1e-7, attempts=3000)
    found = minimize(loss, domain, first_length=8.0, iterations=500, tolerance=1e-8)
    reference = independent_optimum(cells, loss, radius, bound, tilt)
    assert found.value == pytest.approx(reference, rel=1e-4)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_solution_is_optimal_by_its_own_certificate(link):
    # Over the ball <gradient, X> + radius * largest singular value bounds the distance from the optimum.
    cells, loss = problem(link)
    radius = 30.0
    found = minimize(
        loss, NuclearBall(cells=cells, radius=radius), first_length=8.0, iterations=500, tolerance=1e-9
    )
    scores = cells.of(found.matrix)
    value, gradient = loss.value_and_gradient(scores)
    gap = float(gradient @ scores) + radius * np.linalg.norm(cells.dense(gradient), 2)
    assert 0 <= gap <= 1e-4 * value
    assert found.value == pytest.approx(value) and found.matrix.values.sum() <= radius * (1 + 1e-9)


def test_partial_and_full_decompositions_find_the_same_value():
    cells, loss = problem(n_users=230, n_items=210, observed=0.1)
    radius = 0.4 * math.sqrt(230 * 210)
    thin = minimize(loss, NuclearBall(cells=cells, radius=radius), first_length=8.0, tolerance=1e-8)
    box = BoundedNuclearBall(cells=cells, radius=radius, limits=1e9)
    full = minimize(loss, box, first_length=8.0, tolerance=1e-8)
    assert thin.value == pytest.approx(full.value, rel=1e-5)


def test_weights_are_a_change_of_variables():
    cells, loss = problem()
    weights = np.full(cells.size, 2.0)
    plain = minimize(
        loss, NuclearBall(cells=cells, radius=40.0), first_length=8.0, iterations=300, tolerance=1e-9
    )
    scaled = NuclearBall(cells=cells, radius=20.0, weights=weights)
    found = minimize(loss, scaled, first_length=2.0, iterations=300, tolerance=1e-9)
    assert found.value == pytest.approx(plain.value, rel=1e-5)


def test_repeats_exactly_and_reports_steps():
    cells, loss = problem()
    seen = []
    runs = [
        minimize(
            loss,
            NuclearBall(cells=cells, radius=30.0),
            first_length=8.0,
            report=lambda a, b: seen.append((a, b)),
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].matrix.left, runs[1].matrix.left)
    assert seen[0] == (1, 100)


def noised(loss, seed):
    rng = np.random.default_rng(seed)
    return lambda scores: loss.gradient(scores) + rng.laplace(0, 1.0, scores.size)


def test_walk_asks_exactly_as_often_as_it_says():
    cells, loss = problem()
    meter = MeteredGradient(noised(loss, 0), allowed=3)
    walk(meter, NuclearBall(cells=cells, radius=30.0), length=4.0, steps=3)
    assert meter.asked == 3
    with refuses("gradient-overspent", allowed=2):
        walk(
            MeteredGradient(noised(loss, 0), allowed=2),
            NuclearBall(cells=cells, radius=30.0),
            length=4.0,
            steps=3,
        )


def test_line_search_and_stopping_rule_are_caught_by_the_meter():
    cells, loss = problem()
    meter = MeteredGradient(noised(loss, 0), allowed=100)
    with refuses("objective-private"):
        minimize(meter, NuclearBall(cells=cells, radius=30.0), first_length=8.0)
    assert meter.asked == 0
    # The twin: with the plain loss in its place the same call goes through.
    minimize(loss, NuclearBall(cells=cells, radius=30.0), first_length=8.0, iterations=3)


@pytest.mark.parametrize("spectral", [False, True])
def test_walk_sees_only_what_it_is_given(spectral):
    # Two different data sets behind the same answers lead to the same matrix.
    cells, _ = problem()
    answers = [np.random.default_rng(k).standard_normal(cells.size) for k in range(3)]

    def played():
        script = iter(answers)
        return MeteredGradient(lambda scores: next(script), allowed=3)

    first, second = (
        walk(played(), NuclearBall(cells=cells, radius=9.0), length=1.0, steps=3, spectral=spectral)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.dense(), second.dense())
