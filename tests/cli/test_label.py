"""A label is read from a whole file or not at all."""

import html
import json

from command_line import one_sentence
from discreet.dossier.evidence import _short
from snapshot import page_text


def test_no_flipped_byte_of_a_model_file_goes_unnoticed_or_ends_in_a_traceback(model):
    import discreet
    from discreet.core.checks import FileError

    whole, before = model.read_bytes(), discreet.load(model)
    for position in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[position] ^= 0x10
        model.write_bytes(changed)
        try:
            after = discreet.load(model)
        except FileError:
            continue
        # Bytes that the zip format does not use may change without changing the model.
        assert after.guarantee == before.guarantee
        assert (after.scorer.part("item_bias") == before.scorer.part("item_bias")).all()


def test_half_a_model_file_is_refused(discreet, ratings, model):
    model.write_bytes(model.read_bytes()[:-200])
    one_sentence(*discreet("label", model))
    one_sentence(*discreet("recommend", model, "--history", ratings, "--user", "1"))


def test_settings_that_were_not_audited_are_told_with_their_values(discreet, ratings, tmp_path, snapshot):
    model = tmp_path / "implicit.discreet"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "1", "--out", model)[0] == 0
    snapshot(discreet("label", model)[1].partition("Last audit")[2])
    assert _short("x" * 99) == "x" * 36 + "..." and _short(None) == "null" and "\x1b" not in _short("\x1b[2J")


def test_a_label_shows_its_release_in_the_ledger(discreet, ratings, tmp_path):
    book = tmp_path / "shop.ledger"
    assert discreet("budget", book, "--name", "shop", "--epsilon", "4", "--delta", "1e-5")[0] == 0
    for out in ("first", "second"):
        paid = ("--ledger", book, "--name", "shop", "--epsilon", "1", "--out", tmp_path / out)
        assert discreet("fit", ratings, "--model", "biases", *paid)[0] == 0
    found = [
        json.loads(discreet("label", tmp_path / out, "--ledger", book, "--json")[1])["ledger"]
        for out in ("first", "second")
    ]
    assert [(one["number"], one["of"], one["dataset"]) for one in found] == [(1, 2, "shop"), (2, 2, "shop")]
    assert "epsilon 2" in found[0]["spent"] and found[0]["left"] == found[1]["left"]
    shown = discreet("label", tmp_path / "second", "--ledger", book)[1]
    assert all(word in shown for word in ("Release", "Spent", "Left"))
    other = tmp_path / "other.ledger"
    discreet("budget", other, "--name", "shop", "--epsilon", "4", "--delta", "1e-5")
    one_sentence(*discreet("label", tmp_path / "second", "--ledger", other))


def test_every_form_of_a_label_has_the_same_content(discreet, ratings, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    book, model = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    paid = ("--ledger", book, "--name", "shop", "--epsilon", "1")
    assert discreet("fit", ratings, "--model", "biases", *paid, "--out", model)[0] == 0
    full = ("label", model, "--full", "--people", "3", "--ledger", book)
    found = json.loads(discreet(*full, "--json")[1])
    page, card = tmp_path / "label.html", tmp_path / "card.md"
    assert discreet(*full, "--html", page, "--card", card)[0] == 0
    forms = {
        "terminal": discreet(*full)[1],
        "Markdown": discreet(*full, "--markdown")[1],
        "page": page_text(page.read_text(encoding="utf8")),
        "card": card.read_text(encoding="utf8"),
    }
    wanted = {
        "odds": found["odds"]["sentence"],
        "group": found["group"]["sentence"],
        "left": found["ledger"]["left"],
        "method": found["method"],
        "audit": found["last_audit"]["verdict"],
        "account": found["origin"]["account"],
        "code": found["origin"]["code"],
        **{f"release {at}": one["name"] for at, one in enumerate(found["certificate"]["releases"])},
        **found["officer"],
        **{f"assumed {at}": one["text"] for at, one in enumerate(found["guarantee"]["assumes"])},
    }
    missing = [
        (form, name)
        for form, text in forms.items()
        for name, value in wanted.items()
        if letters(value) not in letters(text)
    ]
    assert missing == []


def letters(text):
    """Return a text without the blanks, lines of tables, and escapes that a form adds."""
    return "".join(one for one in html.unescape(text) if one.isalnum())
