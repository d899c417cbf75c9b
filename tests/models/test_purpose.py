"""A purpose: what a budget is spent on, what a model then refuses, and where the setting travels."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.randomness import PrivacyRandom
from discreet.evaluation import evaluate
from discreet.evaluation.private import evaluate_privately, fit_and_evaluate
from discreet.model_settings import estimators, from_toml, to_toml
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from toy import toy_interactions

LISTS = UserFactorization(epsilon=6.0, purpose="lists")
RATINGS = UserFactorization(epsilon=6.0, purpose="ratings")


@pytest.fixture(scope="module")
def ratings():
    return toy_interactions(n_users=1500, n_items=40, per_user=20, seed=3)


def fitted(estimator, data, seed=4):
    return estimator.fit(data, random=PrivacyRandom.simulate(seed))


def test_lists_are_those_of_implicit_feedback_on_the_same_data(ratings):
    """Not one number of the release depends on a rating; the twin, for both, has other numbers."""
    facts = dataclasses.replace(ratings.facts, low=1.0, high=1.0, step=None)
    clicks = ratings.with_values(np.ones_like(ratings.values), facts=facts)
    lists = fitted(LISTS, ratings).scorer
    same = fitted(UserFactorization(epsilon=6.0, feedback="implicit"), clicks).scorer
    assert lists.kind == same.kind and lists.settings() == same.settings()
    for name, array in same.arrays().items():
        np.testing.assert_array_equal(lists.arrays()[name], array)
    both = fitted(UserFactorization(epsilon=6.0), ratings).scorer
    assert not np.array_equal(both.choice.popularity, lists.popularity)


def test_lists_refuse_to_predict_ratings_and_say_what_to_do(ratings):
    model = fitted(LISTS, ratings)
    history = dict.fromkeys(ratings.catalog.ids[:3].tolist(), 4.0)
    assert len(model.recommend(history, 5)) == 5
    for ask in (
        lambda: model.predict_items(history, ratings.catalog.ids[3:5].tolist()),
        lambda: model.predict(ratings, [0], [1]),
    ):
        with refuses("no-ratings-predicted"):
            ask()


def test_nothing_is_paid_for_scores_of_ratings_that_lists_do_not_have(ratings):
    ledger = Ledger.in_memory()
    model = fitted(LISTS, ratings)
    with refuses("metric-does-not-fit", metric="rmse"):
        evaluate(LISTS, ratings, metrics="rmse")
    with refuses("metric-does-not-fit", metric="rmse"):
        fit_and_evaluate([LISTS], ratings, metrics=["rmse"], ledger=ledger)
    with refuses("no-ratings-predicted"):
        evaluate_privately(model, ratings, epsilon=1.0, metric="rmse", ledger=ledger)
    assert ledger.entries() == []


def crowds(n_users=1500, n_items=40, each=12, seed=0):
    """Return ratings by two crowds: one rates mostly the items of the first half, one of the second."""
    rng = np.random.default_rng(seed)
    near = (np.arange(n_users) % 2)[:, None] == (np.arange(n_items) < n_items // 2)
    items = np.argsort(rng.random((n_users, n_items)) - 0.6 * near, axis=1)[:, :each].ravel()
    values = rng.integers(1, 6, items.size).astype(float)
    people = np.repeat(np.arange(n_users), each)
    return discreet.Interactions.from_arrays(
        people, items, values, n_items=n_items, low=1, high=5, name="two"
    )


def test_ratings_do_not_depend_on_when_they_were_given():
    """This holds where users are many for the noise. The twin, for both, does: its lists need the order."""
    data = crowds()
    # Everybody goes up, or everybody goes down the catalog: an order that informs.
    timed, other = (dataclasses.replace(data, times=sign * data.items.astype(np.int64)) for sign in (1, -1))
    for estimator, same in (
        (RATINGS.clone(epsilon=math.inf), True),
        (UserFactorization(epsilon=math.inf), False),
    ):
        one, two = (fitted(estimator, data).scorer for data in (timed, other))
        assert one.part("co_occurrences").shape[1] > 0
        close = all(
            np.allclose(array, two.arrays()[name], rtol=1e-4, atol=1e-4)
            for name, array in one.arrays().items()
        )
        assert close == same


def test_ratings_still_make_lists_and_the_file_keeps_the_purpose(ratings, tmp_path):
    model = fitted(RATINGS, ratings)
    model.save(tmp_path / "stars.discreet")
    loaded = discreet.load(tmp_path / "stars.discreet")
    assert loaded.parameters["purpose"] == "ratings"
    listed = loaded.recommend(dict.fromkeys(ratings.catalog.ids[:3].tolist(), 4.0), 5)
    assert len(listed) == 5 and all(one.stars is not None for one in listed)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"purpose": "stars"}, "unknown-choice"),
        ({"purpose": "ratings", "feedback": "implicit"}, "settings-conflict"),
        ({"purpose": "lists", "prior": "earlier.discreet"}, "settings-conflict"),
    ],
)
def test_purposes_that_make_no_sense_are_refused(settings, code):
    with refuses(code):
        UserFactorization(epsilon=1.0, **settings)


def test_each_purpose_has_its_proof_and_travels_in_a_recipe(ratings):
    proofs = {
        purpose: UserFactorization(epsilon=1.0, purpose=purpose) for purpose in ("lists", "ratings", "both")
    }
    assert {name: one.promise(ratings.facts).proof for name, one in proofs.items()} == {
        "lists": "proofs/user_factorization_implicit.md",
        "ratings": "proofs/user_factorization.md",
        "both": "proofs/user_factorization.md",
    }
    for one in proofs.values():
        assert from_toml(to_toml(one)) == one
    found = estimators(
        ["user-factorization", "als", "user-factorization:purpose=both"], [1.0], None, purpose="lists"
    )
    assert [one.settings.get("purpose") for one in found] == ["lists", None, "both"]
    with refuses("no-purpose", purpose="lists"):
        estimators(["popularity"], [1.0], None, purpose="lists")


def rated_by_kind(n_users=3000, n_items=120, each=20, seed=0):
    """Return ratings of items of six kinds, which differ in quality."""
    rng = np.random.default_rng(seed)
    items = np.argsort(rng.random((n_users, n_items)), axis=1)[:, :each].ravel()
    values = np.clip(np.round(1 + items % 6 * 0.8 + rng.standard_normal(items.size)), 1, 5)
    people = np.repeat(np.arange(n_users), each)
    return discreet.Interactions.from_arrays(people, items, values, n_items=n_items, low=1, high=5)


@pytest.mark.parametrize(("shuffled", "route"), [(False, "effects"), (True, "factors")])
def test_public_features_replace_embeddings_for_ratings_if_they_explain_how_items_are_rated(shuffled, route):
    data = rated_by_kind()
    kinds = np.arange(120) % 6
    if shuffled:
        kinds = np.random.default_rng(1).permutation(kinds)
    table = pl.DataFrame({"item": data.catalog.ids, "kind": [f"k{kind}" for kind in kinds]})
    estimator = UserFactorization(epsilon=1.0, purpose="ratings", item_features=table)
    assert fitted(estimator, data).scorer.explain()["route"] == route
    # The twin, for both, needs embeddings for lists.
    assert fitted(estimator.clone(purpose="both"), data).scorer.explain()["route"] == "factors"
