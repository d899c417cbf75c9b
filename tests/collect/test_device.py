"""A device answers once for an item, pays for every answer and stops at its cap."""

import math

import numpy as np
import pytest

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.collect.mechanisms import decode
from discreet.core.checks import BudgetError
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.guarantee import Unit
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.testing import refuses
from evidence import cumulative, follows, gap, samples_to_separate

ITEMS = [f"film {number}" for number in range(200)]


def campaign(epsilon=1.0, max_reports=50, points=241, items=ITEMS):
    return Campaign(
        name="films",
        mechanism=BoundedLaplace(epsilon=epsilon, low=1, high=5, points=points),
        catalog=Vocabulary.of(items),
        max_reports=max_reports,
    )


def test_repeats_its_answer_even_for_another_rating():
    device = Device(campaign(), random=PrivacyRandom.simulate(1))
    first = device.answer_all(dict.fromkeys(ITEMS[:30], 5.0))
    assert device.answer_all(dict.fromkeys(ITEMS[:30], 1.0)) == first
    assert device.answered == 30 and device.spent == 30.0
    other = Device(campaign(), random=PrivacyRandom.simulate(2))
    assert other.answer_all(dict.fromkeys(ITEMS[:30], 5.0)) != first


def test_takes_noise_from_the_operating_system_unless_told_otherwise():
    devices = [Device(campaign(), budget=40.0) for _ in range(2)]
    answers = [device.answer_all(dict.fromkeys(ITEMS[:40], 3.0)) for device in devices]
    assert answers[0] != answers[1]
    assert devices[0].state()["sender"] != devices[1].state()["sender"]


def test_refuses_to_exceed_the_cap_and_then_answers_nothing():
    device = Device(campaign(max_reports=3))
    device.answer("film 0", 4.0)
    with refuses("too-many-answers"):
        device.answer_all(dict.fromkeys(ITEMS[:4], 4.0))
    assert device.answered == 1
    device.answer_all(dict.fromkeys(ITEMS[:3], 4.0))
    device.answer("film 1", 2.0)
    assert device.guarantee().epsilon == 3.0 and device.guarantee().unit is Unit.USER


@pytest.mark.parametrize(("epsilon", "budget", "answers"), [(0.1, 0.3, 2), (0.25, 1.0, 4), (1.0, 0.5, 0)])
def test_budget_is_never_exceeded_by_a_rounding(epsilon, budget, answers):
    # 3 times the float nearest to 0.1 is more than the float nearest to 0.3.
    device = Device(campaign(epsilon=epsilon), budget=budget)
    assert device.most_answers == answers
    device.answer_all(dict.fromkeys(ITEMS[:answers], 3.0))
    assert device.spent <= budget
    with pytest.raises(BudgetError):
        device.answer(ITEMS[answers], 3.0)


def test_remembers_answers_and_no_ratings():
    device = Device(campaign(), budget=10.0)
    device.answer_all({"film 3": 4.0, "film 7": 1.0})
    state = device.state()
    assert set(state) == {"campaign", "sender", "budget", "answers"}
    assert [item for item, _ in state["answers"]] == [3, 7]
    assert set(vars(device)) == {"campaign", "budget", "_random", "_sender", "_answers", "_turn"}
    again = Device.restore(campaign(), state)
    assert again.state() == state
    assert again.message({"film 3": 1.0}) == device.message({"film 3": 5.0})
    with refuses("different-campaign", what="state"):
        Device.restore(campaign(epsilon=2.0), state)


def test_messages_carry_the_answers_in_both_forms():
    device, asked = Device(campaign()), campaign()
    history = {"film 150": 4.0, "film 3": 2.0}
    reports = device.answer_all(history)
    for form in ("binary", "json"):
        message = wire.read(asked, device.message(history, form=form))
        assert dict(zip(message.items, message.codes, strict=True)) == reports
    with refuses("unknown-choice", name="form"):
        device.message(history, form="smoke")


def test_ratings_outside_the_scale_are_clipped_and_nonsense_is_refused():
    device = Device(campaign())
    device.answer_all({"film 1": 99.0, "film 2": -99.0})
    with refuses("unusable-history"):
        device.answer("film 3", math.nan)
    with refuses("not-in-catalog"):
        device.answer("no such film", 3.0)
    assert device.answered == 2 and device.answer_all({}) == {}


def test_answers_follow_the_channel_and_not_that_of_another_epsilon():
    asked, timid = campaign(), campaign(epsilon=0.8)
    rows = [each.mechanism.channel().transition[180] for each in (asked, timid)]
    claimed, twin = cumulative(rows[0]), cumulative(rows[1])
    count = samples_to_separate(gap(claimed, twin, np.arange(241)))
    names = np.arange(count)
    wide = Campaign(
        name="wide", mechanism=asked.mechanism, catalog=Vocabulary.range(count), max_reports=count
    )
    codes = np.array(
        list(
            Device(wide, random=PrivacyRandom.simulate(5))
            .answer_all(dict.fromkeys(names.tolist(), 4.0))
            .values()
        )
    )
    assert decode(asked.mechanism, [180])[0] == 4.0
    assert follows(codes, claimed)
    assert not follows(codes, twin)


@pytest.mark.parametrize("form", ["binary", "json"])
def test_no_message_tells_in_which_order_a_history_was_listed(form):
    """Apps list histories by rating: an order that is kept would tell the ratings whatever epsilon is."""
    asked = campaign()
    shown = []
    for order in (ITEMS[:20], ITEMS[:20][::-1]):
        device = Device(asked, random=PrivacyRandom.simulate(3))
        message = wire.read(asked, device.message(dict.fromkeys(order, 4.0), form=form))
        shown.append(list(message.items))
    assert shown[0] == shown[1] == sorted(shown[0])
