"""A ledger beside backups that drop its locks, and on disks that lose a bit."""

import struct
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from discreet.core import sqlite
from discreet.core.checks import BudgetError, FileError
from discreet.privacy.accounting.events import pure_event
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses

PROMISE = Guarantee(
    epsilon=0.125,
    unit=Unit.USER,
    neighbors=Neighbors.ADD_OR_REMOVE,
    trust=Trust.JOINT,
    basis=Basis.PROVED,
    proof="proofs/biases.md",
)

IMPATIENT = """
import sys
from pathlib import Path
from discreet.privacy.ledger import locking
from discreet.privacy.ledger.ledger import Ledger
locking.PATIENCE_SECONDS = 0.5
try:
    ledger = Ledger.open(Path(sys.argv[1]))
    promise = ledger.budget("films").guarantee
    ledger.spend("films", promise, what="beside")
except Exception as error:
    sys.exit(f"code {error.code}")
"""

SPENDER = """
import sys, threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from discreet.core.checks import BudgetError
from discreet.privacy.ledger.ledger import Ledger
path = Path(sys.argv[1])
ledger, done = Ledger.open(path), threading.Event()
promise = replace(ledger.budget("films").guarantee, epsilon=0.125)

def back_up():
    while not done.is_set():
        path.open("rb").close()

thread = threading.Thread(target=back_up)
thread.start()
try:
    while True:
        ledger.spend("films", promise, what="race")
        assert ledger.remaining("films").epsilon >= 0
except BudgetError:
    pass
finally:
    done.set()
"""


@pytest.fixture
def path(tmp_path):
    with Ledger.open(tmp_path / "films.ledger") as ledger:
        ledger.set_budget("films", replace(PROMISE, epsilon=1.0))
    return tmp_path / "films.ledger"


def test_a_backup_by_the_paying_process_lets_nobody_in(path):
    ledger = Ledger.open(path)
    with ledger._store.writing():
        # This drops every lock that SQLite holds for this process.
        path.open("rb").close()
        other = subprocess.run(
            [sys.executable, "-c", IMPATIENT, str(path)], capture_output=True, text=True, check=False
        )
    assert other.returncode != 0 and other.stderr.split() == ["code", "ledger-in-use"]
    assert ledger.entries() == []


@pytest.mark.thorough
def test_processes_with_backups_never_overspend(path):
    spenders = [subprocess.Popen([sys.executable, "-c", SPENDER, str(path)]) for _ in range(4)]
    assert [spender.wait(300) for spender in spenders] == [0] * 4
    ledger = Ledger.open(path)
    assert len(ledger.entries()) == 8 and ledger.remaining("films").epsilon == 0.0


def test_a_lock_file_that_was_removed_is_made_again(path):
    ledger = Ledger.open(path)
    ledger.spend("films", PROMISE, what="first")
    path.with_name("films.ledger.lock").unlink()
    ledger.spend("films", PROMISE, what="second")
    assert len(ledger.entries()) == 2


def damaged(path, old, new):
    raw = path.read_bytes()
    place = raw.rindex(old)
    path.write_bytes(raw[:place] + new + raw[place + len(old) :])


def test_a_bit_lost_in_a_row_is_not_believed(path):
    with Ledger.open(path) as ledger:
        ledger.spend("films", PROMISE, what="biases")
    whole = path.read_bytes()
    changes = [
        (struct.pack(">d", 0.125), struct.pack(">d", 0.0625)),
        (b'"epsilon": 0.125', b'"epsilon": 0.025'),
        (b"user/add-or-remove", b"cell/add-or-remove"),
        (b"filmsbiases", b"gilmsbiases"),
        (b"filmsbiases", b"films\xffiases"),
    ]
    for old, new in changes:
        path.write_bytes(whole)
        damaged(path, old, new)
        with pytest.raises(FileError) as caught:
            Ledger.open(path).spent("films")
            Ledger.open(path).entries()
            Ledger.open(path).spend("films", PROMISE, what="again")
        assert caught.value.code in ("ledger-damaged", "not-a-ledger")
    path.write_bytes(whole)
    assert Ledger.open(path).spent("films").epsilon == 0.125


def bits_of(raw, texts):
    """Yield copies of a file with one bit of these texts lost."""
    for text in texts:
        place = raw.rindex(text)
        for byte in range(place, place + len(text)):
            for bit in (0, 5):
                yield raw[:byte] + bytes([raw[byte] ^ 1 << bit]) + raw[byte + 1 :]


def test_a_bit_lost_in_any_column_is_not_believed(path):
    with Ledger.open(path) as ledger:
        ledger.set_budget("films", replace(PROMISE, epsilon=2.0), reason="one more year")
        ledger.spend("films", PROMISE, what="biases", events=[pure_event(0.125)])
        (entry,) = ledger.entries()
    whole = path.read_bytes()
    columns = [b"biases", entry.time.isoformat().encode(), b'[{"kind"', b"0.125}]", b"one more year"]
    tried = 0
    for raw in bits_of(whole, columns):
        path.write_bytes(raw)
        tried += 1
        with refuses("ledger-damaged"):
            (Ledger.open(path).entries(), Ledger.open(path).budget("films"))
    assert tried > 100
    path.write_bytes(whole)
    assert Ledger.open(path).entries() == [entry]


def test_rows_without_a_checksum_are_read_and_new_ones_have_one(tmp_path):
    path = tmp_path / "old.ledger"
    path.write_bytes((Path(__file__).parents[1] / "formats/v0.1/spent.ledger").read_bytes())
    with Ledger.open(path) as ledger:
        before = len(ledger.entries("toy"))
        assert before and b'"row": "' not in path.read_bytes()
        ledger.spend("toy", replace(ledger.budget("toy").guarantee, epsilon=0.125, delta=1e-7), what="new")
        assert b'"row": "' in path.read_bytes() and len(ledger.entries("toy")) == before + 1


def test_a_process_that_read_a_damaged_row_does_not_wait_for_itself(path, monkeypatch):
    """An error that is kept must not keep a statement, and so a lock, half way."""
    monkeypatch.setattr(sqlite, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(sqlite, "SILENCE_SECONDS", 0.1)
    ledger = Ledger.open(path)
    for _ in range(3):
        ledger.spend("films", PROMISE, what="biases")
    whole = path.read_bytes()
    damaged(path, b'"epsilon": 0.125', b'"epsilon": 0.025')
    kept, pay = [], partial(ledger.spend, "films", PROMISE, what="biases")
    for ask in (ledger.entries, partial(ledger.spent, "films"), pay):
        with refuses("ledger-damaged") as error:
            ask()
        kept.append(error)
    with path.open("r+b") as file:
        file.write(whole)
    assert pay() and len(ledger.entries()) == 4


def test_the_budget_still_binds(path):
    with Ledger.open(path) as ledger, pytest.raises(BudgetError):
        ledger.spend("films", replace(PROMISE, epsilon=2.0), what="too much")
