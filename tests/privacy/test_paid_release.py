"""A release into one file is spent once, also if its process ends in between."""

import pytest

from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.records import EntryState
from discreet.privacy.ledger.release import releasing
from privacy_values import make

COMMAND = {"epsilon": 1.0}


def draw(folder, command=COMMAND, *, end=None):
    """Spend, draw and publish a model; with `end`, raise this before the model is in its place."""
    output, book = folder / "model", folder / "ledger"
    with releasing(output, command) as release:
        if release.is_published:
            release.finish(Ledger.open(book))
            return True
        # The record is next to the output while the release is made.
        assert {path.parent for path in folder.rglob("*.json")} == {folder}
        ledger = Ledger.open(book, release=release)
        with ledger.spend("shop", make(), what="biases"):
            if end is not None:
                raise end
        output.write_text("model")
    return False


def states(folder):
    return [entry.state for entry in Ledger.open(folder / "ledger").entries()]


def test_a_release_leaves_its_output_and_one_spending(tmp_path):
    draw(tmp_path)
    assert states(tmp_path) == [EntryState.DONE]
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".json"]


def test_a_release_that_fails_is_recorded_as_failed(tmp_path):
    with pytest.raises(ZeroDivisionError):
        draw(tmp_path, end=ZeroDivisionError())
    assert states(tmp_path) == [EntryState.FAILED]
    draw(tmp_path)
    assert states(tmp_path) == [EntryState.FAILED, EntryState.DONE]


def test_a_failure_after_the_draw_is_recorded_as_failed(tmp_path):
    with pytest.raises(ZeroDivisionError), releasing(tmp_path / "model", COMMAND) as release:
        ledger = Ledger.open(tmp_path / "ledger", release=release)
        with ledger.spend("shop", make(), what="biases"):
            pass
        raise ZeroDivisionError
    assert states(tmp_path) == [EntryState.FAILED]


def test_an_interrupted_release_is_repeated_for_what_was_spent(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            draw(tmp_path, end=KeyboardInterrupt())
    draw(tmp_path)
    assert states(tmp_path) == [EntryState.DONE]
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path, end=KeyboardInterrupt())
    draw(tmp_path, {"epsilon": 2.0})
    assert len(states(tmp_path)) == 3


def test_a_release_knows_what_is_spent_for_it_and_by_which_start(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path, end=KeyboardInterrupt())
    book = Ledger.open(tmp_path / "ledger")
    with pytest.raises(KeyboardInterrupt), releasing(tmp_path / "model", COMMAND) as release:
        assert release.has_begun and release.continues and not release.has_written
        assert release.held(book) == book.entries()
        raise KeyboardInterrupt
    with releasing(tmp_path / "model", {"epsilon": 2.0}) as release:
        assert not release.has_begun and not release.continues and release.held(book) == []


def test_a_start_that_could_not_read_its_data_leaves_the_spending_to_the_next(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path, end=KeyboardInterrupt())
    with pytest.raises(ZeroDivisionError), releasing(tmp_path / "model", COMMAND):
        raise ZeroDivisionError
    draw(tmp_path)
    assert states(tmp_path) == [EntryState.DONE]
