"""Ratings that fade: users' own weights by a public time, and splits by a date."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from assumption_examples import stated
from discreet import Biases, Popularity, PrivacyRandom, UserFactorization
from discreet.core.checks import DataError, ParameterError
from discreet.data.interactions import Interactions
from discreet.data.splits import parse_split
from discreet.evaluation.protocol import evaluate
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.ledger import Ledger
from discreet.statistics.counts import ItemResiduals, Recency, RecentResiduals, RecentVotes
from discreet.testing import refuses

DAY = 86400
NOW = "1970-02-01"


def stream(seed=0, users=300):
    """Return ratings of two months; in the first, low items are chosen, in the second, high ones."""
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 60, 4 * users)
    items = (rng.integers(0, 10, days.size) + 10 * (days >= 30)).astype(np.int64)
    people = np.repeat(np.arange(users), 4)
    table = np.unique(np.column_stack([people, items, days]), axis=0)
    _, first = np.unique(table[:, :2], axis=0, return_index=True)
    people, items, days = table[first].T
    values = np.where(days < 30, 2, 4) + rng.integers(0, 2, days.size)
    return Interactions.from_arrays(people, items, values, days * DAY, low=1, high=5, step=1)


def fitted(kind, data, **settings):
    return kind(epsilon=8.0, **settings).fit(data, random=PrivacyRandom.simulate(1)).scorer


def test_what_is_old_fades():
    data = stream()
    plain = fitted(Popularity, data).popularity
    recent = fitted(Popularity, data, half_life=5.0, now="1970-03-01").popularity
    assert plain[:10].sum() > 0.7 * plain[10:].sum() and recent[:10].sum() < 0.2 * recent[10:].sum()
    # In the middle nothing from the future counts more than what is there.
    middle = fitted(Popularity, data, half_life=5.0, now=NOW).popularity
    assert middle[:10].sum() > recent[:10].sum()


@pytest.mark.parametrize("purpose", ["lists", "ratings", "both"])
def test_what_is_old_fades_in_user_factorization(purpose):
    """Without noise, so that no draw decides; without a half-life nothing fades."""

    def popularity(**settings):
        model = UserFactorization(epsilon=math.inf, purpose=purpose, **settings).fit(stream())
        return model.scorer.part("popularity")

    plain, recent = popularity(), popularity(half_life=5.0, now="1970-03-01")
    assert plain[:10].sum() > 0.7 * plain[10:].sum() and recent[:10].sum() < 0.2 * recent[10:].sum()


def test_recent_ratings_move_the_effects_of_user_factorization():
    """Item 0 is rated 1 in the first month and 5 in the second; with a half-life the second counts."""
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(400), 5)
    items = np.concatenate([[0, *rng.choice(np.arange(1, 12), 4, replace=False)] for _ in range(400)])
    days = np.repeat(np.arange(400) % 60, 5)
    values = np.where(items == 0, np.where(days < 30, 1, 5), 3)
    data = Interactions.from_arrays(people, items, values, days * DAY, low=1, high=5, step=1)

    def effect(**settings):
        model = UserFactorization(epsilon=math.inf, purpose="ratings", **settings).fit(data)
        bias = model.scorer.part("item_bias")
        return bias[0] - bias[1:].mean()

    assert effect(half_life=5.0, now="1970-03-01") > effect() + 0.5
    assert abs(effect(half_life=1e6, now="1970-03-01") - effect()) < 0.1


def test_a_half_life_leaves_the_other_releases_the_rest_of_the_budget():
    for settings in ({"feedback": "implicit"}, {"feedback": "explicit"}):
        model = discreet.UserFactorization(epsilon=1.0, half_life=7.0, now=NOW, **settings).fit(stream())
        fading = [one.share for one in model.releases if one.statistic.startswith("Recent")]
        assert fading == [Fraction(15, 100)]
        assert sum(one.share for one in model.releases) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_user_never_counts_more_than_one(delta):
    rng, norm, longest = np.random.default_rng(0), "l2" if delta else "l1", 0.0
    for _ in range(300):
        count = int(rng.integers(1, 30))
        times = rng.integers(0, 10 ** int(rng.integers(1, 8)), count)
        own = Interactions.from_arrays(
            np.zeros(count), np.arange(count), rng.uniform(1, 5, count), times, low=1, high=5, n_items=count
        )
        recency = Recency(now=float(rng.integers(0, 10**7)), half_life=float(10 ** rng.uniform(0, 7)))
        told = own.total(RecentVotes(n_items=count, norm=norm, recency=recency)).floats()
        length = np.linalg.norm(told) if delta else np.abs(told).sum()
        plain = ItemResiduals(
            middle=3.0,
            half=2.0,
            mean=0.0,
            effects=np.zeros(count),
            item_weights=np.ones(count),
            count_part=0.3,
        )
        residuals = own.total(RecentResiduals(plain=plain, recency=recency)).floats()
        assert length <= 1 and np.linalg.norm(residuals) <= 1
        assert np.linalg.norm(residuals) <= np.linalg.norm(own.total(plain).floats()) + 1e-5
        longest = max(longest, length)
    # The search comes near the bound, so one that were exceeded would show.
    assert longest > 0.99


def test_effects_fade_too():
    data = stream()
    model = Biases(epsilon=8.0, half_life=5.0, now="1970-03-01").fit(data, random=PrivacyRandom.simulate(1))
    assert (Kind.DECLARED, Fact.TIMES) in stated(model.guarantee)
    assert model.parameters["half_life"] == 5.0
    assert (Kind.DECLARED, Fact.TIMES) not in stated(Biases(epsilon=1.0).promise(data.facts))


def test_settings_and_data_that_make_no_sense_are_refused():
    data = stream()
    bare = Interactions.from_arrays([0, 1], [0, 1], [1, 2], low=1, high=5)
    for kind in (Popularity, Biases, UserFactorization):
        with refuses("times-needed", setting="half_life"):
            kind(epsilon=1.0, half_life=3.0).fit(bare)
        with refuses("wrong-kind", name="now", found="'soon'"):
            kind(epsilon=1.0, half_life=3.0, now="soon")
        with refuses("settings-conflict", setting="now"):
            kind(epsilon=1.0, now=NOW)
        with pytest.raises(ParameterError):
            kind(epsilon=1.0, half_life=0.0)
        assert kind(epsilon=1.0, half_life=3.0).fit(data, random=PrivacyRandom.simulate(0)).name == kind.name


def test_a_date_splits_everybody():
    data = stream()
    (split,) = parse_split(f"time:{NOW}").splits(data, 0)
    assert split.train.times.max() < 31 * DAY <= split.test.times.min()
    assert split.train.n_ratings + split.test.n_ratings == data.n_ratings
    with pytest.raises(DataError, match="one side"):
        parse_split("time:2026-01-31").splits(data, 0)
    with refuses("broken-rule", name="split"):
        parse_split("time:2026-13-31")
    estimator = discreet.Popularity(epsilon=8.0)
    found = evaluate(estimator, data, split=f"time:{NOW}", metrics=("hr@10",), repeat=1, seed=1)
    assert 0 <= found.to_json()["metrics"]["hr@10"]["mean"] <= 1


@pytest.mark.parametrize("kind", [Popularity, UserFactorization])
@pytest.mark.parametrize("half_life", [5e-324, 1e308])
def test_no_half_life_is_refused_after_payment(kind, half_life):
    ledger = Ledger.in_memory()
    kind(epsilon=8.0, half_life=half_life, now=NOW).fit(stream(users=30), ledger=ledger)
    assert len(ledger.entries()) == 1


def test_an_evaluation_counts_ages_from_its_training_data():
    old = Interactions.from_arrays(
        np.repeat(np.arange(100), 4), np.tile([0, 1, 2, 3], 100), None, np.tile([1, 2, 3, 4], 100) * 86_400
    )
    estimator = discreet.Popularity(epsilon=4.0, half_life=1.0)
    declared = estimator.clone(now="1970-01-04")
    found, same = (
        discreet.evaluate(one, old, split="time:1970-01-05", metrics="ndcg@10", seed=0)
        for one in (estimator, declared)
    )
    assert found.metrics["ndcg@10"].mean == same.metrics["ndcg@10"].mean
    # What was declared stays: from today on nothing is left but noise.
    today = discreet.evaluate(
        estimator.clone(now="2026-01-01"), old, split="time:1970-01-05", metrics="ndcg@10", repeat=3, seed=0
    )
    assert today.parameters["now"] == "2026-01-01" and found.parameters["now"] is None


@pytest.mark.parametrize("kind", [Biases, Popularity, UserFactorization])
def test_a_declared_date_is_assumed_to_be_public(kind):
    """The newest time in the data would reveal one user's rating, so the label names the date."""
    facts = stream().facts
    assert (Kind.DECLARED, Fact.DATE) in stated(kind(epsilon=1.0, half_life=5.0, now=NOW).promise(facts))
    assert (Kind.DECLARED, Fact.DATE) not in stated(kind(epsilon=1.0, half_life=5.0).promise(facts))


def test_a_prior_is_a_path():
    with refuses("wrong-kind", name="prior"):
        UserFactorization(epsilon=1.0, prior=3)
