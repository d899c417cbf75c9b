"""The ledger pays first, never overspends, never forgets, and leaves other people's files alone."""

import json
import math
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, NonPrivateDpEvent
from rich.console import Console

from discreet.cli.output.ledger import ledger_tables
from discreet.core import sqlite
from discreet.core.checks import BudgetError, FileError, ParameterError, PrivacyError
from discreet.privacy.accounting.accountant import epsilon_at, gaussian_epsilon
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.chain import ANCHORS, Anchor, Chain, latest_anchor, record_place
from discreet.privacy.ledger.ledger import Amount, EntryState, Ledger, report_json
from discreet.testing import refuses
from snapshot import page_text

PROMISE = Guarantee(
    epsilon=0.25,
    delta=1e-7,
    unit=Unit.USER,
    neighbors=Neighbors.ADD_OR_REMOVE,
    trust=Trust.JOINT,
    basis=Basis.PROVED,
    proof="proofs/biases.md",
)
LIMIT = replace(PROMISE, epsilon=1.0, delta=1e-6)
PURE = replace(PROMISE, delta=0.0)
NOT_PRIVATE = replace(PROMISE, epsilon=math.inf)


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return Ledger.in_memory() if request.param == "memory" else Ledger.open(tmp_path / "ledger.db")


@pytest.fixture(params=["memory", "file"])
def told(request, tmp_path):
    """Return a ledger that lets names without a budget spend beside others."""
    if request.param == "memory":
        return Ledger.in_memory(allow_unbudgeted=True)
    return Ledger.open(tmp_path / "ledger.db", allow_unbudgeted=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def printed(ledger):
    console = Console(width=300)
    with console.capture() as capture:
        console.print(ledger_tables(ledger))
    return capture.get()


def test_spending_is_recorded_before_the_body_and_closed_after_it(ledger):
    with ledger.spend("films", PROMISE, what="biases") as entry:
        assert entry.state is EntryState.OPEN
        assert ledger.entries() == [entry]
        assert ledger.spent("films") == Amount(0.25, 1e-7)
    (done,) = ledger.entries("films")
    assert done == replace(entry, state=EntryState.DONE)
    assert (done.what, done.dataset, done.process) == ("biases", "films", os.getpid())
    assert done.guarantee == PROMISE


def test_a_failure_is_paid(ledger):
    with pytest.raises(KeyboardInterrupt), ledger.spend("films", PROMISE, what="biases"):
        raise KeyboardInterrupt
    (entry,) = ledger.entries()
    assert entry.state == "failed"
    assert ledger.spent("films") == Amount(0.25, 1e-7)


def test_paying_does_not_wait_for_the_with_statement(ledger):
    ledger.spend("films", PROMISE, what="biases")
    assert [entry.state for entry in ledger.entries()] == ["open"]
    assert ledger.spent("films").epsilon == 0.25


def test_a_budget_is_kept_to_the_last_bit(ledger):
    ledger.set_budget("films", LIMIT)
    for _ in range(4):
        with ledger.spend("films", PROMISE, what="biases"):
            pass
    assert ledger.remaining("films").epsilon == 0
    assert ledger.remaining("films").delta == pytest.approx(6e-7)
    for more in (PROMISE, replace(PROMISE, epsilon=1e-9)):
        with refuses("budget-exceeded", dataset="films", delta=1e-07):
            ledger.spend("films", more, what="biases")
    assert len(ledger.entries()) == 4


def test_ten_tenths_make_one(ledger):
    ledger.set_budget("films", replace(PURE, epsilon=1.0))
    for _ in range(10):
        ledger.spend("films", replace(PURE, epsilon=0.1), what="tenth")
    with pytest.raises(BudgetError):
        ledger.spend("films", replace(PURE, epsilon=1e-6), what="crumb")
    assert 1 <= ledger.spent("films").epsilon < 1 + 1e-12


def test_delta_is_a_budget_of_its_own(ledger):
    ledger.set_budget("films", replace(LIMIT, delta=1.5e-7))
    ledger.spend("films", PROMISE, what="first")
    with refuses("budget-exceeded", dataset="films", epsilon=0.25, delta=1e-07) as caught:
        ledger.spend("films", PROMISE, what="second")
    assert caught.value.left.endswith("delta=5e-08")
    ledger.spend("films", PURE, what="pure")
    ledger.set_budget("songs", replace(LIMIT, delta=0.0))
    with pytest.raises(BudgetError):
        ledger.spend("songs", PROMISE, what="not pure")


def test_a_name_without_a_budget_is_refused_beside_one_that_has_one(ledger):
    ledger.spend("songs", PROMISE, what="before there was any budget")
    ledger.set_budget("films", LIMIT)
    for act in (ledger.spend, lambda *given, what: ledger.price(*given)):
        with refuses("unbudgeted", dataset="songs", budgeted=("films",)):
            act("songs", replace(PROMISE, epsilon=20.0), what="biases")
    assert len(ledger.entries()) == 1 and ledger.budgeted() == ["films"]
    ledger.set_budget("songs", LIMIT)
    ledger.spend("songs", PROMISE, what="now it has one")


def test_data_sets_have_budgets_of_their_own(told):
    ledger = told
    ledger.set_budget("films", LIMIT)
    ledger.spend("songs", replace(PROMISE, epsilon=99.0), what="unlimited")
    ledger.spend("films", PROMISE, what="biases")
    assert ledger.datasets() == ["films", "songs"]
    assert ledger.remaining("songs") is None and ledger.budget("songs") is None
    assert ledger.remaining("films").epsilon == 0.75
    assert ledger.spent("books") == Amount(0, 0) and ledger.entries("books") == []


@pytest.mark.parametrize(
    "other",
    [
        {"unit": Unit.RATING},
        {"trust": Trust.CENTRAL},
        {"neighbors": Neighbors.REPLACE},
        {"epsilon": math.inf},
    ],
    ids=str,
)
def test_what_the_budget_cannot_weigh_is_refused(told, other):
    ledger = told
    ledger.set_budget("films", LIMIT)
    with pytest.raises(PrivacyError) as caught:
        ledger.spend("films", replace(PROMISE, **other), what="biases")
    assert not isinstance(caught.value, BudgetError)
    assert ledger.entries() == []
    free = ledger.spend("songs", replace(PROMISE, **other), what="biases")
    assert free.entry.guarantee == replace(PROMISE, **other)
    with refuses("spending-not-counted", dataset="songs"):
        ledger.set_budget("songs", LIMIT)


def test_privacy_definitions_do_not_add(ledger):
    ledger.spend("films", PROMISE, what="user")
    ledger.spend("films", replace(PROMISE, unit=Unit.RATING), what="cell")
    with refuses("several-definitions", dataset="films", count=2):
        ledger.spent("films")
    assert ledger.spent("films", PROMISE.definition) == Amount(0.25, 1e-7)
    assert ledger.spent("films", (Unit.VALUE, *PROMISE.definition[1:])) == Amount(0, 0)
    assert len(ledger.spent_by_definition("films")) == 2


def test_a_budget_is_lowered_freely_and_raised_with_a_reason(ledger):
    ledger.set_budget("films", LIMIT)
    ledger.spend("films", PROMISE, what="biases")
    ledger.set_budget("films", replace(LIMIT, epsilon=0.1))
    assert ledger.remaining("films").epsilon == 0
    with refuses("reason-needed"):
        ledger.set_budget("films", LIMIT)
    with refuses("budget-is-fixed", dataset="films"):
        ledger.set_budget("films", replace(LIMIT, unit=Unit.RATING), reason="why not")
    ledger.set_budget("films", LIMIT, reason="agreed")
    assert ledger.remaining("films").epsilon == 0.75
    assert [budget.reason for budget in ledger.budgets("films")] == ["", "", "agreed"]
    with refuses("needs-epsilon"):
        ledger.set_budget("songs", NOT_PRIVATE)


def test_simulated_noise_is_marked_and_paid(ledger):
    ledger.set_budget("films", LIMIT)
    ledger.spend("films", PROMISE.as_simulated(), what="experiment")
    assert ledger.entries()[0].guarantee.simulated
    assert ledger.remaining("films").epsilon == 0.75


@pytest.mark.parametrize("name", ["", "  ", None, 7])
def test_names_must_be_texts(ledger, name):
    for act in (
        lambda: ledger.spend(name, PROMISE, what="biases"),
        lambda: ledger.spend("films", PROMISE, what=name),
        lambda: ledger.set_budget(name, LIMIT),
    ):
        with pytest.raises(ParameterError):
            act()
    assert ledger.datasets() == []


def test_names_are_data_and_not_sql(ledger):
    name = "films'); DROP TABLE spendings; --[bold]"
    ledger.spend(name, PROMISE, what=name)
    assert ledger.datasets() == [name] and ledger.entries(name)[0].what == name
    assert name in printed(ledger)


def test_events_let_a_reader_recount(ledger):
    ledger.spend("films", PROMISE, what="means", events=[LaplaceDpEvent(4.0), GaussianDpEvent(5.0)])
    ledger.spend("films", PROMISE, what="factors", events=[GaussianDpEvent(5.0)])
    total = epsilon_at([LaplaceDpEvent(4.0), GaussianDpEvent(5.0), GaussianDpEvent(5.0)], 1e-6)
    assert ledger.recounted("films", 1e-6) == total > gaussian_epsilon(5.0, 1e-6)
    ledger.spend("films", PROMISE, what="silent")
    assert ledger.recounted("films", 1e-6) is None
    with pytest.raises(PrivacyError):
        ledger.spend("films", PROMISE, what="leak", events=[NonPrivateDpEvent()])
    assert len(ledger.entries()) == 3


def test_report_says_what_was_spent_on_what_and_what_is_left(told, snapshot):
    ledger = told
    snapshot(printed(ledger))
    ledger.set_budget("films", LIMIT)
    snapshot(printed(ledger))
    ledger.spend("films", PROMISE.as_simulated(), what="biases")
    ledger.spend("songs", NOT_PRIVATE, what="als")
    snapshot(printed(ledger))
    record = json.loads(json.dumps(report_json(ledger), allow_nan=False))
    films, songs = record["datasets"]
    assert films["remaining"] == {"epsilon": 0.75, "delta": pytest.approx(9e-7)}
    assert songs["spent"][0]["epsilon"] == "inf" and songs["remaining"] is None
    assert films["entries"][0]["guarantee"]["simulated"] is True


# ---- the file ---------------------------------------------------------------------------------------------


def test_the_file_is_private_whole_and_alone(path):
    Ledger.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["ledger.db"]


def test_the_file_remembers(path):
    first = Ledger.open(path)
    first.set_budget("films", LIMIT)
    first.spend("films", PROMISE, what="biases")
    again = Ledger.open(str(path))
    assert again.entries() == first.entries() and again.remaining("films") == first.remaining("films")
    assert repr(path.name)[1:-1] in repr(again) and "memory" in repr(Ledger.in_memory())


def test_a_reader_sees_everything_and_changes_nothing(path):
    with Ledger.open(path) as writer:
        writer.spend("films", PROMISE, what="biases")
    before, beside = path.read_bytes(), sorted(path.parent.iterdir())
    with Ledger.open(path, read_only=True) as reader:
        assert reader.spent("films").epsilon == 0.25
        for act in (
            lambda: reader.spend("films", PROMISE, what="more"),
            lambda: reader.set_budget("films", LIMIT),
        ):
            with refuses("read-only-ledger"):
                act()
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == beside


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_reader_needs_no_right_to_write(path):
    Ledger.open(path).spend("films", PROMISE, what="biases")
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert Ledger.open(path, read_only=True).spent("films").epsilon == 0.25
        with refuses("not-a-ledger"):
            Ledger.open(path).spend("films", PROMISE, what="more")
    finally:
        path.parent.chmod(0o700)


def test_missing_files_and_folders(path):
    with refuses("no-such-file"):
        Ledger.open(path, read_only=True)
    assert not path.exists()
    with refuses("cannot-write"):
        Ledger.open(path.parent / "nowhere" / "ledger.db")
    with refuses("not-a-ledger"):
        Ledger.open(path.parent)
    ledger = Ledger.open(path)
    path.unlink()
    with pytest.raises(FileError):
        ledger.spend("films", PROMISE, what="biases")
    assert not path.exists(), "a vanished ledger must not be replaced by an empty one"


def a_ledger(path):
    ledger = Ledger.open(path)
    for name in ("films", "songs"):
        ledger.spend(name, PROMISE, what="biases")
    return path.read_bytes()


def foreign_sqlite(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.execute("INSERT INTO recipes VALUES ('soup')")
    connection.commit()
    connection.close()
    return path.read_bytes()


def altered(path, statement):
    a_ledger(path)
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    return path.read_bytes()


BROKEN = {
    "empty": lambda path: b"",
    "text": lambda path: b"user,item,rating\n" * 100,
    "short": lambda path: b"SQLite format 3\0",
    "random": lambda path: bytes((i * 7919 + 13) % 251 for i in range(20_000)),
    "another application's": foreign_sqlite,
    "another version": lambda path: altered(path, "PRAGMA user_version = 99"),
    "truncated in the header": lambda path: a_ledger(path)[:100],
    "truncated in a page": lambda path: a_ledger(path)[:6000],
    "truncated at a page": lambda path: a_ledger(path)[:8192],
    "scrambled": lambda path: (raw := a_ledger(path))[:4096] + bytes(255 - byte for byte in raw[4096:]),
    "without its triggers": lambda path: altered(path, "DROP TRIGGER spendings_no_delete"),
    "with a strange table": lambda path: altered(path, "CREATE TABLE extra (x)"),
    "without a table": lambda path: altered(path, "DROP TABLE outcomes"),
}


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_or_foreign_file_is_refused_and_left_untouched(path, make, read_only):
    raw = make(path)
    path.write_bytes(raw)
    beside = sorted(path.parent.iterdir())
    with pytest.raises(FileError) as caught:
        Ledger.open(path, read_only=read_only)
    assert caught.value.code in ("ledger-damaged", "not-a-ledger")
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == raw
    assert sorted(path.parent.iterdir()) == beside


def test_a_pipe_is_not_waited_for(path):
    os.mkfifo(path)
    with refuses("not-a-ledger"):
        Ledger.open(path)


def test_a_file_swapped_later_is_refused_as_well(path):
    ledger = Ledger.open(path)
    raw = BROKEN["text"](path)
    path.write_bytes(raw)
    with pytest.raises(FileError):
        ledger.spend("films", PROMISE, what="biases")
    assert path.read_bytes() == raw


def test_rows_that_make_no_sense_are_refused(path):
    Ledger.open(path)
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO spendings VALUES (1, 'noon', 'films', 'x', 1, 0, 'a/b/c', '{}', '[]', 1)")
    connection.commit()
    connection.close()
    ledger = Ledger.open(path)
    for ask in (ledger.entries, lambda: ledger.spent("films")):
        with refuses("ledger-damaged"):
            ask()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM spendings",
        "UPDATE spendings SET epsilon = 0",
        "INSERT OR REPLACE INTO spendings SELECT * FROM spendings",
        "DELETE FROM budgets",
        "UPDATE budgets SET reason = 'because'",
        "INSERT OR REPLACE INTO budgets SELECT id, time, dataset, guarantee, 'because', process FROM budgets",
        "DELETE FROM outcomes",
        "UPDATE outcomes SET state = 'failed'",
        "INSERT OR REPLACE INTO outcomes SELECT id, time, 'failed' FROM outcomes",
    ],
)
def test_rows_can_be_added_and_nothing_else(path, statement):
    ledger = Ledger.open(path)
    ledger.set_budget("films", LIMIT)
    with ledger.spend("films", PROMISE, what="biases"):
        pass
    before = ledger.entries(), ledger.budgets("films")
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError) as caught:
        connection.execute(statement)
    assert caught.value.sqlite_errorname == "SQLITE_CONSTRAINT_TRIGGER"
    connection.close()
    assert (ledger.entries(), ledger.budgets("films")) == before


def test_an_outcome_that_cannot_be_written_leaves_the_entry_open(path):
    ledger = Ledger.open(path)
    with ledger.spend("films", PROMISE, what="biases"):
        path.rename(path.with_suffix(".moved"))
    path.with_suffix(".moved").rename(path)
    assert [entry.state for entry in ledger.entries()] == ["open"]


# ---- several at once --------------------------------------------------------------------------------------


# One process that imports the package once and then becomes many: each scenario forks real processes.
CROWD = """
import json, os, signal, sys, time
from pathlib import Path
from discreet.core.checks import BudgetError, PrivacyError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Ledger

folder, promise = Path(sys.argv[1]), Guarantee.from_json(json.loads(sys.argv[2]))

def fork(act, *arguments):
    child = os.fork()
    if child:
        return child
    code = 255
    try:
        code = act(*arguments)
    finally:
        os._exit(code)

def code_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def race(path):
    while not (folder / "start").exists():
        time.sleep(0.001)
    ledger, paid = Ledger.open(path), 0
    for _ in range(6):
        try:
            with ledger.spend("films", promise, what="race"):
                paid += 1
        except BudgetError:
            pass
    return paid

def sleep_inside(path):
    with Ledger.open(path).spend("films", promise, what="biases"):
        (folder / "paid").touch()
        time.sleep(600)

def spend_in_both(shared, private):
    shared.spend("films", promise, what="child")
    try:
        private.spend("films", promise, what="child")
    except PrivacyError:
        return 7
    return 1

racers = [fork(race, folder / "race.db") for _ in range(8)]
creators = [fork(race, folder / "created.db") for _ in range(4)]
(folder / "start").touch()
results = {"paid": [code_of(child) for child in racers], "created": [code_of(child) for child in creators]}

sleeper = fork(sleep_inside, folder / "killed.db")
while not (folder / "paid").exists():
    time.sleep(0.001)
os.kill(sleeper, signal.SIGKILL)
results["killed"] = [sleeper, code_of(sleeper)]

shared, private = Ledger.open(folder / "forked.db"), Ledger.in_memory()
shared.spend("films", promise, what="parent")
results["forked"] = code_of(fork(spend_in_both, shared, private))
shared.spend("films", promise, what="parent again")
private.spend("films", promise, what="parent")
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    folder = tmp_path_factory.mktemp("crowd")
    Ledger.open(folder / "race.db").set_budget("films", replace(PURE, epsilon=1.0))
    promise = json.dumps(replace(PURE, epsilon=0.05).to_json())
    command = [sys.executable, "-c", CROWD, str(folder), promise]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return folder, json.loads(done.stdout)


def test_eight_processes_never_overspend(source):
    folder, results = source
    ledger = Ledger.open(folder / "race.db", read_only=True)
    assert sum(results["paid"]) == len(ledger.entries()) == 20, "48 were asked for, 20 fit"
    assert ledger.spent("films").epsilon <= 1 + 1e-12
    assert {entry.state for entry in ledger.entries()} == {EntryState.DONE}
    assert len({entry.process for entry in ledger.entries()}) == sum(paid > 0 for paid in results["paid"]) > 3


def test_several_processes_may_create_the_same_file(source):
    folder, results = source
    assert results["created"] == [6] * 4, "without a budget everybody may spend"
    assert len(Ledger.open(folder / "created.db").entries()) == 24
    assert not [item.name for item in folder.iterdir() if item.name.startswith(".ledger-")]


def test_kill_nine_inside_the_body_leaves_it_open_and_paid(source):
    folder, results = source
    ledger = Ledger.open(folder / "killed.db")
    (entry,) = ledger.entries()
    assert [entry.process, -signal.SIGKILL] == results["killed"]
    assert entry.state == "open"
    assert ledger.spent("films") == Amount(0.05, 0.0)


def test_a_fork_shares_a_file_and_not_a_memory(source):
    folder, results = source
    assert results["forked"] == 7, "the child's copy of the ledger in memory refused"
    entries = Ledger.open(folder / "forked.db").entries()
    assert [entry.what for entry in entries] == ["parent", "child", "parent again"]
    assert entries[0].process == entries[2].process != entries[1].process


FORK_IN_AN_OPERATION = """
import os, threading
from discreet.privacy.ledger import sqlite_file as store

ended = threading.Event()

def end():
    ended.set()
    store._gate.release()

store._gate.acquire()
threading.Timer(0.3, end).start()
child = os.fork()
is_right = ended.is_set() and store._gate.acquire(blocking=False)
if child == 0:
    os._exit(0 if is_right else 1)
assert is_right and os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_for_the_operation_of_another_thread():
    """Afterwards parent and child may both begin an operation."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK_IN_AN_OPERATION], check=True, timeout=300)


KILLED_WRITER = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
row = "INSERT INTO budgets VALUES (NULL, '2026-01-01', 'films', ?, 'half written', 1)"
for number in range(2000):
    connection.execute(row, ("x" * 500,))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_nine_inside_the_write_leaves_the_ledger_readable(path):
    ledger = Ledger.open(path)
    ledger.spend("films", PROMISE, what="before")
    killed = subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    journal = path.with_name("ledger.db-journal")
    assert journal.exists() and journal.stat().st_size > 0, "the twin: there is something to roll back"
    reader = Ledger.open(path, read_only=True)
    assert [entry.what for entry in reader.entries()] == ["before"]
    assert reader.budgets("films") == []
    ledger.spend("films", PROMISE, what="after")
    assert [entry.what for entry in reader.entries()] == ["before", "after"]


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_ledger_in_use_is_waited_for_and_said_so(path, how, monkeypatch, capsys):
    monkeypatch.setattr(sqlite, "SILENCE_SECONDS", 0.05)
    monkeypatch.setattr(sqlite, "PATIENCE_SECONDS", 0.3)
    ledger = Ledger.open(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute(f"BEGIN {how}")
    with refuses("ledger-in-use"):
        ledger.spend("films", PROMISE, what="biases")
    assert capsys.readouterr().err.count("waiting for") == 1
    monkeypatch.setattr(sqlite, "PATIENCE_SECONDS", 60.0)
    freed = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
    freed.start()
    ledger.spend("films", PROMISE, what="biases")
    freed.join()
    other.close()
    assert len(ledger.entries()) == 1


def test_threads_never_overspend(ledger):
    ledger.set_budget("films", replace(PURE, epsilon=1.0))
    refused = []

    def work():
        for _ in range(5):
            try:
                with ledger.spend("films", replace(PURE, epsilon=0.1), what="race"):
                    pass
            except BudgetError as error:
                refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries()) == 10 and len(refused) == 10


def test_a_budget_may_be_a_number_as_on_the_command_line(ledger):
    ledger.set_budget("shop", 3.0)
    assert ledger.budget("shop").guarantee == replace(LIMIT, epsilon=3.0, delta=1e-5, proof="")
    ledger.set_budget("shop", epsilon=2.0, delta=1e-6)
    assert ledger.budget("shop").guarantee == replace(LIMIT, epsilon=2.0, proof="")
    local = replace(PROMISE, trust=Trust.LOCAL)
    ledger.set_budget("devices", local)
    ledger.set_budget("devices", 0.1, delta=0.0)
    assert ledger.budget("devices").guarantee.definition == local.definition
    for given in ({}, {"guarantee": 1.0, "epsilon": 1.0}):
        with refuses("two-epsilons"):
            ledger.set_budget("shop", **given)
    with refuses("two-epsilons"):
        ledger.set_budget("shop", LIMIT, delta=1e-6)
    with refuses("needs-epsilon"):
        ledger.set_budget("shop", math.inf)


def test_a_ledger_says_in_one_line_what_was_spent(told, tmp_path, snapshot):
    assert repr(told).endswith(": nothing spent>")
    told.set_budget("shop", 3.0)
    for name, promise in (("shop", PROMISE), ("shop", PROMISE), ("films", NOT_PRIVATE), ("songs", PURE)):
        with told.spend(name, promise, what="biases"):
            pass
    snapshot(repr(told))
    with told.spend("songs", replace(PROMISE, trust=Trust.LOCAL), what="x"), told.spend("z", PURE, what="x"):
        pass
    snapshot(repr(told))
    snapshot(page_text(told._repr_html_()))
    gone = Ledger.open(tmp_path / "gone.db")
    (tmp_path / "gone.db").write_text("no ledger")
    snapshot(repr(gone))


def test_the_latest_place_of_a_chain_is_known_and_no_earlier_one_is_accepted():
    connection = sqlite3.connect(":memory:")
    for table in ANCHORS:
        connection.execute(table)
    assert latest_anchor(connection, "a") == Anchor()
    events = [b"begun", b"drawn", b"sent"]
    for count in (1, 3, 3):
        record_place(connection, "a", Chain(events[:count]))
        assert latest_anchor(connection, "a") == Chain(events).place(count)
    with refuses("older-copy", chain="a", known=3, here=2):
        record_place(connection, "a", Chain(events[:2]))
    # A copy that went on from an earlier place has more events, and not those that are recorded.
    with refuses("older-copy", chain="a", known=3, here=4):
        record_place(connection, "a", Chain([*events[:2], b"other", b"more"]))
    assert latest_anchor(connection, "b") == Anchor()
