"""Where a model comes from is stored with it."""

import json

import pytest

import discreet
from discreet.core.checks import DataError
from discreet.models.fitted import Origin, code_digest
from discreet.models.storage import read_label
from toy import toy_interactions


def test_a_fit_states_its_day_its_program_and_its_account(tmp_path):
    ledger = discreet.Ledger.in_memory()
    model = discreet.Popularity(epsilon=1.0).fit(toy_interactions(), ledger=ledger)
    (entry,) = ledger.entries()
    assert (model.origin.account, model.origin.entry) == ("toy", entry.id)
    assert model.origin.date == entry.time.date().isoformat() and model.origin.code == code_digest()
    model.save(tmp_path / "m.discreet")
    assert discreet.load(tmp_path / "m.discreet").origin == model.origin
    assert read_label(tmp_path / "m.discreet")["origin"] == model.origin.to_json()


def test_a_fit_without_a_ledger_names_no_account():
    assert discreet.Popularity(epsilon=1.0).fit(toy_interactions()).origin.account is None


@pytest.mark.parametrize(
    "change",
    [{"date": 5}, {"code": "x"}, {"version": "9" * 1000}, {"entry": True}, {"account": ["a"]}],
    ids=json.dumps,
)
def test_a_damaged_origin_is_rejected(change):
    sound = {"date": "2026-11-18", "version": "0.3.0", "code": "0" * 16, "account": "shop", "entry": 3}
    assert Origin.from_json(sound).to_json() == sound
    with pytest.raises(DataError):
        Origin.from_json({**sound, **change})
