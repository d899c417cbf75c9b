"""Strangers send what they like: each bad report is refused by itself, counted, and the rest is kept."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.collector import Collector
from discreet.collect.device import Device
from discreet.collect.wire import RatingReport, ReportRefusal
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.testing import refuses

MECHANISM = BoundedLaplace(epsilon=1.0, low=1, high=5, points=241)
ASKED = Campaign(name="films", mechanism=MECHANISM, catalog=Vocabulary.range(100), max_reports=5)
OTHER = Campaign(name="books", mechanism=MECHANISM, catalog=Vocabulary.range(100), max_reports=5)
ANN, BOB = bytes(16), bytes([1]) * 16


def binary(*pairs, sender=ANN, campaign=ASKED):
    return wire.to_bytes(
        campaign, RatingReport(sender, tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
    )


def text(*pairs, sender=ANN, campaign=ASKED, **changes):
    message = RatingReport(sender, tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
    return json.dumps({**json.loads(wire.to_json(campaign, message)), **changes}).encode()


def test_keeps_good_reports_of_both_forms():
    collector = Collector(ASKED)
    assert collector.receive(binary((3, 10), (99, 240))) == 2
    assert collector.receive(text((3, 20), sender=BOB)) == 1
    found = collector.collected()
    assert found.codes.tolist() == [10, 240, 20] and found.reports.items.tolist() == [3, 99, 3]
    np.testing.assert_allclose(found.reports.values, MECHANISM.grid()[found.codes], rtol=1e-6)
    assert found.reports.n_users == 2 and not collector.refusals


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", ReportRefusal.MALFORMED),
        (None, ReportRefusal.MALFORMED),
        ("{}", ReportRefusal.MALFORMED),
        (b"{", ReportRefusal.MALFORMED),
        (b"[1, 2]", ReportRefusal.MALFORMED),
        (b"\xff\xfe", ReportRefusal.MALFORMED),
        (b"[" * 100_000, ReportRefusal.MALFORMED),
        (b"DSCR", ReportRefusal.MALFORMED),
        (binary((1, 2))[:-1], ReportRefusal.MALFORMED),
        (binary((1, 2)) + b"\0", ReportRefusal.MALFORMED),
        (binary()[:-1] + b"\xff\xff\xff\xff\xff\xff", ReportRefusal.MALFORMED),
        (binary()[:-1] + b"\xff\xff\xff\x7f", ReportRefusal.MALFORMED),
        (text((1, 2), sender=b"short"), ReportRefusal.MALFORMED),
        (text(reports=7), ReportRefusal.MALFORMED),
        (b'{"reports": []}', ReportRefusal.MALFORMED),
        (bytes(wire.MOST_BYTES + 1), ReportRefusal.OVERSIZED),
        (binary((1, 2))[:4] + b"\x09" + binary((1, 2))[5:], ReportRefusal.WRONG_VERSION),
        (text((1, 2), discreet=9), ReportRefusal.WRONG_VERSION),
        (text((1, 2), discreet=True), ReportRefusal.WRONG_VERSION),
        (binary((1, 2), campaign=OTHER), ReportRefusal.WRONG_CAMPAIGN),
        (text((1, 2), campaign=OTHER), ReportRefusal.WRONG_CAMPAIGN),
    ],
)
def test_bad_messages_are_refused_with_their_reason(raw, reason):
    collector = Collector(ASKED)
    assert collector.receive(raw) == 0
    assert collector.refusals == {reason: 1}
    assert collector.receive(binary((1, 2))) == 1


def test_bad_reports_are_refused_one_by_one_and_the_rest_is_kept():
    collector = Collector(ASKED)
    pairs = [[1, 5], [100, 5], [-1, 5], [2, 241], [2, -1], ["3", 5], [3], [4, 5.0], [True, 5], [1, 7], [6, 6]]
    assert collector.receive(text(reports=pairs)) == 2
    assert collector.refusals == {ReportRefusal.OUT_OF_RANGE: 8, ReportRefusal.REPLAYED: 1}
    assert collector.receive(binary((1, 9), (7, 9), (200, 9))) == 1
    assert collector.refusals == {ReportRefusal.OUT_OF_RANGE: 9, ReportRefusal.REPLAYED: 2}
    assert collector.collected().codes.tolist() == [5, 6, 9]


def test_replays_and_more_than_the_cap_are_refused():
    collector = Collector(ASKED)
    whole = binary(*((item, 1) for item in range(8)))
    assert collector.receive(whole) == 5
    assert collector.refusals == {ReportRefusal.OVER_CAP: 3}
    assert collector.receive(whole) == 0
    assert collector.refusals == {ReportRefusal.OVER_CAP: 6, ReportRefusal.REPLAYED: 5}


def test_invented_senders_stop_at_the_limit():
    collector = Collector(ASKED, max_senders=3)
    for number in range(10):
        collector.receive(binary((1, 1), sender=bytes([number]) * 16))
    assert collector.senders == 3 and collector.refusals == {ReportRefusal.TOO_MANY_SENDERS: 7}


@given(st.one_of(st.binary(max_size=80), st.binary(max_size=60).map(lambda tail: binary()[:-1] + tail)))
def test_no_bytes_stop_the_collection(raw):
    collector = Collector(ASKED)
    kept = collector.receive(raw)
    assert kept == collector.kept and 0 <= kept <= ASKED.max_reports


def test_a_refusal_never_quotes_the_message():
    with pytest.raises(wire.ReportRefused) as caught:
        wire.read(ASKED, b"secret words")
    assert "secret" not in str(caught.value)


def test_nothing_collected_is_said():
    with refuses("nothing-kept"):
        Collector(ASKED).collected()


def test_binary_reports_take_about_two_bytes_each():
    items = range(100)
    wide = Campaign(name="wide", mechanism=MECHANISM, catalog=Vocabulary.range(100), max_reports=100)
    raw = Device(wide, budget=1e6).message(dict.fromkeys(items, 3.0))
    assert len(raw) == 54 + 2 * 100


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_flood_of_fakes_moves_an_item_mean_by_no_more_than_its_share(share):
    honest, fakes = 400, round(400 * share / (1 - share))
    collector = Collector(ASKED)
    for number in range(honest):
        device = Device(ASKED, random=PrivacyRandom.simulate(number))
        collector.receive(device.message({0: 3.0, 1: 4.0}))
    before = collector.collected().item_means()
    for number in range(fakes):
        collector.receive(binary((0, 240), sender=number.to_bytes(16, "big")))
    after = collector.collected().item_means()
    part = fakes / (honest + fakes)
    moved = after.mean_reports[0] - before.mean_reports[0]
    # Every fake says 5, the honest what they said: the mean moves by share * (5 - mean), at most 4 shares.
    assert moved == pytest.approx(part * (5 - before.mean_reports[0]), rel=1e-6)
    assert 0 < moved <= part * 4
    assert abs(after.means[0] - before.means[0]) <= after.largest_shift(part)[0] + 1e-9
    assert after.means[1] == before.means[1]
