"""Proposed commands run as printed, and spend from one account for the same users."""

import json
import shlex
import sqlite3
from contextlib import closing

import openpyxl
import pytest

from discreet.data.schema import Schema
from discreet.privacy.ledger.ledger import Ledger
from toy import grouped

NAMED = ("--name", "users", "--ledger", "book")


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = grouped(200)
    lines = [f"u{row},i{item}" for row, item in zip(data.rows(), data.items, strict=True)]
    for month in ("january", "february"):
        (tmp_path / f"{month}.csv").write_text("\n".join(["user,item", *lines]) + "\n")
    return tmp_path


@pytest.fixture
def following(discreet):
    """Return a function that runs a command and returns the next command as printed, and as JSON."""

    def run(words):
        code, out, error = discreet(*words, "--json")
        assert code == 0, error
        return shlex.split(json.loads(out)["next"])[1:]

    return run


def printed(out):
    """Return the command below "Next:"."""
    lines = out.splitlines()
    return shlex.split(lines[lines.index("Next:") + 1])[1:]


def account(words):
    return words[words.index("--name") + 1], words[words.index("--ledger") + 1]


def test_the_main_road_is_one_account(shop, discreet, following):
    code, out, _ = discreet("describe", "january.csv")
    assert code == 0
    fit = following(printed(out))
    assert account(fit) == ("january", "january.ledger")
    code, out, _ = discreet(*fit)
    assert code == 0 and discreet(*printed(out))[0] == 0
    # The next month is about the same users, and the model of the last month stays.
    code, out, _ = discreet("describe", "february.csv")
    second = following(printed(out))
    assert account(second) == account(fit)
    recommend = following(second)
    assert discreet(*recommend)[0] == 0
    scores = [
        "evaluate",
        "february.csv",
        "--implicit",
        "--model",
        "popularity",
        "--epsilon",
        "1",
        "--private",
    ]
    name, ledger = account(second)
    shown = following([*scores, "--name", name, "--ledger", ledger])
    assert discreet(*shown)[0] == 0
    model = recommend[1]
    refit = ("refit", model, "february.csv", "--ledger", ledger, "--out", "last")
    assert discreet(*refit)[0] == 0
    assert Ledger.open(shop / ledger).datasets() == [name]
    assert len(Ledger.open(shop / ledger).entries()) == 4
    assert [path.name for path in shop.glob("*.ledger")] == [ledger]


CHOOSE = ("model", "choose", "--sees", "us", "--hides", "person", "--from", "clicks", "--parties", "1")
PLAN = ("budget", "plan", "--epsilon", "2", "--releases", "2", "--metric", "hr@10")
FOLLOW = (*PLAN, "--follow", "--half-life", "7d")


@pytest.mark.parametrize("command", [CHOOSE, PLAN, FOLLOW], ids=["choose", "plan", "plan --follow"])
def test_advice_spends_from_the_account_that_is_there(command, shop, discreet):
    new = discreet(*command)[1]
    assert account(new.split()) == ("mine", "mine.ledger")
    fit = ("fit", "january.csv", "--implicit", "--model", "popularity", "--epsilon", "1", "--out", "m")
    assert discreet(*fit, *NAMED)[0] == 0
    known = discreet(*command)[1]
    assert "mine.ledger" not in known and " ".join(NAMED) in known


def test_an_account_with_the_name_of_the_data_comes_before_later_ones(shop, discreet, following):
    fit = ("fit", "january.csv", "--implicit", "--model", "popularity", "--epsilon", "1")
    for name, ledger in (("january", "old"), ("users", "new")):
        assert discreet(*fit, "--name", name, "--ledger", ledger, "--out", name)[0] == 0
    assert account(following(["try", "january.csv"])) == ("january", "old")
    assert account(following(["try", "february.csv"])) == ("users", "new")


def test_other_files_are_not_taken_for_ledgers(shop, following):
    (shop / "notes.ledger").write_text("paid 3")
    (shop / "cut.ledger").write_bytes(b"SQLite format 3\0")
    sqlite3.connect(shop / "shop.db").execute("CREATE TABLE budgets (dataset TEXT)").connection.close()
    assert account(following(["try", "january.csv"])) == ("january", "january.ledger")


def test_a_name_that_comes_from_the_file_is_remarked_next_to_other_accounts(shop, discreet):
    fit = ("fit", "january.csv", "--implicit", "--model", "popularity", "--epsilon", "1", "--ledger", "book")
    assert "new account" not in discreet(*fit, "--out", "first")[2]
    again = discreet("fit", "february.csv", *fit[2:], "--out", "second")
    assert again[0] == 0 and "'january'" in again[2] and "'february'" in again[2]
    assert "'january'" not in discreet("fit", "february.csv", *fit[2:], "--name", "new", "--out", "third")[2]


def table_in(folder, kind, rows):
    """Write a table of purchases, some of whose rows can't be read."""
    names = ("user", "item", "rating")
    if kind == "csv":
        lines = [",".join("" if cell is None else str(cell) for cell in row) for row in (names, *rows)]
        (folder / "sales.csv").write_text("\n".join(lines) + "\n")
        return "sales.csv"
    if kind == "jsonl":
        lines = [json.dumps({"user": {"id": u}, "item": {"id": i}, "rating": r}) for u, i, r in rows]
        (folder / "sales.jsonl").write_text("\n".join(lines) + "\n")
        return "sales.jsonl"
    if kind == "guessed.jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        (folder / "sales.jsonl").write_text("\n".join(lines) + "\n")
        return "sales.jsonl"
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in (names, *rows):
            book.active.append(row)
        book.save(folder / "sales.xlsx")
        return "sales.xlsx"
    with closing(sqlite3.connect(folder / "shop.db")) as base:
        base.execute("CREATE TABLE sales (user TEXT, item TEXT, rating REAL)")
        base.execute("CREATE TABLE other (x)")
        base.executemany("INSERT INTO sales VALUES (?, ?, ?)", rows)
        base.commit()
    return "shop.db::sales"


@pytest.mark.parametrize("bad", [None, "rating", "item"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "guessed.jsonl", "xlsx", "db"])
def test_what_describe_proposes_reads_the_file_as_describe_did(kind, bad, tmp_path, monkeypatch, discreet):
    monkeypatch.chdir(tmp_path)
    rows = [(f"u{k}", f"i{j}", 1 + (k + j) % 5) for k in range(150) for j in range(12)]
    if bad is not None:
        rows[30] = ("u2", "i6", None) if bad == "rating" else ("u2", None, 3)
    file = table_in(tmp_path, kind, rows)
    columns = ("--columns", "user=user.id,item=item.id") if kind == "jsonl" else ()
    code, out, error = discreet("describe", file, *columns)
    assert code == 0, error
    assert ("--implicit" in error) == (bad == "rating")
    words = printed(out)
    assert ("--skip-bad-lines" in words) == (bad is not None)
    code, out, error = discreet(*words)
    assert code == 0, error
    # The command that `try` proposes next reads the file in the same way, too.
    code, _, error = discreet(*printed(out))
    assert code == 0, error
    if bad is not None:
        code, _, error = discreet(
            "fit", file, *columns, "--model", "popularity", "--epsilon", "1", "--out", "m"
        )
        assert code == 1 and "--skip-bad-lines" in error and ("--implicit" in error) == (bad == "rating")


@pytest.mark.parametrize(("time", "rule"), [("time", "last"), (None, "mean")])
@pytest.mark.parametrize("repeats", [True, False])
def test_what_describe_proposes_reads_pairs_that_repeat(time, rule, repeats, tmp_path, monkeypatch, discreet):
    monkeypatch.chdir(tmp_path)
    rows = [(f"u{k}", f"i{j}", 1 + (k + j) % 5, 1_700_000_000 + k + j) for k in range(150) for j in range(12)]
    rows += [("u2", "i6", 1, 1_700_000_900)] * repeats
    width = 4 if time else 3
    lines = [",".join(map(str, row[:width])) for row in (("user", "item", "rating", "time"), *rows)]
    (tmp_path / "sales.csv").write_text("\n".join(lines) + "\n")
    code, out, error = discreet("describe", "sales.csv", "--out", "sales.toml")
    assert code == 0, error
    schema = Schema.from_toml((tmp_path / "sales.toml").read_text())
    # Whether pairs repeat was read from the data, so the schema lists its rule as guessed.
    assert (schema.duplicates, "duplicates" in schema.guessed) == (rule if repeats else "refuse", repeats)
    code, _, error = discreet(*printed(out))
    assert code == 0, error
    words = printed(discreet("describe", "sales.csv")[1])
    assert words[2:] == (["--duplicates", rule] if repeats else [])
    code, out, error = discreet(*words)
    assert code == 0, error
    code, _, error = discreet(*printed(out))
    assert code == 0, error
