"""Second moments are exact: they equal dense algebra, and a row moves them by exactly what it adds."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from discreet.core import arrays
from discreet.core.arrays import Rows
from discreet.solvers.low_rank.matrix import project_moment
from discreet.statistics import scaled_rows as second_moment
from discreet.statistics.frank_wolfe_rounds import advance, begin, bounded_moment
from discreet.statistics.scaled_rows import ScaledMoment, ScaledProduct, Scaling, own_places
from discreet.statistics.statistic import ROW_STEPS
from small_sources import people_of

COLUMNS = 25


def some_rows(n_rows=60, seed=1):
    made = sp.random(n_rows, COLUMNS, density=0.4, random_state=np.random.default_rng(seed), format="csr")
    made.sort_indices()
    values = np.random.default_rng(seed).normal(size=made.nnz).astype(np.float32)
    return Rows(made.indptr.astype(np.int64), made.indices.astype(np.int32), values)


def without(rows, row):
    span = slice(rows.indptr[row], rows.indptr[row + 1])
    lengths = np.delete(np.diff(rows.indptr), row)
    return Rows(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.delete(rows.columns, span),
        np.delete(rows.values, span),
    )


def dense(rows, values):
    return sp.csr_matrix((values, rows.columns, rows.indptr), shape=(rows.indptr.size - 1, COLUMNS)).toarray()


def scaling(**options):
    # A ridge so strong leaves every row its values.
    nothing = {"offsets": np.zeros(COLUMNS), "factors": np.zeros((COLUMNS, 0)), "ridge": np.array([1e30])}
    numbers = {"middle": 0.0, "half": 1.0, "part": 0.2, "clamp": np.inf, "least_length": 0.0}
    return Scaling(**{**nothing, **numbers, **options})


def scaled(rows, **options):
    return scaling(**options).of_rows(rows)


def moment_of(rows, **options):
    return people_of(rows, COLUMNS).total(ScaledMoment(scaling=scaling(**options))).floats()


def moment_product(rows, vector):
    return people_of(rows, COLUMNS).total(ScaledProduct(scaling=scaling(), vector=vector)).floats()


def test_equals_dense_algebra_without_the_diagonal():
    rows = some_rows()
    told = scaled(rows)
    table = dense(told, told.steps.astype(np.float64)) / ROW_STEPS
    expected = table.T @ table
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_array_equal(moment_of(rows), expected)
    vector = np.random.default_rng(2).normal(size=COLUMNS)
    vector /= np.linalg.norm(vector)
    np.testing.assert_allclose(moment_product(rows, vector), expected @ vector, atol=60 / ROW_STEPS**2)


@pytest.mark.parametrize("columns", [0, 2])
def test_residuals_are_what_offsets_and_own_places_leave(columns):
    rows, draw = some_rows(), np.random.default_rng(5)
    offsets, factors = draw.normal(size=COLUMNS), draw.normal(size=(COLUMNS, columns))
    ridge = np.array([3.0, 0.5, 0.5])[: columns + 1]
    own = own_places(rows, offsets, factors, ridge)
    seen = dense(rows, np.ones(rows.values.size))
    design = np.column_stack([np.ones(COLUMNS), factors])
    for row in (0, 9):
        mine = design[seen[row] > 0]
        told = (dense(rows, rows.values.astype(np.float64))[row] - offsets)[seen[row] > 0]
        np.testing.assert_allclose(
            own[row], np.linalg.solve(mine.T @ mine + np.diag(ridge), mine.T @ told), atol=1e-6
        )
        left = np.clip(told - mine @ own[row], -0.4, 0.4)
        left /= np.sqrt(np.sum(left**2 + 0.2**2))
        steps = scaled(rows, offsets=offsets, factors=factors, ridge=ridge, clamp=0.4).steps
        span = slice(rows.indptr[row], rows.indptr[row + 1])
        np.testing.assert_allclose(steps[span] / ROW_STEPS, left, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_not_change_a_bit(threads, monkeypatch):
    rows, vector = some_rows(400), np.full(COLUMNS, 0.2)
    plain = moment_of(rows), moment_product(rows, vector)
    monkeypatch.setattr(arrays, "thread_count", lambda: threads)
    monkeypatch.setattr(second_moment, "_LARGEST_COPY", 16 * 100)
    np.testing.assert_array_equal(moment_of(rows), plain[0])
    np.testing.assert_array_equal(moment_product(rows, vector), plain[1])


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=COLUMNS),
    st.sampled_from([0.0, 0.2, 3.0]),
    st.sampled_from([0.0, 1.0]),
)
def test_no_row_is_longer_than_one(values, part, least):
    row = Rows(
        np.array([0, len(values)]), np.arange(len(values), dtype=np.int32), np.array(values, np.float32)
    )
    told = scaled(row, part=part, least_length=least)
    length = np.linalg.norm(told.steps.astype(np.float64) / ROW_STEPS)
    assert length <= 1
    alone = moment_of(row, part=part, least_length=least)
    assert np.linalg.norm(alone) <= 1 and np.linalg.norm(alone, 2) <= 1


def test_one_row_moves_the_sums_by_exactly_its_own_part():
    rows, vector = some_rows(), np.full(COLUMNS, 0.2)
    for row in (0, 17, 59):
        alone = Rows(
            np.array([0, rows.indptr[row + 1] - rows.indptr[row]]),
            rows.columns[rows.indptr[row] : rows.indptr[row + 1]],
            rows.values[rows.indptr[row] : rows.indptr[row + 1]],
        )
        for statistic in (moment_of, lambda told: moment_product(told, vector)):
            moved = statistic(rows) - statistic(without(rows, row))
            np.testing.assert_array_equal(moved, statistic(alone))


def test_short_rows_count_less_under_a_bound():
    rows = some_rows()
    assert np.abs(scaled(rows, least_length=100.0).steps).max() < np.abs(scaled(rows).steps).max() / 5


def test_projected_steps_equal_dense_algebra():
    rows = some_rows()
    table, seen = dense(rows, rows.values.astype(np.float64)), dense(rows, np.ones(rows.values.size))
    state, matrix = begin(rows, COLUMNS), np.zeros_like(table)
    for _ in range(3):
        matrix = matrix + seen * (table - matrix)
        projection = project_moment(matrix.T @ matrix, radius=20.0, noise=0.5, most=4)
        matrix = (matrix @ projection.basis * projection.kept) @ projection.basis.T
        state = advance(rows, state, projection)
        np.testing.assert_allclose(state.places @ state.basis.T, matrix, atol=1e-5)
    assert np.linalg.svd(matrix, compute_uv=False).sum() <= 20.0 * (1 + 1e-12)


def test_a_row_moves_the_projected_moment_by_exactly_its_own_part():
    rows = some_rows()
    basis = np.linalg.qr(np.random.default_rng(3).normal(size=(COLUMNS, 3)))[0]
    projection = project_moment((basis * [30.0, 20.0, 10.0]) @ basis.T, radius=9.0, noise=0.1, most=3)

    def moment(part, bound=1.5):
        return bounded_moment(part, advance(part, begin(part, COLUMNS), projection), bound)

    whole = moment(rows)
    for row in (0, 31):
        person = Rows(
            np.array([0, rows.indptr[row + 1] - rows.indptr[row]]),
            rows.columns[rows.indptr[row] : rows.indptr[row + 1]],
            rows.values[rows.indptr[row] : rows.indptr[row + 1]],
        )
        alone = moment(person)
        np.testing.assert_array_equal(whole - moment(without(rows, row)), alone)
        assert 0 < np.linalg.norm(alone) <= 1
