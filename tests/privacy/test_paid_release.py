"""A release into one file is spent once, also if its process ends in between."""

import shutil
from pathlib import Path

import pytest

from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.records import EntryState
from discreet.privacy.ledger.release import PaidRelease, foreseen, releasing
from discreet.testing import refuses
from privacy_values import make

COMMAND = {"epsilon": 1.0}


def draw(folder, command=COMMAND, *, end=None, content="model"):
    """Spend, draw and publish a model; with `end`, raise this before the model is in its place."""
    output, book = folder / "model", folder / "ledger"
    with releasing(output, command) as release:
        if release.finish(Ledger.open(book)) is not None:
            return True
        ledger = Ledger.open(book, release=release)
        with ledger.spend("shop", make(), what="biases"):
            # The record is next to the output while the release is made.
            assert len(list(folder.glob("*.json"))) == 1
            if end is not None:
                raise end
        release.draft.write_text(content)
        release.publish()
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


def cut_in(place, monkeypatch):
    """End the process with Ctrl-C in one of the steps of a publication: before or after it."""

    def cut(original, *, after):
        def stop(*given, **options):
            if after:
                original(*given, **options)
            raise KeyboardInterrupt

        return stop

    step, after = place
    monkeypatch.setattr(*step, cut(getattr(*step), after=after))


PLACES = [
    ((step, name), after)
    for step, name in ((PaidRelease, "_publish"), (Ledger, "close"), (Path, "replace"))
    for after in (False, True)
]


@pytest.mark.parametrize("place", PLACES, ids=lambda one: f"{one[0][1]}-{one[1]}")
@pytest.mark.parametrize("moved", [False, True])
def test_a_draw_that_was_published_is_never_drawn_again_for_one_spending(tmp_path, place, moved, monkeypatch):
    """Whatever is left of the first draw: it is found again, or the next draw is spent."""
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        cut_in(place, stopped)
        draw(tmp_path, content="first")
    output, kept = tmp_path / "model", tmp_path / "kept"
    if moved and output.exists():
        output.rename(kept)
    draw(tmp_path, content="second")
    drawn = {path.read_text() for path in (output, kept) if path.exists()}
    assert drawn == ({"first", "second"} if kept.exists() else {"first"})
    assert states(tmp_path) == [EntryState.DONE] * len(drawn)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["ledger", "ledger.lock", "model"] + ["kept"] * kept.exists()
    )


@pytest.mark.parametrize("change", ["changed", "deleted", "returned"])
def test_an_output_that_is_not_what_was_drawn_is_spent_again(tmp_path, change, monkeypatch):
    (tmp_path / "model").write_text("before")
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        cut_in(((Path, "replace"), True), stopped)
        draw(tmp_path, content="first")
    if change == "deleted":
        (tmp_path / "model").unlink()
    else:
        (tmp_path / "model").write_text("before" if change == "returned" else "other")
    assert not draw(tmp_path, content="second")
    assert states(tmp_path) == [EntryState.DONE] * 2


def test_a_draft_is_not_put_over_a_file_that_appeared(tmp_path, monkeypatch):
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        cut_in(((Path, "replace"), False), stopped)
        draw(tmp_path, content="first")
    (tmp_path / "model").write_text("other")
    with refuses("file-exists"):
        draw(tmp_path)
    (tmp_path / "model").unlink()
    assert draw(tmp_path) and (tmp_path / "model").read_text() == "first"
    assert states(tmp_path) == [EntryState.DONE]


def test_a_copy_of_a_record_does_not_use_the_spending(tmp_path):
    """The owner copies the folder of an interrupted release, and repeats the command in both."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    with pytest.raises(KeyboardInterrupt):
        draw(one, end=KeyboardInterrupt())
    shutil.copytree(one, other)
    (other / "ledger").unlink()
    (other / "ledger").symlink_to(one / "ledger")
    draw(other)
    draw(one)
    assert states(one) == [EntryState.DONE] * 2


def test_two_processes_publish_once_for_one_spending(tmp_path, monkeypatch):
    """On a file system without locks, both find the record, and both draw."""
    monkeypatch.setattr("discreet.privacy.ledger.release.is_locked_elsewhere", lambda handle: False)
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path, end=KeyboardInterrupt())
    with refuses("spending-ended"), releasing(tmp_path / "model", COMMAND) as release:
        ledger = Ledger.open(tmp_path / "ledger", release=release)
        with ledger.spend("shop", make(), what="biases"):
            assert not draw(tmp_path, content="first")
        release.draft.write_text("second")
        release.publish()
    assert (tmp_path / "model").read_text() == "first"
    assert states(tmp_path) == [EntryState.DONE]
    assert not list(tmp_path.glob(".discreet*"))


def test_a_process_of_the_same_number_does_not_use_the_spending(tmp_path):
    """Processes of containers have the same few numbers. The first was killed before it spent."""
    (tmp_path / "other").mkdir()
    with pytest.raises(KeyboardInterrupt), releasing(tmp_path / "other" / "model", COMMAND) as release:
        assert release.interrupted(Ledger.open(tmp_path / "ledger"), "shop", make(), "biases") is None
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path, end=KeyboardInterrupt())
    (tmp_path / "other" / "ledger").symlink_to(tmp_path / "ledger")
    draw(tmp_path / "other")
    assert states(tmp_path) == [EntryState.OPEN, EntryState.DONE]
    draw(tmp_path)
    assert states(tmp_path) == [EntryState.DONE] * 2


def test_a_copy_of_a_record_publishes_nothing_for_a_spending_that_is_done(tmp_path, monkeypatch):
    """The copy has a draft with its digest when the original publishes."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    with pytest.raises(KeyboardInterrupt):
        draw(one, end=KeyboardInterrupt())
    shutil.copytree(one, other)
    (other / "ledger").unlink()
    (other / "ledger").symlink_to(one / "ledger")
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        cut_in(((PaidRelease, "_publish"), False), stopped)
        draw(other, content="second")
    draw(one, content="first")
    draw(other, content="third")
    assert {(folder / "model").read_text() for folder in (one, other)} == {"first", "second"}
    assert states(one) == [EntryState.DONE] * 2


def test_a_draft_that_is_gone_before_it_was_published_is_drawn_and_spent_again(tmp_path, monkeypatch):
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        cut_in(((PaidRelease, "_publish"), False), stopped)
        draw(tmp_path)
    book = Ledger.open(tmp_path / "ledger")
    with foreseen(tmp_path / "model", COMMAND) as release:
        assert release.waiting(book) == book.entries()[0]
        release.draft.unlink()
        assert release.waiting(book) is None
        assert release.continued(book, "shop", make(), "biases") is None
    with pytest.raises(KeyboardInterrupt), releasing(tmp_path / "model", COMMAND) as release:
        assert release.finish(book) is None and release.is_gone and not release.has_begun
        raise KeyboardInterrupt
    draw(tmp_path)
    assert states(tmp_path) == [EntryState.DONE] * 2


@pytest.mark.parametrize("end", [EntryState.DONE, EntryState.FAILED])
def test_a_spending_that_ended_is_not_continued(tmp_path, end):
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path, end=KeyboardInterrupt())
    book = Ledger.open(tmp_path / "ledger")
    with foreseen(tmp_path / "model", COMMAND) as release:
        assert release.continued(book, "shop", make(), "biases") == book.entries()[0]
        assert release.continued(book, "shop", make(), "other") is None
        book.close(book.entries()[0], end)
        assert release.continued(book, "shop", make(), "biases") is None
        assert bool(release.held(book)) == (end is EntryState.DONE)


def test_a_draft_without_a_digest_is_removed_before_the_next_draw(tmp_path):
    with pytest.raises(KeyboardInterrupt), releasing(tmp_path / "model", COMMAND) as release:
        release.draft.write_text("half")
        with Ledger.open(tmp_path / "ledger", release=release).spend("shop", make(), what="biases"):
            assert not release.draft.exists()
            raise KeyboardInterrupt
