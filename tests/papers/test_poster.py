"""The poster's baselines from the front door: ratings minus users' own means, without item biases."""

import math

import numpy as np
import pytest

from discreet import model_settings
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import random_split
from discreet.evaluation.scoring import measure

NAMES = ("svd-poster", "pgd-poster")


def planted(n_users=300, n_items=20, seed=0):
    """Return ratings of two groups of users, one of which likes the items that the other dislikes."""
    rng = np.random.default_rng(seed)
    users, items = np.divmod(rng.permutation(n_users * n_items)[: n_users * n_items // 2], n_items)
    values = 3 + 1.5 * np.where((users + items) % 2, 1, -1) + rng.normal(0, 0.2, users.size)
    return Interactions.from_arrays(users, items, np.clip(values, 1, 5), low=1, high=5)


def rmse(name, epsilon, **settings):
    parts = random_split(planted(), 0.2, seed=0)
    made = model_settings.estimator(name, {"epsilon": epsilon, **settings})
    model = made.fit(parts.train, random=PrivacyRandom.simulate(0))
    return model, measure(model, parts.train, parts.test, "rmse")["rmse"]


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_found_without_noise_and_hidden_by_much_noise(name):
    model, clear = rmse(name, math.inf)
    assert clear < 1.2
    _, noisy = rmse(name, 0.01)
    # A user's own mean alone is off by 1.5.
    assert noisy > 1.3
    assert not np.any(model.scorer.item_bias)


@pytest.mark.parametrize("name", NAMES)
def test_the_guarantee_is_that_of_a_whole_user_and_the_model_is_saved(name, tmp_path):
    model, _ = rmse(name, 2.0)
    assert (model.guarantee.epsilon, model.guarantee.unit.value) == (2.0, "user")
    model.save(tmp_path / "m.discreet")
    train = planted()
    history = {train.catalog.id_at(0): 5.0, train.catalog.id_at(1): 1.0}
    assert len(model.recommend(history, 3)) == 3
