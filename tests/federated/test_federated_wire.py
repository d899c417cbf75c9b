import contextlib
import json
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.federated.journal import Journal
from discreet.federated.wire import PREFIX_BYTES, Message, Refusal, Refused, decode, encode, message_bytes
from discreet.testing import refuses

MESSAGE = Message(
    kind="votes",
    run="run",
    step=3,
    sender="p1",
    fields={"noise": 0.5, "text": "a", "yes": True},
    arrays={"a": np.arange(6.0).reshape(2, 3), "b": np.arange(3), "c": np.zeros((0, 4))},
)


def packed(header, body=b"", version=1, magic=b"DFED"):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<4sBIQ", magic, version, len(text), len(body)) + text + body


def header(**changes):
    return {"kind": "k", "run": "r", "step": 0, "sender": "s", "fields": {}, "arrays": []} | changes


def reason(raw, **options):
    with pytest.raises(Refused) as caught:
        decode(raw, **options)
    return caught.value.reason


def test_what_was_written_is_read():
    read = decode(encode(MESSAGE))
    assert (read.kind, read.run, read.step, read.sender) == ("votes", "run", 3, "p1")
    assert read.fields == MESSAGE.fields
    assert read.digest == MESSAGE.digest
    for name, array in MESSAGE.arrays.items():
        assert np.array_equal(read.arrays[name], array)
        assert read.arrays[name].dtype == array.dtype


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", Refusal.MALFORMED),
        (packed(header(), magic=b"DSCR"), Refusal.MALFORMED),
        (packed(header(), version=2), Refusal.WRONG_VERSION),
        (packed(b"{"), Refusal.MALFORMED),
        (packed(b"[" * 60_000), Refusal.MALFORMED),
        (packed(b"[]"), Refusal.MALFORMED),
        (packed(header(kind=7)), Refusal.MALFORMED),
        (packed(header(sender="")), Refusal.MALFORMED),
        (packed(header(run="r" * 1000)), Refusal.MALFORMED),
        (packed(header(step=True)), Refusal.MALFORMED),
        (packed(header(step=-2)), Refusal.MALFORMED),
        (packed(header(fields={"x": []})), Refusal.MALFORMED),
        (packed(header(fields={"x": None})), Refusal.MALFORMED),
        (packed(b'{"kind":"k","run":"r","step":0,"sender":"s","fields":{"x":NaN}}'), Refusal.NOT_FINITE),
        (packed(json.dumps(header(fields={"x": 0})).replace("0}", "1e999}").encode()), Refusal.NOT_FINITE),
        (packed(header(arrays=[["a", "|O", [1]]]), bytes(8)), Refusal.MALFORMED),
        (packed(header(arrays=[["a", "<f8", [2]]]), bytes(8)), Refusal.MALFORMED),
        (packed(header(arrays=[["a", "<f8", [2**39, 2**39]]]), bytes(8)), Refusal.MALFORMED),
        (packed(header(arrays=[["a", "<f8", [-1]]])), Refusal.MALFORMED),
        (packed(header(arrays=[["a", "<f8", [1]], ["a", "<f8", [1]]]), bytes(16)), Refusal.MALFORMED),
        (packed(header(), bytes(8)), Refusal.MALFORMED),
    ],
)
def test_strangers_are_refused_with_a_reason(raw, expected):
    assert reason(raw) is expected


def test_a_length_is_not_believed():
    raw = struct.pack("<4sBIQ", b"DFED", 1, 10, 2**60)
    assert reason(raw) is Refusal.OVERSIZED
    with pytest.raises(Refused):
        message_bytes(struct.pack("<4sBIQ", b"DFED", 1, 2**31, 0))
    assert reason(encode(MESSAGE), most=50) is Refusal.OVERSIZED


@given(st.integers(0, 10_000), st.binary(max_size=4))
def test_damaged_messages_are_read_or_refused_but_never_crash(place, patch):
    raw = bytearray(encode(MESSAGE))
    place %= len(raw)
    raw[place : place + len(patch)] = patch
    with contextlib.suppress(Refused):
        decode(bytes(raw))


def test_a_journal_survives_being_cut_anywhere(tmp_path):
    path = tmp_path / "state"
    journal = Journal(path)
    journal.keep(MESSAGE)
    whole = path.stat().st_size
    journal.keep(MESSAGE)
    journal.close()
    raw = path.read_bytes()
    for cut in (whole + 1, whole + PREFIX_BYTES, len(raw) - 1):
        path.write_bytes(raw[:cut])
        again = Journal(path)
        assert len(again.messages) == 1
        assert path.stat().st_size == whole
        again.keep(MESSAGE)
        assert path.read_bytes() == raw
        again.close()
    assert [message.digest for message in Journal(path).messages] == [MESSAGE.digest] * 2
    assert path.stat().st_mode & 0o077 == 0


def test_a_journal_belongs_to_one_holder_at_a_time(tmp_path):
    path = tmp_path / "state"
    journal = Journal(path)
    with refuses("state-in-use"):
        Journal(path)
    journal.close()
    with refuses("state-closed"):
        journal.keep(MESSAGE)
    Journal(path).keep(MESSAGE)


def test_after_a_write_that_failed_only_the_file_knows(tmp_path, monkeypatch):
    """The record may be on the disk: drawing and sending another one would tell two answers."""
    path = tmp_path / "state"
    journal = Journal(path)

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with refuses("state-closed", why="No space left on device"):
            journal.keep(MESSAGE)
    with refuses("state-closed"):
        journal.keep(MESSAGE)
    journal.close()
    assert len(Journal(path).messages) == 1


def test_a_damaged_or_foreign_journal_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "state"
    Journal(path).keep(MESSAGE)
    raw = bytearray(path.read_bytes())
    raw[-40] ^= 1
    path.write_bytes(raw)
    with refuses("state-damaged"):
        Journal(path)
    assert path.read_bytes() == raw
    path.write_bytes(b"something else entirely, and long enough")
    with refuses("not-a-state"):
        Journal(path)
    with refuses("cannot-use"):
        Journal(tmp_path / "missing" / "state")


def test_a_journal_is_not_kept_by_two_sides_of_a_fork(tmp_path, monkeypatch):
    journal, parent = Journal(tmp_path / "state"), os.getpid()
    journal.keep(MESSAGE)
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with refuses("state-closed"):
        journal.keep(MESSAGE)
