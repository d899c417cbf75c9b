"""Describe a folder of shards: what is public, how much each shard holds, and the checksum of every file.

A folder holds `manifest.json`, `catalog.parquet` and `shards/00000`, `shards/00001`... with plain arrays. The
manifest is written last: a folder without one is not finished.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

import polars as pl

from discreet.checks import DiscreetError, FileError
from discreet.data.facts import PublicFacts
from discreet.data.reading.parquet import or_sentence, scanned
from discreet.data.vocabulary import Vocabulary
from discreet.files import write_whole

MANIFEST, CATALOG, SHARDS = "manifest.json", "catalog.parquet", "shards"
FORMAT, VERSION = "discreet shards", 1
# More than a million shards of a hundred bytes of digests each are nobody's manifest.
MOST_BYTES = 1 << 29
_MOST_SHARDS = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """Say how much a shard holds, and what its files' digests are."""

    people: int
    ratings: int
    digests: dict[str, str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Describe a folder of shards."""

    name: str
    facts: PublicFacts
    text_ids: bool
    has_times: bool
    has_one_value: bool
    catalog_digest: str
    shards: tuple[ShardRecord, ...]

    @property
    def people(self) -> int:
        """Return how many people all shards hold."""
        return sum(shard.people for shard in self.shards)

    @property
    def ratings(self) -> int:
        """Return how many ratings all shards hold."""
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
        """Return a digest of all that the manifest says: who has the same seal means the same people."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write the manifest in one step; with that the folder is finished."""
        write_whole(folder / MANIFEST, self.to_bytes())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder; anything else is refused with one sentence."""
        file = folder / MANIFEST
        try:
            if file.stat().st_size > MOST_BYTES:
                raise FileError(f"{file} is too large for a manifest; make the folder again.")
            content = file.read_bytes()
        except OSError as error:
            raise FileError(f"{folder} is not a folder of shards: {error.strerror}.") from error
        return cls.from_bytes(content, str(folder))

    @classmethod
    def from_bytes(cls, content: bytes, folder: str) -> Self:
        """Read what `to_bytes` returned for the manifest of a folder."""
        file = f"{folder}/{MANIFEST}"
        try:
            record = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise FileError(f"{file} is damaged; make the folder again with `discreet shard`.") from error
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise FileError(f"{file} is not a manifest of `discreet shard`.")
        if record.get("version") != VERSION:
            raise FileError(
                f"{folder} was made by another version of `discreet shard` (format {record.get('version')}, "
                f"this one reads {VERSION}); make it again."
            )
        return cls._of(record, file)

    @classmethod
    def _of(cls, record: dict[str, Any], file: str) -> Self:
        try:
            if not 0 < len(record["shards"]) <= _MOST_SHARDS:
                raise ValueError("the number of shards")
            return cls(
                name=_typed(record["name"], str),
                facts=PublicFacts.from_json(record["facts"]),
                text_ids=_typed(record["text_ids"], bool),
                has_times=_typed(record["has_times"], bool),
                has_one_value=_typed(record["has_one_value"], bool),
                catalog_digest=_typed(record["catalog_digest"], str),
                shards=tuple(_shard_record(shard) for shard in record["shards"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, DiscreetError) as error:
            raise FileError(f"{file} is damaged; make the folder again with `discreet shard`.") from error


def shard_folder(folder: Path, number: int) -> Path:
    """Return where a shard lies."""
    return folder / SHARDS / f"{number:05d}"


def shard_of_hash(hashes: Any, n_shards: int) -> Any:
    """Return the shard that people belong to, by the public hash of their own ids; this never changes."""
    return hashes % type(hashes.flat[0])(n_shards) if hashes.size else hashes


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror}.") from error


def write_ids(ids: pl.Series, file: Path) -> None:
    """Write ids in their order."""
    pl.DataFrame({"id": ids}).write_parquet(file)


def read_ids(file: Path) -> pl.Series:
    """Read ids in their order; a file that is none of ours is refused."""
    with or_sentence(f"{file} is damaged; make the folder again with `discreet shard`."):
        table = scanned(file).collect()
    if table.columns != ["id"] or table["id"].dtype not in (pl.Int64, pl.String) or table["id"].null_count():
        raise FileError(f"{file} does not hold ids; make the folder again with `discreet shard`.")
    return table["id"]


def read_catalog(folder: Path, manifest: Manifest) -> Vocabulary:
    """Return the catalog of a folder, if it is the one that the manifest means."""
    if digest(folder / CATALOG) != manifest.catalog_digest:
        raise FileError(f"{folder / CATALOG} was changed after the folder was made; make it again.")
    catalog = Vocabulary.of(read_ids(folder / CATALOG))
    if len(catalog) != manifest.facts.n_items:
        raise FileError(f"{folder} has a catalog of another size than its manifest says; make it again.")
    return catalog


def _shard_record(record: dict[str, Any]) -> ShardRecord:
    people, ratings = _typed(record["people"], int), _typed(record["ratings"], int)
    if people < 0 or ratings < 0:
        raise ValueError("a negative count")
    digests = {_typed(name, str): _typed(value, str) for name, value in record["digests"].items()}
    return ShardRecord(people=people, ratings=ratings, digests=digests)


def _typed(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError(f"a {type(value).__name__} instead of a {kind.__name__}")
    return value
