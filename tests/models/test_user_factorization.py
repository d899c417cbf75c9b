"""What the recommended model must do besides its contract."""

import math

import numpy as np
import pytest

from discreet.data.splits import random_split
from discreet.evaluate.references import rating_references
from discreet.evaluate.scoring import measure
from discreet.models.biases import Biases
from discreet.models.user_factorization import UserFactorization
from discreet.privacy.accountant import epsilon_at
from discreet.privacy.events import event_from_json
from discreet.privacy.ledger import Ledger
from discreet.randomness import PrivacyRandom
from toy import toy_interactions


@pytest.fixture(scope="module")
def split():
    return random_split(toy_interactions(n_users=2500, n_items=150, per_user=85, seed=1), 0.1, seed=0)


def rmse(estimator, split, seed=5):
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
    return measure(model, split.train, split.test, "rmse")["rmse"], model


def test_finds_the_two_tastes_without_noise(split):
    plain, _ = rmse(Biases(epsilon=math.inf), split)
    personal, model = rmse(UserFactorization(epsilon=math.inf), split)
    assert model.scorer.explain()["factors pay"] and model.scorer.explain()["factors kept"] >= 3
    # The toy's ratings are 3 +- 1.2 by taste with a spread of 0.8: item effects alone leave 1.4.
    assert plain > 1.3 and personal < 0.95


def test_finds_them_through_the_noise_of_a_generous_budget(split):
    personal, model = rmse(UserFactorization(epsilon=20.0), split)
    assert model.scorer.explain()["factors pay"]
    assert personal < 1.1


def test_is_not_worse_than_the_users_mean_when_there_is_mostly_noise(split):
    personal, model = rmse(UserFactorization(epsilon=0.05), split)
    assert not model.scorer.explain()["factors pay"]
    bar = measure(rating_references(split.train)["user mean"], split.train, split.test, "rmse")["rmse"]
    assert personal < bar + 0.02


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


def test_decisions_are_functions_of_what_was_released(split):
    """Two data sets that lead to the same released numbers lead to the same plan: the rule sees no data."""
    from discreet.models.biases import first_look
    from discreet.models.taste import plan

    seen = first_look(split.train, 5.0, 3.0, PrivacyRandom.simulate(2))
    assert plan(seen, 1.0, 1.1, 150) == plan(seen, 1.0, 1.1, 150)
    other = first_look(split.train, 5.0, 3.0, PrivacyRandom.simulate(3))
    assert plan(other, 1.0, 1.1, 150).people_per_noise != plan(seen, 1.0, 1.1, 150).people_per_noise


def test_more_epsilon_is_not_worse_on_average(split):
    scores = [
        np.mean([rmse(UserFactorization(epsilon=epsilon), split, seed)[0] for seed in range(4)])
        for epsilon in (0.1, 20.0)
    ]
    assert scores[0] > scores[1]
