"""A label travels: a registry draft by a strict schema of our own, Markdown, and a page of its own."""

import json
import re
from pathlib import Path

import pytest
import yaml

from command_line import one_sentence

SCHEMA = json.loads(Path(__file__).with_name("registry_schema.json").read_text())


def faults(value, rule, where="record"):
    """Return where a record breaks the schema: missing keys, other keys, other types."""
    if isinstance(rule, dict):
        if not isinstance(value, dict):
            return [f"{where} is no mapping"]
        known = {key.rstrip("?") for key in rule}
        found = [f"{where}.{key} is not expected" for key in value.keys() - known]
        for key, inner in rule.items():
            name = key.rstrip("?")
            if name in value:
                found += faults(value[name], inner, f"{where}.{name}")
            elif not key.endswith("?"):
                found.append(f"{where}.{name} is missing")
        return found
    if isinstance(rule, list) and isinstance(rule[0], dict):
        return (
            [fault for each in value for fault in faults(each, rule[0], where)]
            if value
            else [f"{where} is empty"]
        )
    if rule == ["text..."]:
        return (
            [] if value and all(isinstance(each, str) for each in value) else [f"{where} is no list of texts"]
        )
    if isinstance(rule, list):
        return [] if value in rule else [f"{where} is {value!r}"]
    fits = {
        "text": isinstance(value, str),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "date": isinstance(value, str) and bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value)),
    }
    return [] if fits[rule] else [f"{where} is {value!r}"]


@pytest.fixture
def model(discreet, ratings, tmp_path):
    out = tmp_path / "m.discreet"
    assert discreet("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", out)[0] == 0
    return out


def test_a_draft_follows_the_schema_to_the_key(discreet, model, tmp_path):
    out = tmp_path / "out.yaml"
    assert discreet("label", model, "--registry", out)[0] == 0
    record = yaml.safe_load(out.read_text())
    assert faults(record, SCHEMA) == []
    assert record["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert record["deployment"]["administrative"]["status"] == "Draft"
    record["deployment"]["basic"]["surprise"] = "more"
    del record["deployment"]["accounting"]
    assert len(faults(record, SCHEMA)) == 2  # the twin: the check sees one key too many and one missing


def test_a_model_without_a_promise_is_not_registered(discreet, ratings, tmp_path):
    out, draft = tmp_path / "bar.discreet", tmp_path / "out.yaml"
    assert discreet("fit", ratings, "--model", "als", "--epsilon", "inf", "--out", out)[0] == 0
    one_sentence(*discreet("label", out, "--registry", draft))
    assert not draft.exists()


def test_markdown_and_a_page(discreet, model, tmp_path):
    code, shown, _ = discreet("label", model, "--markdown")
    assert code == 0 and "| epsilon | 1 |" in shown and "| item_bias |" in shown
    page = tmp_path / "label.html"
    code, shown, _ = discreet("label", model, "--html", page)
    assert code == 0 and "Written to" in shown and "What the file contains" not in shown
    text = page.read_text()
    assert "Privacy facts" in text and "http" not in text.replace("http-equiv", "")
    one_sentence(*discreet("label", model, "--html", model))
