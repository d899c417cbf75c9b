"""Whether order in time informs: chains keep it, random times are treated like no times, and each says so."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet
from budgets import budget
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import leave_one_out
from discreet.evaluation.scoring import measure
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.models.user_factorization.implicit_feedback import order_informs
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.privacy.session import Session, share
from discreet.solvers.empirical_bayes import VoteEstimate
from discreet.solvers.item_regression import OrderWeights
from discreet.statistics.co_occurrence import CoOccurrence
from discreet.statistics.data_source import KnownPart

N_ITEMS, STEPS = 40, 6


def chain(*, skewed: bool, n_users=400, seed=0) -> Interactions:
    """Return people who walk a ring of items, each next item given by the one before.

    With `skewed` few places of the ring are where many begin, so items differ in popularity.
    """
    rng = np.random.default_rng(seed)
    ring = rng.permutation(N_ITEMS)
    chance = 1 / (1 + rng.permutation(N_ITEMS)) if skewed else np.ones(N_ITEMS)
    starts = rng.choice(N_ITEMS, n_users, p=chance / chance.sum())
    items = ring[(starts[:, None] + np.arange(STEPS)) % N_ITEMS]
    return rated(items, np.tile(np.arange(STEPS), n_users))


def scattered(n_users=500, per_user=10, seed=1) -> Interactions:
    """Return people of two groups, nine of ten items from the own half, with random times."""
    rng = np.random.default_rng(seed)
    likely = np.where(np.arange(N_ITEMS) % 2 == np.arange(2)[:, None], 9.0, 1.0) / (5 + np.arange(N_ITEMS))
    likely /= likely.sum(axis=1, keepdims=True)
    drawn = [rng.choice(N_ITEMS, per_user, replace=False, p=likely[user % 2]) for user in range(n_users)]
    return rated(np.array(drawn), rng.permutation(n_users * per_user))


def rated(items, times) -> Interactions:
    """Return rows of items as ratings of 3 for even numbers and 5 for odd ones."""
    people = np.repeat(np.arange(len(items)), items.shape[1])
    values = 3.0 + 2 * (items.reshape(-1) % 2)
    return Interactions.from_arrays(
        people, items.reshape(-1), values, times=times, n_items=N_ITEMS, low=1, high=5, name="rated"
    )


def fitted(data, feedback="implicit", kind=UserFactorization):
    estimator = kind(epsilon=math.inf, feedback=feedback)
    return estimator.fit(data, random=PrivacyRandom.simulate(0))


def timeless(data) -> Interactions:
    return replace(data, times=None, listed=None)


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
def test_a_chain_keeps_its_order(skewed, feedback):
    """The twin has no times, and cannot know where a walk goes on."""
    split = leave_one_out(chain(skewed=skewed))
    model = fitted(split.train, feedback)
    assert model.scorer.explain()["order informs"] == "yes"
    assert model.scorer.choice.fading > 0 if feedback == "explicit" else model.scorer.fading > 0
    found = measure(model, split.train, split.test, "hr@1")["hr@1"]
    train = timeless(split.train)
    assert found > 0.9 > 0.75 > measure(fitted(train, feedback), train, split.test, "hr@1")["hr@1"]


@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
def test_random_times_are_treated_like_no_times(feedback):
    """The twin is told that order informs, and makes other lists."""
    data = scattered()
    model, other = fitted(data, feedback), fitted(timeless(data), feedback)
    assert model.scorer.explain()["order informs"] == "no"
    assert other.scorer.explain()["order informs"] == "not asked"
    rows = np.arange(data.n_users)
    expected = other.worth(timeless(data), rows)
    # Weights between items are kept as half-precision numbers, here of another size.
    np.testing.assert_allclose(model.worth(data, rows), expected, atol=0.01)
    sure = UserFactorization.with_settings(FactorizationSettings(least_order=-1.0))
    twin = fitted(data, feedback, sure)
    assert twin.scorer.explain()["order informs"] == "cannot tell"
    assert np.abs(twin.worth(data, rows) - expected).max() > 0.1


def test_a_file_keeps_that_order_does_not_count(tmp_path):
    model = fitted(scattered())
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    ids = model.catalog.ids[[3, 8, 21, 5]].tolist()
    assert again.recommend(ids, k=9) == model.recommend(ids, k=9)
    mine, reverse = (dict(again.recommend(one, k=9)) for one in (ids, ids[::-1]))
    assert mine.keys() == reverse.keys()
    ordered = fitted(chain(skewed=False))
    assert [ordered.recommend(one, k=1)[0][0] for one in (ids, ids[::-1])] != [next(iter(mine))] * 2


class Told:
    """Parties that answer with given sums."""

    def __init__(self, total, squares, people):
        self.sums = np.array([total, squares / 2, people / 2])

    def released(self, query, asked):
        return [self.sums]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (Told(150, 38, 943), "yes"),
        (Told(1, 1.6, 943), "no"),
        (Told(-9, 1.6, 943), "no"),
        # Few people, so that a mean of zero may hide one that is not.
        (Told(0.1, 3, 30), "cannot tell"),
        # Nobody has an order.
        (Told(0, 0, 0), "cannot tell"),
    ],
)
@pytest.mark.parametrize("votes", [20.0, 0.0], ids=["voted for", "without votes"])
def test_what_is_said_follows_from_the_released_numbers(told, said, votes):
    weight = np.ones(4)
    asked = CoOccurrence(n_items=4, top=np.arange(4), weight=weight, near=0.8, apart=0.1, back=4)
    tally = VoteEstimate.of(np.full(4, votes), 0.0)
    session = Session.open(None, budget(math.inf), PrivacyRandom.simulate(0), releases=told)
    assert order_informs(session, Fraction(1), asked, np.ones((4, 4)), tally, 0.02) == said


@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
@pytest.mark.parametrize("timed", [True, False])
def test_asking_costs_its_share_and_nothing_without_times(feedback, timed):
    data = scattered() if timed else timeless(scattered())
    model = UserFactorization(epsilon=30.0, feedback=feedback).fit(data, random=PrivacyRandom.simulate(0))
    assert sum(one.share for one in model.releases) == 1
    cost = share(FactorizationSettings().question_share)
    asked = [one.share for one in model.releases if one.statistic == "OrderEvidence"]
    assert asked == ([cost] if timed else [])
    assert timed == (model.scorer.explain()["order informs"] != "not asked")


def test_a_part_of_a_source_knows_whether_it_has_times():
    data = scattered()
    assert KnownPart(source=data, hiding=None).has_times
    assert not KnownPart(source=timeless(data), hiding=None).has_times


def test_weights_have_an_order_unless_it_does_not_count():
    assert FactorizationSettings().order.ordered
    assert not OrderWeights().ordered and OrderWeights().near == OrderWeights().back == 1.0
