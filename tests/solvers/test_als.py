"""Alternating least squares: laws it must obey, and answers known from dense algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.checks import DataError, ParameterError
from discreet.solvers.als import Ridge, explicit_als, fold_in_explicit, solve_rows
from discreet.solvers.implicit_als import Confidence, fold_in_implicit, implicit_als
from discreet.solvers.kernels import shared as kernels
from discreet.solvers.rows import Rows

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


def explicit_loss(model, dense, present, weights, ridge):
    predicted = (
        model.mean
        + model.user_biases[:, None]
        + model.item_biases[None, :]
        + model.user_factors @ model.item_factors.T
    )
    loss = np.sum((weights * (dense - predicted) ** 2)[present])
    for axis, biases, factors in (
        (1, model.user_biases, model.user_factors),
        (0, model.item_biases, model.item_factors),
    ):
        scale = (weights * present).sum(axis) ** ridge.count_power
        loss += scale @ (ridge.factors * (factors**2).sum(1) + ridge.biases * biases**2)
    return loss


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


@pytest.mark.parametrize("count_power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_explicit_iteration_lowers_the_loss(count_power, weighted):
    dense, present, weights = ratings()
    weights = weights if weighted else np.ones_like(dense)
    by_user, by_item = twins(dense, present, weights if weighted else None)
    ridge = Ridge(factors=0.3, biases=0.1, count_power=count_power)
    model, losses = None, []
    for _ in range(12):
        model = explicit_als(
            by_user, by_item, ridge=ridge, factors=3, iterations=1, initial=model, dtype=EXACT
        )
        losses.append(explicit_loss(model, dense, present, weights, ridge))
    assert np.all(np.diff(losses) < 0)


def test_one_run_equals_warm_started_steps():
    by_user, by_item = twins(*ratings()[:2])
    ridge = Ridge()
    once = explicit_als(by_user, by_item, ridge=ridge, factors=3, iterations=4)
    steps = None
    for _ in range(4):
        steps = explicit_als(by_user, by_item, ridge=ridge, factors=3, iterations=1, initial=steps)
    assert np.array_equal(once.item_factors, steps.item_factors)


def test_whole_weights_count_like_repeated_ratings():
    dense, present, weights = ratings()
    by_user, by_item = twins(dense, present, weights)
    often = np.repeat(dense, 3, axis=1), np.repeat(present, 3, axis=1)
    kept = np.tile([1, 2, 3], 23)[None, :] <= np.repeat(weights, 3, axis=1)
    ridge = Ridge(count_power=1.0)
    model = explicit_als(by_user, by_item, ridge=ridge, factors=2, iterations=3, dtype=EXACT)
    biases, factors = fold_in_explicit(
        rows_of(often[0], often[1] & kept),
        np.repeat(model.item_factors, 3, axis=0),
        np.repeat(model.item_biases, 3),
        model.mean,
        ridge,
    )
    again = fold_in_explicit(by_user, model.item_factors, model.item_biases, model.mean, ridge)
    np.testing.assert_allclose(biases, again[0], atol=1e-9)
    np.testing.assert_allclose(factors, again[1], atol=1e-9)


def test_low_rank_ratings_are_completed():
    dense, present, _ = ratings(density=0.6)
    by_user, by_item = twins(dense, present)
    ridge = Ridge(factors=1e-3, biases=1e-3)
    model = explicit_als(by_user, by_item, ridge=ridge, factors=2, iterations=60, dtype=EXACT)
    hidden = np.argwhere(~present[1:, :-1]) + np.array([1, 0])
    error = model.predict(hidden[:, 0], hidden[:, 1]) - dense[tuple(hidden.T)]
    assert np.sqrt(np.mean(error**2)) < 0.05


def test_without_factors_only_biases_are_fitted():
    dense = 3 + np.add.outer([1.0, 0, -1], [0.5, -0.5, 0, 0])
    by_user, by_item = twins(dense, np.ones((3, 4), bool))
    ridge = Ridge(biases=1e-9, count_power=0)
    model = explicit_als(by_user, by_item, ridge=ridge, factors=0, iterations=5, dtype=EXACT)
    np.testing.assert_allclose(model.user_biases, [1, 0, -1], atol=1e-6)
    np.testing.assert_allclose(model.item_biases, [0.5, -0.5, 0, 0], atol=1e-6)


def test_residuals_are_values_minus_predictions():
    dense, present, _ = ratings()
    by_user, by_item = twins(dense, present)
    model = explicit_als(by_user, by_item, ridge=Ridge(), factors=3, iterations=2, dtype=EXACT)
    cells = np.repeat(np.arange(40), np.diff(by_user.indptr))
    expected = by_user.values - model.predict(cells, by_user.columns)
    np.testing.assert_allclose(model.residuals(by_user), expected, atol=1e-12)


def test_a_wider_scale_with_wider_ridge_is_the_same_model():
    dense, present, _ = ratings()
    predictions = []
    for width in (1, 4):
        by_user, by_item = twins(width * dense, present)
        ridge = Ridge(factors=0.4 * width, biases=0.1)
        model = explicit_als(by_user, by_item, ridge=ridge, factors=2, iterations=80, dtype=EXACT)
        predictions.append(model.predict(np.arange(40), np.arange(40) % 23) / width)
    np.testing.assert_allclose(*predictions, atol=1e-3)


@pytest.mark.parametrize("steps", [3, None])
def test_permuting_users_permutes_the_answer(steps):
    dense, present, _ = ratings()
    order = np.random.default_rng(5).permutation(40)
    confidence = Confidence(alpha=2, regularization=1)
    plain, shuffled = twins(dense, present), twins(dense[order], present[order])
    first, second = (
        explicit_als(*pair, ridge=Ridge(), factors=3, iterations=3, dtype=EXACT) for pair in (plain, shuffled)
    )
    np.testing.assert_allclose(second.user_factors, first.user_factors[order], atol=1e-9)
    np.testing.assert_allclose(second.item_factors, first.item_factors, atol=1e-9)
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
        monkeypatch.setattr(kernels, "thread_count", lambda threads=threads: threads)
        by_user, by_item = twins(dense, present)
        ratings_model = explicit_als(by_user, by_item, ridge=Ridge(), factors=4, iterations=2)
        clicks = implicit_als(
            *twins(np.ones_like(dense), present), confidence=Confidence(), factors=4, iterations=2
        )
        answers.append((ratings_model.item_factors, clicks.item_factors))
    assert np.array_equal(answers[0][0], answers[1][0])
    assert np.array_equal(answers[0][1], answers[1][1])


def test_the_input_is_left_as_it_was():
    dense, present, weights = ratings()
    by_user, by_item = twins(dense, present, weights)
    for array in (*by_user, *by_item):
        array.flags.writeable = False
    model = explicit_als(by_user, by_item, ridge=Ridge(), factors=2, iterations=1)
    before = model.item_factors.copy()
    explicit_als(by_user, by_item, ridge=Ridge(), factors=2, iterations=1, initial=model)
    assert np.array_equal(model.item_factors, before)


def test_what_cannot_be_solved_is_refused():
    dense, present, _ = ratings()
    by_user = rows_of(dense, present)
    empty = twins(dense, np.zeros_like(present))
    with pytest.raises(DataError, match="no ratings"):
        explicit_als(*empty, ridge=Ridge())
    with pytest.raises(DataError, match="columns outside"):
        solve_rows(by_user, np.ones((21, 2)), ridge=1.0)
    with pytest.raises(ParameterError, match="transpose"):
        explicit_als(by_user, rows_of(dense, present), ridge=Ridge())
    with pytest.raises(ParameterError, match="transpose"):
        explicit_als(by_user, twins(dense, present, np.ones_like(dense))[1], ridge=Ridge())
    with pytest.raises(DataError, match="negative"):
        implicit_als(*twins(-np.ones_like(dense), present), confidence=Confidence())
    spoiled = by_user._replace(values=np.full_like(by_user.values, np.nan))
    with pytest.raises(DataError, match="no finite answer"):
        solve_rows(spoiled, np.ones((23, 2)), ridge=1.0)
