"""A ledger whose lock can't be opened is not written: nothing would keep writers apart."""

import pytest

from discreet.core.checks import FileError
from discreet.privacy.ledger.locking import locked


def test_a_lock_that_is_a_link_or_a_folder_is_not_taken(tmp_path):
    (tmp_path / "other").write_text("")
    (tmp_path / "linked.ledger.lock").symlink_to(tmp_path / "other")
    (tmp_path / "folder.ledger.lock").mkdir()
    for name in ("linked.ledger", "folder.ledger"):
        with pytest.raises(FileError), locked(tmp_path / name, alone=True):
            pytest.fail("written without a lock")
    with locked(tmp_path / "sound.ledger", alone=True):
        assert (tmp_path / "sound.ledger.lock").is_file()
