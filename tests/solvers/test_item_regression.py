"""Weights between items: the regression that EASE solves, and noise taken out of co-occurrences."""

import numpy as np
import pytest

from discreet.solvers.empirical_bayes import _groups, _means_by_group, denoised_pairs
from discreet.solvers.item_regression import regression_weights, strongest


def posterior_means(values, variance, sizes):
    """Return the means of numbers whose priors are those of groups of similar sizes."""
    return _means_by_group(values, variance, _groups(sizes))


def choices(n_users=400, n_items=12, seed=0):
    """Return who chose what: two groups of items, each chosen by its own half of the users."""
    rng = np.random.default_rng(seed)
    likely = np.where(np.arange(n_items) % 2 == np.arange(n_users)[:, None] % 2, 0.5, 0.1)
    return (rng.random((n_users, n_items)) < likely).astype(np.float64)


def test_symmetric_pairs_give_the_regression_of_each_item_on_the_others():
    matrix = choices()
    together = matrix.T @ matrix
    pairs = together - np.diag(np.diag(together))
    votes = np.linspace(30.0, 60.0, 12)
    scaled = pairs / np.sqrt(np.outer(votes, votes))
    factor = -np.linalg.eigvalsh(scaled)[0]
    weights = regression_weights(pairs, 1.0, votes, np.ones(12), by_votes=0.5, ridge=4.0)
    gram = pairs + np.diag(factor * (1.5 * votes + 4.0))
    for item in range(12):
        others = np.delete(np.arange(12), item)
        wanted = np.linalg.solve(gram[np.ix_(others, others)], pairs[others, item])
        np.testing.assert_allclose(weights[others, item], wanted, rtol=1e-8, atol=1e-10)
    assert not np.diag(weights).any()


def test_item_weights_in_the_pairs_are_taken_out_again():
    matrix = choices()
    together = matrix.T @ matrix
    pairs = together - np.diag(np.diag(together))
    votes, item_weights = np.linspace(30.0, 60.0, 12), np.linspace(0.2, 3.0, 12)
    given = {"by_votes": 0.5, "ridge": 4.0}
    plain = regression_weights(pairs, 1.0, votes, np.ones(12), **given)
    weighted = regression_weights(
        pairs * np.outer(item_weights, item_weights), 1.0, votes, item_weights, **given
    )
    np.testing.assert_allclose(weighted, plain, atol=1e-10)


def test_what_follows_weighs_more_than_what_came_before():
    """The twin is symmetric: it cannot tell the direction."""
    chain = np.zeros((6, 6))
    chain[np.arange(5), np.arange(1, 6)] = 10.0
    directed = regression_weights(
        chain + 0.2 * chain.T, 0.2, np.full(6, 10.0), np.ones(6), by_votes=0.5, ridge=1.0
    )
    twin = regression_weights(chain + chain.T, 1.0, np.full(6, 10.0), np.ones(6), by_votes=0.5, ridge=1.0)
    assert directed[2, 3] > 3 * abs(directed[3, 2])
    assert twin[2, 3] == pytest.approx(twin[3, 2])


@pytest.mark.parametrize("size", [1, 2, 9])
def test_empty_pairs_give_no_weights(size):
    nothing = np.zeros((size, size))
    assert regression_weights(nothing, 1.0, np.ones(size), np.ones(size), by_votes=0.5, ridge=1.0) is None


def test_the_strongest_weights_of_each_row_are_kept():
    weights = np.array([[0.0, 3.0, -5.0], [1e9, 0.0, 1.0], [0.1, -0.2, 0.0]])
    kept = strongest(weights, 2)
    np.testing.assert_array_equal(kept.items, [[1, 2], [0, 2], [0, 1]])
    assert kept.weights.dtype == np.float16 and np.all(np.isfinite(kept.weights))
    assert strongest(weights, 50).items.shape == (3, 3)


def test_posterior_means_are_closer_than_what_was_seen_and_than_nothing():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(20_000) < 0.05, rng.normal(0, 6.0, 20_000), 0.0)
    seen = truth + rng.normal(0, 1.0, truth.size)
    found = posterior_means(seen, 1.0, np.ones(truth.size))
    errors = {name: np.mean((one - truth) ** 2) for name, one in (("seen", seen), ("found", found), ("0", 0))}
    assert errors["found"] < 0.3 * min(errors["seen"], errors["0"])
    # The twin is noise alone: next to nothing is left of it.
    alone = posterior_means(rng.normal(0, 1.0, truth.size), 1.0, np.ones(truth.size))
    assert np.mean(alone**2) < 0.05


def test_noise_is_taken_out_of_pairs_and_none_means_none():
    rng = np.random.default_rng(1)
    matrix = choices(n_users=4000, n_items=40)
    lengths = np.maximum(matrix.sum(axis=1), 1)
    truth = (matrix / lengths[:, None]).T @ matrix
    np.fill_diagonal(truth, 0.0)
    noise = 8.0
    seen = truth + rng.normal(0, noise, truth.shape)
    np.fill_diagonal(seen, 0.0)
    found = denoised_pairs(seen, noise, 4000.0, np.ones(40), most=8)
    assert np.mean((found - truth) ** 2) < 0.3 * np.mean((seen - truth) ** 2)
    assert not np.diag(found).any()
    np.testing.assert_array_equal(denoised_pairs(seen, 0.0, 4000.0, np.ones(40), most=8), seen)


def test_the_size_of_pairs_does_not_matter_to_the_mixture():
    """Very large and very small numbers neither overflow nor vanish."""
    rng = np.random.default_rng(2)
    seen = rng.normal(0, 3.0, 500)
    usual = posterior_means(seen, 1.0, np.ones(500))
    for scale in (1e-100, 1e100):
        np.testing.assert_allclose(posterior_means(seen * scale, scale**2, np.ones(500)), usual * scale)
    assert np.all(np.isfinite(posterior_means(np.array([1e300, -1e300]), 1e-4, np.ones(2))))
