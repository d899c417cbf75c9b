"""Amounts behind normal noise: nearer to the truth than the noisy ones, in the same order."""

import numpy as np
import pytest

from discreet.solvers.deconvolution import posterior_amounts


@pytest.mark.parametrize("noise", [0.5, 5.0, 50.0])
def test_amounts_are_nearer_and_in_the_same_order(noise):
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(5000) < 0.9, 0.2, rng.pareto(1.2, 5000) * 10)
    noisy = truth + noise * rng.normal(size=truth.size)
    found = posterior_amounts(noisy, noise)
    error = np.mean((found - truth)[truth < 500] ** 2)
    cut = np.mean((np.maximum(noisy, noise) - truth)[truth < 500] ** 2)
    assert error < 0.6 * cut and found.min() > 0
    order = np.argsort(noisy)
    assert np.all(np.diff(found[order]) >= -1e-9 * found.max())


def test_extremes():
    assert posterior_amounts(np.zeros(0), 1.0).size == 0
    exact = np.array([0.0, 1.0, 100.0])
    assert np.isfinite(posterior_amounts(exact, 0.0)).all()
    assert np.isfinite(posterior_amounts(np.array([-1e12, 1e12]), 1e-3)).all()
    assert np.isfinite(posterior_amounts(np.full(5, -3.0), 1.0)).all()
