"""The browser's device draws what the kernels draw, checks what is promised, and writes our messages."""

import json
import math
import re
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.draw_tables import read_words
from discreet.collect.hidden_items import CatalogCampaign, CatalogReport, write
from discreet.collect.hidden_items import read as read_catalog
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ClampedLaplace
from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
from discreet.privacy.sampling.draws import draw_from_table, geometric, geometric_digits, uniform_below
from evidence import cumulative, follows, gap, samples_to_separate
from service.node import WEB, ask, needs_node

pytestmark = needs_node

WORDS = 1 << 64
SENDER = bytes(range(16))


def films(mechanism=None, step=1.0, items=300):
    return Campaign(
        name="films – été",
        mechanism=mechanism or BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=Vocabulary.of([f"film {number}" for number in range(items)]),
        max_reports=40,
        step=step,
    )


def shelf(mechanism=None, answers=None, items=50):
    return CatalogCampaign(
        name="shelf",
        mechanism=mechanism or HiddenStars(epsilon=2.0),
        catalog=Vocabulary.of(range(items)),
        answers=answers,
    )


CAMPAIGNS = {
    "bounded": films(),
    "clamped": films(ClampedLaplace(epsilon=0.3, low=0.5, high=5, points=129), step=0.5),
    "continuous": films(BoundedLaplace(epsilon=8.0, low=-10, high=10, points=33), step=None),
    "stars": shelf(),
    "timid stars": shelf(HiddenStars(epsilon=1e-6, low=0.5, step=0.5)),
    "bold stars": shelf(HiddenStars(epsilon=20.0), answers=7),
    "numbers": shelf(HiddenNumbers(epsilon=2.0, low=-10, high=10, points=33)),
    "few numbers": shelf(HiddenNumbers(epsilon=6.0, points=5), answers=7),
}


def text_of(campaign, **changes):
    return json.dumps({**json.loads(campaign.text), **changes}) if changes else campaign.text.decode()


def rows_of(campaign):
    draws = campaign.to_json()["draws"]
    if "noise" in draws:
        return [read_words(draws["coin"]), read_words(draws["noise"])]
    words = read_words(draws["starts"])
    return list(words.reshape(len(draws["ratings"]), -1))


def asked_together(cases):
    """Ask the questions of all cases in one process, which takes longer to start than to answer."""
    answers = iter(ask(*(question for questions in cases.values() for question in questions)))
    return {name: [next(answers) for _ in questions] for name, questions in cases.items()}


def row_scripts(campaign):
    """Return rows, each with words at and beside its thresholds and anywhere."""
    rng = np.random.default_rng(1)
    for row in rows_of(campaign)[:6]:
        near = [int(start) + shift for start in row[:120] for shift in (-1, 0, 1)]
        near += [0, 1, WORDS - 2, WORDS - 1, *(int(word) for word in rng.integers(0, WORDS, 300, np.uint64))]
        yield row, [word.to_bytes(8, "big") for word in near if 0 <= word < WORDS]


@cache
def searched_rows():
    def question(row, scripts):
        starts = [str(start) for start in row]
        return {"what": "rows", "starts": starts, "scripts": [script.hex() for script in scripts]}

    return asked_together(
        {name: [question(*one) for one in row_scripts(campaign)] for name, campaign in CAMPAIGNS.items()}
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_rows_are_searched_as_the_kernel_does_at_and_beside_every_threshold(name):
    expected = []
    for row, scripts in row_scripts(CAMPAIGNS[name]):
        played = PrivacyRandom.scripted(b"".join(scripts) + bytes(1 << 14))
        expected.append(draw_from_table(row[None, :], np.zeros(len(scripts), np.int64), played).tolist())
    assert expected and searched_rows()[name] == expected


def tied_scripts(high, low, rng):
    """Return bytes in which every digit's comparison takes one byte, seven more, or all."""
    leads = [int(word) >> 56 for word in high]
    scripts = [rng.bytes(40 * len(leads)) for _ in range(200)]
    for digit, (upper, lower) in enumerate(zip(high.tolist(), low.tolist(), strict=True)):
        # Only this digit ties; the others are decided by a byte that is not their lead.
        firsts = bytearray((lead + 1) % 256 for lead in leads)
        firsts[digit] = leads[digit]
        rest = upper & ((1 << 56) - 1)
        for middle in {max(rest - 1, 0), rest, min(rest + 1, (1 << 56) - 1)}:
            for last in {max(lower - 1, 0), lower, min(lower + 1, WORDS - 1)}:
                tail = middle.to_bytes(7, "big") + last.to_bytes(8, "big")
                scripts.append(bytes(firsts) + tail + bytes(40 * len(leads)))
    return scripts


SCALES = (0.05, 0.5, 1.9, 37.5, 1e6, 2.0**40)


def gap_scripts(scale):
    return tied_scripts(*geometric_digits(scale), np.random.default_rng(2))


@cache
def drawn_gaps():
    def question(scale):
        high, low = ([str(word) for word in digits] for digits in geometric_digits(scale))
        scripts = [script.hex() for script in gap_scripts(scale)]
        return {"what": "gaps", "high": high, "low": low, "scripts": scripts}

    return asked_together({scale: [question(scale)] for scale in SCALES})


@pytest.mark.few(3)
@pytest.mark.parametrize("scale", SCALES)
def test_gaps_are_those_of_the_kernel_ties_included(scale):
    scripts = gap_scripts(scale)
    expected = [int(geometric(scale, 1, PrivacyRandom.scripted(script))[0]) for script in scripts]
    (found,) = drawn_gaps()[scale]
    assert found == expected and len(scripts) > 200 and (scale < 0.4 or len(set(found)) > 1)


BOUNDS = (1, 2, 3, 5, 255, 256, 257, 10_000)


def bound_scripts(bound):
    rng = np.random.default_rng(3)
    scripts = [bytes(64), b"\xff" * 3 + bytes(64), *(rng.bytes(64) for _ in range(200))]
    return [*scripts, b"\xff" * 64] if bound & (bound - 1) == 0 else scripts


@cache
def drawn_below():
    def question(bound):
        return {"what": "uniform", "bound": bound, "scripts": [one.hex() for one in bound_scripts(bound)]}

    return asked_together({bound: [question(bound)] for bound in BOUNDS})


@pytest.mark.parametrize("bound", BOUNDS)
def test_numbers_below_a_bound_are_those_of_the_kernel(bound):
    scripts = bound_scripts(bound)
    expected = [int(uniform_below(bound, 1, PrivacyRandom.scripted(script))[0]) for script in scripts]
    assert drawn_below()[bound] == [expected]


def test_powers_of_e_are_enclosed_in_a_hair():
    numbers = [1e-6, 2.0**-30, 0.1, 1.0, math.log(2), 3.7, 32.0, 700.0]
    (bounds,) = ask({"what": "powers", "numbers": numbers})
    with localcontext(prec=420):
        for number, (below, above) in zip(numbers, bounds, strict=True):
            exact = Decimal(number).exp() * Decimal(2) ** 320
            assert Decimal(below) <= exact <= Decimal(above)
            assert Decimal(above) - Decimal(below) < exact * Decimal(2) ** -290


@cache
def opened():
    return asked_together(
        {name: [{"what": "open", "text": text_of(campaign)}] for name, campaign in CAMPAIGNS.items()}
    )


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_campaign_is_opened_with_its_name_and_its_exact_loss(name):
    campaign, (found,) = CAMPAIGNS[name], opened()[name]
    assert found["digest"] == campaign.digest.hex() and len(campaign.digest) == 32
    top, bottom = map(int, found["ratio"])
    with localcontext(prec=60):
        loss = (Decimal(top) / Decimal(bottom)).ln()
    epsilon = campaign.mechanism.epsilon
    assert loss <= Decimal(epsilon) and float(loss) == pytest.approx(epsilon, rel=1e-4, abs=1e-9)


def lies():
    told, stars, numbers = (json.loads(CAMPAIGNS[name].text) for name in ("bounded", "stars", "numbers"))

    def changed(record, **draws):
        return {**record, "draws": {**record["draws"], **draws}}

    def priced(record, epsilon):
        return {**record, "mechanism": {**record["mechanism"], "epsilon": epsilon}}

    bold = json.loads(films(BoundedLaplace(epsilon=1.001, low=1, high=5, points=241)).text)
    gaps = json.loads(shelf(HiddenStars(epsilon=2.001)).text)["draws"]["gap"]
    return {
        "promises less": priced(told, 0.9999),
        "a bolder table": changed(told, starts=bold["draws"]["starts"]),
        "stars promise less": priced(stars, 1.9999),
        "empty cells pretend less": changed(stars, gap=gaps),
        "gaps of another scale": changed(stars, gap={**gaps, "scale": stars["draws"]["gap"]["scale"]}),
        "numbers promise less": priced(numbers, 1.99),
        "not base64": changed(told, starts="?"),
        "cut": changed(told, starts=told["draws"]["starts"][:-12]),
        "no outcomes": changed(told, outcomes=1),
        "another format": {**told, "format": "trust me"},
        "version 1": json.loads(Campaign.from_json(films().to_json() | {"version": 1}).text),
        "nothing": [],
        "epsilon is text": priced(told, "1"),
        "no limit": {**told, "max_reports": 0},
    }


LIES = lies()


@cache
def opened_lies():
    return asked_together(
        {name: [{"what": "open", "text": json.dumps(record)}] for name, record in LIES.items()}
    )


@pytest.mark.parametrize("name", LIES)
def test_a_campaign_that_lies_is_refused_in_one_sentence(name):
    (found,) = opened_lies()[name]
    assert found["known"] and found["refused"].endswith("."), found


def test_messages_are_those_of_the_library():
    wide = films(items=70_000, mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=1025))
    pairs = [[69_999, 1024], [3, 0], [130, 256]]
    asked, answer = shelf(answers=7), {"asked": [1, 2, 3, 5, 8, 13, 49], "items": [2, 49], "codes": [4, 0]}
    told = ask(
        {"what": "ratings", "text": text_of(wide), "sender": SENDER.hex(), "pairs": pairs},
        {"what": "catalog", "text": text_of(asked), "sender": SENDER.hex(), "answer": answer},
        {"what": "envelope", "message": "ff" * 508},
        {"what": "envelope", "message": "ff" * 509},
    )
    items, codes = zip(*pairs, strict=True)
    assert told[0] == wire.to_bytes(wide, wire.RatingReport(SENDER, items, codes)).hex()
    arrays = [np.array(answer[name]) for name in ("asked", "items", "codes")]
    assert told[1] == write(asked, CatalogReport(SENDER, *arrays)).hex()
    assert read_catalog(asked, bytes.fromhex(told[1])).items.tolist() == [2, 49]
    assert told[2] == "fc010000" + "ff" * 508 and len(told[3]) == 2 * 1024


@pytest.mark.thorough
def test_answers_follow_the_channel_and_not_that_of_another_epsilon():
    asked, timid = films(), films(BoundedLaplace(epsilon=0.8, low=1, high=5, points=241))
    claimed, twin = (cumulative(each.mechanism.channel().transition[180]) for each in (asked, timid))
    count = samples_to_separate(gap(claimed, twin, np.arange(241)))
    (codes,) = ask({"what": "answered", "text": text_of(asked), "rating": 4, "count": count})
    assert follows(np.array(codes), claimed) and not follows(np.array(codes), twin)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["stars", "numbers"])
def test_cells_are_answered_as_often_as_the_library_does(name):
    asked, people = CAMPAIGNS[name], 3000
    mechanism = asked.mechanism
    (told,) = ask(
        {"what": "cells", "text": text_of(asked), "history": [[3, mechanism.high]], "people": people}
    )
    rated = np.array([3 in answer["items"] for answer in told])
    empty = np.array([len(answer["items"]) for answer in told]) - rated
    for share, chance, cells in ((rated.mean(), mechanism.keep, 1), (empty.mean() / 49, mechanism.fake, 49)):
        # Six standard errors: wrong with probability below 1e-8.
        assert abs(share - chance) < 6 * math.sqrt(chance * (1 - chance) / people / cells)
    codes = np.concatenate([np.array(answer["codes"]) for answer in told])
    assert codes.min() >= 0 and codes.max() < asked.codes


def test_the_types_name_what_the_module_gives():
    (names,) = ask({"what": "names"})
    types = (WEB / "device" / "device.d.ts").read_text()
    assert names == sorted(re.findall(r"^export (?:function|class) (\w+)", types, re.MULTILINE))
