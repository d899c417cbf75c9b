"""A few rows are answered with numpy as many are with compiled loops, but for rounding."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from discreet.core.arrays import Rows, multiply, predict_cells
from discreet.models.scorers.similarity import log_chance
from discreet.solvers.few_rows import FEW, products, ridge_vectors, weighted_sums
from discreet.solvers.fold_in import solve_users
from discreet.testing import refuses


@pytest.fixture
def source():
    random = np.random.default_rng(0)
    lengths = random.integers(0, 9, size=20)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = np.concatenate([np.sort(random.choice(30, n, replace=False)) for n in lengths]).astype(np.int32)
    values = random.integers(1, 6, size=columns.size).astype(np.float32)
    return Rows(indptr, columns, values), random.standard_normal((30, 4)), random.standard_normal(30)


def test_few_rows_are_solved_as_many_are(source):
    rows, features, offsets = source
    assert rows.n_rows <= FEW
    for scales in (None, np.linspace(0.5, 2, rows.n_rows)):
        options = {"ridge": np.array([0.3, 1, 2, 3]), "scales": scales, "offsets": offsets}
        assert np.allclose(ridge_vectors(rows, features, **options), solve_users(rows, features, **options))
    # The twin: one more rating would be seen.
    other = rows._replace(values=rows.values + (np.arange(rows.values.size) == 3))
    assert not np.allclose(ridge_vectors(other, features, **options), solve_users(rows, features, **options))


def test_sums_and_cells_are_those_of_the_compiled_loops(source):
    rows, features, _ = source
    sums = weighted_sums(rows, features)
    assert np.allclose(sums, multiply(rows, features)) and sums.any()
    cells = np.arange(20), np.arange(20)[::-1].copy()
    assert np.allclose(products(sums, features, *cells), predict_cells(sums, features, *cells))
    with refuses("bad-sparse-matrix", part="entries"):
        products(sums, features, np.array([0]), np.array([-1]))


def test_a_row_without_an_answer_is_refused(source):
    rows, features, offsets = source
    with refuses("no-finite-answer"):
        ridge_vectors(rows, np.zeros_like(features), ridge=np.zeros(4), offsets=offsets)


def test_the_logarithm_of_a_chance_is_the_normal_distributions():
    points = np.concatenate([np.linspace(-60, 12, 20_011), [-np.inf, -1e200, np.inf]])
    truth = log_ndtr(points)
    finite = np.isfinite(truth)
    assert np.allclose(log_chance(points)[finite], truth[finite], rtol=2e-9, atol=2e-9)
    assert (log_chance(points)[~finite] == -np.inf).all() and np.isnan(log_chance([np.nan])).all()
    assert not np.allclose(log_chance(points * 1.0001)[finite], truth[finite], rtol=2e-9, atol=2e-9)
