"""Sum over a folder of shards, shard by shard: memory stays bounded for any number of users.

Before a shard is summed, its files are compared with the manifest's digests, and each of its users is checked
to belong there: a user in two shards would count twice, and no sensitivity would hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import STRANGE_HEADER
from discreet.data.bounding import hash_ids
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.sources.errors import ShardsDamaged
from discreet.sources.manifest import (
    CATALOG,
    MANIFEST,
    MOST_BYTES,
    SHARDS,
    Manifest,
    digest,
    read_catalog,
    read_ids,
    require_regular,
    shard_folder,
    shard_of_hash,
)
from discreet.sources.object_stores import ObjectStore, is_address
from discreet.statistics.statistic import Block, Statistic, Sums, blocks

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
