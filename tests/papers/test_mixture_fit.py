"""Expectation-maximization for a mixture of Gaussians: it climbs, and finds what was put in."""

import numpy as np
import pytest

from discreet.core.arrays import Rows
from discreet.core.checks import ParameterError
from discreet.papers.mixture.mixture import Mixture, expect, fit_mixture


def cells(n_rows=300, n_columns=120, per_row=60, rank=2, shares=(0.7, 0.3), widths=(0.05, 0.5), seed=0):
    """Return low-rank numbers with noise from a known mixture, by row and by column."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(1, 0.5, (n_rows, rank)), rng.normal(1, 0.5, (n_columns, rank))
    columns = np.sort(np.argsort(rng.random((n_rows, n_columns)), axis=1)[:, :per_row], axis=1)
    rows = np.repeat(np.arange(n_rows), per_row)
    noise = rng.normal(size=rows.size) * rng.choice(widths, rows.size, p=shares)
    flat = columns.ravel().astype(np.int32)
    truth = np.einsum("ij,ij->i", left[rows], right[flat])
    values = (truth + noise).astype(np.float32)
    by_row = Rows(np.arange(n_rows + 1, dtype=np.int64) * per_row, flat, values)
    order = np.argsort(flat, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=n_columns))]).astype(np.int64)
    by_column = Rows(indptr, rows[order].astype(np.int32), values[order])
    return by_row, by_column, order.astype(np.int64), truth


@pytest.mark.parametrize("regularization", [1e-6, 1.0, 100.0])
@pytest.mark.parametrize("components", [1, 3])
def test_the_log_likelihood_never_falls(regularization, components):
    by_row, by_column, order, _ = cells(n_rows=80, n_columns=50, per_row=20)
    fit = fit_mixture(
        by_row,
        by_column,
        order,
        factors=3,
        components=components,
        regularization=regularization,
        iterations=40,
    )
    steps = np.diff(fit.objective)
    # Weights travel in single precision, so a step may lose its last digits.
    assert np.all(steps >= -1e-6 * np.abs(fit.objective[-1]))
    assert steps[0] > 1.0


@pytest.mark.thorough
def test_a_known_mixture_is_found_again():
    by_row, by_column, order, truth = cells()
    fit = fit_mixture(by_row, by_column, order, factors=2, components=2, regularization=1e-3, iterations=150)
    by_width = np.argsort(fit.mixture.variances)
    # 18,000 cells: a share's standard error is below 0.004, fitting 840 numbers takes 5 % of the variance.
    np.testing.assert_allclose(np.sqrt(fit.mixture.variances[by_width]), [0.05, 0.5], rtol=0.06)
    np.testing.assert_allclose(fit.mixture.shares[by_width], [0.7, 0.3], atol=0.025)
    rows = np.repeat(np.arange(300), 60)
    found = np.einsum("ij,ij->i", fit.user_factors[rows], fit.item_factors[by_row.columns])
    one = fit_mixture(by_row, by_column, order, factors=2, components=1, regularization=1e-3, iterations=150)
    plain = np.einsum("ij,ij->i", one.user_factors[rows], one.item_factors[by_row.columns])
    # Knowing which cells are noisy must pay: a single Gaussian is the twin that does not know.
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.5 * np.sqrt(np.mean((plain - truth) ** 2))


def test_a_gaussian_that_explains_nothing_is_dropped():
    by_row, by_column, order, _ = cells(shares=(1.0, 0.0), widths=(0.3, 1.0))
    start = fit_mixture(by_row, by_column, order, factors=2, components=1, regularization=1e-3, iterations=20)
    dead = Mixture(shares=np.array([1 - 1e-12, 1e-12]), variances=np.append(start.mixture.variances, 1e-9))
    again = fit_mixture(
        by_row,
        by_column,
        order,
        factors=2,
        regularization=1e-3,
        iterations=2,
        initial=type(start)(
            user_factors=start.user_factors, item_factors=start.item_factors, mixture=dead, objective=()
        ),
    )
    assert again.mixture.shares.size == 1


def test_expectation_is_that_of_the_definition():
    by_row, _, _, _ = cells(n_rows=10, n_columns=20, per_row=8)
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(10, 2)), rng.normal(size=(20, 2))
    mixture = Mixture(shares=np.array([0.2, 0.8]), variances=np.array([0.5, 3.0]))
    told = expect(by_row, left, right, mixture)
    rows = np.repeat(np.arange(10), 8)
    errors = by_row.values - np.einsum("ij,ij->i", left[rows], right[by_row.columns])
    density = (
        mixture.shares
        * np.exp(-0.5 * errors[:, None] ** 2 / mixture.variances)
        / np.sqrt(2 * np.pi * mixture.variances)
    )
    share = density / density.sum(axis=1, keepdims=True)
    assert told.log_likelihood == pytest.approx(np.log(density.sum(axis=1)).sum(), rel=1e-9)
    np.testing.assert_allclose(told.counts, share.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(told.squares, share.T @ errors**2, rtol=1e-9)
    np.testing.assert_allclose(told.likely, share, rtol=1e-5)


def test_continues_from_an_earlier_answer():
    by_row, by_column, order, _ = cells(n_rows=80, n_columns=50, per_row=20)
    settings = {"factors": 2, "components": 2, "regularization": 0.1}
    whole = fit_mixture(by_row, by_column, order, iterations=10, **settings)
    half = fit_mixture(by_row, by_column, order, iterations=5, **settings)
    rest = fit_mixture(by_row, by_column, order, iterations=5, initial=half, **settings)
    np.testing.assert_allclose(rest.objective, whole.objective, rtol=1e-9)


@pytest.mark.parametrize("change", [{"factors": 0}, {"components": 0}, {"regularization": 0.0}])
def test_bad_settings_are_refused(change):
    by_row, by_column, order, _ = cells(n_rows=10, n_columns=20, per_row=8)
    with pytest.raises(ParameterError):
        fit_mixture(by_row, by_column, order, **{"factors": 1, **change})
