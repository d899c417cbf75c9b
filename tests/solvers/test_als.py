"""Alternating least squares: laws it must obey, and answers known from dense algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.core import arrays
from discreet.core.arrays import Rows
from discreet.solvers.als import Confidence, fold_in_implicit, implicit_als, solve_rows
from discreet.testing import refuses

EXACT = np.float64


def rows_of(dense, present, weights=None):
    matrix = sp.csr_matrix(present)
    cells = (np.repeat(np.arange(len(dense)), np.diff(matrix.indptr)), matrix.indices)
    own = None if weights is None else weights[cells].astype(np.float32)
    return Rows(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), dense[cells].astype(np.float32), own
    )


def twins(dense, present, weights=None):
    turned = None if weights is None else weights.T
    return rows_of(dense, present, weights), rows_of(dense.T, present.T, turned)


def ratings(seed=0, n_users=40, n_items=23, density=0.4):
    """Rank-2 ratings with gaps; the first user and the last item have none."""
    draw = np.random.default_rng(seed)
    dense = 3 + draw.normal(size=(n_users, 2)) @ draw.normal(size=(2, n_items))
    present = draw.random(dense.shape) < density
    present[0], present[:, -1] = False, False
    # what the solver gets is float32; the reference must see the same numbers
    return dense.astype(np.float32).astype(EXACT), present, draw.integers(1, 4, dense.shape).astype(EXACT)


def implicit_loss(model, strength, present, confidence):
    score = model.user_factors @ model.item_factors.T
    loss = np.sum((1 + confidence.alpha * strength * present) * (present - score) ** 2)
    lengths = (model.user_factors**2).sum() + (model.item_factors**2).sum()
    return loss + confidence.regularization * lengths


@pytest.mark.parametrize("size", [1, 3, 4, 9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-4)])
def test_solve_rows_agrees_with_dense_algebra(size, weighted, dtype, tolerance):
    dense, present, weights = ratings(1, n_items=250, density=0.8)  # rows longer than one block
    weights = weights if weighted else np.ones_like(dense)
    draw = np.random.default_rng(2)
    features, offsets = draw.normal(size=(250, size)), draw.normal(size=250)
    root = draw.normal(size=(size, size))
    precision, scales = root @ root.T + np.eye(size), draw.uniform(0.5, 2, 40)
    prior = draw.normal(size=(40, size))
    found = solve_rows(
        rows_of(dense, present, weights if weighted else None),
        features.astype(dtype),
        ridge=precision,
        scales=scales,
        prior_mean=prior,
        offsets=offsets,
    )
    assert found.dtype == dtype
    for user in range(40):
        own, weight = features[present[user]], weights[user, present[user]]
        normal = scales[user] * precision + (own.T * weight) @ own
        target = (weight * (dense[user] - offsets)[present[user]]) @ own + scales[user] * precision @ prior[
            user
        ]
        np.testing.assert_allclose(
            found[user], np.linalg.solve(normal, target), rtol=tolerance, atol=tolerance
        )


def test_a_row_without_values_gets_the_prior_mean():
    dense, present, _ = ratings()
    features = np.random.default_rng(0).normal(size=(23, 3))
    found = solve_rows(rows_of(dense, present), features, ridge=1.0, prior_mean=np.array([1.0, 2.0, 3.0]))
    assert found[0].tolist() == [1, 2, 3]
    assert solve_rows(rows_of(dense, present), features, ridge=1.0)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("steps", [3, None])
def test_permuting_users_permutes_the_answer(steps):
    dense, present, _ = ratings()
    order = np.random.default_rng(5).permutation(40)
    confidence = Confidence(alpha=2, regularization=1)
    clicks = twins(np.ones_like(dense), present), twins(np.ones_like(dense), present[order])
    one, two = (
        implicit_als(*pair, confidence=confidence, factors=3, iterations=3, steps=steps, dtype=EXACT)
        for pair in clicks
    )
    np.testing.assert_allclose(two.user_factors, one.user_factors[order], atol=1e-9)


def test_exact_implicit_iterations_lower_the_loss():
    strength, present, _ = ratings()
    strength = np.abs(strength)
    by_user, by_item = twins(strength, present)
    confidence = Confidence(alpha=1.5, regularization=0.3)
    model, losses = None, []
    for _ in range(10):
        model = implicit_als(
            by_user,
            by_item,
            confidence=confidence,
            factors=3,
            iterations=1,
            steps=None,
            initial=model,
            dtype=EXACT,
        )
        losses.append(implicit_loss(model, strength, present, confidence))
    assert np.all(np.diff(losses) < 0)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_implicit_fold_in_agrees_with_dense_algebra(alpha):
    strength, present, _ = ratings()
    strength = np.abs(strength)
    items = np.random.default_rng(3).normal(size=(23, 5))
    found = fold_in_implicit(rows_of(strength, present), items, Confidence(alpha=alpha, regularization=0.7))
    for user in range(40):
        confidence = 1 + alpha * strength[user] * present[user]
        normal = (items.T * confidence) @ items + 0.7 * np.eye(5)
        expected = np.linalg.solve(normal, items.T @ (confidence * present[user]))
        np.testing.assert_allclose(found[user], expected, atol=1e-5)
    assert not found[0].any()


def test_as_many_steps_as_factors_solve_exactly():
    _, present, _ = ratings()
    by_user, by_item = twins(np.ones(present.shape), present)
    confidence = Confidence(alpha=2, regularization=0.5)
    exact, stepped = (
        implicit_als(
            by_user, by_item, confidence=confidence, factors=5, iterations=2, steps=steps, dtype=EXACT
        )
        for steps in (None, 5)
    )
    np.testing.assert_allclose(stepped.item_factors, exact.item_factors, atol=1e-6)


@pytest.mark.parametrize("steps", [3, None])
def test_a_checkerboard_is_completed(steps):
    """Even people choose even items, odd ones odd items; what each misses of theirs comes first."""
    board = np.add.outer(np.arange(30), np.arange(20)) % 2 == 0
    missing = np.array([(user, (user + 2 * (user // 2)) % 20) for user in range(30)])
    assert board[tuple(missing.T)].all()
    present = board.copy()
    present[tuple(missing.T)] = False
    by_user, by_item = twins(np.ones(board.shape), present)
    model = implicit_als(
        by_user,
        by_item,
        confidence=Confidence(alpha=4, regularization=0.1),
        factors=2,
        iterations=5,
        steps=steps,
    )
    scores = np.where(present, -np.inf, model.user_factors @ model.item_factors.T)
    assert np.array_equal(scores.argmax(1), missing[:, 1])


def test_people_and_items_without_clicks_are_zero():
    _, present, _ = ratings()
    by_user, by_item = twins(np.ones(present.shape), present)
    for steps in (3, None):
        model = implicit_als(by_user, by_item, confidence=Confidence(), factors=3, iterations=2, steps=steps)
        assert not model.user_factors[0].any()
        assert not model.item_factors[-1].any()


def test_the_number_of_threads_changes_nothing(monkeypatch):
    dense, present, _ = ratings(n_users=400, n_items=120)
    answers = []
    for threads in (1, 3):
        monkeypatch.setattr(arrays, "thread_count", lambda threads=threads: threads)
        clicks = implicit_als(
            *twins(np.ones_like(dense), present), confidence=Confidence(), factors=4, iterations=2
        )
        answers.append(clicks.item_factors)
    assert np.array_equal(*answers)


def test_the_input_is_left_as_it_was():
    dense, present, _ = ratings()
    by_user, by_item = twins(np.ones_like(dense), present)
    for array in (*by_user[:3], *by_item[:3]):
        array.flags.writeable = False
    model = implicit_als(by_user, by_item, confidence=Confidence(), factors=2, iterations=1)
    before = model.item_factors.copy()
    implicit_als(by_user, by_item, confidence=Confidence(), factors=2, iterations=1, initial=model)
    assert np.array_equal(model.item_factors, before)


def test_what_cannot_be_solved_is_refused():
    dense, present, _ = ratings()
    by_user = rows_of(dense, present)
    with refuses("bad-sparse-matrix", part="columns"):
        solve_rows(by_user, np.ones((21, 2)), ridge=1.0)
    with refuses("not-transposed"):
        implicit_als(by_user, rows_of(dense, present), confidence=Confidence())
    with refuses("not-transposed"):
        implicit_als(by_user, twins(dense, present, np.ones_like(dense))[1], confidence=Confidence())
    with refuses("negative-weights"):
        implicit_als(*twins(-np.ones_like(dense), present), confidence=Confidence())
    spoiled = by_user._replace(values=np.full_like(by_user.values, np.nan))
    with refuses("no-finite-answer"):
        solve_rows(spoiled, np.ones((23, 2)), ridge=1.0)
