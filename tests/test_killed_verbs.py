"""Every verb that writes or spends, killed at its writing calls and repeated, ends as if it had not been."""

import contextlib
import gc
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dead_disk import Killed, dying
from discreet.collect.invitations import code_name
from discreet.collect.opening import campaign_from_bytes
from discreet.privacy.ledger.ledger import Ledger
from discreet.service.admission import submission, unseal
from discreet.service.stores import open_store
from service.senders import letters_of

# Two points always. Slow tests try 200 of them, which are all calls of most commands.
FEW, MOST = 2, 200


def write_ratings(path, seed=1, users=12, items=8):
    rng = np.random.default_rng(seed)
    rows = [
        f"u{user},{item},{1 + (user + item) % 5}"
        for user in range(users)
        for item in rng.choice(items, 4, False)
    ]
    path.write_text("user,item,rating\n" + "\n".join(rows) + "\n")


def collect(folder):
    """Keep reports of a few devices in a store."""
    asks = campaign_from_bytes((folder / "asks").read_bytes())
    store = open_store(str(folder / "reports.db"), asks)
    store.take([submission(asks, unseal(one.body)) for one in letters_of(asks, 12, 4, 4)])
    store.close()


def describe_items(folder):
    """Write interactions with more items, and public features of all of them and of a new one."""
    write_ratings(folder / "many.csv", users=40, items=12)
    rows = [f"{item},{'abc'[item % 3]}" for item in range(13)]
    (folder / "features.csv").write_text("item,genre\n" + "\n".join(rows) + "\n")


class Verb(NamedTuple):
    """A command, the commands before it, and what may differ between two runs of it."""

    command: tuple[str, ...]
    # Commands, or functions of the folder.
    before: tuple[tuple[str, ...] | Callable[[Path], None], ...] = ()
    # Of these files the content is drawn; two runs of the command differ in it.
    drawn: tuple[str, ...] = ()
    # A command whose output was complete when it was killed may reject to write it again.
    may_exist: bool = False
    # If the release was drawn, a repeat is rejected and names this command, which draws nothing.
    completed_by: tuple[str, ...] = ()


BUDGET = ("budget", "book", "--name", "shop", "--epsilon", "9", "--delta", "1e-4")
PAID = ("--ledger", "book", "--name", "shop")
FIT = ("fit", "ratings.csv", "--model", "popularity", "--epsilon", "1", "--out", "model", *PAID)
RICH = (
    "fit", "ratings.csv", "--model", "user-factorization", "--epsilon", "5", "--for-synthesis",
    "--out", "rich",
)  # fmt: skip
YEAR = (
    "follow", "start", "year", "--items", "items.txt", "--implicit", "--releases", "4",
    "--epsilon", "2", *PAID,
)  # fmt: skip
ADD = ("follow", "add", "year", "ratings.csv", "--out", "week")
RELEASE = ("follow", "release", "year", "--out", "week")
SIGN = ("sign", "lists", "--key", "key")
ASKS = ("campaign", "new", "--out", "asks", "--items", "items.txt", "--epsilon", "1", "--name", "films")
SIMULATE = ("campaign", "simulate", "asks", "ratings.csv", "--out", "learned")
LISTS = (
    "fit", "ratings.csv", "--model", "user-factorization", "--epsilon", "5", "--implicit", "--out", "lists",
)  # fmt: skip
EXPORT = ("export", "lists", "--out", "vectors")
VERBS = {
    "budget": Verb(BUDGET, may_exist=True),
    "fit": Verb(FIT, (BUDGET,), ("model",)),
    "fit again": Verb((*FIT, "--force"), (BUDGET, FIT), ("model",)),
    "refit": Verb(
        ("refit", "rich", "ratings.csv", "--out", "next", *PAID), (BUDGET, RICH), ("next", "rich")
    ),
    "federation simulate": Verb(
        (
            "federation", "simulate", "ratings.csv", "--model", "popularity", "--parties", "3",
            "--epsilon", "1", "--out", "model", *PAID,
        ),
        (BUDGET,),
        ("model",),
    ),
    "follow start": Verb(YEAR, (BUDGET,), ("year",), may_exist=True),
    "follow add": Verb(
        ADD, (BUDGET, YEAR), ("year", "week"), True, ("follow", "show", "year", "--out", "week")
    ),
    "follow release": Verb(RELEASE, (BUDGET, YEAR), ("year", "week"), may_exist=True),
    "campaign new": Verb(ASKS, (), ("asks",), may_exist=True),
    "campaign simulate": Verb(SIMULATE, (ASKS,), ("asks", "learned"), may_exist=True),
    "sign": Verb(SIGN, (LISTS, (*SIGN, "--new-key")), ("lists", "key")),
    "sign with a new key": Verb((*SIGN, "--new-key"), (LISTS,), ("lists", "key"), may_exist=True),
    "dossier": Verb(("dossier", "lists", "--out", "papers"), (LISTS,), ("lists", "papers"), may_exist=True),
    "private scores": Verb(
        ("evaluate", "ratings.csv", "--model", "popularity", "--epsilon", "1", "--private", *PAID),
        (BUDGET,),
        ("book.scores.json",),
    ),
    "private scores with a model": Verb(
        (
            "evaluate", "ratings.csv", "--model", "popularity", "--epsilon", "1", "--private", "--out",
            "model", *PAID,
        ),
        (BUDGET,),
        ("book.scores.json", "model"),
    ),
    "export": Verb(EXPORT, (LISTS,), ("lists",), may_exist=True),
    "export again": Verb((*EXPORT, "--force"), (LISTS, EXPORT), ("lists",)),
    "bundle": Verb(("bundle", "lists", "--out", "page"), (LISTS,), ("lists",), may_exist=True),
    "synthesize": Verb(
        ("synthesize", "rich", "--users", "5", "--out", "made.csv", "--force"), (RICH,), ("rich", "made.csv")
    ),
    "shard": Verb(
        ("shard", "ratings.csv", "--out", "shards", "--items", "items.txt", "--scale", "1,5"), may_exist=True
    ),
    "federation init": Verb(
        (
            "federation", "init", "spring", "--parties", "a,b,c", "--model", "popularity", "--implicit",
            "--epsilon", "1", "--items", "items.txt",
        ),
        (),
        ("spring",),
        may_exist=True,
    ),
    "campaign new with invitations": Verb(
        (*ASKS, "--invited", "secret"), (), ("asks", "secret"), may_exist=True
    ),
    "campaign close": Verb(("campaign", "close", "reports.db"), (ASKS, collect), ("asks",)),
    "campaign fit": Verb(
        ("campaign", "fit", "reports.db", "--out", "learned"), (ASKS, collect), ("asks", "learned"), True
    ),
    "campaign backup": Verb(
        ("campaign", "backup", "reports.db", "--out", "copy.db"), (ASKS, collect), ("asks",), True
    ),
    "campaign invite": Verb(
        ("campaign", "invite", "reports.db", "--out", "codes", "--count", "3"),
        ((*ASKS, "--invited", "secret"), collect),
        ("asks", "secret", "codes"),
        may_exist=True,
    ),
    "add items": Verb(
        ("model", "add-items", "lists", "features.csv", "--out", "more"),
        (describe_items, tuple("many.csv" if part == "ratings.csv" else part for part in LISTS)),
        ("lists", "more"),
        may_exist=True,
    ),
    "follow erase": Verb(("follow", "erase", "year", "u1"), (BUDGET, YEAR, ADD), ("year", "week")),
    "erase": Verb(
        ("model", "erase", "book", "--name", "shop", "--out", "statement"),
        (BUDGET, FIT),
        ("model", "statement"),
        may_exist=True,
    ),
    "describe": Verb(("describe", "ratings.csv", "--out", "schema.json"), (), (), True),
    "recommend": Verb(
        ("recommend", "lists", "--all", "ratings.csv", "--out", "all.csv"),
        (LISTS,),
        ("lists", "all.csv"),
        may_exist=True,
    ),
    "compare": Verb(
        ("compare", "ratings.csv", "--models", "popularity", "--epsilons", "1", "--out", "page.html"),
        (),
        ("page.html",),
        may_exist=True,
    ),
    "label": Verb(
        ("model", "label", "lists", "--html", "page.html", "--card", "card.md"),
        (LISTS,),
        ("lists", "page.html", "card.md"),
        may_exist=True,
    ),
}  # fmt: skip


def entries(folder):
    book = folder / "book"
    if not book.exists():
        return []
    found = Ledger.open(book, read_only=True).entries()
    return [(one.dataset, one.what, one.guarantee.epsilon, str(one.state)) for one in found]


def rows_of(path):
    """Return what a store of reports has; invitations are drawn, so they are counted."""
    with contextlib.closing(sqlite3.connect(path)) as store:
        tables = {name: store.execute(f"SELECT * FROM {name}").fetchall() for name in ("facts", "reports")}
        codes = Path("codes")
        known = {name for (name,) in store.execute("SELECT name FROM invitations")}
        assert not codes.exists() or known == {code_name(one) for one in codes.read_text().split()}
    return tables, len(known)


def state(folder, drawn):
    """Return all files, with their content unless it is drawn, and what was spent."""
    content = {
        str(path.relative_to(folder)): None
        if path.name == "book" or str(path.relative_to(folder)).startswith(drawn)
        else rows_of(path)
        if path.suffix == ".db"
        else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return content, entries(folder)


@pytest.fixture
def prepared(tmp_path, discreet, monkeypatch):
    """Return what makes a folder in which a verb can run, and works in it."""
    made: dict[str, object] = {}

    def prepare(verb: Verb, number: int):
        if "folder" not in made:
            made["folder"] = tmp_path / "prepared"
            made["folder"].mkdir()
            monkeypatch.chdir(made["folder"])
            write_ratings(made["folder"] / "ratings.csv")
            (made["folder"] / "items.txt").write_text("\n".join(map(str, range(8))) + "\n")
            for command in verb.before:
                if callable(command):
                    command(made["folder"])
                    continue
                code, _, error = discreet(*command)
                assert code == 0, error
        folder = tmp_path / str(number)
        shutil.copytree(made["folder"], folder)
        monkeypatch.chdir(folder)
        return folder

    return prepare


@pytest.mark.few(4)
@pytest.mark.parametrize("points", [FEW, pytest.param(MOST, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", VERBS)
def test_a_killed_verb_is_repeated_without_a_trace(name, points, prepared, discreet):
    verb = VERBS[name]
    folder = prepared(verb, 0)
    with dying(folder, 0) as disk:
        code, _, error = discreet(*verb.command)
    assert code == 0, error
    whole, calls = state(folder, verb.drawn), disk.count
    assert calls > 1
    rng = np.random.default_rng(44)
    for at in sorted(rng.choice(calls, min(points, calls), replace=False) + 1):
        folder = prepared(verb, int(at))
        with dying(folder, int(at)), pytest.raises(Killed):
            discreet(*verb.command)
        gc.collect()  # a killed process has no open databases
        code, _, error = discreet(*verb.command)
        if code and verb.completed_by:
            code, _, error = discreet(*verb.completed_by)
        where = f"{name}, killed at call {at} of {calls}: {error}"
        assert code == 0 or (verb.may_exist and code == 1), where
        assert state(folder, verb.drawn) == whole, where
        shutil.rmtree(folder)


def test_the_twin_a_command_that_is_not_recorded_pays_twice(prepared, discreet, monkeypatch):
    """Proof that the test above can fail: without the record, a fit that was killed is paid again."""
    monkeypatch.setattr("discreet.privacy.ledger.release.PaidRelease.held", lambda *given: [])
    verb = VERBS["fit"]
    folder = prepared(verb, 0)
    with dying(folder, 0) as disk:
        discreet(*verb.command)
    paid = 1
    for at in range(disk.count, 0, -1):
        folder = prepared(verb, at)
        with dying(folder, at), pytest.raises(Killed):
            discreet(*verb.command)
        discreet(*verb.command)
        paid = len(entries(folder))
        if paid == 2:
            break
    assert paid == 2


def test_another_command_does_not_use_the_spending_of_a_killed_one(prepared, discreet):
    verb = VERBS["fit"]
    folder = prepared(verb, 0)
    with dying(folder, 0) as disk:
        discreet(*verb.command)
    for at in range(disk.count, 0, -1):
        folder = prepared(verb, at)
        with dying(folder, at), pytest.raises(Killed):
            discreet(*verb.command)
        if [one[3] for one in entries(folder)] == ["open"] and not (folder / "model").exists():
            break
    code, _, error = discreet(*(part.replace("1", "2") if part == "1" else part for part in verb.command))
    assert code == 0, error
    assert [one[2:] for one in entries(folder)] == [(1.0, "open"), (2.0, "done")]


# Verbs that record a release in the ledger and write what it drew, with the files that they draw.
RELEASES = {
    "fit": ("model",),
    "fit again": ("model",),
    "refit": ("next",),
    "federation simulate": ("model",),
    "private scores": ("book.scores.json",),
    "private scores with a model": ("book.scores.json", "model"),
}


def mean_copies(folder, names, before):
    """Move away every output of the killed command, as its owner may; return what they contain."""
    found = []
    for name in names:
        path = folder / name
        if path.exists() and path.read_bytes() != before.get(name):
            found.append((name, path.read_bytes()))
            path.rename(folder / f"moved {name}")
            if name in before:
                path.write_bytes(before[name])
    return found


@pytest.mark.parametrize("points", [6, pytest.param(MOST, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RELEASES)
def test_one_spending_never_gives_two_outputs(name, points, prepared, discreet):
    """The owner moves away what a killed command wrote, and repeats the command."""
    verb, names = VERBS[name], RELEASES[name]
    folder = prepared(verb, 0)
    with dying(folder, 0) as disk:
        discreet(*verb.command)
    # The last calls put the outputs in their places.
    for at in range(disk.count, max(disk.count - points, 0), -1):
        folder = prepared(verb, at)
        before = {one: (folder / one).read_bytes() for one in names if (folder / one).exists()}
        paid = len(entries(folder))
        with dying(folder, at), pytest.raises(Killed):
            discreet(*verb.command)
        gc.collect()
        drawn = mean_copies(folder, names, before)
        code, _, error = discreet(*verb.command)
        assert code == 0 or "[budget-exceeded]" in error, error
        drawn += [(one, (folder / one).read_bytes()) for one in names if (folder / one).exists()]
        most = max(len({content for called, content in drawn if called == one}) for one in names)
        assert most <= len(entries(folder)) - paid, f"{name}, killed at call {at} of {disk.count}"
        shutil.rmtree(folder)


def test_two_years_of_one_process_number_are_two_spendings(prepared, discreet):
    """Processes of containers have the same few numbers. One was killed before it spent, one at its end."""
    verb = VERBS["follow start"]
    other = ("follow", "start", "other", *verb.command[3:])
    for number in range(1, 200):
        folder = prepared(verb, number)
        with dying(folder, number), pytest.raises(Killed):
            discreet(*verb.command)
        gc.collect()
        if entries(folder):
            break
    before = number - 1
    for at in range(before, 200):
        folder = prepared(verb, 1000 + at)
        with dying(folder, before), pytest.raises(Killed):
            discreet(*verb.command)
        gc.collect()
        assert not entries(folder) and (folder / ".follow-year").exists()
        with dying(folder, at), pytest.raises(Killed):
            discreet(*other)
        gc.collect()
        if (folder / "other").exists():
            break
    assert [one[3] for one in entries(folder)] == ["open"]
    assert discreet(*verb.command)[0] == 0
    assert [one[3] for one in entries(folder)] == ["open", "done"]
