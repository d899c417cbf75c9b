"""A model card says what the label says: for programs in YAML, for people in Markdown."""

import pytest
import yaml

from command_line import one_sentence


def front_of(path):
    _, front, rest = path.read_text(encoding="utf8").split("---\n", 2)
    return yaml.safe_load(front), rest


def test_a_card_has_epsilon_unit_and_audit(discreet, ratings, tmp_path):
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
    assert "## Privacy facts" in text and "## Audit" in text and "An audit is no proof." in text


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
