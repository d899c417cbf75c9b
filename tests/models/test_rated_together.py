"""Co-raters help where they say something about taste, and are left out where they do not."""

import numpy as np
import pytest

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.splits import random_split
from discreet.evaluation.scoring import measure
from discreet.models.baselines import als
from discreet.models.baselines.als import SHRINKAGES, Als, directions, shrunk


def two_groups(meaning, n_users=400, n_items=300, seed=0, high=0.07, low=0.01):
    """Return few ratings of two kinds of users and items; people rate their kind more if that has meaning."""
    draw = np.random.default_rng(seed)
    users, items = draw.integers(2, size=n_users), draw.integers(2, size=n_items)
    chance = np.where(users[:, None] == items, high, low) if meaning else np.full((n_users, n_items), 0.04)
    rows, columns = np.nonzero(draw.random((n_users, n_items)) < chance)
    values = 3 + np.where(users[rows] == items[columns], 1.0, -1.0) + 0.7 * draw.standard_normal(rows.size)
    facts = PublicFacts(n_items=n_items, low=0, high=6)
    return Interactions.from_arrays(rows, columns, np.clip(values, 0, 6), facts=facts, n_items=n_items)


@pytest.mark.thorough
def test_features_are_chosen_where_co_raters_say_something(monkeypatch):
    split = random_split(two_groups(meaning=True, n_users=300, n_items=1000, high=0.05, low=0.02), 0.2, 1)
    model = Als().fit(split.train)
    assert model.scorer.explain()["features shrunk by"] in SHRINKAGES[1:]
    monkeypatch.setattr(als, "choose_features", lambda *_: (None, None))
    plain = Als().fit(split.train)
    with_features, without = (measure(one, split.train, split.test, "rmse")["rmse"] for one in (model, plain))
    assert with_features < 0.8 * without


def test_features_are_left_out_where_there_are_too_few_ratings_to_choose():
    data = two_groups(meaning=False, n_users=60, n_items=40)
    assert Als().fit(data).scorer.explain()["features shrunk by"] == "not used"


def test_directions_tell_the_groups_apart_and_items_nobody_rated_have_none():
    data = two_groups(meaning=True)
    features = shrunk(data, directions(data), 5.0)
    counts = np.bincount(data.items, minlength=data.n_items)
    weights = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
    np.testing.assert_allclose((weights @ features**2)[0], 1.0)
    np.testing.assert_allclose((weights @ features[:, 1:] ** 2).mean(), 1.0)
    groups = np.random.default_rng(0)
    groups.integers(2, size=400)
    kinds = groups.integers(2, size=300)
    assert abs(np.corrcoef(features[:, 1], kinds)[0, 1]) > 0.8
    assert shrunk(data, directions(data), None) is None
