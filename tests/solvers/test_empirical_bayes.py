"""Shrinking knows how loud the noise is."""

import numpy as np
import pytest

from discreet.solvers.empirical_bayes import shrink, shrink_vectors


def effects(rng, n=2000, spread=0.3):
    return spread * rng.standard_normal(n)


def test_recovers_effects_when_there_is_no_noise():
    rng = np.random.default_rng(0)
    truth, counts = effects(rng), rng.uniform(1, 50, 2000)
    found = shrink(counts * truth, counts, 1e-12, np.ones((2000, 1)))
    np.testing.assert_allclose(found.mean, truth, atol=1e-6)


def test_beats_both_the_raw_average_and_the_overall_mean():
    rng = np.random.default_rng(1)
    truth, counts = effects(rng), rng.lognormal(2, 1.5, 2000)
    sums = counts * truth + 10 * rng.standard_normal(2000)
    found = shrink(sums, counts, 100.0, np.ones((2000, 1)))

    def error(guess):
        return np.sqrt(np.mean((guess - truth) ** 2))

    assert error(found.mean) < 0.9 * min(error(sums / counts), error(np.full(2000, truth.mean())))
    assert np.sqrt(np.mean(found.variance)) == pytest.approx(error(found.mean), rel=0.15)


def test_follows_a_feature_where_items_are_silent():
    rng = np.random.default_rng(2)
    feature = rng.standard_normal(500)
    features = np.column_stack([np.ones(500), feature])
    truth = 0.5 * feature + 0.1 * rng.standard_normal(500)
    counts = np.where(np.arange(500) < 250, 40.0, 0.01)
    found = shrink(counts * truth + rng.standard_normal(500), counts, 1.0, features)
    assert np.corrcoef(found.mean[250:], feature[250:])[0, 1] > 0.99


def test_vectors_agree_with_the_normal_equations():
    """With a spread that is known to fit, the answer is the ridge solution item by item."""
    rng = np.random.default_rng(3)
    n, size = 400, 3
    moment = np.cov(rng.standard_normal((size, 50))) + np.eye(size)
    truth = rng.standard_normal((n, size)) * np.array([1.0, 0.5, 0.2])
    counts = rng.uniform(5, 40, n)
    variance = np.full(n, 4.0)
    sums = counts[:, None] * (truth @ moment) + 2 * rng.standard_normal((n, size))
    found = shrink_vectors(sums, counts, moment, variance, np.zeros((n, size)), np.ones(n)).mean
    plain = np.linalg.solve(moment, (sums / counts[:, None]).T).T
    assert np.mean((found - truth) ** 2) <= np.mean((plain - truth) ** 2)
    assert np.mean((found - truth) ** 2) < 0.05 * np.mean(truth**2)


def test_silent_items_get_the_center():
    center = np.full((10, 2), 0.7)
    sums = np.random.default_rng(4).standard_normal((10, 2))
    found = shrink_vectors(sums, np.full(10, 1e-9), np.eye(2), np.ones(10), center, np.ones(10))
    np.testing.assert_allclose(found.mean, center, atol=1e-6)


def test_a_first_coordinate_that_is_known_well_moves_little():
    """With spreads of their own, the answer is the posterior of each item's own normal equations."""
    rng = np.random.default_rng(5)
    n, size = 600, 3
    moment = np.cov(rng.standard_normal((size, 50))) + np.eye(size)
    first = np.where(np.arange(n) % 2, 4.0, 0.01)
    truth = rng.standard_normal((n, size))
    truth[:, 0] *= np.sqrt(first)
    counts, variance = np.full(n, 2.0), np.full(n, 4.0)
    sums = counts[:, None] * (truth @ moment) + 2 * rng.standard_normal((n, size))
    known, plain = (
        shrink_vectors(sums, counts, moment, variance, np.zeros((n, size)), one)
        for one in (first, np.ones(n))
    )
    error = [float(np.mean((found.mean[:, 0] - truth[:, 0]) ** 2)) for found in (known, plain)]
    assert error[0] < 0.9 * error[1]
    for item in (0, 1, n - 2, n - 1):
        prior = np.diag(1 / np.array([first[item], 1.0, 1.0]))
        own = np.linalg.inv(counts[item] ** 2 / variance[item] * moment @ moment + prior)[0, 0]
        assert known.first_variance[item] == pytest.approx(own, rel=0.2)
