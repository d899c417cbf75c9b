"""Public words in lists: what they cost, when they count, and that without evidence they do not."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from discreet.audit.neighboring import SyntheticSpec, neighboring
from discreet.audit.white_box.structure import examine
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.item_tables import item_words
from discreet.data.splits import leave_one_out
from discreet.data.vocabulary import Vocabulary
from discreet.evaluation.scoring import measure
from discreet.models.user_factorization import estimator as estimator_module
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.models.user_factorization.public_features import Content, content_vectors, likeliest_weight
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.errors import BadTable
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.testing import refuses

ITEMS, GROUPS = 120, 12
WEIGHT = 2.5


def described(shuffle=False):
    """Return a table of items: the word of a group, and a title with a word that half of the items share."""
    group = np.arange(ITEMS) % GROUPS
    if shuffle:
        group = np.random.default_rng(7).permutation(group)
    titles = [f"The {'red' if one % 2 else 'blue'} number{one}" for one in range(ITEMS)]
    return pl.DataFrame({"id": range(ITEMS), "kind": [f"g{one}" for one in group], "title": titles})


def chosen(n_users=1500, each=6, seed=0):
    """Return choices in which an item of the group of the first is exp(WEIGHT) times as likely."""
    rng = np.random.default_rng(seed)
    popular = 1 / (1 + np.arange(ITEMS)) ** 0.5
    first = rng.choice(ITEMS, n_users, p=popular / popular.sum())
    odds = np.log(popular) + WEIGHT * (np.arange(ITEMS) % GROUPS == first[:, None] % GROUPS)
    odds += rng.gumbel(size=odds.shape)
    odds[np.arange(n_users), first] = np.inf
    items = np.argsort(-odds, axis=1)[:, :each]
    return Interactions.from_arrays(
        np.repeat(np.arange(n_users), each),
        items.ravel(),
        times=np.tile(np.arange(each), n_users),
        n_items=ITEMS,
        low=1,
        high=1,
        name="kinds",
    )


@pytest.fixture(scope="module")
def split():
    return leave_one_out(chosen())


def fitted(split, table, epsilon=1.0, seed=1):
    estimator = UserFactorization(epsilon=epsilon, feedback="implicit", item_features=table)
    return estimator.fit(split.train, random=PrivacyRandom.simulate(seed))


def test_words_have_the_length_of_one_and_common_ones_count_less():
    words = item_words(described(), Vocabulary.of([*range(ITEMS), "not described"]))
    lengths = np.sqrt(words.multiply(words).sum(axis=1)).ravel()
    np.testing.assert_allclose(lengths[0, :-1], 1.0)
    assert lengths[0, -1] == 0
    similar = (words @ words.T).toarray()
    # The same kind and color, the same kind or the same color alone.
    assert similar[0, 12] == pytest.approx(1.0) and similar[0, 2] < 0.5
    np.testing.assert_allclose(content_vectors(words) @ content_vectors(words).T, similar, atol=1e-9)


def test_the_weight_is_that_of_the_model_that_the_data_come_from():
    rng = np.random.default_rng(0)
    vectors = np.eye(GROUPS)[np.arange(ITEMS) % GROUPS]
    popular = 1 / (1.0 + np.arange(ITEMS)) ** 0.5
    share = popular / popular.sum()
    before = rng.choice(ITEMS, 40_000, p=share)
    chance = share * np.exp(WEIGHT * (vectors @ vectors.T))
    np.fill_diagonal(chance, 0.0)
    places = (
        np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)[before] > rng.random((40_000, 1))
    ).argmax(axis=1)
    mean = float((vectors[before] * vectors[places]).sum(axis=1).mean())
    assert likeliest_weight(mean, popular, vectors) == pytest.approx(WEIGHT, abs=0.1)
    by_chance = float((share @ vectors) @ (share @ vectors))
    assert likeliest_weight(by_chance * 0.8, popular, vectors) == 0.0


def test_the_last_item_of_a_catalog_is_a_context_too():
    """Half of what is chosen after the last item, which most users have, is similar to it by chance."""
    vectors = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    assert likeliest_weight(0.7, np.array([1.0, 1.0, 98.0]), vectors) > 0


def test_similar_words_add_their_weight_to_a_score_over_the_ridge():
    vectors, ridge = np.random.default_rng(0).standard_normal((5, 3)), 0.2
    found = Content(vectors, 3.0).beside(np.zeros((5, 2)), ridge)
    np.testing.assert_allclose(found @ found.T / ridge, 3.0 * vectors @ vectors.T, atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_words_help_where_people_choose_by_them_and_do_no_harm_where_not(split, epsilon):
    """The twin has the same words on other items: they get no weight, and lists stay as they were."""
    without = measure(fitted(split, None, epsilon), split.train, split.test, "hr@10")["hr@10"]
    told = fitted(split, described(), epsilon)
    assert measure(told, split.train, split.test, "hr@10")["hr@10"] > without * 1.15
    twin = fitted(split, described(shuffle=True), epsilon)
    weights = [one.scorer.explain()["weight of similar words"] for one in (told, twin)]
    assert weights[1] < 0.3 and weights[0] > 3 * max(weights[1], 0.3)
    assert measure(twin, split.train, split.test, "hr@10")["hr@10"] > without * 0.9


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "settings", [{"feedback": "implicit"}, {"purpose": "lists"}, {"purpose": "both"}, {"purpose": "ratings"}]
)
@pytest.mark.parametrize("epsilon", [0.2, 8.0])
def test_every_way_with_words_spends_exactly_the_budget(split, monkeypatch, epsilon, settings):
    spent, made = [], Gaussian.__post_init__

    def noted(self):
        made(self)
        spent.append((self.l2_sensitivity / self.sigma) ** 2)

    monkeypatch.setattr(Gaussian, "__post_init__", noted)
    data = split.train
    if "feedback" not in settings:
        facts = data.facts.__class__(n_items=ITEMS, low=1.0, high=5.0)
        data = data.with_values(1.0 + np.arange(data.n_ratings) % 5, facts=facts)
    estimator = UserFactorization(epsilon=epsilon, item_features=described(), **settings)
    estimator.fit(data, random=PrivacyRandom.simulate(2))
    whole = gaussian_multiplier(epsilon, 1e-6) ** -2
    assert sum(spent) == pytest.approx(whole, rel=1e-9) and sum(spent) <= whole * (1 + 1e-12)
    assert math.isfinite(whole)


@pytest.mark.thorough
@pytest.mark.parametrize("purpose", ["lists", "both"])
def test_no_neighboring_data_refute_a_fit_with_words(purpose):
    """The white-box audit, which knows nothing of tables, is told of one here."""
    spec = SyntheticSpec(people=8, items=6, per_person=3, wide=0)
    plain = UserFactorization(epsilon=1.0, purpose=purpose)
    ids = next(neighboring(plain, spec)).base.catalog.ids.tolist()
    table = pl.DataFrame({"id": ids, "kind": [f"kind {place % 2}" for place in range(len(ids))]})
    inside = examine(plain.clone(item_features=table), spec)
    assert not inside.leaks and inside.additive and inside.holds


@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
def test_words_that_tell_no_items_apart_are_no_words(feedback):
    data = chosen(n_users=60)
    data = data.with_facts(replace(data.facts, high=5.0))
    # All items of the catalog have one genre; others, which the catalog does not have, have another.
    table = pl.DataFrame({"id": range(ITEMS + 5), "kind": ["drama"] * ITEMS + ["crime"] * 5})
    estimator = UserFactorization(epsilon=1.0, feedback=feedback, item_features=table)
    model = estimator.fit(data, random=PrivacyRandom.simulate(0))
    assert "weight of similar words" not in model.scorer.explain()
    # The twin: with words that differ the weight is learned.
    model = estimator.clone(item_features=described()).fit(data, random=PrivacyRandom.simulate(0))
    assert "weight of similar words" in model.scorer.explain()


@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
def test_words_that_cannot_be_read_are_refused_before_payment(monkeypatch, feedback):
    def broken(source, catalog):
        raise BadTable(name="words", must="be readable")

    monkeypatch.setattr(estimator_module, "item_words", broken)
    ledger = Ledger.in_memory()
    estimator = UserFactorization(epsilon=1.0, feedback=feedback, item_features=described())
    with refuses("bad-table", name="words"):
        estimator.fit(chosen(n_users=60), ledger=ledger)
    assert not ledger.entries()
