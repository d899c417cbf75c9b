"""Rounds of PG-MF: a device answers each round once, and a server trusts no answer."""

import math

import numpy as np
import pytest

from discreet.collect.errors import (
    AnsweredRound,
    DifferentCampaign,
    NotInCatalog,
    RoundsCostMore,
    UnusableHistory,
)
from discreet.collect.gradient_rounds import GradientCampaign, GradientDevice, read_answer
from discreet.collect.wire import ReportRefusal
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.papers.mixture.private_gradients import GradientServer

FILMS = Vocabulary.of([f"film {number}" for number in range(12)])


def campaign(**changed):
    settings = {"epsilon": 3.0, "rounds": 3, "factors": 2, "projected": 4, **changed}
    return GradientCampaign(name="films", catalog=FILMS, low=1.0, high=5.0, **settings)


def history(liked=0):
    """Return ratings of half of the items; odd or even ones are liked."""
    return {f"film {number}": 5.0 if number % 2 == liked else 1.0 for number in range(8)}


def device(asked=None, seed=0, **options):
    return GradientDevice(asked or campaign(), history(), random=PrivacyRandom.simulate(seed), **options)


def test_a_campaign_is_read_back_and_states_what_all_rounds_cost():
    asked = campaign()
    again = GradientCampaign.from_bytes(asked.to_bytes())
    assert again.digest == asked.digest and again.guarantee() == asked.guarantee()
    assert asked.share * asked.rounds <= asked.epsilon == asked.guarantee().epsilon
    assert asked.guarantee().unit.value == "user"
    with pytest.raises(DifferentCampaign):
        GradientCampaign.from_bytes(campaign(seed=1).to_bytes()[:20] + b"x")


def test_a_round_is_answered_once_whatever_is_asked_again():
    asked = campaign()
    mine, server = device(asked), GradientServer(asked)
    first = mine.answer(server.question())
    other = asked.question(0, np.full((12, 2), 9.0))
    assert mine.answer(other) == first and mine.spent == asked.share
    kept = GradientDevice(asked, history(1), answers=mine.answers)
    assert kept.answer(other) == first
    # The twin: a device without its answers draws anew.
    fresh = {device(asked, seed).answer(other) for seed in range(8)}
    assert len(fresh) > 1


def test_questions_of_other_campaigns_rounds_and_sizes_are_rejected():
    asked, mine = campaign(), device()
    with pytest.raises(AnsweredRound):
        mine.answer(asked.question(asked.rounds, np.zeros((12, 2))))
    for wrong in (campaign(epsilon=9.0).question(0, np.zeros((12, 2))), asked.question(0, np.zeros((12, 3)))):
        with pytest.raises(DifferentCampaign):
            mine.answer(wrong)
    assert mine.spent == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e30])
def test_item_factors_that_are_not_finite_are_answered_like_any(value):
    answer = device().answer(campaign().question(0, np.full((12, 2), value)))
    assert read_answer(campaign(), answer).bit in (-1, 1)


def test_a_device_spends_no_more_than_its_user_allows():
    with pytest.raises(RoundsCostMore):
        GradientDevice(campaign(epsilon=21.0), history())
    with pytest.raises(RoundsCostMore):
        device(budget=2.0)
    for error, wrong in ((UnusableHistory, {"film 0": math.nan}), (NotInCatalog, {"other": 3.0})):
        with pytest.raises(error):
            GradientDevice(campaign(), wrong)
    assert len(GradientDevice(campaign(), {}).answer(campaign().question(0, np.zeros((12, 2))))) == 59


def test_a_server_rejects_and_counts_what_it_cannot_use():
    asked = campaign()
    server = GradientServer(asked)
    good = device(asked).answer(server.question())
    assert server.receive(good) and not server.receive(good)
    wrong = (b"", good[:-1], good[:-1] + b"\x02", b"\0" * 59, good[:4] + bytes(32) + good[36:])
    assert not any(server.receive(raw) for raw in wrong)
    server.close_round()
    assert not server.receive(good)
    assert server.refusals[ReportRefusal.REPLAYED] == 1 and server.refusals[ReportRefusal.WRONG_CAMPAIGN] == 1
    assert server.refusals.total() == 7


def test_rounds_learn_what_the_fit_learns():
    asked = campaign(epsilon=60.0, rounds=6)
    server = GradientServer(asked)
    simulated = PrivacyRandom.simulate
    devices = [GradientDevice(asked, history(n % 2), budget=60.0, random=simulated(n)) for n in range(60)]
    before = server.model()
    while not server.finished:
        question = server.question()
        assert all(server.receive(one.answer(question)) for one in devices)
        server.close_round()
    after = server.model()
    assert after.guarantee.epsilon == 60.0
    likes = {"film 0": 5.0, "film 2": 5.0, "film 1": 1.0}

    def gap(model):
        scores = dict(model.recommend(likes, 9))
        even = [score for film, score in scores.items() if int(film.split()[1]) % 2 == 0 and film < "film 8"]
        odd = [score for film, score in scores.items() if int(film.split()[1]) % 2 == 1 and film < "film 8"]
        return np.mean(even) - np.mean(odd)

    assert gap(after) > gap(before)
