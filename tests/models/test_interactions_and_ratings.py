"""One release answers two questions: what a person would choose, and how they would like it."""

import dataclasses
import math

import numpy as np
import pytest

import discreet
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import leave_one_out
from discreet.evaluation.scoring import measure
from discreet.models.biases import Biases
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.testing import refuses


def shelves(n_users=1500, n_items=80, per_user=14, seed=0) -> Interactions:
    """Return ratings of two groups that choose from their own half; rare items have the best ratings."""
    rng = np.random.default_rng(seed)
    fame = 1 / np.arange(1, n_items + 1) ** 0.7
    weights = np.where(np.arange(n_items) % 2 == np.arange(2)[:, None], 9.0, 1.0) * fame
    weights /= weights.sum(axis=1, keepdims=True)
    chosen = [rng.choice(n_items, per_user, replace=False, p=weights[user % 2]) for user in range(n_users)]
    items = np.concatenate(chosen)
    ratings = np.clip(np.rint(3 + items / n_items + rng.normal(size=items.size)), 1, 5)
    people = np.repeat(np.arange(n_users), per_user)
    return Interactions.from_arrays(people, items, ratings, n_items=n_items, low=1, high=5, name="shelves")


@pytest.fixture(scope="module")
def split():
    return leave_one_out(shelves())


@pytest.fixture(scope="module")
def model(split):
    return UserFactorization(epsilon=8.0).fit(split.train, random=PrivacyRandom.simulate(1))


def test_lists_of_the_default_fit_beat_popularity(split, model):
    assert model.scorer.explain()["co-occurrence factors kept"] >= 1
    popular = Popularity(epsilon=math.inf).fit(split.train, random=PrivacyRandom.simulate(0))
    own = measure(model, split.train, split.test, "hr@10")["hr@10"]
    assert own > measure(popular, split.train, split.test, "hr@10")["hr@10"] + 0.05


def test_ordering_by_stars_alone_would_not(split, model):
    """The twin: the order that lists had before loses to popularity on the same release."""
    stars = dataclasses.replace(model, scorer=model.scorer.stars)
    popular = Popularity(epsilon=math.inf).fit(split.train, random=PrivacyRandom.simulate(0))
    bar = measure(popular, split.train, split.test, "hr@10")["hr@10"]
    assert measure(stars, split.train, split.test, "hr@10")["hr@10"] < bar - 0.05


def test_ratings_are_shown_whatever_orders_the_list(split, model):
    history = {0: 5, 2: 4, 4: 4}
    lists = {by: model.recommend(history, k=77, rank_by=by) for by in ("both", "choice", "stars")}
    assert len({tuple(item for item, _ in found) for found in lists.values()}) == 3
    for found in lists.values():
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    stars = {by: {one[0]: one.stars for one in found} for by, found in lists.items()}
    for by in ("both", "choice"):
        assert stars[by] == pytest.approx(stars["stars"])
    shown = [one.stars for one in lists["stars"]]
    assert shown == sorted(shown, reverse=True)
    assert model.recommend(history) == model.recommend(history, rank_by="both")
    assert sum(item % 2 == 0 for item, _ in lists["choice"][:10]) >= 8


def test_liking_moves_the_list_toward_better_rated_items(split, model):
    rows = np.arange(200)
    stars = model.scorer.scores(split.train, rows)

    def mean_stars(by):
        worth = model.scorer.worth_by(split.train, rows, by)
        return np.take_along_axis(stars, np.argsort(-worth, axis=1)[:, :10], axis=1).mean()

    assert mean_stars("choice") < mean_stars("both") < mean_stars("stars")


def test_ten_good_items_show_ten_numbers(model):
    """Predictions beyond the top of the scale stay apart to the two digits shown; clipping makes them one."""
    stars = np.linspace(4.6, 5.6, 10)
    shown = model.scorer.shown(stars)
    assert (np.diff(shown.round(2)) > 0).all() and shown.max() < 5
    assert len(set(np.clip(stars, 1, 5).round(2))) == 5
    np.testing.assert_allclose(model.scorer.shown(np.array([2.0, 3.0, 4.0])), [2, 3, 4], atol=0.01)


def test_an_order_that_a_model_does_not_know_is_refused(split, model):
    with refuses("unknown-ranking", value="luck"):
        model.recommend({0: 5}, rank_by="luck")
    plain = Popularity(epsilon=1.0).fit(split.train, random=PrivacyRandom.simulate(0))
    with refuses("unknown-ranking", value="choice"):
        plain.recommend([0], rank_by="choice")


def test_many_lists_are_those_of_one_person(split, model):
    table = model.recommend_all(split.train.select_users([3, 4]), k=5, rank_by="choice")
    row = split.train.select_users([3])
    history = dict(zip(row.catalog.id_at(row.items).tolist(), row.values.tolist(), strict=True))
    alone = model.recommend(history, k=5, rank_by="choice")
    first = table.filter(table["rank"] <= 5).head(5)
    assert first["item"].to_list() == [item for item, _ in alone]
    np.testing.assert_allclose(first["score"].to_list(), [score for _, score in alone], rtol=1e-6)


def test_saving_and_loading_keeps_both_answers(split, model, tmp_path):
    model.save(tmp_path / "m.discreet")
    loaded = discreet.load(tmp_path / "m.discreet")
    rows = np.arange(5)
    np.testing.assert_array_equal(loaded.worth(split.train, rows), model.worth(split.train, rows))
    np.testing.assert_array_equal(loaded.scores(split.train, rows), model.scores(split.train, rows))


def test_liking_counts_nothing_where_nearly_everything_is_rated():
    """Two catalogs with the same ratings: in the wide one people know little of it, in the other most."""
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(400), 20)
    items = np.argsort(rng.random((400, 25)), axis=1)[:, :20].ravel()
    ratings = np.clip(np.rint(2 + items / 8 + rng.normal(size=items.size)), 1, 5)
    liking = []
    for n_items in (25, 250):
        data = Interactions.from_arrays(people, items, ratings, n_items=n_items, low=1, high=5, name="dense")
        model = UserFactorization(epsilon=math.inf).fit(data, random=PrivacyRandom.simulate(0))
        liking.append(model.scorer.liking)
    assert liking[0] == 0 and liking[1] > 0.3


def test_a_person_is_believed_more_where_the_overall_mean_is_hardly_known(split):
    """What the noise hides of the mean, people's own ratings make up for."""
    ridges = [
        Biases(epsilon=epsilon).fit(split.train, random=PrivacyRandom.simulate(0)).scorer.ridge[0]
        for epsilon in (0.01, 1.0, math.inf)
    ]
    assert ridges[0] < 1.5 < 2.9 < ridges[1] < ridges[2] == 3


def test_what_hardly_anybody_chose_is_like_nothing_in_particular(split, model):
    """A short vector points anywhere; the twin, by angles alone, takes one for the nearest of all."""
    co_occurrences = model.scorer.part("co_occurrences").copy()
    item = int(np.argmax(np.linalg.norm(co_occurrences, axis=1)))
    silent = int(np.argmin(model.scorer.part("popularity")))
    co_occurrences[silent] = co_occurrences[item] * 1e-3
    stars = model.scorer.stars
    bare = model.scorer.with_parts(
        co_occurrences=co_occurrences, item_factors=stars.item_factors[:, :2], ridge=stars.ridge[:3]
    )
    changed = dataclasses.replace(model, scorer=bare)
    name, other = (model.catalog.id_at([one]).tolist()[0] for one in (item, silent))
    assert other not in dict(changed.similar_items(name, k=10))
    vectors = bare.item_vectors()
    cosine = vectors @ vectors[item] / np.linalg.norm(vectors, axis=1)
    cosine[item] = -np.inf
    assert cosine[silent] == pytest.approx(cosine.max())
