"""Measuring several models: the page and what it may replace."""

import sys

import pytest

from command_line import one_sentence


def test_compare_replaces_its_own_reports_only(discreet, ratings, model, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    arguments = ("compare", ratings, "--models", "biases", "--epsilons", "1", "--out")
    before = {path: path.read_bytes() for path in (ratings, model)}
    for victim in before:
        one_sentence(*discreet(*arguments, victim, "--force"))
    train, test = tmp_path / "train.html", tmp_path / "test.html"
    given = ("--split", f"given:{train.name},{test.name}")
    for path in (train, test):
        path.write_text('<meta name="generator" content="discreet">')
        one_sentence(*discreet(*arguments, path, "--force", *given))
    assert {path: path.read_bytes() for path in before} == before
    page = tmp_path / "page.html"
    one_sentence(*discreet("compare", ratings, "--models", ",", "--epsilons", "1", "--out", page))
    assert discreet(*arguments, page)[0] == 0
    one_sentence(*discreet(*arguments, page))
    assert discreet(*arguments, page, "--force")[0] == 0


def test_compare_asks_for_its_libraries_first(discreet, ratings, tmp_path, monkeypatch):
    from discreet.evaluation import comparison

    for name in ("matplotlib", "jinja2"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, name, None)
            without.setattr(comparison, "compare", lambda *_, **__: pytest.fail("nothing may be measured"))
            arguments = ("--models", "biases", "--epsilons", "1", "--out", tmp_path / "page.html")
            code, out, error = discreet("compare", ratings, *arguments)
            one_sentence(code, out, error)
            assert 'pip install "discreet[report]"' in error
