"""Fetch shards from object stores to a local cache, file by file when needed, checked by digest.

Arrays are read from files: a worker keeps those of its shards on its own disk. The cache
has users' rows, so only its owner can read it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from discreet.core import CannotWrite, ExtraMissing, FileUnreadable, without_password
from discreet.core.checks import FileError, ParameterError
from discreet.data import address_of, cache_folder
from discreet.sources.errors import ShardsDamaged

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CHUNK = 1 << 20


def is_address(path: str | Path) -> bool:
    """Return whether a text is an address in an object store (s3://bucket/folder), not in a database."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None and address_of(path) is None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """A folder in an object store. Workers receive it and open it themselves."""

    address: str

    @classmethod
    def at(cls, address: str) -> Self:
        """Return the folder at an address, without trailing slashes."""
        return cls(address=address.rstrip("/"))

    def holds(self, name: str) -> bool:
        """Return whether the folder has this file."""
        with self._opened() as (store, root):
            return bool(store.isfile(f"{root}/{name}"))

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file of at most `most` bytes."""
        with self._opened() as (store, root), store.open(f"{root}/{name}", "rb") as source:
            content: bytes = source.read(most + 1)
        if len(content) > most:
            raise ShardsDamaged(file=f"{self.address}/{name}")
        return content

    def mirror(self, seal: str) -> Path:
        """Return the local cache of the folder with this seal."""
        folder = cache_folder() / "shards" / seal
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CannotWrite(path=folder, why=error.strerror) from error
        return folder

    def fetch(self, name: str, target: Path, digest: str, most: int) -> None:
        """Write a file to the cache unless it is there; raise for a different digest."""
        if target.exists():
            return
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=".fetching-")
        try:
            with os.fdopen(descriptor, "wb") as written:
                found = self._copy(name, written, most)
            if found != digest:
                raise ShardsDamaged(file=f"{self.address}/{name}")
            Path(aside).replace(target)
        except FileError:
            raise
        except OSError as error:
            raise CannotWrite(path=target, why=error.strerror) from error
        finally:
            Path(aside).unlink(missing_ok=True)

    def _copy(self, name: str, written: Any, most: int) -> str:
        total, left = hashlib.sha256(), most
        with self._opened() as (store, root), store.open(f"{root}/{name}", "rb") as source:
            while part := source.read(_CHUNK):
                left -= len(part)
                if left < 0:
                    raise ShardsDamaged(file=f"{self.address}/{name}")
                total.update(part)
                written.write(part)
        return total.hexdigest()

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, str]]:
        """Yield the store and the folder in it; turn its errors into one sentence."""
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise ExtraMissing(package="fsspec", extra="discreet[stores]") from error
        try:
            yield url_to_fs(self.address)
        except (FileError, ParameterError):
            raise
        except ImportError as error:
            scheme = self.address.partition(":")[0]
            raise ExtraMissing(package=f"the package of fsspec for {scheme}://", extra=str(error)) from error
        # Every store has its own errors, without a common base class.
        except Exception as error:
            raise FileUnreadable(path=without_password(self.address), reason=_one_line(error)) from error


def _one_line(error: Exception) -> str:
    return (" ".join(without_password(error).split()) or type(error).__name__).rstrip(".")[:200]
