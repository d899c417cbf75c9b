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
    found = shrink_vectors(sums, counts, moment, variance, np.zeros((n, size)))
    plain = np.linalg.solve(moment, (sums / counts[:, None]).T).T
    assert np.mean((found - truth) ** 2) <= np.mean((plain - truth) ** 2)
    assert np.mean((found - truth) ** 2) < 0.05 * np.mean(truth**2)


def test_silent_items_get_the_center():
    center = np.full((10, 2), 0.7)
    found = shrink_vectors(
        np.random.default_rng(4).standard_normal((10, 2)), np.full(10, 1e-9), np.eye(2), np.ones(10), center
    )
    np.testing.assert_allclose(found, center, atol=1e-6)
