"""Write files atomically, and never overwrite what is not ours."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from discreet.core.checks import FileError

# Short and fixed, so that the temporary name is legal even where the target's name is as long as allowed.
_TEMPORARY = ".discreet-"


def refuse_output(
    path: Path, *, force: bool, kind: str, is_ours: Callable[[Path], bool], inputs: Iterable[Path] = ()
) -> None:
    """Refuse a path that `write_whole` could not write, or where it would destroy something.

    Refused are inputs of the same command, anything but a regular file, and existing files: all of them
    without `force`, and with it those that are not of our `kind`. Empty files may be replaced with `force`.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")
    if any(_is_same(path, other) for other in inputs):
        raise FileError(f"{path} is also read by this command and was left as it is. Choose another output.")
    found = _status(path)
    if found is not None:
        _refuse_found(path, found, force=force, kind=kind, is_ours=is_ours)
    # Permissions, quotas and read-only file systems have too many rules to check one by one: try it.
    _make_temporary(path).unlink()


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write `content` to `path` in one step: a reader sees the whole file or none.

    A `private` file is for its owner alone, whatever the umask allows.
    """
    aside = _make_aside(path)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp gives access to the owner only; the result gets what the user's umask allows.
        mask = os.umask(0)
        os.umask(mask)
        aside.chmod(0o600 if private else 0o666 & ~mask)
        aside.replace(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of the path itself, without following links; None if nothing is there."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error


def _refuse_found(
    path: Path, found: os.stat_result, *, force: bool, kind: str, is_ours: Callable[[Path], bool]
) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise FileError(f"{path} is a symbolic link and was left as it is. Name the file it points to.")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path} is not a regular file and was left as it is. Choose another output.")
    if not force:
        raise FileError(f"{path} exists already. Pass --force (force=True in Python) to replace it.")
    if found.st_size and not is_ours(path):
        raise FileError(f"{path} is not a {kind} and was left as it is. Choose another output, or remove it.")


def _make_temporary(path: Path) -> Path:
    try:
        descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=_TEMPORARY)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
    os.close(descriptor)
    return Path(name)


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths name one file, through links too, even if the file does not exist yet."""
    try:
        return os.path.realpath(one) == os.path.realpath(other) or one.samefile(other)
    except OSError:
        return False
