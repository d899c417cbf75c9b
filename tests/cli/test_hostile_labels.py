"""Labels that a stranger wrote: shown as they are in every form, or refused in one sentence."""

import json
from html import escape

import pytest

from command_line import one_sentence
from fuzz.models import OLD, contents, forge

EVIL = "[/b] [red]x[/red] <img src=x onerror=alert(1)> [a](javascript:b) `c` | \x1b[31m"
LABEL, ARRAYS = contents(OLD / "popularity.discreet")
PROMISE = LABEL["guarantee"] | {"simulated": False}
LABEL |= {"guarantee": PROMISE}


def forms(path, folder):
    """Return every way to print a label, with where it goes."""
    page, draft = folder / "label.html", folder / "draft.yaml"
    return {
        "table": ((path, "--full"), None),
        "json": ((path, "--json"), None),
        "markdown": ((path, "--markdown"), None),
        "page": ((path, "--html", page), page),
        "registry": ((path, "--registry", draft), draft),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"provenance": {EVIL: EVIL, "catalog": "public"}},
        {"name": EVIL},
        {"origin": {"date": EVIL, "version": EVIL, "code": "0" * 16, "account": EVIL}},
        {"guarantee": {**PROMISE, "assumes": [EVIL], "notes": [EVIL], "proof": EVIL}},
    ],
    ids=["provenance", "name", "origin", "promise"],
)
def test_what_a_stranger_wrote_is_shown_and_not_obeyed(change, discreet, tmp_path):
    path = tmp_path / "m.discreet"
    forge(path, {**LABEL, **change}, ARRAYS)
    for form, (arguments, file) in forms(path, tmp_path).items():
        code, shown, error = discreet("label", *arguments)
        assert code == 0, (form, error)
        text = shown if file is None else file.read_text(encoding="utf8")
        assert "\x1b" not in text, form
        if form == "table":
            assert "[red]x[/red]" in "".join(shown.split())
        if form == "page":
            assert "<img" not in text and escape("<img") in text
        if form == "markdown":
            assert "<img" not in text and "[a](" not in text and "`c`" not in text


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "change",
    [
        {"provenance": ["a"]},
        {"provenance": None},
        {"provenance": {"a": {"b": 1}}},
        {"provenance": {"a": 1}},
        {"name": 5},
        {"name": ["x"]},
        {"guarantee": []},
        {"guarantee": {**PROMISE, "proof": 5}},
        {"parameters": None},
        {"origin": None},
        {"origin": {"date": 5, "version": [], "code": {}, "entry": True, "account": ["x"]}},
        {"schema": ["a"]},
    ],
    ids=json.dumps,
)
def test_labels_of_any_shape_are_shown_or_get_a_sentence(change, discreet, tmp_path):
    path = tmp_path / "m.discreet"
    forge(path, {**LABEL, **change}, ARRAYS)
    for arguments, _ in forms(path, tmp_path).values():
        code, shown, error = discreet("label", *arguments)
        if code:
            one_sentence(code, shown, error)
