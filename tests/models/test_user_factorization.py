"""What the recommended model must do besides its contract."""

import math

import numpy as np
import pytest

from assumption_examples import stated
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import random_split
from discreet.evaluation.scoring import measure, rating_references
from discreet.models.biases import Biases
from discreet.models.released_items import sum_variance
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.accounting.events import event_from_json
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.statistics.typical import TYPICAL_RESIDUAL
from discreet.testing import refuses
from toy import toy_interactions


@pytest.fixture(scope="module")
def split():
    return random_split(toy_interactions(n_users=2500, n_items=150, per_user=85, seed=1), 0.1, seed=0)


# In about one draw of ten the noise decides otherwise, so a test of a decision allows one of these to differ.
DRAWS = range(6)


def rmse(estimator, split, seed=5):
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
    return measure(model, split.train, split.test, "rmse")["rmse"], model


def test_finds_the_two_tastes_without_noise(split):
    plain, _ = rmse(Biases(epsilon=math.inf), split)
    personal, model = rmse(UserFactorization(epsilon=math.inf), split)
    assert model.scorer.explain()["factors found"] and model.scorer.explain()["factors kept"] >= 3
    # The toy's ratings are 3 +- 1.2 by taste with a spread of 0.8: item effects alone leave 1.4.
    assert plain > 1.3 and personal < 0.95


def test_finds_them_through_the_noise_of_a_generous_budget(split):
    personal, model = rmse(UserFactorization(epsilon=20.0), split)
    assert model.scorer.explain()["factors found"]
    assert personal < 1.1


def test_is_not_worse_than_the_users_mean_when_there_is_mostly_noise(split):
    personal, model = rmse(UserFactorization(epsilon=0.05), split)
    assert not model.scorer.explain()["factors found"]
    bar = measure(rating_references(split.train)["user mean"], split.train, split.test, "rmse")["rmse"]
    assert personal < bar + 0.02


@pytest.mark.parametrize(("users", "ratings", "part"), [(400, 9, 0.2), (50, 30, 1.5)])
def test_the_variance_of_item_sums_is_the_noise_and_that_of_the_ratings(users, ratings, part):
    """Where all users rate equally much, each rating of an item has one known weight."""
    item_weights = np.array([0.5, 1.0, 2.0])
    raters = users * ratings * np.array([0.5, 0.3, 0.2])
    weight = item_weights / math.sqrt(ratings * (TYPICAL_RESIDUAL**2 + part**2))
    expected = 0.7**2 + raters * (TYPICAL_RESIDUAL * weight) ** 2
    np.testing.assert_allclose(sum_variance(raters * weight, item_weights, users, 0.7, part), expected)


def test_likes_are_alike(split):
    _, model = rmse(UserFactorization(epsilon=math.inf), split)
    even = [int(str(item).split()[1]) % 2 for item, _ in model.similar_items("item 02", k=10)]
    assert even == [0] * 10


@pytest.mark.parametrize(
    "estimator", [UserFactorization(epsilon=1.3, delta=1e-5), Biases(epsilon=1.3, delta=1e-5)]
)
def test_the_ledger_recounts_the_promise(split, estimator):
    ledger = Ledger.in_memory()
    estimator.fit(split.train, ledger=ledger, random=PrivacyRandom.simulate(1))
    (entry,) = ledger.entries()
    recounted = epsilon_at([event_from_json(event) for event in entry.events], estimator.delta)
    assert recounted == pytest.approx(estimator.epsilon, rel=1e-6)
    assert recounted <= estimator.epsilon * (1 + 1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize("purpose", ["both", "ratings"])
@pytest.mark.parametrize("epsilon", [0.02, 2.0, 20.0])
def test_the_model_is_a_function_of_what_was_released(split, monkeypatch, epsilon, purpose):
    """Played back the same released numbers, other data give the same model: nothing else is read from data.

    Every release is recorded on one data set and played back on data of other people with other ratings. A
    decision, scale or starting point taken from the data themselves would make the two models differ.
    """
    told = []
    kinds = {name: getattr(Gaussian, name) for name in ("release", "release_symmetric")}

    def recorder(name):
        def note(self, values, random):
            told.append(kinds[name](self, values, random))
            return told[-1].copy()

        return note

    for name in kinds:
        monkeypatch.setattr(Gaussian, name, recorder(name))
    estimator = UserFactorization(epsilon=epsilon, purpose=purpose)
    first = estimator.fit(split.train, random=PrivacyRandom.simulate(2))
    left = list(told)
    for name in kinds:
        monkeypatch.setattr(Gaussian, name, lambda self, values, random: left.pop(0).copy())
    others = toy_interactions(n_users=40, n_items=150, per_user=85, seed=99)
    second = estimator.fit(others, random=PrivacyRandom.simulate(3))
    assert not left and first.scorer.explain() == second.scorer.explain()
    for name, array in first.scorer.arrays().items():
        np.testing.assert_array_equal(array, second.scorer.arrays()[name])


@pytest.mark.few(1)
@pytest.mark.parametrize("purpose", ["both", "ratings"])
@pytest.mark.parametrize("epsilon", [0.02, 2.0, 20.0])
def test_every_route_spends_exactly_the_budget(split, monkeypatch, epsilon, purpose):
    spent, made = [], Gaussian.__post_init__

    def noted(self):
        made(self)
        spent.append((self.l2_sensitivity / self.sigma) ** 2)

    monkeypatch.setattr(Gaussian, "__post_init__", noted)
    estimator = UserFactorization(epsilon=epsilon, purpose=purpose)
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(2))
    # With lists among the purposes, votes come before effects where noise hides which items are on top.
    few = "effects" if purpose == "ratings" else "votes"
    assert model.scorer.explain()["route"] == {0.02: few, 2.0: "factors", 20.0: "factors"}[epsilon]
    whole = gaussian_multiplier(epsilon, 1e-6) ** -2
    assert sum(spent) == pytest.approx(whole, rel=1e-9) and sum(spent) <= whole * (1 + 1e-12)


def faint(strength, n_users=2000, n_items=60, seed=0):
    """Return ratings of everything by people of two tastes that hardly differ."""
    rng = np.random.default_rng(seed)
    taste = rng.choice([-1.0, 1.0], n_users)[:, None] * rng.choice([-1.0, 1.0], n_items)
    chosen = np.argsort(rng.random((n_users, n_items)), axis=1)[:, :45]
    people = np.repeat(np.arange(n_users), 45)
    ratings = 3 + strength * taste[people, chosen.ravel()] + rng.normal(size=people.size) * 0.6
    ratings = np.clip(np.rint(ratings), 1, 5)
    return Interactions.from_arrays(
        people, chosen.ravel(), ratings, n_items=n_items, low=1, high=5, name="faint"
    )


@pytest.mark.parametrize("strength", [0.25, 0.0])
def test_a_second_look_finds_what_a_glance_misses_within_the_budget(monkeypatch, strength):
    """The twin has no taste to find; on both ways the whole budget is spent and no more."""
    spent, made = [], Gaussian.__post_init__

    def noted(self):
        made(self)
        spent.append((self.l2_sensitivity / self.sigma) ** 2)

    monkeypatch.setattr(Gaussian, "__post_init__", noted)
    data, whole, as_expected = faint(strength), gaussian_multiplier(1.2, 1e-6) ** -2, 0
    for draw in DRAWS:
        spent.clear()
        model = UserFactorization(epsilon=1.2).fit(data, random=PrivacyRandom.simulate(draw))
        said = model.scorer.explain()
        missed = said["variance explained by pilot"] == 0.0 and said["co-occurrence factors kept"] == 0
        as_expected += missed and said["factors found"] == (strength > 0)
        assert sum(spent) == pytest.approx(whole, rel=1e-9)
    assert as_expected >= len(DRAWS) - 1


def test_strong_taste_shows_at_a_glance_and_noise_does_not(split):
    """The twin has the same ratings dealt out at random, so there is nothing to find."""
    _, model = rmse(UserFactorization(epsilon=2.0), split)
    said = model.scorer.explain()
    assert said["route"] == "factors" and said["factors found"] and said["variance explained by pilot"] > 0.1
    shuffled = split.train.with_values(np.random.default_rng(0).permutation(split.train.values))
    fits = [UserFactorization(epsilon=2.0).fit(shuffled, random=PrivacyRandom.simulate(n)) for n in DRAWS]
    decided = [fit.scorer.explain() for fit in fits]
    assert all(said["route"] == "factors" for said in decided)
    assert sum(said["factors found"] for said in decided) <= 1


@pytest.mark.thorough
def test_more_epsilon_is_not_worse_on_average(split):
    scores = [
        np.mean([rmse(UserFactorization(epsilon=epsilon), split, seed)[0] for seed in range(4)])
        for epsilon in (0.1, 20.0)
    ]
    assert scores[0] > scores[1]


def test_public_features_stand_in_for_what_noise_hides(split, tmp_path):
    """The toy's two tastes are a public column here, so even a small budget predicts them."""
    items = split.train.catalog.ids.tolist()
    rows = "".join(f"{item},{int(str(item).split()[1]) % 2},7\n" for item in items)
    (tmp_path / "items.csv").write_text("item,even,constant\n" + rows + "not rated,0,1\n")
    told = UserFactorization(epsilon=0.3, item_features=str(tmp_path / "items.csv"))
    assert (Kind.DECLARED, Fact.ITEM_FEATURES) in stated(told.promise(split.train.facts))
    without, _ = rmse(UserFactorization(epsilon=0.3), split)
    personal, model = rmse(told, split)
    assert personal < without - 0.3
    assert model.parameters["item_features"] == told.item_features


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, None),
        ("item,a\nitem 01,1\nitem 01,2\n", "repeated"),
        ("item,a\nitem 01,x\nitem 02,y\n", "same"),
        ("item\nitem 01\n", "columns"),
        ("item,a\nnobody,1\n", "foreign"),
        ("item,a\nitem 01,inf\nitem 02,3\n", "infinite"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_before_anything_is_paid(split, tmp_path, text, error):
    path, ledger = tmp_path / "items.csv", Ledger.in_memory()
    if text is not None:
        path.write_text(text)
    expected = ("no-files", {}) if error is None else ("public-table-wrong", {"why": error})
    with refuses(expected[0], **expected[1]):
        UserFactorization(epsilon=1.0, item_features=str(path)).fit(split.train, ledger=ledger)
    assert ledger.entries() == []
