"""Write a file or a folder whole or not at all, and never over something that is not ours to replace."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from discreet.core.checks import FileError

# Short and fixed: beside a file with the longest name allowed, a longer one could not be made.
_ASIDE = ".discreet-"


def refuse_output(
    path: Path, *, force: bool, kind: str, is_ours: Callable[[Path], bool], inputs: Iterable[Path] = ()
) -> None:
    """Refuse what `write_whole` could not write, or what it would destroy.

    That is an input of the same command, anything but a regular file, and a file that exists: without
    `force` any, with it one that is not of our `kind`. An empty file has nothing to lose.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")
    if any(_is_same(path, other) for other in inputs):
        raise FileError(f"{path} is also read by this command and was left as it is. Choose another output.")
    found = _look(path)
    if found is not None:
        _refuse_found(path, found, force=force, kind=kind, is_ours=is_ours)
    # Rights, quotas and file systems for reading only have too many rules to ask for one by one.
    _make_aside(path).unlink()


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write `content` to `path` in one step: a reader sees the whole file or none.

    A `private` file is for its owner alone, whatever the umask allows.
    """
    aside = _make_aside(path)
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for the owner alone; a release is for whoever the user's umask allows.
        mask = os.umask(0)
        os.umask(mask)
        aside.chmod(0o600 if private else 0o666 & ~mask)
        aside.replace(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        aside.unlink(missing_ok=True)


def write_folder(
    path: Path, files: Mapping[str, bytes], *, replaces: Callable[[Path], bool] | None = None
) -> None:
    """Write a folder with these files, by their paths inside it, as `filled_folder` does."""
    inside = [PurePosixPath(name) for name in files]
    assert not any(one.is_absolute() or ".." in one.parts for one in inside), "a file lies outside the folder"
    with filled_folder(path, replaces=replaces) as aside:
        for name, content in files.items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_bytes(content)


@contextmanager
def filled_folder(path: Path, *, replaces: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Yield a folder to fill, which is put to `path` at the end; a reader sees all of it or nothing.

    A folder that is there is left as it is, unless `replaces` knows it as one of ours; then the new one takes
    its place whole.
    """
    refuse_folder(path, replaces=replaces)
    aside: Path | None = None
    try:
        aside = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=_ASIDE))
        new, old = aside / "new", aside / "old"
        new.mkdir()
        yield new
        new.chmod(0o755)
        if _are_exchanged(new, path):
            return
        try:
            if path.exists():
                path.rename(old)
            new.rename(path)
        except BaseException:
            # Also if somebody interrupts: what lies aside is removed below.
            if old.exists() and not path.exists():
                old.rename(path)
            raise
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


# What the system call is told: paths start at the working folder, and both exist and change places.
_WORKING_FOLDER, _EXCHANGE = -100, 2


def _are_exchanged(one: Path, other: Path) -> bool:
    """Exchange two paths in one step, where the system can: between two steps a reader finds nothing."""
    if not sys.platform.startswith("linux") or not other.exists():
        return False
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if call is None:
        return False
    places = (_WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other))
    return bool(call(*places, _EXCHANGE) == 0)


def refuse_folder(path: Path, *, replaces: Callable[[Path], bool] | None = None) -> None:
    """Refuse a folder that `filled_folder` could not write or would destroy."""
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")
    if not os.path.lexists(path):
        return
    if replaces is None:
        raise FileError(
            f"{path} exists already and was left as it is. Pass --force (force=True in Python) to "
            "replace it if this command wrote it, or name another folder."
        )
    if path.is_symlink() or not path.is_dir() or not replaces(path):
        raise FileError(
            f"{path} is not a folder that this command wrote, or has other files in it, and was left as it "
            "is. Choose another output, or remove it."
        )


def _look(path: Path) -> os.stat_result | None:
    """Return what lies at the path itself, links not followed; None if nothing does."""
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
        raise FileError(
            f"{path} is a symbolic link and was left as it is. Name the file it stands for itself."
        )
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path} is not a regular file and was left as it is. Choose another output.")
    if not force:
        raise FileError(f"{path} exists already. Pass --force (force=True in Python) to replace it.")
    if found.st_size and not is_ours(path):
        raise FileError(f"{path} is not a {kind} and was left as it is. Choose another output, or remove it.")


def _make_aside(path: Path) -> Path:
    try:
        descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=_ASIDE)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
    os.close(descriptor)
    return Path(name)


def _is_same(one: Path, other: Path) -> bool:
    """Tell whether two paths are one file, also by links, and also if there is no such file yet."""
    try:
        return os.path.realpath(one) == os.path.realpath(other) or one.samefile(other)
    except OSError:
        return False
