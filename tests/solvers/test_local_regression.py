"""Regressions on nearest items: the closed form where all items are near, and order by weights of its own."""

import math

import numpy as np
import pytest

from discreet import PrivacyRandom, UserFactorization
from discreet.data.interactions import Interactions
from discreet.models.user_factorization.implicit_feedback import steps_in_time
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.solvers.item_regression import LocalPairs, OrderWeights, strongest_of_sparse

N_USERS, N_ITEMS = 60, 12


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.4


def pairs_of(rows: np.ndarray, nearest: int = N_ITEMS, order: OrderWeights | None = None) -> LocalPairs:
    indptr = np.append(0, np.cumsum(rows.sum(axis=1)))
    items = np.nonzero(rows)[1]
    # Items of a row come in ascending order, one step apart.
    steps = np.arange(items.size) if order else np.zeros(items.size, dtype=np.int64)
    return LocalPairs.of(indptr, items, steps, N_ITEMS, order or OrderWeights(), nearest)


def test_with_all_items_near_it_is_the_ridge_regression_of_each_item(rows):
    """The twin has another ridge."""
    found = pairs_of(rows).weights(3.0).toarray()
    numbers = rows.astype(float)
    for target in range(N_ITEMS):
        others = np.arange(N_ITEMS) != target
        gram = numbers[:, others].T @ numbers[:, others]
        right = numbers[:, others].T @ numbers[:, target]
        expected, twin = (np.linalg.solve(gram + r * np.eye(N_ITEMS - 1), right) for r in (3.0, 4.0))
        np.testing.assert_allclose(found[others, target], expected, atol=1e-6)
        assert np.abs(found[others, target] - twin).max() > 1e-4
        assert found[target, target] == 0


def test_only_the_nearest_items_speak_for_an_item(rows):
    numbers = rows.astype(float)
    together = numbers.T @ numbers
    cosine = together / np.sqrt(np.diag(together))[:, None]
    np.fill_diagonal(cosine, -1)
    found = pairs_of(rows, nearest=3)
    for target in range(N_ITEMS):
        nearest = np.sort(cosine[:, target])[-3:]
        assert np.allclose(np.sort(cosine[found.near[target], target]), nearest)
    assert (found.weights(1.0).toarray() != 0).sum(axis=0).tolist() == [3] * N_ITEMS


def test_what_comes_before_an_item_speaks_for_it_more_than_what_comes_after(rows):
    found = pairs_of(rows, order=OrderWeights(near=0.5, apart=0.0, back=0.0))
    for target in range(N_ITEMS):
        for other, pull in zip(found.near[target], found.pulls[target], strict=True):
            if other >= 0:
                assert (pull > 0) == (other < target)


def test_an_item_that_nobody_chose_has_no_weights(rows):
    rows[:, 4] = False
    found = pairs_of(rows).weights(1.0).toarray()
    assert not found[4].any() and not found[:, 4].any() and np.isfinite(found).all()


def test_the_strongest_of_a_sparse_matrix_are_those_of_the_dense_one(rows):
    weights = pairs_of(rows).weights(2.0)
    kept = strongest_of_sparse(weights, 4)
    dense = weights.toarray()
    for source in range(N_ITEMS):
        expected = np.sort(np.abs(dense[source]))[-4:]
        np.testing.assert_allclose(np.sort(np.abs(kept.weights[source].astype(float))), expected, rtol=1e-3)
        np.testing.assert_allclose(
            dense[source, kept.items[source]], kept.weights[source].astype(float), rtol=1e-3, atol=1e-6
        )


def test_interactions_at_one_time_share_a_step():
    data = Interactions.from_arrays(
        ["a", "a", "a", "b", "b"], ["x", "y", "z", "x", "y"], np.ones(5), times=[3, 1, 3, 7, 9]
    )
    steps = steps_in_time(data)
    assert steps[1] < steps[0] == steps[2]
    assert steps[4] == steps[3] + 1


def walks(n_items: int = 60, n_users: int = 300) -> Interactions:
    """Return users who walk a ring of items, so that each item's neighbors are known."""
    random = np.random.default_rng(1)
    starts = random.integers(0, n_items, n_users)
    items = (starts[:, None] + np.arange(5)) % n_items
    users = np.repeat(np.arange(n_users), 5)
    times = np.tile(np.arange(5), n_users)
    return Interactions.from_arrays(users, items.ravel(), np.ones(users.size), times=times, n_items=n_items)


@pytest.mark.parametrize("settings", [{"feedback": "implicit"}, {"purpose": "lists"}])
def test_without_noise_a_large_catalog_has_weights_for_all_items(settings, tmp_path):
    """The twin at a finite epsilon has weights between the most popular items alone."""
    import discreet

    data = walks()
    kind = UserFactorization.with_settings(FactorizationSettings(most_co_occurrence_items=32))
    model = kind(epsilon=math.inf, **settings).fit(data, random=PrivacyRandom.simulate(0))
    assert model.scorer.part("paired").size == data.n_items
    listed = [item for item, _ in model.recommend([17, 18, 19], k=2)]
    assert listed[0] == 20
    model.save(tmp_path / "model")
    assert discreet.load(tmp_path / "model").recommend([17, 18, 19], k=5) == model.recommend(
        [17, 18, 19], k=5
    )
    twin = kind(epsilon=30.0, **settings).fit(data, random=PrivacyRandom.simulate(0))
    assert twin.scorer.part("paired").size <= 32
