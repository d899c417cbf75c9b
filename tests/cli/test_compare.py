"""Measuring several models: the page and what it may replace."""

import json
import re
import sys

import pytest

from command_line import one_sentence


def test_compare_replaces_its_own_reports_only(discreet, ratings, model, tmp_path):
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


def test_compare_needs_no_more_than_the_package(discreet, ratings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ("--models", "biases", "--epsilons", "1", "--out", tmp_path / "page.html")
    assert discreet("compare", ratings, *arguments)[0] == 0


def test_settings_a_table_and_going_on_where_it_was_stopped(discreet, ratings, tmp_path, monkeypatch):
    from discreet.evaluation import comparison

    kept = tmp_path / "kept.jsonl"
    models = "user-factorization,user-factorization:feedback=implicit,als"
    asked = (
        "compare",
        ratings,
        "--models",
        models,
        "--epsilons",
        "1,4",
        "--metric",
        "rmse,hr@5",
        "--resume",
        kept,
    )
    page = tmp_path / "page.html"
    code, out, error = discreet(*asked, "--out", page)
    text = "".join(out.split()).replace("│", "")
    assert code == 0 and error.count("at epsilon") == 5, error
    assert max(map(len, out.splitlines())) <= 80
    steps = re.findall(r"(\d) of 5: (\S+) ?(\S*) at epsilon (\S+)", error.replace(".\n", "\n"))
    assert ("4", "user-factorization", "feedback=implicit", "4") in steps
    assert all(word in text for word in ("implicit", "PRIVATE", "baseline", "rmse")), out
    assert "Withawholeuserprotected,thebestmodelreaches" in text
    first = page.read_text()
    assert ">user-factorization (implicit)</th>" in first and ">user-factorization</th>" in first
    assert "prefers-color-scheme: dark" in first
    monkeypatch.setattr(comparison, "evaluate", lambda *_, **__: pytest.fail("everything is known"))
    with kept.open("a") as file:
        file.write('{"format": "discreet-comparison", "version": 1, "key": "cut sh')
    code, out, error = discreet(*asked, "--out", page, "--force", "--json")
    assert code == 0 and len(json.loads(out)["evaluations"]) == 5 and "at epsilon" not in error
    assert page.read_text() == first
    kept.write_text("something else\n")
    one_sentence(*discreet(*asked, "--out", page, "--force"))


def test_going_on_notices_that_given_files_changed(discreet, ratings, tmp_path):
    lines = ratings.read_text().splitlines()
    train, test, kept = tmp_path / "train.csv", tmp_path / "test.csv", tmp_path / "kept.jsonl"
    asked = ("compare", ratings, "--models", "als", "--epsilons", "inf", "--split", f"given:{train},{test}")
    rounds = []
    for cut in (100, 100, 101):
        train.write_text("\n".join(lines[:-cut]) + "\n")
        test.write_text("\n".join([lines[0], *lines[-cut:]]) + "\n")
        code, _, error = discreet(*asked, "--resume", kept, "--json", "--out", tmp_path / "p.html", "--force")
        assert code == 0, error
        rounds.append(error.count("at epsilon"))
    assert rounds == [1, 0, 1]


def test_a_level_is_no_setting_of_one_model(discreet, ratings, tmp_path):
    wrong = ("compare", ratings, "--epsilons", "1", "--out", tmp_path / "page.html", "--models")
    one_sentence(*discreet(*wrong, "biases:epsilon=3"))
    one_sentence(*discreet(*wrong, "biases:nonsense=3"))


def test_compare_needs_only_data(discreet, ratings, tmp_path, snapshot, monkeypatch):
    # The path of the folder would break the title of the table anywhere.
    monkeypatch.chdir(tmp_path)
    code, out, error = discreet("compare", ratings, "--implicit", "--json")
    found = json.loads(out)
    assert code == 0 and found["report"] is None, error
    assert {one["model"] for one in found["evaluations"]} == {"user-factorization", "popularity"}
    assert all(list(one["metrics"]) == ["ndcg@10", "hr@10"] for one in found["evaluations"])
    page = tmp_path / "page.html"
    code, out, error = discreet(
        "compare", ratings.name, "--models", "biases,popularity", "--epsilons", "inf", "--out", page
    )
    assert code == 0, error
    snapshot(out, numbers=False)
    # Each is scored by what fits it, and the page says interactions where nothing else was asked.
    snapshot(page.read_text(), numbers=False)
    discreet(
        "compare",
        ratings.name,
        "--implicit",
        "--models",
        "popularity",
        "--epsilons",
        "inf",
        "--out",
        page,
        "--force",
    )
    snapshot(page.read_text(), numbers=False)
