"""A ridge map predicts what follows from its inputs, and the mean of what does not."""

import numpy as np
import pytest

from discreet.solvers.features import ridge_map


def test_what_follows_is_predicted_and_what_does_not_is_the_mean():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((400, 6))
    follows = inputs @ rng.standard_normal((6, 2)) + 0.1 * rng.standard_normal((400, 2)) + 3
    luck = rng.standard_normal((400, 1))
    learned = ridge_map(inputs[:300], np.hstack([follows, luck])[:300], np.ones(300))
    found = learned.predict(inputs[300:])
    assert np.sqrt(np.mean((found[:, :2] - follows[300:]) ** 2)) < 0.12
    assert np.abs(found[:, 2] - luck[:300].mean()).max() < 0.35


def test_left_out_errors_are_those_of_really_leaving_out():
    """The chosen ridge is the best one: none of the others predicts left-out rows better."""
    rng = np.random.default_rng(1)
    inputs, weights = rng.standard_normal((40, 5)), rng.random(40) + 0.1
    targets = (inputs @ rng.standard_normal(5) + 2 * rng.standard_normal(40))[:, None]

    def left_out(ridge):
        share = weights / weights.sum()
        unit = np.mean(np.linalg.svd(np.sqrt(share)[:, None] * (inputs - share @ inputs))[1] ** 2)
        errors = []
        for row in range(40):
            rest = np.arange(40) != row
            own = share[rest]
            center, offset = own @ inputs[rest] / own.sum(), own @ targets[rest] / own.sum()
            design, right = inputs[rest] - center, targets[rest] - offset
            normal = design.T @ (own[:, None] * design) + ridge * unit * np.eye(5)
            slope = np.linalg.solve(normal, design.T @ (own[:, None] * right))
            errors.append(share[row] * (targets[row] - offset - (inputs[row] - center) @ slope)[0] ** 2)
        return np.sum(errors)

    ridges = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
    best = ridges[int(np.argmin([left_out(ridge) for ridge in ridges]))]
    share = weights / weights.sum()
    center = share @ inputs
    design = np.sqrt(share)[:, None] * (inputs - center)
    unit = np.mean(np.linalg.svd(design)[1] ** 2)
    right = design.T @ (np.sqrt(share)[:, None] * (targets - share @ targets))
    expected = np.linalg.solve(design.T @ design + best * unit * np.eye(5), right)
    assert ridge_map(inputs, targets, weights).slopes == pytest.approx(expected)
