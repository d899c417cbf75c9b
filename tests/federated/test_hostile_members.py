"""A member cannot fill the keeper: what is not of the run, or not a key, is refused and leaves nothing."""

import socket

import numpy as np
import pytest

from discreet.federated import keeper as keepers
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.journal import Journal
from discreet.federated.keeper import Keeper, hand_key
from discreet.federated.wire import Message, Refusal, decode, encode

JUNK = np.zeros(30_000_000 // 8, dtype=np.int64)


def key(name="a", run="agreed", step=0, arrays=None, **fields):
    results = {"key": "00" * 32, "question": "q", "least": 2, **fields}
    return Message(kind="key", run=run, step=step, sender=name, fields=results, arrays=arrays or {})


@pytest.fixture
def kept(tmp_path):
    journal = Journal(tmp_path / "keeper.state")
    yield Keeper(roster=["a", "b", "c"], least=2, run="agreed", journal=journal), tmp_path / "keeper.state"
    journal.close()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (key(run="x"), Refusal.WRONG_RUN),
        (key(name="z"), Refusal.WRONG_SENDER),
        (key(step=1 << 14), Refusal.WRONG_ROUND),
        (key(step=-1), Refusal.WRONG_ROUND),
        (key(arrays={"junk": JUNK}), Refusal.OVERSIZED),
        (key(arrays={"junk": JUNK[:3]}), Refusal.MALFORMED),
        (key(extra="x" * 100), Refusal.MALFORMED),
        (key(extra="x" * 5_000), Refusal.OVERSIZED),
        (key(question="q" * 65), Refusal.OVERSIZED),
        (Message(kind="reveal", run="x", step=0, sender="-"), Refusal.WRONG_RUN),
        (
            Message(kind="reveal", run="agreed", step=0, sender="-", arrays={"junk": JUNK[:3]}),
            Refusal.MALFORMED,
        ),
        (
            Message(kind="reveal", run="agreed", step=0, sender="-", fields={"names": "[]", "size": 1 << 26}),
            Refusal.MALFORMED,
        ),
    ],
)
def test_what_is_no_message_of_the_run_is_refused_and_not_kept(kept, message, reason):
    keeper, path = kept
    assert decode(keeper(encode(message))).fields["reason"] == reason.value
    assert path.stat().st_size == 0


def test_all_that_one_member_can_have_kept_is_small(kept, monkeypatch):
    monkeypatch.setattr(keepers, "_MOST_STEPS", 16)
    keeper, path = kept
    for step in range(16):
        hand_key(keeper, key(step=step))
    before = path.stat().st_size
    for step in range(40):
        keeper(encode(key(step=step, question="another")))
    assert path.stat().st_size == before < 16 * 4096


def test_a_frame_is_refused_by_its_length_before_it_is_read():
    one, other = socket.socketpair()
    with one, other:
        one.sendall(frames._PREFIX.pack(2, keepers.MOST_BYTES + 1) + b"{}")
        with pytest.raises(frames.BrokenFrame, match="longer"):
            frames.receive(other, keepers.MOST_BYTES)
