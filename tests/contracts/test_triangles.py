"""Of a matrix that is summed as its upper triangle, entries off the diagonal count twice: it must say so."""

import numpy as np
import pytest

from contracts.test_statistic_contract import EXAMPLES, N_ITEMS, made
from toy import toy_interactions


@pytest.mark.few(21)
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_sum_of_upper_triangles_is_declared_as_one(name):
    data = toy_interactions(n_users=200, n_items=N_ITEMS)
    sums = data.total(made(name, data))
    for part, array in zip(sums.parts, sums.arrays, strict=True):
        is_square = array.ndim == 2 and array.shape[0] == array.shape[1] > 1
        is_upper = is_square and np.triu(array, 1).any() and not np.tril(array, -1).any()
        assert part.symmetric == is_upper, part.name
        if part.symmetric:
            whole = sums.floats(part.name)
            np.testing.assert_array_equal(whole, whole.T)
