"""Smooth functions of item vectors: a kernel's features, its scale, and what they let a user say."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models.user_factorization.latent_factors import LatentFactors, with_curves
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.solvers.features import kernel_features


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((60, 3))


def test_with_all_landmarks_the_features_are_the_kernel(vectors):
    """Their products are the centered kernel, up to one factor; those of a narrower kernel are not."""
    weights = np.ones(60)
    found = kernel_features(vectors, weights, width=1.0, landmarks=60, most=60)
    products = (found @ found.T).ravel()

    def centered(width: float) -> np.ndarray:
        squares = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
        kernel = np.exp(-squares / (2 * width**2))
        center = np.eye(60) - 1 / 60
        return (center @ kernel @ center).ravel()

    assert np.corrcoef(products, centered(1.0))[0, 1] > 1 - 1e-6
    assert np.corrcoef(products, centered(0.5))[0, 1] < 0.99


def test_rows_have_unit_length_and_no_mean_under_the_weights(vectors):
    weights = np.linspace(0.1, 3.0, 60)
    found = kernel_features(vectors, weights, width=0.9, landmarks=30, most=10)
    share = weights / weights.sum()
    assert found.shape == (60, 10)
    assert np.allclose(share @ found, 0.0, atol=1e-12)
    assert share @ (found**2).sum(axis=1) == pytest.approx(1.0)


def test_items_in_one_place_give_finite_numbers():
    found = kernel_features(np.ones((8, 2)), np.ones(8), width=1.0, landmarks=8, most=4)
    assert np.isfinite(found).all() and np.allclose(found, 0.0)


def factors(columns: np.ndarray) -> LatentFactors:
    features = np.column_stack([np.ones(len(columns)), columns])
    return LatentFactors(
        np.zeros(len(columns)), features, np.ones(features.shape[1]), features.shape[1], np.ones(len(columns))
    )


def test_the_factors_stay_and_functions_of_them_follow(vectors):
    plain = np.random.default_rng(1).standard_normal((60, 2))
    given = factors(np.column_stack([plain, vectors]))
    found = with_curves(given, np.ones(60), 1e4, 1.0, FactorizationSettings())
    assert np.array_equal(found.features[:, :6], given.features)
    assert found.features.shape[1] == 6 + min(60, FactorizationSettings().most_curves) == found.ridge.size


def test_quality_and_popularity_alone_stay_as_they_are(vectors):
    given = factors(vectors[:, :2])
    assert with_curves(given, np.ones(60), 1e4, 1.0, FactorizationSettings()) is given


def test_less_is_asked_of_them_with_noise_or_few_ratings(vectors):
    given = factors(vectors)

    def ridge(users: float = 1e4, rated: float = 1.0) -> float:
        return float(with_curves(given, np.ones(60), users, rated, FactorizationSettings()).ridge[-1])

    assert min(ridge(users=500.0), ridge(rated=0.2)) > ridge()
