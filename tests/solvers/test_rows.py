"""Loops over sparse rows agree with dense algebra, whatever the number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.core import arrays
from discreet.core.arrays import Rows, column_sums, multiply, predict_cells, require_fit, run
from discreet.core.checks import NotFiniteArray
from discreet.testing import refuses


@pytest.fixture
def matrix():
    made = sp.random(300, 200, density=0.5, random_state=np.random.default_rng(1), format="csr")
    made.data = made.data.astype(np.float32).astype(np.float64)
    made.sort_indices()
    return made


def rows_of(matrix):
    return Rows(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32)
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize("threads", [1, 3])
def test_multiply_equals_scipy(matrix, dtype, tolerance, threads, monkeypatch):
    monkeypatch.setattr(arrays, "thread_count", lambda: threads)
    dense = np.random.default_rng(2).normal(size=(200, 7)).astype(dtype)
    product = multiply(rows_of(matrix), dense)
    assert product.dtype == dtype
    np.testing.assert_allclose(product, matrix @ dense, atol=tolerance)


def test_predict_cells_is_a_dense_product_at_the_cells():
    draw = np.random.default_rng(3)
    left, right = draw.normal(size=(50, 5)), draw.normal(size=(30, 5))
    cells = draw.integers(0, 50, 1000), draw.integers(0, 30, 1000)
    np.testing.assert_allclose(predict_cells(left, right, *cells), (left @ right.T)[cells], atol=1e-12)
    assert predict_cells(left, right, cells[0][:0], cells[1][:0]).size == 0


def test_residuals_are_what_the_model_leaves(matrix):
    draw = np.random.default_rng(4)
    left, right = draw.normal(size=(300, 4)), draw.normal(size=(200, 4))
    row_offsets, column_offsets = draw.normal(size=300), draw.normal(size=200)
    found = arrays.residuals(rows_of(matrix), left, right, row_offsets, column_offsets)
    whole = matrix.toarray() - row_offsets[:, None] - column_offsets - left @ right.T
    np.testing.assert_allclose(found, whole[matrix.nonzero()], atol=1e-12)


def test_column_sums_are_bincounts_in_double_precision(matrix):
    own = rows_of(matrix)
    expected = np.bincount(own.columns, weights=own.values, minlength=205)
    np.testing.assert_allclose(column_sums(own.columns, own.values, 205), expected, rtol=1e-12)


def test_row_weights_are_counts_or_totals(matrix):
    own = rows_of(matrix)
    assert np.array_equal(own.row_weights(), np.diff(matrix.indptr))
    weighted = own._replace(weights=own.values)
    np.testing.assert_allclose(weighted.row_weights(), np.asarray(matrix.sum(1)).ravel(), rtol=1e-9)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("n_rows", [0, 1, 5, 1000])
def test_ranges_cover_every_row_once(threads, n_rows, monkeypatch):
    monkeypatch.setattr(arrays, "thread_count", lambda: threads)
    cost = np.concatenate(([0], np.cumsum(np.random.default_rng(5).integers(0, 3, n_rows) * 50_000)))
    visits = np.zeros(n_rows, dtype=np.int64)

    def visit(start, stop, out):
        out[start:stop] += 1

    run(visit, cost, visits)
    assert np.all(visits == 1)


def test_an_error_in_a_thread_is_not_lost(monkeypatch):
    monkeypatch.setattr(arrays, "thread_count", lambda: 2)

    def fail(start, stop, out):
        raise NotFiniteArray(name="rows")

    with refuses("not-finite-array", name="rows"):
        run(fail, np.arange(100_000), np.zeros(1))


def test_parts_that_do_not_belong_together_are_refused(matrix):
    own = rows_of(matrix)
    with refuses("bad-sparse-matrix", part="lengths"):
        require_fit(own._replace(values=own.values[1:]), 200)
    with refuses("bad-sparse-matrix", part="row pointers"):
        require_fit(own._replace(indptr=np.array([0, 5, 3, own.columns.size])), 200)
    with refuses("bad-sparse-matrix", part="columns"):
        multiply(own, np.ones((199, 2)))
    with refuses("bad-sparse-matrix", part="weights"):
        require_fit(own._replace(weights=np.full_like(own.values, np.nan)), 200)
    with refuses("bad-sparse-matrix", part="entries"):
        predict_cells(np.ones((30, 2)), np.ones((9, 2)), np.array([30]), np.array([0]))
    with refuses("bad-sparse-matrix", part="columns"):
        column_sums(own.columns, own.values, 10)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("lengths", [[3, 1, 4, 1, 5], [0, 9, 0, 0, 0], [0, 0, 0, 0, 0]])
def test_sums_over_threads_take_every_row_once(monkeypatch, threads, lengths):
    monkeypatch.setattr(arrays, "thread_count", lambda: threads)
    monkeypatch.setattr(arrays, "_WORTH_THREADS", 0)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    seen, count = np.zeros(5, dtype=np.int64), np.zeros(1, dtype=np.int64)

    def add(start, stop, rows, number):
        rows[start:stop] += 1
        number += stop - start

    arrays.add_over_rows(add, indptr, seen, count)
    np.testing.assert_array_equal(seen, np.ones(5))
    assert count.tolist() == [5]
