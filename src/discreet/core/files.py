"""Write a file or a folder whole or not at all, and never over something that is not ours to replace.

What is written is first put aside, next to its output, under a name that is made from the output's. A process
that is killed leaves it there. The next one that writes the same output removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from discreet.core.errors import CannotWrite, FileExists, NotOurs, OutputIsInput

# Short: next to a file with the longest name allowed, a longer one could not be made.
_ASIDE = ".discreet-"


# What SQLite appends to the name of a database while it writes.
_JOURNAL = "-journal"


def first_bytes(path: Path, count: int) -> bytes:
    """Return how a file begins, by which we know our own; nothing if it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def name_aside(path: Path) -> str:
    """Return how the names of everything begin that is put aside for an output."""
    return f"{_ASIDE}{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}"


def is_locked_here(handle: int) -> bool:
    """Lock an open file or folder until it is closed; return whether this process has the lock."""
    try:
        return _lock(handle)
    except OSError:
        return False


def is_locked_elsewhere(handle: int) -> bool:
    """Lock as `is_locked_here` does; return whether another process has the lock.

    On a file system without locks, no process has one.
    """
    try:
        return not _lock(handle)
    except OSError:
        return False


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes put aside for an output; a living process has its own locked."""
    for left in sorted(path.absolute().parent.glob(f"{name_aside(path)}-*")):
        # The journal of a database is not locked itself: it belongs to the database while that exists.
        if left.name.endswith(_JOURNAL) and left.with_name(left.name.removesuffix(_JOURNAL)).exists():
            continue
        with contextlib.suppress(OSError):
            handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if is_locked_here(handle):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)


def begun_path(path: Path) -> Path:
    """Return where a command prepares an output that needs a second step, so that a repeat can go on."""
    return path.with_name(f".{path.name}.part")


def refuse_output(
    path: Path,
    *,
    force: bool,
    kind: str,
    is_ours: Callable[[Path], bool],
    inputs: Iterable[Path] = (),
    content: bytes | None = None,
) -> None:
    """Raise for what `write_whole` could not write, or what it would destroy.

    That is an input of the same command, anything but a regular file, and a file that exists: without
    `force` any, with it one that is not of our `kind`. An empty file has nothing to lose, and one with
    this `content` was written by the same command before it was killed.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise CannotWrite(path=path, why="its folder doesn't exist")
    if any(_is_same(path, other) for other in inputs):
        raise OutputIsInput(path=path)
    found = _look(path)
    if found is not None:
        known = content is not None and stat.S_ISREG(found.st_mode) and path.read_bytes() == content
        if not known:
            _refuse_found(path, found, force=force, kind=kind, is_ours=is_ours)
    # Rights, quotas and file systems for reading only have too many rules to ask for one by one.
    try:
        with put_aside(path):
            pass
    except OSError as error:
        raise CannotWrite(path=path, why=error.strerror) from error


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write `content` to `path` in one step: a reader sees the whole file or none.

    A `private` file is for its owner alone, whatever the umask allows.
    """
    try:
        with put_aside(path) as aside:
            with aside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes files for the owner alone; a release is for everyone whom the umask allows.
            mask = os.umask(0)
            os.umask(mask)
            aside.chmod(0o600 if private else 0o666 & ~mask)
            aside.replace(path)
    except OSError as error:
        raise CannotWrite(path=path, why=error.strerror) from error


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
    try:
        with folder_aside(path) as aside:
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
                # Also if the user interrupts: everything aside is removed at the end.
                if old.exists() and not path.exists():
                    old.rename(path)
                raise
    except OSError as error:
        raise CannotWrite(path=path, why=error.strerror) from error


@contextmanager
def folder_aside(path: Path) -> Iterator[Path]:
    """Yield a new folder next to an output, locked; it is removed at the end with everything in it."""
    remove_leftovers(path)
    aside = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f"{name_aside(path)}-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, aside, ignore_errors=True)
        handle = os.open(aside, os.O_RDONLY)
        stack.callback(os.close, handle)
        is_locked_here(handle)
        yield aside


# Arguments of the system call: paths start at the working folder, and both exist and change places.
_WORKING_FOLDER, _EXCHANGE = -100, 2


def _are_exchanged(one: Path, other: Path) -> bool:
    """Exchange two paths in one step, where the system can: between two steps a reader finds nothing."""
    if not other.exists():
        return False
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if call is None:
        return False
    places = (_WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other))
    return bool(call(*places, _EXCHANGE) == 0)


def refuse_folder(path: Path, *, replaces: Callable[[Path], bool] | None = None) -> None:
    """Raise for a folder that `filled_folder` could not write or would destroy."""
    if not path.absolute().parent.is_dir():
        raise CannotWrite(path=path, why="its folder doesn't exist")
    if not os.path.lexists(path):
        return
    if replaces is None:
        raise FileExists(path=path)
    if path.is_symlink() or not path.is_dir() or not replaces(path):
        raise NotOurs(path=path, kind="folder that this command wrote")


def _look(path: Path) -> os.stat_result | None:
    """Return what lies at the path itself, links not followed; None if nothing does."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotWrite(path=path, why=error.strerror) from error


def _refuse_found(
    path: Path, found: os.stat_result, *, force: bool, kind: str, is_ours: Callable[[Path], bool]
) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise NotOurs(path=path, kind="regular file (it is a link)")
    if not stat.S_ISREG(found.st_mode):
        raise NotOurs(path=path, kind="regular file")
    if not force:
        raise FileExists(path=path)
    if found.st_size and not is_ours(path):
        raise NotOurs(path=path, kind=kind)


@contextmanager
def put_aside(path: Path) -> Iterator[Path]:
    """Yield a new file next to an output, locked; it is removed at the end, unless it was moved."""
    remove_leftovers(path)
    handle, name = _new_aside(path)
    while is_locked_elsewhere(handle) or not _is_at(name, handle):
        # Another process took it for a leftover before it was locked.
        os.close(handle)
        handle, name = _new_aside(path)
    with contextlib.ExitStack() as stack:
        stack.callback(Path(name).unlink, missing_ok=True)
        stack.callback(os.close, handle)
        yield Path(name)


def _new_aside(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(dir=path.absolute().parent, prefix=f"{name_aside(path)}-")


def _is_at(name: str, handle: int) -> bool:
    """Return whether a name still belongs to an open file."""
    try:
        return os.path.samestat(Path(name).stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths are one file, also by links, and also if neither exists yet."""
    try:
        return os.path.realpath(one) == os.path.realpath(other) or one.samefile(other)
    except OSError:
        return False
