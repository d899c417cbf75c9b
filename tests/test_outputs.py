"""Files are written whole, and only over what is ours."""

import errno
import os
from pathlib import Path

import pytest

from discreet.core import files
from discreet.core.files import refuse_output, write_folder, write_whole
from discreet.models.biases import Biases
from discreet.privacy.ledger.release import releasing
from discreet.testing import refuses
from toy import toy_interactions


def test_a_model_saved_by_force_replaces_models_only(tmp_path):
    fitted = Biases(epsilon=1.0).fit(toy_interactions(seed=2))
    path, diary = tmp_path / "m.discreet", tmp_path / "diary"
    fitted.save(path)
    with refuses("file-exists", replaceable=True):
        fitted.save(path)
    fitted.save(path, force=True)
    diary.write_text("dear diary")
    with refuses("not-ours", kind="discreet model"):
        fitted.save(diary, force=True)
    assert diary.read_text() == "dear diary"


def test_a_name_of_full_length_can_be_written(tmp_path):
    path = tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    refuse_output(path, force=False, kind="text", is_ours=lambda _: False)
    write_whole(path, b"whole")
    assert path.read_bytes() == b"whole" and list(tmp_path.iterdir()) == [path]
    with refuses("cannot-write"):
        refuse_output(path.with_name(path.name + "n"), force=False, kind="text", is_ours=lambda _: False)


def test_what_cannot_be_finished_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "old"
    path.write_bytes(b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with refuses("cannot-write"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_put_in_its_place_leaves_the_old_one(tmp_path, monkeypatch):
    path, whole = tmp_path / "out", Path.rename
    write_folder(path, {"a": b"old"})

    def interrupted(self, target):
        if self.name == "new":
            raise KeyboardInterrupt
        return whole(self, target)

    # Where the system can't exchange two folders in one step, there are two renames.
    monkeypatch.setattr(files, "_are_exchanged", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(path, {"a": b"new"}, replaces=lambda _: True)
    assert (path / "a").read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_locks_is_written_once(tmp_path, monkeypatch):
    import fcntl

    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_whole(tmp_path / "out", b"content")
    with releasing(tmp_path / "model", {}):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
