"""The first question about a file."""

import gzip
import json
import shlex
from types import SimpleNamespace

import pytest

from command_line import one_sentence
from discreet.cli.options.accounts import LedgerAccount
from discreet.cli.options.declared import Reading
from discreet.cli.options.parsing import command_line
from discreet.cli.trial import _next_command
from discreet.privacy.ledger.ledger import Ledger
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


@pytest.mark.parametrize("chosen", [{}, {"--model": "popularity"}])
def test_the_next_command_reads_the_same_files_in_the_same_way(chosen):
    found = SimpleNamespace(options=chosen, asked=SimpleNamespace(epsilon=0.5))
    reading = Reading(columns="user=who,item=sku", implicit=True, duplicates="last", encoding="latin-1")
    account = LedgerAccount("year-1", "year-1.ledger", is_known=False)
    words = shlex.split(_next_command(found, "year 1/*.csv", account, reading))
    assert words[:3] == ["discreet", "fit", "year 1/*.csv"]
    assert ("--model" in words) == bool(chosen)
    given = {
        "--columns": "user=who,item=sku",
        "--encoding": "latin-1",
        "--epsilon": "0.5",
        "--name": "year-1",
    }
    given |= {"--ledger": "year-1.ledger", "--out": "year-1.discreet"}
    assert {option: words[words.index(option) + 1] for option in given} == given


def test_the_next_command_runs_as_it_is(discreet, clicks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = json.loads(discreet("try", clicks, "--implicit", "--epsilon", "8", "--json")[1])["next"]
    code, _, told = discreet(*shlex.split(command)[1:])
    assert code == 0 and {one.name for one in tmp_path.iterdir()} >= {"clicks.discreet", "clicks.ledger"}, (
        told
    )


def test_the_next_command_names_the_account_of_a_fit_without_a_name(discreet, clicks, tmp_path):
    packed = tmp_path / "events.jsonl.gz"
    rows = [dict(zip(("user", "item"), line.split(","), strict=True)) for line in clicks.read_text().split()]
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, rows[1:])).encode()))
    command = shlex.split(json.loads(discreet("try", packed, "--epsilon", "8", "--json")[1])["next"])
    unnamed = [word for word in command[1:] if word not in ("--name", "events")]
    ledger = tmp_path / "one.ledger"
    unnamed[unnamed.index("--ledger") + 1] = ledger
    assert discreet(*unnamed[:-1], tmp_path / "one.discreet")[0] == 0
    assert Ledger.open(ledger).datasets() == ["events"] and "events" in command


def test_try_needs_no_option_for_rows_without_ratings(discreet, clicks):
    code, out, told = discreet("try", clicks, "--epsilon", "8", "--json")
    assert code == 0 and "--implicit" in json.loads(out)["next"].split(), told


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:s3:cr/et@shop:5432/db::sales", "postgresql://ann:PASSWORD@shop:5432/db::sales"),
        (
            "postgresql://shop/db?user=a&password=x&b=1::sales",
            "postgresql://shop/db?user=a&password=PASSWORD&b=1::sales",
        ),
        ("postgresql://ann@shop:5432/db::sales", "postgresql://ann@shop:5432/db::sales"),
    ],
)
def test_a_next_command_has_no_password(address, shown):
    assert shlex.split(command_line("discreet", "fit", address, options={"--out": "m"}))[2] == shown
