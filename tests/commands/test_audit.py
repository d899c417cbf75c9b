"""`discreet audit` on the command line."""

import json

import pytest

from command_line import one_sentence

FIELDS = {"model", "attack", "promised", "refuted", "confidence", "fits", "seconds", "verdict"}


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


def test_games_are_played_in_the_view_asked_for(discreet):
    code, out, error = discreet("audit", "neighbours", "--view", "transcript", "--seconds", "5", "--json")
    assert code == 0, error
    (game,) = (finding for finding in json.loads(out) if finding["attack"] == "transcript")
    assert 0.9 < game["refuted"] < 1 and game["curve"] is not None
    one_sentence(*discreet("audit", "neighbours", "--view", "palm"))
    one_sentence(*discreet("audit", "popularity", "--view", "report"))
    code, out, _ = discreet("audit", "neighbours", "--view", "report", "--json")
    assert code == 0 and "report" in {finding["attack"] for finding in json.loads(out)}


def test_a_page_shows_the_curves(discreet, tmp_path):
    pytest.importorskip("matplotlib")
    page = tmp_path / "audit.html"
    code, _, error = discreet("audit", "neighbours", "--page", page)
    assert code == 0, error
    text = page.read_text()
    assert "data:image/png" in text and "not refuted" in text and "Not refuted is not proved" in text
    one_sentence(*discreet("audit", "neighbours", "--page", page))
