"""Alternating least squares that knows how sure it is: against dense algebra, and laws it must obey."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.core import arrays
from discreet.core.arrays import Rows
from discreet.solvers import bayesian_als
from discreet.solvers.bayesian_als import believe, line_size, lines_of, settle, spreads_of, start, sweep
from discreet.testing import refuses


def rows_of(dense, present):
    matrix = sp.csr_matrix(present)
    cells = (np.repeat(np.arange(len(dense)), np.diff(matrix.indptr)), matrix.indices)
    values = dense[cells].astype(np.float32)
    return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), values)


def world(seed=0, n_users=300, n_items=40, noise=0.5, density=0.5, taste=1.0):
    """Return ratings with biases and two tastes, what they would be without noise, and who rated what."""
    draw = np.random.default_rng(seed)
    true = 3 + 0.4 * draw.standard_normal(n_users)[:, None] + 0.6 * draw.standard_normal(n_items)
    true = true + taste * draw.standard_normal((n_users, 2)) @ draw.standard_normal((2, n_items)) * 0.7
    present = draw.random(true.shape) < density
    present[0], present[:, -1] = False, False
    return true + noise * draw.standard_normal(true.shape), true, present


def learned(dense, present, factors=6, sweeps=25):
    sides = rows_of(dense, present), rows_of(dense.T, present.T)
    known = start(sides[0], dense.shape[1], factors, 0)
    for _ in range(sweeps):
        known = sweep(*sides, known)
    return known, sides


def predictions(known, by_user):
    lines = believe(by_user, 0, by_user.n_rows, known)
    size = known.factors + 2
    return known.mean + lines[:, [1, 0, *range(2, size)]] @ known.lines[:, :size].T


def test_a_persons_vector_and_covariance_agree_with_dense_algebra():
    dense, _, present = world(seed=3, n_users=20)
    known, (by_user, _) = learned(dense, present, factors=3, sweeps=3)
    lines = believe(by_user, 5, 9, known).astype(np.float64)
    items = known.lines.astype(np.float64)
    for row, person in enumerate(range(5, 9)):
        rated = present[person]
        normal, right = known.people.copy(), np.zeros(4)
        for line, value in zip(items[rated], dense[person, rated].astype(np.float32), strict=True):
            square = np.zeros((5, 5))
            square[np.tril_indices(5)] = line[5:]
            square = square + np.tril(square, -1).T
            normal += square[1:, 1:] / known.noise
            right += ((value - known.mean) * line[1:5] - square[1:, 0]) / known.noise
        spread = np.linalg.inv(normal)
        np.testing.assert_allclose(np.delete(lines[row, :5], 1), spread @ right, atol=1e-4)
        packed = spread[np.tril_indices(4)]
        np.testing.assert_allclose(spreads_of(lines[[row]], 3)[0], packed, atol=1e-5)


def test_noise_and_taste_of_a_known_world_are_found():
    dense, true, present = world()
    known, (by_user, by_item) = learned(dense, present)
    assert known.noise == pytest.approx(0.25, rel=0.1)
    settled = settle(known, np.diff(by_item.indptr))
    assert settled.factors == 2
    hidden = ~present
    hidden[0], hidden[:, -1] = False, False
    for found in (known, settled):
        error = np.sqrt(np.mean((predictions(found, by_user) - true)[hidden] ** 2))
        assert error < 0.3


def test_without_taste_all_factors_die_out():
    dense, _, present = world(taste=0.0)
    known, (_, by_item) = learned(dense, present, sweeps=60)
    settled = settle(known, np.diff(by_item.indptr))
    assert settled.factors == 0 and settled.lines.shape[1] == line_size(0)
    assert np.diag(np.linalg.inv(settled.people)) == pytest.approx([0.16], rel=0.25)


def test_a_wider_scale_is_the_same_model_in_that_scale():
    dense, _, present = world(n_users=80)
    found = []
    for width in (1, 8):
        known, (by_user, _) = learned(width * dense, present, factors=2, sweeps=6)
        found.append(predictions(known, by_user) / width)
    np.testing.assert_allclose(*found, atol=2e-3)


def test_neither_blocks_nor_threads_nor_the_order_of_people_change_the_answer(monkeypatch):
    dense, _, present = world(n_users=500, n_items=120)
    once, _ = learned(dense, present, factors=3, sweeps=2)
    monkeypatch.setattr(arrays, "thread_count", lambda: 3)
    assert np.array_equal(learned(dense, present, factors=3, sweeps=2)[0].lines, once.lines)
    monkeypatch.setattr(bayesian_als, "_BLOCK", 64)
    np.testing.assert_allclose(learned(dense, present, factors=3, sweeps=2)[0].lines, once.lines, atol=1e-4)
    order = np.random.default_rng(1).permutation(500)
    shuffled, _ = learned(dense[order], present[order], factors=3, sweeps=2)
    np.testing.assert_allclose(shuffled.lines, once.lines, atol=1e-4)


def test_lines_hold_expected_squares():
    draw = np.random.default_rng(0)
    roots = draw.standard_normal((7, 4, 4))
    spreads = (roots @ roots.transpose(0, 2, 1))[:, *np.tril_indices(4)]
    lines = lines_of(draw.standard_normal(7), draw.standard_normal((7, 3)), spreads)
    assert lines.shape[1] == line_size(3)
    np.testing.assert_allclose(spreads_of(lines, 3), spreads, atol=1e-5)


def test_what_cannot_be_learned_from_is_refused():
    dense, _, present = world(n_users=30)
    with refuses("nothing-to-learn"):
        learned(dense, np.zeros_like(present))
    by_user = rows_of(dense, present)
    known = start(by_user, 40, 2, 0)
    with refuses("not-transposed"):
        sweep(by_user, rows_of(dense.T, ~present.T & (dense.T > 2)), known)
    spoiled = by_user._replace(values=np.full_like(by_user.values, np.nan))
    with refuses("no-finite-answer"):
        believe(spoiled, 0, 30, known)


def test_items_with_features_agree_with_dense_algebra():
    dense, _, present = world(seed=4, n_users=30, n_items=12)
    known, sides = learned(dense, present, factors=2, sweeps=3)
    draw = np.random.default_rng(1)
    features, slopes = draw.standard_normal((12, 3)), draw.standard_normal((3, 3))
    found = sweep(*sides, replace(known, slopes=slopes), features)
    people = believe(sides[0], 0, 30, known).astype(np.float64)
    for item in range(11):
        normal, right = known.items.copy(), known.items @ (features[item] @ slopes)
        for person in np.flatnonzero(present[:, item]):
            square = np.zeros((4, 4))
            square[np.tril_indices(4)] = people[person, 4:]
            square = square + np.tril(square, -1).T
            value = np.float32(dense[person, item]) - known.mean
            normal += square[1:, 1:] / known.noise
            right += (value * people[person, 1:4] - square[1:, 0]) / known.noise
        expected = np.linalg.solve(normal, right)
        np.testing.assert_allclose(np.delete(found.lines[item, :4], 1), expected, atol=2e-4)
        # The twin: without features the answer is another one.
        plain = sweep(*sides, known).lines[item, :4]
        assert not np.allclose(np.delete(plain, 1), expected, atol=1e-2)


def test_the_noise_is_that_of_ratings_with_features_too():
    dense, _, present = world(seed=5, n_users=400, n_items=30)
    sides = rows_of(dense, present), rows_of(dense.T, present.T)
    known, features = start(sides[0], 30, 4, 0), np.random.default_rng(2).standard_normal((30, 2))
    for _ in range(20):
        known = sweep(*sides, known, features)
    # Features of no worth change little: ratings lie around the truth with a variance of 0.25.
    assert abs(known.noise - 0.25) < 0.03 and np.abs(known.slopes).max() < 0.5
    turned = settle(known, np.diff(sides[1].indptr))
    expected, before = features @ turned.slopes, features @ known.slopes
    np.testing.assert_allclose(expected[:, 0], before[:, 0], atol=1e-6)
