"""The last values that messages, journals and united lists take, and the first ones they refuse."""

import json
import struct

import numpy as np
import pytest

from discreet.data.vocabulary import Vocabulary
from discreet.federated import catalogs
from discreet.federated.journal import Journal
from discreet.federated.wire import (
    PREFIX_BYTES,
    Message,
    Refusal,
    Refused,
    decode,
    encode,
    is_cut_short,
    message_bytes,
)
from discreet.testing import refuses

MESSAGE = Message(kind="votes", run="run", step=3, sender="p1", arrays={"a": np.arange(6.0).reshape(2, 3)})


def message(**changes):
    return Message(**({"kind": "k", "run": "r", "step": 0, "sender": "s"} | changes))


def refusal(**changes):
    with pytest.raises(Refused) as caught:
        decode(encode(message(**changes)))
    return caught.value.reason


@pytest.mark.parametrize("where", ["kind", "run", "sender"])
def test_names_have_1_to_200_letters(where):
    for size in (1, 200):
        assert getattr(decode(encode(message(**{where: "n" * size}))), where) == "n" * size
    for size in (0, 201):
        assert refusal(**{where: "n" * size}) is Refusal.MALFORMED


def test_names_of_arrays_are_names_too():
    assert refusal(arrays={"": np.zeros(1)}) is Refusal.MALFORMED


def test_whole_numbers_of_64_bits_pass_and_larger_ones_do_not():
    for number in (127, 2**63 - 1, 1 - 2**63):
        assert decode(encode(message(fields={"n": number}))).fields == {"n": number}
    for number in (2**63, -(2**63)):
        assert refusal(fields={"n": number}) is Refusal.OUT_OF_RANGE


def test_steps_begin_before_the_first_one():
    for step in (-1, 2**31 - 1):
        assert decode(encode(message(step=step))).step == step
    for step in (-2, 2**31):
        assert refusal(step=step) is Refusal.MALFORMED


def test_every_beginning_of_a_message_is_one_and_a_wrong_length_is_none():
    raw = encode(MESSAGE)
    assert all(is_cut_short(raw[:stop]) for stop in range(PREFIX_BYTES, len(raw)))
    longer = bytearray(raw)
    longer[PREFIX_BYTES - 8] += 8  # the length of the arrays
    assert not is_cut_short(bytes(longer))


def test_a_journal_of_exactly_one_wrong_prefix_is_refused_and_a_shorter_rest_is_dropped(tmp_path):
    """As many bytes as a prefix has can be judged: they are no cut record but another kind of file."""
    path = tmp_path / "state"
    raw = b"x" * PREFIX_BYTES
    path.write_bytes(raw)
    with refuses("not-a-state"):
        Journal(path)
    assert path.read_bytes() == raw
    path.write_bytes(raw[:-1])
    journal = Journal(path)
    assert journal.messages == () and path.read_bytes() == b""
    journal.close()


def test_a_united_list_may_have_exactly_the_most_items(monkeypatch):
    monkeypatch.setattr(catalogs, "MOST_ITEMS", 5)
    assert len(catalogs.united([Vocabulary.range(3), Vocabulary.range(3, start=2)])) == 5
    assert len(catalogs.united([Vocabulary.range(5), Vocabulary.range(5)])) == 5
    with refuses("too-many-items", most=5):
        catalogs.united([Vocabulary.range(3), Vocabulary.range(3, start=3)])


def test_sides_of_arrays_are_below_2_to_40_even_where_nothing_is_in_them():
    def empty(side):
        header = {"kind": "k", "run": "r", "step": 0, "sender": "s", "fields": {}}
        text = json.dumps(header | {"arrays": [["a", "<f8", [side, 0]]]}).encode()
        return struct.pack("<4sBIQ", b"DFED", 1, len(text), 0) + text

    assert decode(empty(2**40 - 1)).arrays["a"].shape == (2**40 - 1, 0)
    for side in (2**40, 2**41, -1):
        with pytest.raises(Refused) as caught:
            decode(empty(side))
        assert caught.value.reason is Refusal.MALFORMED


def test_a_header_has_64_kilobytes_at_most_and_a_message_as_much_as_is_allowed():
    def prefix(header, body):
        return struct.pack("<4sBIQ", b"DFED", 1, header, body)

    most = 1 << 16
    assert message_bytes(prefix(most, 5)) == PREFIX_BYTES + most + 5
    assert message_bytes(prefix(10, 90), most=100) == PREFIX_BYTES + 100
    for header, body, allowed in [(most + 1, 0, 1 << 30), (10, 91, 100)]:
        with pytest.raises(Refused) as caught:
            message_bytes(prefix(header, body), most=allowed)
        assert caught.value.reason is Refusal.OVERSIZED
