"""A campaign tells what devices draw from; a table that promises less than it says is refused."""

import base64
import json

import numpy as np
import pytest

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.collect.draw_tables import read_words
from discreet.collect.hidden_items import CatalogCampaign, CatalogReport, read, write
from discreet.collect.opening import campaign_from_bytes, campaign_from_json, is_campaign, open_campaign
from discreet.core.checks import ParameterError
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
from discreet.testing import refuses


def films(epsilon=1.0, points=129, step=1.0, **changes):
    return Campaign(
        name="films",
        mechanism=BoundedLaplace(epsilon=epsilon, low=1, high=5, points=points),
        catalog=Vocabulary.of(range(20)),
        max_reports=5,
        step=step,
        **changes,
    )


def shelf(mechanism=None, answers=None):
    return CatalogCampaign(
        name="shelf",
        mechanism=mechanism or HiddenStars(epsilon=2.0),
        catalog=Vocabulary.of(range(20)),
        answers=answers,
    )


EACH = [
    films(),
    films(step=None),
    shelf(),
    shelf(answers=3),
    shelf(HiddenNumbers(epsilon=2.0, low=1, high=5, points=9)),
]


@pytest.mark.parametrize("asked", EACH)
def test_every_campaign_travels_with_its_tables(asked, tmp_path):
    for copy in (campaign_from_json(json.loads(asked.text)), campaign_from_bytes(asked.to_bytes())):
        assert copy == asked and copy.digest == asked.digest and len(copy.digest) == 32
        assert copy.text == asked.text and copy.to_json() == asked.to_json()
    path = tmp_path / "some.campaign"
    assert not is_campaign(path)
    path.write_bytes(asked.to_bytes())
    assert is_campaign(path) and open_campaign(path) == asked
    with refuses("file-unreadable"):
        open_campaign(tmp_path / "none")


def test_rows_of_the_steps_take_five_kilobytes():
    assert len(base64.b64decode(films().to_json()["draws"]["starts"])) == 5 * 129 * 8
    assert len(base64.b64decode(films(step=None).to_json()["draws"]["starts"])) == 129 * 129 * 8
    with refuses("broken-rule", name="points", value=2049):
        _ = films(step=None, points=2049).digest
    with refuses("broken-rule", name="step", value=0.5):
        _ = films(points=5, step=0.5).digest


def shifted(text, place, words):
    """Return a table in which the start of one outcome lies elsewhere."""
    starts = read_words(text)
    starts[place] += np.uint64(words)
    return base64.b64encode(starts.astype(">u8").tobytes()).decode()


def test_last_digits_of_another_machine_are_taken_and_keep_their_own_name():
    record = films().to_json()
    record["draws"]["starts"] = shifted(record["draws"]["starts"], 40, 12345)
    copy = Campaign.from_json(record)
    assert copy.digest != films().digest and json.loads(copy.text) == record
    assert Campaign.from_bytes(copy.to_bytes()).digest == copy.digest


@pytest.mark.parametrize("asked", EACH)
def test_a_campaign_that_promises_something_else_is_refused(asked):
    record = asked.to_json()
    name = "noise" if "noise" in record["draws"] else "starts"
    tables = record["draws"]
    wrong = [
        {**tables, name: shifted(tables[name], 3, 1 << 40)},
        {**tables, name: tables[name][:-8]},
        {**tables, name: "not base64"},
        {**tables, name: 7},
        {**tables, "outcomes": 3},
        {key: value for key, value in tables.items() if key != "width"},
        [],
    ]
    for draws in wrong:
        with pytest.raises(ParameterError):
            campaign_from_json({**record, "draws": draws})
    lying = {**record, "mechanism": {**record["mechanism"], "epsilon": 0.5}}
    with refuses("bad-tables"):
        campaign_from_json(lying)


def test_messages_of_version_1_are_still_read():
    asked, old = films(), films(version=1)
    assert old.digest == asked.old_digest and len(old.digest) == 8
    message = wire.RatingReport(bytes(16), (1, 4), (10, 20))
    for form in (wire.to_bytes, wire.to_json):
        assert wire.read(asked, form(old, message)) == message == wire.read(asked, form(asked, message))
        with pytest.raises(wire.ReportRefused) as caught:
            wire.read(old, form(asked, message))
        assert caught.value.reason is wire.ReportRefusal.WRONG_VERSION
    state = Device(old).state()
    assert Device.restore(asked, state).state()["sender"] == state["sender"]
    raw = write(shelf(), CatalogReport(bytes(16), None, np.array([1]), np.array([2])))
    early = raw[:4] + b"\x01" + shelf().old_digest + raw[37:]
    assert read(shelf(), early).codes.tolist() == [2]
