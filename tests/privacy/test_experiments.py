"""Noise of experiments: as the mechanisms draw it, and from simulated sources alone."""

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.subsampling import ImportanceSampling
from discreet.privacy.simulated_noise import (
    largest_weights,
    sampling_loss,
    sampling_scale,
    simulated_gaussian,
    simulated_laplace,
)
from discreet.testing import refuses


def test_noise_is_the_mechanisms_own():
    values, matrix = np.linspace(0, 1, 5), np.eye(4)
    np.testing.assert_array_equal(
        simulated_laplace(values, epsilon=0.5, bound=2.0, random=PrivacyRandom.simulate(1)),
        Laplace.calibrated(epsilon=0.5, l1_sensitivity=2.0).release(values, PrivacyRandom.simulate(1)),
    )
    noise = Gaussian(sigma=3.0, l2_sensitivity=2.0)
    np.testing.assert_array_equal(
        simulated_gaussian(values, sigma=3.0, bound=2.0, random=PrivacyRandom.simulate(1)),
        noise.release(values, PrivacyRandom.simulate(1)),
    )
    np.testing.assert_array_equal(
        simulated_gaussian(matrix, sigma=3.0, bound=2.0, random=PrivacyRandom.simulate(1), symmetric=True),
        noise.release_symmetric(matrix, PrivacyRandom.simulate(1)),
    )


def test_real_noise_is_rejected():
    for draw in (
        lambda random: simulated_laplace([1.0], epsilon=1.0, bound=1.0, random=random),
        lambda random: simulated_gaussian([1.0], sigma=1.0, bound=1.0, random=random),
    ):
        draw(PrivacyRandom.simulate(1))
        with refuses("real-noise-in-experiment"):
            draw(PrivacyRandom.from_os())


def test_weights_and_losses_are_those_of_importance_sampling():
    norms = np.array([0.1, 0.5, 1.0])
    sampling = ImportanceSampling.calibrated(epsilon=1.0, largest_norm=1.0, max_weight=64.0)
    scale = sampling_scale(epsilon=1.0, largest_norm=1.0)
    weights = largest_weights(norms, epsilon=1.0, scale=scale, max_weight=64.0)
    assert scale == sampling.scale
    np.testing.assert_array_equal(weights, sampling.weights(norms))
    loss = sampling_loss(norms, weights, epsilon=1.0, scale=scale)
    np.testing.assert_array_equal(loss, sampling.loss(norms, weights))
    assert (loss <= 1.0).all() and (sampling_loss(norms, 2 * weights, epsilon=1.0, scale=scale) > 1.0).any()
