"""The first question about a file."""

import json

import pytest

from command_line import one_sentence
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
