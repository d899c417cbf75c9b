"""Sum over a folder of shards, shard by shard: memory stays bounded for any number of users.

Before a shard is summed, its files are compared with the manifest's digests, and each of its users is checked
to belong there: a user in two shards would count twice, and no sensitivity would hold.

A folder has `manifest.json`, `catalog.parquet` and `shards/00000`, `shards/00001`... with plain arrays. The
manifest has public facts, the size of each shard, and the digest of every file. It is written last: a folder
without one is not finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core import STRANGE_HEADER, FileUnreadable, write_whole
from discreet.core.checks import DataError, DiscreetError, FileError
from discreet.data import Interactions, PublicFacts, Vocabulary, collected, hash_ids
from discreet.sources.errors import NotShards, OldShards, ShardsDamaged
from discreet.sources.object_stores import ObjectStore, is_address
from discreet.statistics import Block, Statistic, Sums, blocks

MANIFEST, CATALOG, SHARDS = "manifest.json", "catalog.parquet", "shards"
FORMAT, VERSION = "discreet shards", 1
#: The most shards of a folder, and the most bytes of a manifest with all their digests.
MOST_SHARDS = 1 << 16
MOST_BYTES = 1 << 26
_LONGEST_NAME = 200
# Ids are distinct, so a valid file has at most so many ids per byte.
_IDS_PER_BYTE = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """The size of a shard and the digests of its files."""

    people: int
    ratings: int
    digests: dict[str, str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Contents of a folder of shards."""

    name: str
    facts: PublicFacts
    text_ids: bool
    has_times: bool
    has_one_value: bool
    catalog_digest: str
    shards: tuple[ShardRecord, ...]

    @property
    def people(self) -> int:
        """Return the number of users in all shards."""
        return sum(shard.people for shard in self.shards)

    @property
    def ratings(self) -> int:
        """Return the number of ratings in all shards."""
        return sum(shard.ratings for shard in self.shards)

    def to_bytes(self) -> bytes:
        """Return the manifest as it is written."""
        record = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "facts": self.facts.to_json(),
            "text_ids": self.text_ids,
            "has_times": self.has_times,
            "has_one_value": self.has_one_value,
            "catalog_digest": self.catalog_digest,
            "shards": [
                {"people": shard.people, "ratings": shard.ratings, "digests": shard.digests}
                for shard in self.shards
            ],
        }
        return json.dumps(record, indent=1).encode()

    @property
    def seal(self) -> str:
        """Return a digest of the whole manifest: equal seals mean equal data."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write the manifest in one step, which finishes the folder."""
        write_whole(folder / MANIFEST, self.to_bytes())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder; raise for anything else."""
        file = folder / MANIFEST
        try:
            size = require_regular(file).st_size
            if size > MOST_BYTES:
                raise ShardsDamaged(file=file)
            with file.open("rb") as opened:
                content = opened.read(MOST_BYTES)
        except OSError as error:
            raise NotShards(folder=folder) from error
        return cls.from_bytes(content, str(folder))

    @classmethod
    def from_bytes(cls, content: bytes, folder: str) -> Self:
        """Read what `to_bytes` returned for the manifest of a folder."""
        file = f"{folder}/{MANIFEST}"
        try:
            record = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ShardsDamaged(file=file) from error
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise NotShards(folder=folder)
        version = record.get("version")
        if type(version) is not int or version != VERSION:
            raise OldShards(folder=folder, version=VERSION)
        return cls._of(record, file)

    @classmethod
    def _of(cls, record: dict[str, Any], file: str) -> Self:
        try:
            if not 0 < len(record["shards"]) <= MOST_SHARDS:
                raise ValueError("the number of shards")
            return cls(
                name=_plain_name(record["name"]),
                facts=PublicFacts.from_json(record["facts"]),
                text_ids=_typed(record["text_ids"], bool),
                has_times=_typed(record["has_times"], bool),
                has_one_value=_typed(record["has_one_value"], bool),
                catalog_digest=_typed(record["catalog_digest"], str),
                shards=tuple(_shard_record(shard) for shard in record["shards"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, DiscreetError) as error:
            raise ShardsDamaged(file=file) from error


def shard_folder(folder: Path, number: int) -> Path:
    """Return the folder of a shard."""
    return folder / SHARDS / f"{number:05d}"


def shard_of_hash(hashes: Any, n_shards: int) -> Any:
    """Return the shard of each user, by the public hash of the user's own id; this never changes."""
    return hashes % type(hashes.flat[0])(n_shards) if hashes.size else hashes


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    require_regular(file)
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise FileUnreadable(path=file, reason=str(error.strerror)) from error


def require_regular(file: Path) -> os.stat_result:
    """Raise for anything but a regular file: reading a pipe or a device may never end. Links are followed."""
    try:
        found = file.stat()
    except OSError as error:
        raise FileUnreadable(path=file, reason=str(error.strerror)) from error
    if not stat.S_ISREG(found.st_mode):
        raise ShardsDamaged(file=file)
    return found


def write_ids(ids: pl.Series, file: Path) -> None:
    """Write ids in their order."""
    pl.DataFrame({"id": ids}).write_parquet(file)


def read_ids(file: Path, count: int) -> pl.Series:
    """Read `count` ids in their order; raise for an invalid file before it is decompressed."""
    most = _IDS_PER_BYTE * require_regular(file).st_size
    try:
        held = int(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())
        if held != count or held > most:
            raise ShardsDamaged(file=file)
        ids = collected(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise ShardsDamaged(file=file) from error
    if ids.columns != ["id"] or ids["id"].dtype not in (pl.Int64, pl.String) or ids["id"].null_count():
        raise ShardsDamaged(file=file)
    return ids["id"]


def read_catalog(folder: Path, manifest: Manifest) -> Vocabulary:
    """Return the catalog of a folder; raise if its digest isn't the manifest's."""
    if digest(folder / CATALOG) != manifest.catalog_digest:
        raise ShardsDamaged(file=folder / CATALOG)
    try:
        return Vocabulary.of(read_ids(folder / CATALOG, manifest.facts.n_items))
    except DataError as error:
        raise ShardsDamaged(file=folder / CATALOG) from error


def _shard_record(record: dict[str, Any]) -> ShardRecord:
    people, ratings = _typed(record["people"], int), _typed(record["ratings"], int)
    if people < 0 or ratings < 0:
        raise ValueError("a negative count")
    digests = {_typed(name, str): _typed(value, str) for name, value in record["digests"].items()}
    return ShardRecord(people=people, ratings=ratings, digests=digests)


def _plain_name(name: Any) -> str:
    """Return a name that a terminal and a ledger can show."""
    if not 0 < len(_typed(name, str)) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError("the name")
    return str(name)


def _typed(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError(f"a {type(value).__name__} instead of a {kind.__name__}")
    return value


PEOPLE, INDPTR, ITEMS, VALUES, TIMES = "people.parquet", "indptr.npy", "items.npy", "values.npy", "times.npy"
_TYPES = {INDPTR: np.int64, ITEMS: np.int32, VALUES: np.float32, TIMES: np.int64}
# The errors of numpy for a file that has no array, or one with a malformed header.
_NO_ARRAY = (OSError, ValueError, EOFError, OverflowError, MemoryError, *STRANGE_HEADER)
# Ratings bounded at a time, and numbers checked at a time.
_RATINGS_AT_A_TIME = _AT_A_TIME = 1 << 22
# The most bytes of a shard's ids in an object store, and of the header of an array.
_MOST_BYTES_OF_IDS = 1 << 32
_HEADER = 1 << 12
# Shards that this process has checked: their files' identity, size, times and digests.
_checked: set[tuple[Any, ...]] = set()

#: Called with the number of shards done and the number of shards.
Report = Callable[[int, int], None]


def is_shard_folder(path: str | Path) -> bool:
    """Return whether a path, or an address in an object store, is a finished folder of shards."""
    if isinstance(path, str) and is_address(path):
        return ObjectStore.at(path).holds(MANIFEST)
    return (Path(path) / MANIFEST).is_file()


def open_if_shards(path: str | Path) -> ShardFolder | None:
    """Open a folder of shards, or return None if the path is something else."""
    return open_shards(path) if is_shard_folder(path) else None


def open_shards(path: str | Path) -> ShardFolder:
    """Open a folder that `discreet data shard` made, on this machine or in an object store."""
    if isinstance(path, str) and is_address(path):
        store = ObjectStore.at(path)
        manifest = Manifest.from_bytes(store.read(MANIFEST, MOST_BYTES), store.address)
        folder = store.mirror(manifest.seal)
        store.fetch(CATALOG, folder / CATALOG, manifest.catalog_digest, _MOST_BYTES_OF_IDS)
    else:
        store, folder = None, Path(path)
        manifest = Manifest.read(folder)
    return ShardFolder(
        folder=folder,
        manifest=manifest,
        catalog=read_catalog(folder, manifest),
        facts=manifest.facts,
        store=store,
    )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ShardFolder:
    """A folder of shards as a data source; rows stay on disk, and one shard at a time is read for a sum."""

    folder: Path
    manifest: Manifest
    catalog: Vocabulary
    facts: PublicFacts
    called: str | None = None
    store: ObjectStore | None = None
    report: Report | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Return the name of the data in a ledger."""
        return self.called or self.manifest.name

    @property
    def has_times(self) -> bool:
        """Return whether ratings have times."""
        return self.manifest.has_times

    @property
    def n_users(self) -> int:
        """Return the number of users."""
        return self.manifest.people

    @property
    def n_items(self) -> int:
        """Return the number of items in the catalog."""
        return len(self.catalog)

    @property
    def n_ratings(self) -> int:
        """Return the number of ratings."""
        return self.manifest.ratings

    @property
    def n_shards(self) -> int:
        """Return the number of shards."""
        return len(self.manifest.shards)

    @property
    def has_one_value(self) -> bool:
        """Return whether all ratings are equal, as found when the folder was made."""
        return self.manifest.has_one_value

    @property
    def address(self) -> str:
        """Return the address at which workers open the folder."""
        return str(self.folder.resolve()) if self.store is None else self.store.address

    def with_facts(self, facts: PublicFacts) -> ShardFolder:
        """Return the same users under other facts: a cap per user, or the declared number of users."""
        return replace(self, facts=facts)

    def bounded(self) -> ShardFolder:
        """Return the same source: every block is bounded as it is read."""
        return self

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of all users' contributions."""
        return self.total_of(range(self.n_shards), statistic)

    def total_of(self, numbers: Sequence[int], statistic: Statistic) -> Sums:
        """Return the exact sum of the contributions of some shards' users."""
        seen: dict[int, tuple[int, ...]] = {}
        try:
            found = statistic.over_blocks(self._blocks(numbers, seen))
        except (IndexError, ValueError):
            # What was checked has changed under the sum, if its files have; else it is another matter.
            self._require_unchanged(seen)
            raise
        self._require_unchanged(seen)
        return found

    def _require_unchanged(self, seen: dict[int, tuple[int, ...]]) -> None:
        for number, state in seen.items():
            if self._state(shard_folder(self.folder, number)) != state:
                raise ShardsDamaged(file=f"Shard {number} of {self.folder}")

    def _blocks(self, numbers: Sequence[int], seen: dict[int, tuple[int, ...]]) -> Iterator[Block]:
        for done, number in enumerate(numbers, start=1):
            for people in self.people(number):
                if number not in seen:
                    seen[number] = self._state(shard_folder(self.folder, number))
                yield from blocks(people.bounded())
            if self.report is not None:
                self.report(done, len(numbers))

    def people(self, number: int, most_ratings: int = _RATINGS_AT_A_TIME) -> Iterator[Interactions]:
        """Yield the users of a shard in groups of about `most_ratings` ratings, as they are on disk."""
        shard = self.shard(number)
        start = 0
        while start < shard.n_users:
            reach = np.searchsorted(shard.indptr, shard.indptr[start] + most_ratings, side="right")
            stop = min(max(int(reach) - 1, start + 1), shard.n_users)
            yield shard.span(start, stop)
            start = stop

    def shard(self, number: int) -> Interactions:
        """Return a shard, read into memory, after checking it once per process."""
        place, record = shard_folder(self.folder, number), self.manifest.shards[number]
        what = f"Shard {number} of {self.folder}"
        self._fetch(number)
        before = self._state(place)
        arrays = {name: _array(place / name) for name in _names(self.manifest)}
        sizes = {INDPTR: record.people + 1, ITEMS: record.ratings, VALUES: record.ratings}
        sizes |= {TIMES: record.ratings} if self.manifest.has_times else {}
        if any(arrays[name].shape != (size,) for name, size in sizes.items()):
            raise ShardsDamaged(file=what)
        users = read_ids(place / PEOPLE, record.people)
        if (users.dtype == pl.String) != self.manifest.text_ids:
            raise ShardsDamaged(file=what)
        self._check_once(number, before, arrays, users)
        if self._state(place) != before:
            raise ShardsDamaged(file=what)
        return Interactions(
            indptr=arrays[INDPTR],
            items=arrays[ITEMS],
            values=arrays[VALUES],
            times=arrays.get(TIMES),
            users=Vocabulary(users),
            catalog=self.catalog,
            facts=self.facts,
            name=self.name,
        )

    def _state(self, place: Path) -> tuple[int, ...]:
        """Return a state that changes with a shard's files, even if a change hides its time."""
        found = [require_regular(place / name) for name in (PEOPLE, *_names(self.manifest))]
        return tuple(
            number
            for one in found
            for number in (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
        )

    def _fetch(self, number: int) -> None:
        """Fetch a shard's files if they are in an object store."""
        if self.store is None:
            return
        record = self.manifest.shards[number]
        place = shard_folder(self.folder, number)
        for name in (PEOPLE, *_names(self.manifest)):
            count = {INDPTR: record.people + 1}.get(name, record.ratings)
            most = _MOST_BYTES_OF_IDS if name == PEOPLE else _HEADER + count * np.dtype(_TYPES[name]).itemsize
            there = f"{SHARDS}/{place.name}/{name}"
            self.store.fetch(there, place / name, record.digests.get(name, ""), most)

    def _check_once(
        self, number: int, state: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]], users: pl.Series
    ) -> None:
        place, record = shard_folder(self.folder, number), self.manifest.shards[number]
        key = (number, self.n_shards, self.n_items, state, *sorted(record.digests.items()))
        if key in _checked:
            return
        for name in (PEOPLE, *_names(self.manifest)):
            if digest(place / name) != record.digests.get(name):
                raise ShardsDamaged(file=place / name)
        refuse_foreign(users, number, self.n_shards, f"Shard {number} of {self.folder}")
        _refuse_disorder(arrays, self.n_items, f"Shard {number} of {self.folder}")
        _checked.add(key)


def refuse_foreign(users: pl.Series, number: int, n_shards: int, what: str) -> None:
    """Raise for a shard with a user who is in it twice or belongs to another shard."""
    twice = len(users) - users.n_unique()
    belongs = shard_of_hash(hash_ids(Vocabulary(users)), n_shards)
    elsewhere = int(np.count_nonzero(belongs != number))
    if twice or elsewhere:
        raise ShardsDamaged(file=what)


def _refuse_disorder(arrays: dict[str, npt.NDArray[Any]], n_items: int, what: str) -> None:
    """Raise for overlapping rows, items that are unknown or repeated in a row, and non-finite values."""
    indptr, items = arrays[INDPTR], arrays[ITEMS]
    fine = bool(indptr[0] == 0 and indptr[-1] == items.size)
    fine = fine and all(
        bool(np.all(np.diff(indptr[at : at + _AT_A_TIME + 1]) >= 0)) for at in _starts(indptr)
    )
    if not fine or not all(_in_rows(arrays, at, n_items) for at in _starts(items)):
        raise ShardsDamaged(file=what)


def _in_rows(arrays: dict[str, npt.NDArray[Any]], at: int, n_items: int) -> bool:
    """Return whether a stretch of ratings, together with the rating before it, forms valid rows."""
    indptr, first = arrays[INDPTR], max(at - 1, 0)
    items = arrays[ITEMS][first : at + _AT_A_TIME]
    rising = items[1:] > items[:-1]
    begin, end = np.searchsorted(indptr, [first + 1, first + items.size])
    rising[indptr[begin:end] - first - 1] = True
    inside = items.min() >= 0 and items.max() < n_items
    return bool(rising.all() and inside and np.isfinite(arrays[VALUES][at : at + _AT_A_TIME]).all())


def _starts(array: npt.NDArray[Any]) -> range:
    return range(0, array.size, _AT_A_TIME)


def _names(manifest: Manifest) -> list[str]:
    return [INDPTR, ITEMS, VALUES, *([TIMES] if manifest.has_times else [])]


def _array(file: Path) -> npt.NDArray[Any]:
    """Return an array that is read, not mapped: a mapped file that becomes shorter ends the process."""
    require_regular(file)
    try:
        size = np.load(file, allow_pickle=False)
    except _NO_ARRAY as error:
        raise ShardsDamaged(file=file) from error
    if size.dtype != _TYPES[file.name] or size.ndim != 1:
        raise ShardsDamaged(file=file)
    return np.asarray(size)
