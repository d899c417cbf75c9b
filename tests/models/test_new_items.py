"""Items nobody rated, served by public features; lists that differ; likeness that is refused."""

import math

import numpy as np
import polars as pl
import pytest

import discreet
from assumption_examples import stated
from discreet.core.randomness import PrivacyRandom
from discreet.models.baselines.als import Als, ImplicitAls
from discreet.models.lists import diversified
from discreet.models.popularity import Popularity
from discreet.models.scorers.similarity import refuse_plain
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.guarantee import Fact, Kind
from discreet.testing import refuses
from toy import toy_interactions


def table(data, more=4):
    """Return the toy's items, whose number says which of two tastes they are for, and new ones."""
    ids = [*data.catalog.ids.tolist(), *(f"new {number}" for number in range(more))]
    return pl.DataFrame(
        {"item": ids, "group": ["even" if int(name.split()[1]) % 2 == 0 else "odd" for name in ids]}
    )


def fan_of_even(data):
    return {item: 5.0 if int(item.split()[1]) % 2 == 0 else 1.0 for item in data.catalog.ids.tolist()[:12]}


@pytest.mark.parametrize("kind", [Als, ImplicitAls])
def test_a_new_item_is_served_to_those_who_like_its_kind(kind, tmp_path):
    data = toy_interactions(n_users=300, seed=8)
    model = kind().fit(data).add_items(table(data))
    assert len(model.catalog) == data.n_items + 4 and model.facts.n_items == data.n_items + 4
    assert (Kind.DECLARED, Fact.ITEM_FEATURES) in stated(model.guarantee)
    history = fan_of_even(data)
    if kind is ImplicitAls:
        history = [item for item, stars in history.items() if stars == 5.0]
    scores = dict(model.recommend(history, 100))
    assert min(scores["new 0"], scores["new 2"]) > max(scores["new 1"], scores["new 3"])
    model.save(tmp_path / "m.discreet")
    assert discreet.load(tmp_path / "m.discreet").recommend(history, 5) == model.recommend(history, 5)


def test_what_the_model_knew_stays_as_it_was():
    data = toy_interactions(seed=8)
    model = Als().fit(data)
    before, after = dict(model.recommend({}, 40)), dict(model.add_items(table(data)).recommend({}, 44))
    assert all(after[item] == score for item, score in before.items())


def test_tables_and_models_that_do_not_fit_are_refused():
    data = toy_interactions(seed=8)
    model = Als().fit(data)
    with refuses("nothing-new"):
        model.add_items(table(data, more=0))
    with refuses("too-few-known", least=10):
        model.add_items(table(data).tail(9))
    with refuses("no-vectors", model="This model"):
        discreet.OneBitOutput(epsilon=math.inf).fit(data).add_items(table(data))
    popular = Popularity(epsilon=math.inf).fit(data, random=PrivacyRandom.simulate(0)).add_items(table(data))
    assert np.all(popular.scorer.popularity > 0) and popular.scorer.popularity.size == data.n_items + 4


def test_a_diversified_list_starts_with_the_best_and_goes_on_with_others():
    worth = np.array([1.0, 0.99, 0.98, 0.5, 0.0, -np.inf])
    vectors = np.array([[1.0, 0], [1, 0.01], [1, 0.02], [0, 1], [-1, 0], [0, -1]])
    assert diversified(worth, vectors, 3, 0.0)[0].tolist() == [0, 1, 2]
    assert diversified(worth, vectors, 3, 0.8)[0].tolist() == [0, 4, 3]
    assert diversified(worth, vectors, 2, 0.05)[0].tolist() == [0, 1]
    assert sorted(diversified(worth, vectors, 9, 1.0)[0].tolist()) == [0, 1, 2, 3, 4]
    assert diversified(np.full(3, -np.inf), vectors[:3], 2, 0.5)[0].size == 0


def test_likeness_by_quality_and_fame_alone_is_refused():
    rng = np.random.default_rng(0)
    bias, fame, taste = rng.standard_normal((3, 30))
    for plain in (np.column_stack([2 * bias + 1, fame]), np.zeros((30, 0)), bias[:, None]):
        with refuses("no-factors-found"):
            refuse_plain(bias, plain)
    for told in (np.column_stack([2 * bias, fame, taste]), np.column_stack([taste, fame]), taste[:, None]):
        refuse_plain(bias, told)


def test_lists_can_be_asked_to_differ(tmp_path):
    data = toy_interactions(n_users=300, seed=8)
    model = Als().fit(data)
    history = fan_of_even(data)

    def odd(items):
        return sum(int(item.split()[1]) % 2 for item in items)

    plain = [item for item, _ in model.recommend(history, 8)]
    mixed = [item for item, _ in model.recommend(history, 8, diversify=0.9)]
    assert plain[0] == mixed[0] and odd(plain) < odd(mixed)
    all_users = model.recommend_all(data, 5, diversify=0.9)
    span = slice(*data.indptr[:2])
    own = dict(zip(data.catalog.id_at(data.items[span]).tolist(), data.values[span].tolist(), strict=True))
    first = all_users.filter(pl.col("user") == data.users.ids[0])["item"].to_list()
    assert first == [item for item, _ in model.recommend(own, 5, diversify=0.9)]
    for wrong, code in ((-0.1, "out-of-range"), (1.5, "out-of-range"), (math.nan, "wrong-kind")):
        with refuses(code, name="diversify"):
            model.recommend(history, 5, diversify=wrong)


def test_a_model_that_found_no_taste_says_so_instead_of_naming_likes():
    data = toy_interactions(n_users=40, seed=8)
    model = UserFactorization(epsilon=0.1).fit(data, random=PrivacyRandom.simulate(0))
    item = data.catalog.ids.tolist()[0]
    assert model.similar_items(item) == [] and model.similar_items(item).why_empty
    with refuses("no-factors-found"):
        model.recommend({}, 5, diversify=0.5)


def test_public_features_help_choices_too_and_may_be_a_data_frame(tmp_path):
    data = toy_interactions(n_users=200, seed=8)
    for feedback in ("explicit", "implicit"):
        told = UserFactorization(epsilon=1.0, feedback=feedback, item_features=table(data))
        model = told.fit(data, random=PrivacyRandom.simulate(0))
        assert "data frame" in model.parameters["item_features"]
        assert (Kind.DECLARED, Fact.ITEM_FEATURES) in stated(model.guarantee)
        model.save(tmp_path / f"{feedback}.discreet")
        assert discreet.load(tmp_path / f"{feedback}.discreet").recommend({}, 3) == model.recommend({}, 3)
