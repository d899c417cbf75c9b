"""Describe a folder of shards: public facts, the size of each shard, and the digest of every file.

A folder has `manifest.json`, `catalog.parquet` and `shards/00000`, `shards/00001`... with plain arrays. The
manifest is written last: a folder without one is not finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

import polars as pl

from discreet.core.checks import DataError, DiscreetError, FileError
from discreet.core.errors import FileUnreadable
from discreet.core.files import write_whole
from discreet.data.facts import PublicFacts
from discreet.data.reading.limits import collected
from discreet.data.vocabulary import Vocabulary
from discreet.sources.errors import NotShards, OldShards, ShardsDamaged

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
