"""Bars without privacy: settings that follow the data, and closed forms against plain computations."""

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import leave_one_out, random_split
from discreet.data.vocabulary import Vocabulary
from discreet.evaluation import baselines, measure
from discreet.evaluation.scoring import PREFIX
from discreet.models.baselines import als as als_module
from discreet.models.baselines import item_item
from discreet.models.baselines.als import Als, ImplicitAls
from discreet.models.baselines.item_item import (
    Ease,
    ItemKnn,
    MarkovChain,
    co_occurrence_counts,
    most_popular,
    transition_counts,
    transition_probabilities,
)
from discreet.models.baselines.tuning import SearchDirection, hide_interactions, sample_users, walk
from discreet.models.biases import Biases
from discreet.testing import refuses
from toy import toy_interactions


def crowds(n_users=400, n_items=60, per_user=8, seed=5):
    """Return choices of two crowds, each mostly from its own half of the items."""
    rng = np.random.default_rng(seed)
    weights = np.where(np.arange(n_users)[:, None] % 2 == np.arange(n_items) % 2, 6.0, 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    chosen = [rng.choice(n_items, per_user, replace=False, p=row) for row in weights]
    users = np.repeat(np.arange(n_users), per_user)
    return Interactions.from_arrays(users, np.concatenate(chosen), n_items=n_items)


def test_a_walk_finds_the_valley_and_tries_no_point_twice():
    tried = []

    def loss(point):
        tried.append(tuple(point.values()))
        return abs(math.log(point["a"] / 64)) + abs(math.log(point["b"] / 0.25))

    ways = {"a": SearchDirection(2.0, 0.1, 1000.0), "b": SearchDirection(2.0, 0.1, 1000.0)}
    assert walk({"a": 1.0, "b": 1.0}, ways, loss) == {"a": 64.0, "b": 0.25}
    assert len(tried) == len(set(tried)) < 16
    assert walk({"a": 1.0, "b": 1.0}, ways | {"a": SearchDirection(2.0, 0.5, 8.0)}, loss)["a"] == 8.0


def test_what_is_hidden_does_not_depend_on_the_order_of_people():
    data = toy_interactions(seed=4)
    order = np.random.default_rng(1).permutation(data.n_users)
    shuffled = data.select_users(order)
    assert np.array_equal(
        hide_interactions(shuffled, 3).items[np.argsort(order[hide_interactions(shuffled, 3).people])],
        hide_interactions(data, 3).items,
    )
    one, other = (sample_users(each, 500, 3) for each in (data, shuffled))
    assert sorted(one.users.ids.tolist()) == sorted(other.users.ids.tolist())
    assert 500 <= one.n_ratings < 520 and sample_users(data, 10**6, 3) is data


def test_one_choice_of_each_is_hidden_and_losses_are_those_of_plain_ranks():
    data = crowds()
    hidden = hide_interactions(data, 0)
    dense = data.to_scipy().toarray() > 0
    kept = hidden.train.to_scipy().toarray() > 0
    assert np.all(dense[hidden.people, hidden.items]) and not np.any(kept[hidden.people, hidden.items])
    assert dense.sum() - kept.sum() == hidden.people.size
    scores = np.random.default_rng(0).random((hidden.people.size, data.n_items)).astype(np.float32)
    gains = []
    for row, (person, item) in enumerate(zip(hidden.people, hidden.items, strict=True)):
        rank = np.sum(scores[row, ~kept[person]] > scores[row, item])
        gains.append(1 / math.log2(rank + 2) if rank < 10 else 0.0)
    assert hidden.loss(scores) == pytest.approx(1 - np.mean(gains))
    assert hide_interactions(Interactions.from_arrays([1, 2], [1, 2]), 0) is None


def in_moods(n_users=500, seed=0) -> Interactions:
    """Return choices of people whose mood changes: first three items of one fifth, then three of another."""
    rng = np.random.default_rng(seed)
    moods = np.array([rng.permutation(5)[:2] for _ in range(n_users)])
    within = rng.random((n_users, 2, 8)).argsort(axis=2)[:, :, :3]
    items = (moods[:, :, None] + 5 * within).reshape(-1)
    people, times = np.repeat(np.arange(n_users), 6), np.tile(np.arange(6), n_users)
    return Interactions.from_arrays(people, items, times=times, n_items=40)


def test_where_there_are_times_the_latest_choice_is_hidden():
    data = in_moods()
    hidden = hide_interactions(data, 0)
    latest = data.items.reshape(-1, 6)[np.arange(500), data.times.reshape(-1, 6).argmax(axis=1)]
    np.testing.assert_array_equal(hidden.items, latest[hidden.people])
    timeless = hide_interactions(replace(data, times=None, listed=None), 0)
    assert np.mean(timeless.items == latest[timeless.people]) < 0.4


@pytest.mark.parametrize("bar", [Ease, ItemKnn])
def test_item_bars_count_the_latest_choices_more_where_that_helps(bar):
    """The twin counts all choices alike: it cannot know in which mood somebody is by now."""
    split = leave_one_out(in_moods())
    own, twin = (one.fit(split.train, random=PrivacyRandom.simulate(0)) for one in (bar(), bar(fading=0.0)))
    assert own.scorer.fading > 0.5 and twin.scorer.fading == 0
    found = [measure(one, split.train, split.test, "hr@5")["hr@5"] for one in (own, twin)]
    assert found[0] > found[1] + 0.2


def test_als_takes_factors_where_there_is_taste_and_none_where_there_is_none():
    taste = toy_interactions(n_users=300, per_user=15, seed=2)
    assert Als().fit(taste).scorer.explain()["factors"] >= 1
    rng = np.random.default_rng(0)
    flat = taste.with_values(np.clip(np.round(3 + rng.standard_normal(taste.n_ratings)), 1, 5))
    assert Als().fit(flat).scorer.explain()["factors"] == 0
    assert Als(factors=0).fit(taste).scorer.item_factors.shape[1] == 0
    assert Als(iterations=3).fit(taste).scorer.explain()["iterations"] == 3


def test_als_leans_less_on_items_it_hardly_knows():
    model = Als().fit(toy_interactions(n_users=300, per_user=15, seed=2))
    sure = replace(model.scorer, item_spreads=np.zeros_like(model.scorer.item_spreads))
    history = toy_interactions(n_users=300, per_user=15, seed=9).select_users(np.arange(5))
    unsure_taste, sure_taste = (one.fold_in(history)[:, 1:] for one in (model.scorer, sure))
    assert np.all(np.linalg.norm(unsure_taste, axis=1) < np.linalg.norm(sure_taste, axis=1))


def test_a_file_with_spreads_of_another_size_is_refused():
    scorer = Als().fit(toy_interactions(seed=2)).scorer
    with refuses("malformed-part", part="item_spreads"):
        replace(scorer, item_spreads=scorer.item_spreads[:, :-1]).check()


def test_als_on_few_ratings_a_person_does_not_lose_to_their_own_mean():
    rng = np.random.default_rng(3)
    users, items = np.repeat(np.arange(600), 3), rng.integers(0, 200, 1800)
    values = np.clip(np.round(3 + rng.standard_normal(600)[users] + rng.standard_normal(1800)), 1, 5)
    data = Interactions.from_arrays(users, items, values, low=1, high=5, step=1, duplicates="last")
    split = random_split(data, 0.2, 1)
    own = baselines(split.train, split.test, "rmse")[PREFIX + "user mean"]["rmse"]
    assert measure(Als().fit(split.train), split.train, split.test, "rmse")["rmse"] < own


def test_many_ratings_are_learned_on_a_part_of_the_people_first(monkeypatch):
    data = toy_interactions(n_users=400, per_user=15, seed=6)
    split = random_split(data, 0.1, 1)
    whole = measure(Als().fit(split.train), split.train, split.test, "rmse")["rmse"]
    monkeypatch.setattr(als_module, "_MOST_RATINGS", 1500)
    part = measure(Als().fit(split.train), split.train, split.test, "rmse")["rmse"]
    assert part != whole and part == pytest.approx(whole, rel=0.03)


def test_ease_is_the_regression_of_each_item_on_the_others():
    data = crowds(n_users=80, n_items=12, per_user=4)
    choices = data.to_scipy().toarray().astype(np.float64)
    weights = Ease(regularization=3.0).fit(data).scorer.weights
    for item in range(12):
        others = np.delete(np.arange(12), item)
        design = choices[:, others]
        right = design.T @ choices[:, item]
        expected = np.linalg.solve(design.T @ design + 3.0 * np.eye(11), right)
        np.testing.assert_allclose(weights[others, item], expected, rtol=1e-4, atol=1e-6)
    assert np.all(np.diag(weights) == 0)


def test_neighbors_are_those_with_the_largest_cosine():
    data = crowds(n_users=80, n_items=12, per_user=4)
    choices = data.to_scipy().toarray().astype(np.float64)
    cosine = choices.T @ choices / np.outer(*[np.linalg.norm(choices, axis=0)] * 2)
    np.fill_diagonal(cosine, 0)
    weights = ItemKnn(neighbors=3, shrinkage=0.0).fit(data).scorer.weights
    for item in range(12):
        assert weights[:, item].max() == pytest.approx(cosine[:, item].max(), rel=1e-5)
        assert 3 <= np.count_nonzero(weights[:, item]) <= 6


def test_rare_items_are_left_out_of_the_weights_and_listed_last():
    data = crowds(n_users=80, n_items=12, per_user=4)
    items = most_popular(data, 5)
    counts = np.bincount(data.items, minlength=12)
    assert counts[items].min() >= np.delete(counts, items).max()
    assert np.array_equal(np.diag(co_occurrence_counts(data, items)), counts[items])
    model = ItemKnn(most_items=5, shrinkage=1.0).fit(data)
    assert model.scorer.weights.shape == (5, 5)
    assert [item for item, _ in model.recommend([], 1)] == [int(np.argmax(counts))]


@pytest.mark.few(2)
@pytest.mark.parametrize("bar", [ImplicitAls, Ease, ItemKnn, MarkovChain])
def test_every_bar_of_choices_beats_popularity_where_there_are_crowds(bar):
    split = leave_one_out(crowds(), 2)
    own = measure(bar().fit(split.train), split.train, split.test, "hr@10")["hr@10"]
    popular = baselines(split.train, split.test, "hr@10")[PREFIX + "popularity"]["hr@10"]
    assert own > popular + 0.05


@pytest.mark.parametrize(
    ("bar", "wrong"),
    [
        (Als, {"factors": -1}),
        (Als, {"iterations": 0}),
        (ImplicitAls, {"alpha": -1.0}),
        (Ease, {"regularization": -2.0}),
        (ItemKnn, {"neighbors": 0}),
        (ItemKnn, {"shrinkage": -1.0}),
        (Ease, {"epsilon": 1.0}),
        (MarkovChain, {"smoothing": 0.0}),
        (MarkovChain, {"epsilon": 1.0}),
    ],
)
def test_settings_that_cannot_be_are_refused(bar, wrong):
    with (
        refuses("no-private-version")
        if "epsilon" in wrong
        else refuses(ParameterError, name=next(iter(wrong)))
    ):
        bar(**wrong)


def test_transitions_go_from_earlier_to_later_items_and_ties_have_no_direction():
    data = Interactions.from_arrays([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], times=[10, 20, 30, 5, 5], n_items=3)
    counts = transition_counts(data, np.arange(3))
    np.testing.assert_allclose(counts, [[0, 1.5, 0.5], [0.5, 0, 1], [0, 0, 0]])
    timeless = transition_counts(replace(data, times=None, listed=None), np.arange(3))
    np.testing.assert_allclose(timeless, [[0, 2, 1], [2, 0, 1], [1, 1, 0]])
    nothing = transition_probabilities(np.zeros((3, 3)), 1.0)
    assert np.all(np.isfinite(nothing))


def test_a_chain_is_learned_and_its_reverse_is_not():
    """Everybody walks up the catalog; the twin walks down, and must be predicted worse by the same model."""
    rng = np.random.default_rng(0)
    start = rng.integers(0, 30, 300)
    items = (start[:, None] + np.arange(6)).reshape(-1)
    people, times = np.repeat(np.arange(300), 6), np.tile(np.arange(6), 300)
    up = leave_one_out(Interactions.from_arrays(people, items, times=times, n_items=40))
    down = leave_one_out(Interactions.from_arrays(people, items, times=-times, n_items=40))
    model = MarkovChain().fit(up.train, random=PrivacyRandom.simulate(0))
    own, twin = (measure(model, one.train, one.test, "hr@3")["hr@3"] for one in (up, down))
    assert own > 0.8 and twin < 0.5


@pytest.fixture
def every_catalog_is_large(monkeypatch):
    monkeypatch.setattr(item_item, "MOST_DENSE", 2)
    monkeypatch.setattr(item_item, "_BLOCK", 7)


def test_neighbors_in_a_large_catalog_are_those_of_a_small_one(every_catalog_is_large, tmp_path):
    data = crowds(n_users=150, n_items=30)
    model = ItemKnn(neighbors=40, shrinkage=2.0).fit(data)
    together = co_occurrence_counts(data, np.arange(30))
    lengths = np.sqrt(np.diag(together))
    cosine = together / (np.outer(lengths, lengths) + 2.0)
    np.fill_diagonal(cosine, 0.0)
    assert np.allclose(model.scorer.table().toarray(), cosine, rtol=1e-5)
    few = ItemKnn(neighbors=3, shrinkage=2.0).fit(data).scorer.table().toarray()
    assert (np.count_nonzero(few, axis=0) == 3).all()
    assert np.allclose(few.max(axis=0), cosine.max(axis=0), rtol=1e-5)
    model.save(tmp_path / "near.discreet")
    again = discreet.load(tmp_path / "near.discreet")
    assert again.recommend([3, 5], 4) == model.recommend([3, 5], 4)
    assert [near[0] for near in model.similar_items(3, 1)] == [int(np.argmax(cosine[3]))]


def test_ease_in_a_large_catalog_is_that_of_a_small_one(every_catalog_is_large):
    """Every pair of items occurs, so all are near each other; the twin has a ridge of its own."""
    data = crowds(n_users=600, n_items=30)
    together = co_occurrence_counts(data, np.arange(30))
    assert together.all()
    inverse = np.linalg.inv(together + 5.0 * np.eye(30))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    found, twin = (Ease(regularization=ridge).fit(data).scorer.table().toarray() for ridge in (5.0, 9.0))
    assert np.allclose(found, weights, atol=1e-5)
    assert not np.allclose(twin, weights, atol=1e-3)


@pytest.mark.parametrize("timed", [True, False])
def test_transitions_in_a_large_catalog_are_those_of_a_small_one(every_catalog_is_large, timed):
    data = crowds(n_users=150, n_items=30)
    if timed:
        data = replace(data, times=np.random.default_rng(3).integers(0, 9, data.n_ratings))
    counts = transition_counts(data, np.arange(30))
    found = MarkovChain(smoothing=4.0, fading=0.0).fit(data).scorer.table().toarray()
    assert np.allclose(found, counts / (counts.sum(axis=1, keepdims=True) + 4.0), rtol=1e-5)
    rare = np.setdiff1d(np.arange(30), most_popular(data, 20))
    part = MarkovChain(smoothing=4.0, fading=0.0, most_items=20).fit(data).scorer.table().toarray()
    assert part.any() and not part[rare].any() and not part[:, rare].any()


def test_without_noise_an_unrated_item_is_like_others():
    """Its effect was taken from a line far beyond the counts of all rated items."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 500, 5000), rng.integers(0, 50, 5000)
    stars = np.clip(np.rint(3.5 + rng.normal(size=5000)), 1, 5)
    how = {"catalog": Vocabulary.range(80), "low": 1, "high": 5, "duplicates": "last"}
    effects = (
        Biases(epsilon=math.inf).fit(Interactions.from_arrays(users, items, stars, **how)).scorer.item_bias
    )
    assert np.abs(effects[50:]).max() <= 2 * np.abs(effects[:50]).max()
