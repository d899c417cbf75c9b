"""Vectors of many users, whether a system has a line for each rating or for each feature."""

import numpy as np
import pytest

from discreet.core.arrays import Rows
from discreet.solvers.als import solve_rows
from discreet.solvers.fold_in import solve_users
from discreet.testing import refuses

LENGTHS = np.array([0, 1, 2, 7, 8, 9, 47, 48, 49, 0, 96, 97, 200])


def problem(size, seed=0):
    random = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
    columns = np.concatenate([np.sort(random.choice(300, n, replace=False)) for n in LENGTHS])
    values = random.integers(1, 6, size=columns.size).astype(np.float32)
    features, offsets = random.standard_normal((300, size)), random.standard_normal(300)
    return Rows(indptr, columns.astype(np.int32), values), features, offsets


@pytest.mark.parametrize("size", [1, 3, 4, 7, 8, 44, 60, 91])
def test_the_squared_error_and_the_ridge_are_least(size):
    rows, features, offsets = problem(size)
    for scales in (None, np.linspace(0.5, 2, rows.n_rows)):
        options = {"ridge": np.linspace(0.2, 3, size), "scales": scales, "offsets": offsets}
        found = solve_users(rows, features, **options)
        np.testing.assert_allclose(found, solve_rows(rows, features, **options), rtol=0, atol=1e-10)
        assert not found[LENGTHS == 0].any()
    # The twin: one more star would be seen.
    other = rows._replace(values=rows.values + (np.arange(rows.values.size) == 3))
    assert not np.allclose(found, solve_users(other, features, **options))


@pytest.mark.parametrize("size", [5, 44])
def test_a_user_is_computed_alone(size):
    rows, features, offsets = problem(size)
    options = {"ridge": np.linspace(0.2, 3, size), "offsets": offsets}
    found = solve_users(rows, features, **options)
    for row in range(1, rows.n_rows):
        some = slice(rows.indptr[row], rows.indptr[row + 1])
        alone = Rows(np.append(0, LENGTHS[row : row + 1].cumsum()), rows.columns[some], rows.values[some])
        np.testing.assert_array_equal(solve_users(alone, features, **options)[0], found[row])


def test_without_a_ridge_only_enough_ratings_have_an_answer():
    rows, features, offsets = problem(3)
    enough = Rows(rows.indptr[3:] - rows.indptr[3], rows.columns[3:], rows.values[3:])
    options = {"ridge": np.zeros(3), "offsets": offsets}
    expected = solve_rows(enough, features, **options)
    np.testing.assert_allclose(solve_users(enough, features, **options), expected, rtol=0, atol=1e-10)
    with refuses("no-finite-answer"):
        solve_users(rows, np.zeros_like(features), **options)
    with refuses("no-finite-answer"):
        solve_users(rows, np.full_like(features, np.nan), **(options | {"ridge": np.ones(3)}))
