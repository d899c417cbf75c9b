"""Weights between items in lists: a mixture of probabilities, in files, for newcomers and for new items."""

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import leave_one_out
from discreet.evaluation.scoring import measure
from discreet.models.scorers.interactions import InteractionScorer, NextItems, recency
from discreet.models.scorers.scorer import build_scorer
from discreet.models.user_factorization import implicit_feedback
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.testing import refuses


def paths(n_users=600, n_items=60, seed=0) -> Interactions:
    """Return choices of people who walk up a ring of items, mostly by one step."""
    rng = np.random.default_rng(seed)
    steps = np.where(rng.random((n_users, 6)) < 0.7, 1, rng.integers(2, n_items // 8, (n_users, 6)))
    items = (rng.integers(0, n_items, n_users)[:, None] + np.cumsum(steps, axis=1)) % n_items
    people, times = np.repeat(np.arange(n_users), 6), np.tile(np.arange(6), n_users)
    return Interactions.from_arrays(people, items.reshape(-1), times=times, n_items=n_items, name="paths")


@pytest.fixture(scope="module")
def split():
    return leave_one_out(paths())


@pytest.fixture(scope="module")
def model(split):
    estimator = UserFactorization(epsilon=math.inf, delta=1e-5, feedback="implicit")
    return estimator.fit(split.train, random=PrivacyRandom.simulate(0))


def test_weights_between_items_find_what_comes_next(split, model):
    """The twin knows the same embeddings and no pairs."""
    twin = replace(model, scorer=model.scorer.with_parts(blend=0.0))
    own, other = (measure(one, split.train, split.test, "hr@1")["hr@1"] for one in (model, twin))
    assert own > 0.5 and own > other + 0.2


def test_scores_are_the_logarithm_of_a_mixture(split, model):
    scorer, rows = model.scorer, np.array([3, 0, 8])
    pairs = scorer.following
    linear = scorer.linear(split.train, rows)
    base = linear.people @ linear.items.T + linear.bias
    people = split.train.select_users(rows)
    table = np.zeros((pairs.items.size,) * 2)
    np.put_along_axis(table, pairs.neighbors.astype(int), pairs.weights.astype(float), axis=1)
    weight = np.zeros((3, split.train.n_items))
    weight[people.rows(), people.items] = recency(people, pairs.fading)
    follows = np.maximum(weight[:, pairs.items] @ table, 0)
    follows /= follows.sum(axis=1, keepdims=True)
    mixture = (1 - pairs.blend) * np.exp(base)
    mixture[:, pairs.items] += pairs.blend * follows * np.exp(base[:, pairs.items]).sum(1, keepdims=True)
    np.testing.assert_allclose(scorer.scores(split.train, rows), np.log(mixture), rtol=1e-4, atol=1e-4)
    items = np.array([5, 7, 9])
    np.testing.assert_allclose(
        scorer.predict(split.train, rows, items), np.log(mixture)[np.arange(3), items], rtol=1e-4, atol=1e-4
    )


def test_whoever_has_no_paired_item_gets_the_other_scores(split, model):
    scorer = model.scorer
    history = Interactions.from_arrays([0], [4], n_items=split.train.n_items)
    own = scorer.scores(history, np.zeros(1, dtype=int))
    keep = scorer.following.items != 4
    neighbors = np.minimum(scorer.following.neighbors[keep], keep.sum() - 1)
    fewer = scorer.with_parts(
        paired=scorer.following.items[keep],
        neighbors=neighbors,
        neighbor_weights=scorer.following.weights[keep],
    )
    plain = scorer.with_parts(blend=0.0).scores(history, np.zeros(1, dtype=int))
    np.testing.assert_array_equal(fewer.scores(history, np.zeros(1, dtype=int)), plain)
    assert not np.allclose(own, plain)


def test_a_file_keeps_the_weights_and_one_without_them_loads(tmp_path, split, model):
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    rows = np.arange(20)
    np.testing.assert_array_equal(
        again.scorer.scores(split.train, rows), model.scorer.scores(split.train, rows)
    )
    arrays, settings = model.scorer.arrays(), model.scorer.settings()
    earlier = build_scorer(
        "clicks",
        {name: arrays[name] for name in ("popularity", "item_factors")},
        {name: one for name, one in settings.items() if name not in ("blend", "pair_fading")},
        split.train.n_items,
    )
    assert isinstance(earlier, InteractionScorer) and not earlier.following
    twice = {**arrays, "paired": np.zeros_like(arrays["paired"])}
    with refuses("malformed-part", part="paired"):
        build_scorer("clicks", twice, settings, split.train.n_items)
    lost = {name: one for name, one in arrays.items() if name != "neighbors"}
    with refuses("malformed-part", part="neighbors"):
        build_scorer("clicks", lost, settings, split.train.n_items)


def test_lists_of_many_and_of_one_agree(split, model):
    history = split.train.select_users(np.array([11]))
    ids = model.catalog.ids[history.items[np.argsort(history.times)]].tolist()
    one = [item for item, _ in model.recommend(ids, k=5)]
    worth = model.scorer.worth(history, np.zeros(1, dtype=int))[0]
    worth[history.items] = -np.inf
    assert one == model.catalog.ids[np.argsort(-worth, kind="stable")[:5]].tolist()


SETTINGS, NOISES = FactorizationSettings(), (1e9, 1e6, 1e4, 100.0, 1.0, 1e-6, 0.0)


def test_pairs_count_by_users_per_noise_and_nothing_without_pairs():
    blends = [implicit_feedback._blend(1e6, noise, SETTINGS) for noise in NOISES]
    assert blends[0] < 1e-3 and blends == sorted(blends)
    assert blends[-2] == pytest.approx(blends[-1], abs=1e-3) and blends[-1] < 1
    few, many = (implicit_feedback._blend(people, 0.0, SETTINGS) for people in (50.0, 1e5))
    assert few < 0.5 * many
    assert not NextItems()
    noisy = UserFactorization(epsilon=0.01, delta=1e-5, feedback="implicit")
    assert not noisy.fit(paths(), random=PrivacyRandom.simulate(0)).scorer.following
