"""`discreet model audit` on the command line."""

import json

import pytest

from command_line import one_sentence, rejected

FIELDS = {"model", "attack", "promised", "refuted", "confidence", "fits", "seconds", "verdict"}


def test_a_models_file_and_a_page_that_exists_are_refused_at_once(discreet, model, tmp_path):
    rejected(discreet("audit", model), "fitted-model-given", model="biases")
    (tmp_path / "page.html").write_text("mine")
    one_sentence(*discreet("audit", "popularity", "--page", tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text() == "mine"


def test_a_sound_model_is_not_refuted(discreet):
    code, out, error = discreet("audit", "popularity", "--epsilon", "0.5", "--json")
    assert code == 0, error
    found = json.loads(out)
    assert found and all(set(finding) >= FIELDS for finding in found)
    assert {finding["verdict"] for finding in found} == {"not refuted"}
    (inside,) = (finding for finding in found if finding["attack"] == "white box")
    assert inside["promised"] == 0.5 and 0.45 < inside["refuted"] <= 0.5 and inside["confidence"] == 1.0


def test_a_broken_promise_is_exit_code_1(discreet, monkeypatch):
    from audit.twins import spoil

    spoil(monkeypatch, "half noise", "popularity")
    code, out, _ = discreet("audit", "popularity", "--json")
    assert code == 1
    assert "refuted" in {finding["verdict"] for finding in json.loads(out)}


def test_people_get_a_table_that_calls_nothing_proved(discreet):
    code, out, _ = discreet("audit", "popularity")
    assert code == 0 and "not refuted" in out and "proved" not in out


@pytest.mark.parametrize(
    "arguments", [(), ("popularity", "--all"), ("oracle",), ("popularity", "--epsilon", "inf")]
)
def test_what_cannot_be_audited_is_one_sentence(discreet, arguments):
    one_sentence(*discreet("audit", *arguments))


def test_one_fit_on_your_own_data(discreet, ratings):
    code, out, error = discreet("audit", ratings, "--model", "biases", "--epsilon", "4", "--json")
    assert code == 0, error
    (found,) = json.loads(out)
    assert found["attack"] == "one run" and found["promised"] == 4.0


@pytest.mark.thorough
def test_games_are_played_in_the_view_asked_for(discreet):
    code, out, error = discreet("audit", "neighbours", "--view", "transcript", "--seconds", "600", "--json")
    assert code == 0, error
    (game,) = (finding for finding in json.loads(out) if finding["attack"] == "transcript")
    assert 0.9 < game["refuted"] < 1 and game["curve"] is not None
    one_sentence(*discreet("audit", "neighbours", "--view", "palm"))
    one_sentence(*discreet("audit", "projected-gradient", "--view", "report"))
    code, out, _ = discreet("audit", "neighbours", "--view", "report", "--json")
    assert code == 0 and "report" in {finding["attack"] for finding in json.loads(out)}


@pytest.mark.thorough
def test_what_a_party_sends_costs_what_its_own_share_of_the_noise_promises(discreet, monkeypatch):
    from discreet.federated.noise import SharedNoise
    from discreet.model_settings import MODELS
    from discreet.models.popularity import Popularity
    from discreet.privacy import session

    code, out, error = discreet("audit", "popularity", "--view", "report", "--json")
    assert code == 0, error
    (report,) = (finding for finding in json.loads(out) if finding["attack"] == "report")
    # One share of two that must be there: the label of a federation says the same, rounded up.
    assert 0.999 * report["promised"] < report["refuted"] <= report["promised"]
    left = SharedNoise(parties=3, missing=1).assumes(1.0, Popularity(epsilon=1.0).delta)[-2]
    assert report["promised"] <= dict(left.detail)["epsilon"] < report["promised"] + 0.011

    from discreet.audit.questions import price_a_party

    real = session.with_share

    def too_little(sums, sigma, units, random, *, symmetric):
        """Add half of the noise, and state all of it: a coordinator turns away a party that states less."""
        return real(sums, sigma / 2, units, random, symmetric=symmetric)

    monkeypatch.setattr(session, "with_share", too_little)
    assert price_a_party("popularity", MODELS["popularity"](epsilon=1.0)).broken


def test_a_page_shows_the_curves(discreet, tmp_path, snapshot):
    page = tmp_path / "audit.html"
    code, _, error = discreet("audit", "neighbours", "--page", page)
    assert code == 0, error
    text = page.read_text()
    assert "<svg" in text
    snapshot(text, numbers=False)
    one_sentence(*discreet("audit", "neighbours", "--page", page))


def test_a_run_is_taken_up_where_it_stopped(discreet, tmp_path, monkeypatch):
    from discreet.audit import full

    kept = tmp_path / "run.json"
    code, out, error = discreet("audit", "neighbours", "--out", kept, "--json")
    assert code == 0, error

    def never(*_):
        raise AssertionError("what is kept is not found again")

    monkeypatch.setattr(full, "examine", never)
    code, again, error = discreet("audit", "neighbours", "--out", kept, "--json")
    assert code == 0 and json.loads(again) == json.loads(out), error
    assert json.loads(kept.read_text())["found"][0]["date"]


def test_a_file_that_is_no_run_of_this_version_is_left_as_it_is(discreet, tmp_path):
    for content in ("not JSON", "{}", '{"kind": "audits", "version": "0.0.1", "found": []}'):
        kept = tmp_path / "run.json"
        kept.write_text(content)
        one_sentence(*discreet("audit", "neighbours", "--out", kept))
        assert kept.read_text() == content


def test_labels_tell_of_the_last_audit_and_call_it_no_proof(discreet, model, snapshot):
    from discreet.audit import LastAudit, last_audits

    found = {
        "date": "2026-11-16",
        "version": "0.2.0",
        "verdict": "not refuted",
        "tried": [0.5, 1.0],
        "promised": 1.0,
        "exact": 1.0,
        "refuted": 0.4,
        "curve": 0.9,
        "confidence": 0.99,
    }
    name = json.loads(discreet("label", model, "--json")[1])["name"]
    found["subject"] = name
    found["fingerprints"] = dict(last_audits._present()[name])
    last_audits._shipped.cache_clear()
    known = last_audits._shipped()
    before = dict(known)
    known[name] = found
    try:
        _, out, _ = discreet("label", model)
        _, as_json, _ = discreet("label", model, "--json")
        _, models, _ = discreet("models", "--json")
        # The mechanism changes: the audit was of an earlier form, and no bound of it is shown.
        found["fingerprints"]["1"] = "0" * 16
        _, changed, _ = discreet("label", model)
        found["fingerprints"] = {}
        _, unnamed, _ = discreet("label", model, "--json")
        found["fingerprints"] = dict(last_audits._present()[name])
    finally:
        known.clear()
        known.update(before)
    snapshot(out.partition("Last audit")[2])
    snapshot(changed.partition("Last audit")[2])
    assert json.loads(unnamed)["last_audit"]["present"] is False
    assert json.loads(as_json)["last_audit"] == {**found, "present": True}
    (row,) = (row for row in json.loads(models)["models"] if row["name"] == name)
    assert row["last_audit"]["curve"] == 0.9
    assert LastAudit(**{**found, "exact": None, "present": True}).sentence()


@pytest.mark.thorough
def test_releases_from_files_are_audited_where_whole_people_are_promised(discreet, monkeypatch):
    from discreet.audit import from_files

    monkeypatch.setattr(from_files, "ROUTES", from_files.ROUTES[:1])
    code, shown, _ = discreet("audit", "popularity", "--files", "--json")
    found = [one for one in json.loads(shown) if one["attack"].startswith("files: ")]
    assert code == 0 and [one["verdict"] for one in found] == ["not refuted"] * 2
    one_sentence(*discreet("audit", "one-bit-input", "--files"))
