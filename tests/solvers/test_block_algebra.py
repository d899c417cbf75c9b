"""Dense algebra of one user: products, the inverse, and hints to the processor that change nothing."""

import numpy as np
import pytest

from discreet.core.kernels import compiled, fetch_entry, fetch_row
from discreet.solvers import block_algebra
from discreet.solvers.block_algebra import room_to_invert, width_of

_invert, _multiply, _row_products = block_algebra.invert, block_algebra.multiply, block_algebra.row_products


@compiled
def invert(matrix, size, four, rows, swept):
    return _invert(matrix, size, four, rows, swept)


@compiled
def multiply(rows, count, size, matrix, out):
    _multiply(rows, count, size, matrix, out)


@compiled
def row_products(rows, count, size, out):
    _row_products(rows, count, size, out)


def filled(rows, high, wide):
    """Return rows in the upper left corner of zeros."""
    found = np.zeros((high, wide))
    found[: rows.shape[0], : rows.shape[1]] = rows
    return found


@pytest.mark.parametrize("size", [4, 8, 12, 60, 136])
def test_a_matrix_given_by_its_upper_triangle_is_inverted(size):
    many, wide = np.random.default_rng(size).standard_normal((size, 2 * size)), width_of(size)
    square, room = many @ many.T + np.eye(size), room_to_invert(wide)
    for _ in range(2):  # what the first left in the room does not matter to the second
        found = filled(np.triu(square), wide, wide)
        found[:size, size:] = np.nan
        assert invert(found, size, *room)
        np.testing.assert_allclose(found[:size, :size], np.linalg.inv(square), rtol=0, atol=1e-12)
        assert not found[:size, size:].any()


@pytest.mark.few(1)
@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan])
def test_a_matrix_that_is_not_positive_definite_is_refused(bad):
    square = np.diag(np.append(np.ones(7), bad))
    assert not invert(square, 8, *room_to_invert(8))


@pytest.mark.few(2)
@pytest.mark.parametrize("count", [1, 4, 64, 131])
@pytest.mark.parametrize("size", [1, 5, 8, 41])
def test_products_are_those_of_the_first_rows(count, size):
    rng, wide = np.random.default_rng(count), width_of(size)
    rows, square = rng.standard_normal((count, size)), rng.standard_normal((size, size))
    room = filled(rows, count + 7, wide)
    room[count:] = np.nan
    out, products = np.full((count + 7, wide), np.nan), np.full((wide, wide), np.nan)
    row_products(room, count, size, products)
    np.testing.assert_allclose(np.triu(products[:size, :size]), np.triu(rows.T @ rows), atol=1e-12)
    multiply(room, count, size, filled(square, wide, wide), out)
    np.testing.assert_allclose(out[:count, :size], rows @ square, atol=1e-12)
    assert not out[:count, size:].any()


@compiled
def _fetched(table, row, column):
    fetch_row(table, row)
    fetch_entry(table, row, column)
    return table[row, column]


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(1, 1), (3, 35)])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_fetching_changes_nothing(shape, kind):
    table = np.arange(np.prod(shape), dtype=kind).reshape(shape)
    before = table.copy()
    assert _fetched(table, shape[0] - 1, shape[1] - 1) == before[-1, -1]
    np.testing.assert_array_equal(table, before)
