"""A model card says what the label says: for programs in YAML, for people in Markdown."""

import math
import re

import pytest
import yaml

from command_line import one_sentence
from discreet.core.checks import FileError
from discreet.export.card import model_card
from discreet.models.storage import read_label


def front_of(path):
    _, front, rest = path.read_text(encoding="utf8").split("---\n", 2)
    return yaml.safe_load(front), rest


def test_a_card_has_epsilon_unit_and_audit(discreet, ratings, tmp_path, snapshot):
    model, card = tmp_path / "m.discreet", tmp_path / "README.md"
    assert discreet("fit", ratings, "--epsilon", "2", "--out", model)[0] == 0
    code, _, error = discreet("label", model, "--card", card)
    assert code == 0, error
    front, text = front_of(card)
    assert front["library_name"] == "discreet" and "differential-privacy" in front["tags"]
    promise = front["privacy"]
    assert promise["epsilon"] == 2.0 and promise["unit"] == "user" and promise["private"] is True
    assert isinstance(promise["delta"], float) and promise["proof"].startswith("proofs/")
    assert front["audit"]["date"] and isinstance(front["audit"]["of_the_present_form"], bool)
    assert front["audit"]["at_epsilon"] == 1.0 and front["audit"]["worst_case_epsilon"] <= 1.0
    assert front["data"] == {"feedback": "ratings", "items": 40, "lowest_rating": 1.0, "highest_rating": 5.0}
    assert front["settings"]["purpose"] == "both" and "epsilon" not in front["settings"]
    snapshot(text)


@pytest.mark.parametrize("model", ["als"])
def test_the_card_of_a_model_without_privacy_promises_nothing(discreet, ratings, tmp_path, model):
    file, card = tmp_path / "m.discreet", tmp_path / "README.md"
    assert discreet("fit", ratings, "--model", model, "--epsilon", "inf", "--out", file)[0] == 0
    assert discreet("label", file, "--card", card)[0] == 0
    front, text = front_of(card)
    assert front["privacy"]["private"] is False and front["privacy"]["epsilon"] is None
    assert "differential-privacy" not in front["tags"] and "NOT PRIVATE" in text


def test_a_card_never_replaces_the_model(discreet, model):
    before = model.read_bytes()
    one_sentence(*discreet("label", model, "--card", model))
    assert model.read_bytes() == before


@pytest.mark.parametrize("options", [("--epsilon", "2"), ("--implicit", "--epsilon", "2")])
def test_the_code_of_a_card_makes_a_list(discreet, ratings, tmp_path, monkeypatch, capsys, options):
    model, card = tmp_path / "m.discreet", tmp_path / "README.md"
    assert discreet("fit", ratings, *options, "--out", model)[0] == 0
    assert discreet("label", model, "--card", card)[0] == 0
    (code,) = re.findall(r"```python\n(.*?)```", card.read_text(encoding="utf8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code.replace('"ITEM"', "3").replace('"ANOTHER"', "5"), {})
    assert len(capsys.readouterr().out.splitlines()) == 10
    # The twin: the code names the file that the card is about.
    model.rename(tmp_path / "other.discreet")
    with pytest.raises(FileError):
        exec(code, {})


def test_a_card_says_what_only_the_publisher_knows(discreet, model, tmp_path, snapshot):
    card = tmp_path / "README.md"
    assert discreet("label", model, "--card", card)[0] == 0
    snapshot(front_of(card)[1])


def test_what_strangers_write_stays_in_its_place(model):
    label = read_label(model)
    evil = {"two: words": 1, "epsilon": 9, "evil": "x\n---\n# y", "not_a_number": math.nan, "deep": {"a": 1}}
    text = model_card({**label, "parameters": evil}, "", None, file='m"```\n# z.discreet')
    _, front, rest = text.split("---\n", 2)
    assert yaml.safe_load(front)["settings"] == {"evil": "x\n---\n# y"}
    assert rest.count("```") == 2 and "\n# z" not in rest
