"""Devices asked by strangers, by threads and after a fork; what strangers send costs what it is long."""

import json
import os
import threading
import tracemalloc
import zlib
from dataclasses import replace

import pytest

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.collector import Collector
from discreet.collect.device import CatalogDevice, Device
from discreet.collect.hidden_items import CatalogCampaign
from discreet.core.checks import BudgetError, ParameterError, PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.privacy.mechanisms.cells import HiddenStars
from discreet.testing import refuses

MEGABYTE = 1 << 20


def campaign(epsilon=1.0, items=50, max_reports=40):
    mechanism = BoundedLaplace(epsilon=epsilon, low=1, high=5)
    return Campaign(
        name="c", mechanism=mechanism, catalog=Vocabulary.of(range(items)), max_reports=max_reports
    )


def hidden(epsilon=0.1, items=50):
    return CatalogCampaign(
        name="c", mechanism=HiddenStars(epsilon=epsilon), catalog=Vocabulary.of(range(items))
    )


def test_a_device_without_a_limit_has_the_usual_one():
    greedy = campaign(epsilon=7.0)
    with pytest.raises(BudgetError):
        Device(greedy).answer_all({1: 5.0, 2: 4.0, 3: 1.0})
    assert Device(greedy).answer(1, 5.0)[0] == 1
    assert Device(greedy, budget=21.0).most_answers == 3
    assert Device(greedy, random=PrivacyRandom.simulate(0)).most_answers == 40
    with refuses("answer-costs-more"):
        CatalogDevice(hidden(epsilon=1.0))
    assert CatalogDevice(hidden(epsilon=1.0), budget=50.0).message({1: 5.0})


def together(act, threads=4):
    found = []
    started = [threading.Thread(target=lambda: found.append(act())) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return found


def test_threads_get_one_draw():
    history = dict.fromkeys(range(30), 3.0)
    asked, covered = campaign(epsilon=0.1), hidden()
    for _ in range(40):
        device, whole = Device(asked), CatalogDevice(covered)
        assert len(set(together(lambda device=device: device.message(history)))) == 1
        assert len(set(together(lambda whole=whole: whole.message(history)))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("make", [lambda: Device(campaign()), lambda: CatalogDevice(hidden())])
def test_a_forked_device_does_not_answer(make):
    device = make()
    child = os.fork()
    if child == 0:
        try:
            device.message({1: 5.0})
        except PrivacyError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_state_of_any_shape_gets_a_sentence():
    asked = campaign()
    good = Device(asked, budget=5.0).state()
    for bad in ({"sender": 5}, {"answers": [[1]]}, {"answers": None}, {"budget": "x"}, {"sender": "zz"}):
        with pytest.raises(ParameterError):
            Device.restore(asked, good | bad)
    for item, code in ((999, 1), (0, 10**9), (-1, 0), (0.5, 1), (True, 1), ("0", 1), (0, float("inf"))):
        with pytest.raises(ParameterError):
            Device.restore(asked, good | {"answers": [[item, code]]})
    for state in ({"campaign": asked.digest.hex()}, good | {"sender": "00"}, [], "x", 5.0, None):
        with pytest.raises(ParameterError):
            Device.restore(asked, state)
    assert Device.restore(asked, good).answered == 0


def held(act):
    tracemalloc.start()
    act()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.thorough
def test_invented_senders_cost_what_they_sent():
    asked = campaign(items=1_000_000, max_reports=500)
    messages = [
        wire.to_bytes(asked, wire.RatingReport(number.to_bytes(16, "little"), (number,), (0,)))
        for number in range(5000)
    ]
    collector = Collector(asked)

    def receive():
        for raw in messages:
            collector.receive(raw)

    assert held(receive) < 20 * MEGABYTE
    assert collector.kept == 5000


def test_the_collector_still_knows_every_report():
    asked = campaign(items=1000, max_reports=300)
    collector = Collector(asked)
    many = wire.RatingReport(bytes(16), tuple(range(200)), (0,) * 200)
    assert collector.receive(wire.to_bytes(asked, many)) == 200
    assert collector.receive(wire.to_bytes(asked, many)) == 0
    more = wire.RatingReport(bytes(16), tuple(range(200, 400)), (0,) * 200)
    assert collector.receive(wire.to_bytes(asked, more)) == 100
    assert collector.refusals == {wire.ReportRefusal.REPLAYED: 200, wire.ReportRefusal.OVER_CAP: 100}


@pytest.mark.thorough
def test_a_campaign_that_grows_like_a_bomb_is_refused():
    record = replace(campaign(), version=1).to_json() | {"items": ["many"]}
    text = json.dumps(record, separators=(",", ":")).encode()
    raw = b"DSCC" + zlib.compress(text.replace(b'"many"', b"0," * 20_000_000 + b"0"), 9)
    assert len(raw) < 70_000

    def read():
        with pytest.raises(ParameterError):
            Campaign.from_bytes(raw)

    assert held(read) < 100 * MEGABYTE
    honest = campaign(items=200_000)
    assert Campaign.from_bytes(honest.to_bytes()).digest == honest.digest
