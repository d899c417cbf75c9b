"""Rounds on sparse rows are the printed algorithm: dense algebra says the same."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe
from discreet.statistics.frank_wolfe_rounds import RoundsSoFar
from discreet.statistics.statistic import Block
from toy import toy_interactions

# Few rounds: the grid on which rows are added up (2^-14) shows more with every one.
BOUND, RADIUS, ROUNDS = 2.0, 60.0, 2


def printed(values, seen):
    """Return the completed matrix after the printed rounds, without noise, and the last direction."""
    shorter = np.minimum(1, BOUND / np.maximum(np.linalg.norm(values, axis=1), 1e-12))
    target, matrix = values * shorter[:, None], np.zeros_like(values)
    for _ in range(ROUNDS):
        errors = seen * (matrix - target)
        eigenvalues, vectors = np.linalg.eigh(errors.T @ errors)
        direction = vectors[:, -1]
        places = errors @ direction / math.sqrt(eigenvalues[-1])
        matrix = (1 - 1 / ROUNDS) * matrix - RADIUS / ROUNDS * np.outer(places, direction)
        lengths = np.linalg.norm(seen * matrix, axis=1)
        matrix *= np.minimum(1, BOUND / np.maximum(lengths, 1e-12))[:, None]
    return matrix


@pytest.mark.parametrize("solver", ["covariance", "oja"])
def test_without_noise_the_rounds_are_those_of_dense_algebra(solver):
    data = toy_interactions(n_users=80, n_items=20, per_user=8, seed=4)
    rows = data.rows()
    means = np.bincount(rows, data.values) / np.bincount(rows)
    values, seen = np.zeros((80, 20)), np.zeros((80, 20))
    values[rows, data.items] = data.values - means[rows]
    seen[rows, data.items] = 1
    estimator = PrintedFrankWolfe(
        epsilon=math.inf, rounds=ROUNDS, solver=solver, steps=300, row_bound=BOUND, radius=RADIUS
    )
    scorer = estimator.fit(data, random=PrivacyRandom.simulate(0)).scorer
    found = scorer.mean + scorer.fold_in(data) @ scorer._design().T
    np.testing.assert_allclose(found, means[:, None] + printed(values, seen), atol=2e-3)


def test_ratings_far_from_zero_are_counted_from_the_middle_before_they_are_rounded():
    """Halves around 0 are exact in single precision; around twelve millions they are not."""
    data = toy_interactions(n_users=6, n_items=5, per_user=3, seed=4)
    halves, far = np.round(data.values) / 2, 6e6
    near = data.with_values(halves, replace(data.facts, low=0.0, high=3.0))
    moved = data.with_values(halves + far, replace(data.facts, low=far, high=far + 3))
    given = {"half": 2.0, "row_bound": 2.0, "rounds": 2}
    given |= {"directions": np.full((5, 1), 0.25), "paces": np.array([0.5])}

    def left(some, middle):
        return RoundsSoFar(middle=middle, **given).left_over(Block(some, 0, 6)).steps

    np.testing.assert_array_equal(left(moved, far), left(near, 0.0))
    assert not np.array_equal(left(moved, -far), left(near, 0.0)), "the twin: rounding shows"
