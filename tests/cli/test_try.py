"""The first question about a file."""

import json
import shlex
from types import SimpleNamespace

import pytest

from command_line import one_sentence
from discreet.cli.options.declared import Reading
from discreet.cli.trial import _model_file, _next_command
from toy import grouped


@pytest.fixture
def clicks(tmp_path):
    data = grouped(300)
    lines = [f"u{row},i{item}" for row, item in zip(data.rows(), data.items, strict=True)]
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(["user,item", *lines]) + "\n")
    return path


def test_try_answers_and_names_the_next_command(discreet, clicks, tmp_path):
    page = tmp_path / "trial.html"
    code, out, error = discreet("try", clicks, "--implicit", "--epsilon", "8", "--json", "--out", page)
    found = json.loads(out)
    assert code == 0, error
    assert found["answer"] in ("yes", "no", "undecided") and found["epsilon"] == 8
    assert found["next"].startswith("discreet fit ") and "--epsilon 8" in found["next"]
    assert page.read_text().startswith("<!doctype html>")
    assert not list(tmp_path.glob("*.discreet")) and not list(tmp_path.glob("*.ledger"))
    code, out, error = discreet("try", clicks, "--implicit", "--epsilon", "8")
    assert code == 0 and len(out.splitlines()) <= 24 and "discreet fit" in out


def test_try_rejects_too_few_users(discreet, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("user,item\nu1,a\nu1,b\nu2,a\nu2,b\n")
    one_sentence(*discreet("try", path, "--implicit"))


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_the_next_command_reads_the_same_files_in_the_same_way(answer):
    asked = SimpleNamespace(epsilon=0.5)
    reading = Reading(columns="user=who,item=sku", implicit=True, duplicates="last", encoding="latin-1")
    words = shlex.split(_next_command(SimpleNamespace(answer=answer, asked=asked), "year 1/*.csv", reading))
    assert words[:3] == ["discreet", "fit", "year 1/*.csv"]
    assert ("--model" in words) == (answer == "no")
    for option, value in (
        ("--columns", "user=who,item=sku"),
        ("--encoding", "latin-1"),
        ("--epsilon", "0.5"),
    ):
        assert words[words.index(option) + 1] == value
    assert words[-1] == "mine.discreet"


def test_the_next_command_names_no_address():
    assert _model_file("postgresql://me:secret@host/db::orders") == "mine.discreet"
    assert _model_file("orders-2026-*.csv") == "orders-2026.discreet"
    assert _model_file("shop.csv") == "shop.discreet"
