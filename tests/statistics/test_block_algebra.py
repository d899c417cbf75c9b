"""Dense algebra of one user: the inverse in every layout, and hints to the processor that change nothing."""

import numpy as np
import pytest

from discreet.core.kernels import compiled, fetch_entry, fetch_row
from discreet.statistics import block_algebra
from discreet.statistics.block_algebra import BLOCK, room_to_invert

_invert = block_algebra.invert


@compiled
def invert(matrix, four, weights, rows, parts):
    return _invert(matrix, four, weights, rows, parts)


@pytest.mark.parametrize("size", [4, 12, BLOCK - 4, BLOCK, BLOCK + 4, 2 * BLOCK + 8])
def test_a_matrix_given_by_its_lower_triangle_is_inverted_in_parts(size):
    wide = np.random.default_rng(size).standard_normal((size, 2 * size))
    square = wide @ wide.T + np.eye(size)
    room = room_to_invert(size)
    for _ in range(2):  # what the first left in the room does not matter to the second
        found = np.tril(square)
        assert invert(found, *room)
        np.testing.assert_allclose(found, np.linalg.inv(square), rtol=0, atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan])
def test_a_matrix_that_is_not_positive_definite_is_refused(bad):
    square = np.diag(np.append(np.ones(7), bad))
    assert not invert(square, *room_to_invert(8))


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
