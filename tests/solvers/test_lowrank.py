"""Low-rank matrices, their products, and the projections onto the nuclear ball."""

import numpy as np
import pytest

from discreet.solvers.low_rank import matrix as lowrank
from discreet.solvers.low_rank.matrix import (
    LowRank,
    LowRankPlusSparse,
    ObservedEntries,
    project_both,
    project_dense,
    project_nuclear,
    threshold,
)
from discreet.testing import refuses


def cells_of(mask: np.ndarray) -> ObservedEntries:
    rows, columns = np.nonzero(mask)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=mask.shape[0])))).astype(np.int64)
    return ObservedEntries(indptr, columns.astype(np.int32), mask.shape[1])


@pytest.fixture
def operator() -> LowRankPlusSparse:
    rng = np.random.default_rng(4)
    low = LowRank.of_product(rng.standard_normal((220, 3)), 3 * rng.standard_normal((260, 3)))
    cells = cells_of(rng.random((220, 260)) < 0.05)
    return LowRankPlusSparse(low, cells, rng.standard_normal(cells.size))


def nuclear_norm(matrix: np.ndarray) -> float:
    return float(np.linalg.svd(matrix, compute_uv=False).sum())


def test_products_never_need_the_sum(operator):
    rng = np.random.default_rng(0)
    right, left = rng.standard_normal((260, 4)), rng.standard_normal((220, 4))
    np.testing.assert_allclose(operator.times(right), operator.dense() @ right, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        operator.transposed_times(left), operator.dense().T @ left, rtol=1e-9, atol=1e-9
    )


def test_fixed_signs_do_not_depend_on_those_that_were_found():
    matrix = np.random.default_rng(3).standard_normal((7, 4))
    found = LowRank.of_dense(matrix)
    flips = np.array([1.0, -1.0, -1.0, 1.0])
    flipped = LowRank(found.left * flips, found.values, found.right * flips)
    one, other = found.with_fixed_signs(), flipped.with_fixed_signs()
    assert np.array_equal(one.left, other.left) and np.array_equal(one.right, other.right)
    np.testing.assert_allclose(one.dense(), matrix, atol=1e-12)
    assert (one.right.max(axis=0) > -one.right.min(axis=0)).all()
    assert LowRank.zero((7, 4)).with_fixed_signs().rank == 0


def test_mixing_and_distances_agree_with_dense_arithmetic(operator):
    rng = np.random.default_rng(1)
    first = operator.low
    second = LowRank.of_product(rng.standard_normal((220, 2)), rng.standard_normal((260, 2)))
    mixed = first.mixed(second, 0.3)
    np.testing.assert_allclose(mixed.dense(), 0.7 * first.dense() + 0.3 * second.dense(), atol=1e-10)
    distance = np.sum((first.dense() - second.dense()) ** 2)
    assert first.squared_distance(second) == pytest.approx(distance)
    assert first.squared_distance(first) == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(
        operator.cells.of(first), first.dense()[operator.cells.rows, operator.cells.columns]
    )


@pytest.mark.parametrize("radius", [20.0, 300.0, 900.0, 2000.0])
def test_partial_projection_equals_the_full_one(operator, radius):
    full = project_dense(operator.dense(), radius)
    partial = project_nuclear(operator, radius, tolerance=1e-8)
    np.testing.assert_allclose(partial.dense(), full, atol=1e-5)
    assert partial.values.sum() <= radius * (1 + 1e-9)


def test_partial_projection_where_few_directions_are_wrong():
    """Three cells beside a low-rank matrix: most residuals depend on each other or are only rounding."""
    rng = np.random.default_rng(8)
    low = LowRank.of_product(rng.standard_normal((220, 20)), rng.standard_normal((260, 20)))
    mask = np.zeros((220, 260), bool)
    mask[[3, 50, 51], [7, 7, 100]] = True
    operator = LowRankPlusSparse(low, cells_of(mask), np.array([9.0, -4.0, 2.0]))
    radius = 0.5 * nuclear_norm(operator.dense())
    partial = project_nuclear(operator, radius, tolerance=1e-8)
    np.testing.assert_allclose(partial.dense(), project_dense(operator.dense(), radius), atol=1e-5)
    np.testing.assert_allclose(partial.left.T @ partial.left, np.eye(partial.rank), atol=1e-9)
    np.testing.assert_allclose(partial.right.T @ partial.right, np.eye(partial.rank), atol=1e-9)


def test_projection_grows_its_rank_and_stays_thin(operator, monkeypatch):
    sizes = []
    plain = lowrank._leading

    def watched(operator, start, radius, tolerance):
        sizes.append(start.shape[1])
        return plain(operator, start, radius, tolerance)

    monkeypatch.setattr(lowrank, "_leading", watched)
    start = LowRankPlusSparse(LowRank.zero((220, 260)), operator.cells, operator.sparse)
    found = project_nuclear(start, 12.0)
    assert sizes == sorted(sizes) and len(sizes) > 1
    assert found.rank < sizes[-1]


def test_projection_inside_the_ball_changes_nothing(operator):
    found = project_nuclear(operator, 1e6)
    np.testing.assert_allclose(found.dense(), operator.dense(), atol=1e-8)


def test_refuses_to_keep_a_large_matrix_in_full(operator, monkeypatch):
    monkeypatch.setattr(lowrank, "_MOST_ENTRIES", 50_000)
    with refuses("radius-too-large", most=73):
        project_nuclear(operator, 1e6)


def test_projection_lands_in_the_ball_and_keeps_what_is_inside():
    matrix = np.random.default_rng(1).normal(size=(6, 4))
    norm = np.linalg.svd(matrix, compute_uv=False).sum()
    np.testing.assert_allclose(project_dense(matrix, norm), matrix, atol=1e-12)
    inside = project_dense(matrix, norm / 3)
    assert np.linalg.svd(inside, compute_uv=False).sum() == pytest.approx(norm / 3)
    # The nearest point: every other point of the ball makes an obtuse angle with what was cut off.
    other = project_dense(np.random.default_rng(2).normal(size=(6, 4)), norm / 3)
    assert np.sum((matrix - inside) * (other - inside)) <= 1e-9


def test_threshold_leaves_the_radius():
    values = np.array([5.0, 3.0, 1.0, 0.5])
    cut = threshold(values, 4.0)
    assert np.maximum(values - cut, 0).sum() == pytest.approx(4.0)
    assert threshold(values, 100.0) == 0.0
    assert threshold(np.zeros(0), 1.0) == 0.0


def test_intersection_projection_is_feasible_and_nearest():
    rng = np.random.default_rng(5)
    matrix = (
        2 * rng.standard_normal((30, 20)) + rng.standard_normal((30, 1)) @ rng.standard_normal((1, 20)) * 3
    )
    found = project_both(matrix, 25.0, 0.8, tolerance=1e-7, most=5000)
    assert np.abs(found).max() <= 0.8 + 1e-9 and nuclear_norm(found) <= 25.0 * (1 + 1e-6)
    # The nearest point makes an obtuse angle with everything else in the set.
    for seed in range(8):
        other = project_both(np.random.default_rng(seed).standard_normal((30, 20)) * 2, 25.0, 0.8)
        assert np.sum((matrix - found) * (other - found)) <= 1e-3


def test_intersection_respects_a_bound_for_every_entry():
    rng = np.random.default_rng(6)
    limits = rng.uniform(0.2, 1.0, (12, 9))
    found = project_both(5 * rng.standard_normal((12, 9)), 6.0, limits)
    assert np.all(np.abs(found) <= limits + 1e-12)
