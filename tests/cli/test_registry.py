"""A label travels: as a registry entry, as Markdown, and as a page."""

import pytest
import yaml

from command_line import one_sentence


@pytest.fixture
def model(discreet, ratings, tmp_path):
    out = tmp_path / "m.discreet"
    assert discreet("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", out)[0] == 0
    return out


def test_label_writes_a_registry_entry_with_the_facts_of_a_file(discreet, model, tmp_path):
    out, facts = tmp_path / "out.yaml", tmp_path / "facts.toml"
    facts.write_text('controller = "Film Club"\nreview = 2027-01-31\n')
    assert discreet("label", model, "--registry", out, "--facts", facts)[0] == 0
    record = yaml.safe_load(out.read_text())
    assert record["tier"] == 3 and record["status"] == "Draft"
    assert record["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert record["deployment"]["basic"]["data_curators"] == ["Film Club"]
    one_sentence(*discreet("label", model, "--facts", facts))
    one_sentence(*discreet("label", model, "--registry", facts, "--facts", facts, "--force"))
    assert "Film Club" in facts.read_text()


@pytest.mark.parametrize("text", ['surprise = "x"\n', "controller = 3\n", 'sector = "Films"\n', "= ?\n"])
def test_facts_outside_their_domain_write_nothing(text, discreet, model, tmp_path):
    out, facts = tmp_path / "out.yaml", tmp_path / "facts.toml"
    facts.write_text(text)
    one_sentence(*discreet("label", model, "--registry", out, "--facts", facts))
    assert not out.exists()


def test_a_model_without_a_promise_is_not_registered(discreet, ratings, tmp_path):
    out, draft = tmp_path / "bar.discreet", tmp_path / "out.yaml"
    assert discreet("fit", ratings, "--model", "als", "--epsilon", "inf", "--out", out)[0] == 0
    one_sentence(*discreet("label", out, "--registry", draft))
    assert not draft.exists()


def test_markdown_and_a_page(discreet, model, tmp_path, snapshot):
    code, shown, _ = discreet("label", model, "--markdown")
    assert code == 0 and "| epsilon | 1 |" in shown and "| item_bias |" in shown
    page = tmp_path / "label.html"
    code, shown, _ = discreet("label", model, "--html", page)
    assert code == 0
    snapshot(shown)
    text = page.read_text()
    assert "Privacy facts" in text and "http" not in text.replace("http-equiv", "")
    one_sentence(*discreet("label", model, "--html", model))
