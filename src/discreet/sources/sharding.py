"""Make a folder of shards from files of any number and size; a user's rows may be anywhere in them.

The files are read twice, piece by piece: once to survey them, once to distribute the ratings to the shards of
their users. Finished work is kept in `unfinished`, so that an interrupted run can be resumed. The manifest is
written last and finishes the folder.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any, Self, cast, final

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.checks import DataError, FileError, ParameterError, integer
from discreet.core.files import write_whole
from discreet.data.bounding import hash_ids
from discreet.data.encoding import encode, to_times, to_values
from discreet.data.facts import Declarations, PublicFacts
from discreet.data.id_lists import checked_declarations
from discreet.data.interactions import Interactions
from discreet.data.reading.cells import query_behind
from discreet.data.reading.readers import as_read
from discreet.data.vocabulary import Vocabulary, as_series
from discreet.sources.errors import (
    CountNotSharded,
    FolderOccupied,
    NoRatings,
    ShardingStopped,
    ShardsFinished,
    ShardsInUse,
)
from discreet.sources.manifest import (
    CATALOG,
    MANIFEST,
    MOST_SHARDS,
    Manifest,
    ShardRecord,
    digest,
    shard_folder,
    shard_of_hash,
    write_ids,
)
from discreet.sources.pieces import Piece, PieceReader, Survey
from discreet.sources.shards import INDPTR, ITEMS, PEOPLE, TIMES, VALUES

UNFINISHED = "unfinished"
_PLAN = "plan.json"
# A shard of this size is a short task and needs little memory.
RATINGS_PER_SHARD = 4_000_000

#: Called with the name of the current stage, its steps done, and its steps in total.
Progress = Callable[[str, int, int], None]


def _silent(what: str, done: int, total: int) -> None:
    pass


def make_shards(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    reader: PieceReader | None = None,
    name: str | None = None,
    n_shards: int | None = None,
    progress: Progress = _silent,
    **declared: Any,
) -> Manifest:
    """Write the ratings of files to shards of whole users under the folder `out`.

    `declared` are facts as in `discreet.read`: low, high, step, catalog, max_per_user, n_users, duplicates.
    An interrupted run is resumed by another call with the same files and settings.

    Raises:
        FileError: The folder is finished already, or has an unfinished run with other files or settings.
        DataError: The files hold no ratings, or ratings that cannot be used.
    """
    if not (len(files) > 0):
        raise NoRatings()
    if n_shards is not None:
        integer("n_shards", n_shards, least=1, most=MOST_SHARDS)
    # The scale is settled before shards are sorted, and counts are known only then.
    if declared.get("duplicates") == "count":
        raise CountNotSharded()
    declared = dict(checked_declarations(cast(Declarations, declared)))
    folder = Path(out)
    scale = {name: declared[name] for name in ("low", "high", "step") if declared.get(name) is not None}
    reader = replace(reader or PieceReader(), scale=scale)
    if (folder / MANIFEST).exists():
        # A run that was killed after its manifest may have left some of its work.
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        raise ShardsFinished(folder=folder)
    pieces = [piece for file in files for piece in reader.pieces(file)]
    plan = {**reader.described(), "shards": n_shards, **_plain(declared)}
    new = not folder.exists()
    with _writing_to(folder), _alone(_begin(folder, pieces, plan)) as work:
        try:
            survey = _survey(work, pieces, reader, progress)
            sharder = _Sharder.of(folder, pieces, survey, n_shards, declared)
            called, duplicates = name or folder.resolve().name, declared.get("duplicates") or "refuse"
            return sharder.manifest(called, pieces, reader, duplicates, progress)
        except (DataError, ParameterError):
            # Other options are needed, with which nothing could be resumed.
            if new:
                shutil.rmtree(folder, ignore_errors=True)
            raise


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Turn a full disk, or a folder that cannot be written, into one sentence."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise ShardingStopped(folder=folder, reason=reason) from error


@contextmanager
def _alone(work: Path) -> Iterator[Path]:
    """Lock the folder against a second run; the lock ends with the process."""
    with (work / _PLAN).open("rb") as plan:
        try:
            fcntl.flock(plan, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ShardsInUse(folder=work.parent) from error
        yield work


def _plain(declared: dict[str, Any]) -> dict[str, Any]:
    """Return declarations in a form that can be compared with those of an earlier run."""
    plain = {name: value for name, value in declared.items() if value is not None and name != "catalog"}
    catalog = declared.get("catalog")
    return plain | ({} if catalog is None else {"catalog": str(int(hash_ids(catalog).sum()))})


def _begin(folder: Path, pieces: Sequence[Piece], settings: dict[str, Any]) -> Path:
    """Return the folder for unfinished work; raise for a run with other files or settings."""
    plan = {"pieces": [piece.identity() for piece in pieces], "settings": settings}
    content = json.dumps(plan, sort_keys=True, default=str).encode()
    work = folder / UNFINISHED
    # A run that was killed at once left a folder for its work, and no plan in it.
    if not folder.exists() or (not set(folder.iterdir()) - {work} and not (work / _PLAN).exists()):
        work.mkdir(parents=True, exist_ok=True)
        write_whole(work / _PLAN, content)
    elif not (work / _PLAN).is_file() or (work / _PLAN).read_bytes() != content:
        raise FolderOccupied(folder=folder)
    return work


def _survey(work: Path, pieces: Sequence[Piece], reader: PieceReader, progress: Progress) -> Survey:
    seen, items = work / "survey.json", work / "items.parquet"
    if seen.exists():
        return Survey.from_json(json.loads(seen.read_bytes()), pl.read_parquet(items)["id"])
    surveys: list[Survey] = []
    for number, piece in enumerate(pieces):
        surveys = [reduce(add, [*surveys, Survey.of(reader.read(piece))])]
        progress("surveying", number + 1, len(pieces))
    if not surveys:
        raise NoRatings()
    write_ids(surveys[0].items, items)
    write_whole(seen, json.dumps(surveys[0].to_json()).encode())
    return surveys[0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Sharder:
    """Distribute ratings to shards by the hash of the user, then sort each shard."""

    folder: Path
    facts: PublicFacts
    catalog: Vocabulary
    survey: Survey
    n_shards: int

    @classmethod
    def of(
        cls,
        folder: Path,
        pieces: Sequence[Piece],
        survey: Survey,
        n_shards: int | None,
        declared: dict[str, Any],
    ) -> Self:
        """Return what distributes pieces, with facts and a catalog as declared or as found in them."""
        facts, catalog = survey.settle(cast(Declarations, declared))
        queries = {query_behind(piece.address) for piece in pieces if piece.address is not None}
        facts = as_read(facts, [piece.schema for piece in pieces], queries)
        count = n_shards or min(max(-(-survey.ratings // RATINGS_PER_SHARD), 1), MOST_SHARDS)
        return cls(folder=folder, facts=facts, catalog=catalog, survey=survey, n_shards=count)

    def manifest(
        self,
        name: str,
        pieces: Sequence[Piece],
        reader: PieceReader,
        duplicates: Any,
        progress: Progress,
    ) -> Manifest:
        """Write all shards, then the manifest, which finishes the folder; return it."""
        folder = self.folder
        for number, piece in enumerate(pieces):
            self.distribute(number, piece, reader)
            progress("dealing", number + 1, len(pieces))
        write_ids(self.catalog.series, folder / CATALOG)
        records = []
        for number in range(self.n_shards):
            records.append(self.build(number, len(pieces), duplicates))
            progress("sorting", number + 1, self.n_shards)
        manifest = Manifest(
            name=name,
            facts=self.facts,
            text_ids=self.survey.text_users,
            has_times=self.survey.has_times,
            has_one_value=self.survey.least == self.survey.most,
            catalog_digest=digest(folder / CATALOG),
            shards=tuple(records),
        )
        manifest.write(folder)
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        return manifest

    def distribute(self, number: int, piece: Piece, reader: PieceReader) -> None:
        """Write a piece's ratings, one file per shard, unless an earlier run did."""
        done = self._piece(number)
        if done.exists():
            return
        columns = reader.read(piece)
        people, rows = Vocabulary.factorize(columns.users, "user ids")
        # Numbers of 16 bits, which all shards have, are sorted by their digits.
        shards = shard_of_hash(hash_ids(people), self.n_shards).astype(np.uint16)[rows]
        order = np.argsort(shards, kind="stable")
        _, codes = encode(columns.items, self.catalog, "item ids")
        users = as_series(columns.users, "user ids")
        table = {
            "user": (users.cast(pl.String) if self.survey.text_users else users).gather(pl.Series(order)),
            "item": codes[order],
            "rating": to_values(columns.values, codes.size)[order],
        }
        times = to_times(columns.times)
        frame = pl.DataFrame(table if times is None else {**table, "time": times[order]})
        edges = np.searchsorted(shards[order], np.arange(self.n_shards + 1))
        aside = done.with_suffix(".part")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        for shard, (start, stop) in enumerate(pairwise(edges)):
            if start < stop:
                frame.slice(int(start), int(stop - start)).write_ipc(aside / f"{shard}.arrow")
        aside.rename(done)

    def build(self, number: int, n_pieces: int, duplicates: Any) -> ShardRecord:
        """Sort a shard and write its arrays, unless an earlier run did."""
        done = shard_folder(self.folder, number)
        record = self.folder / UNFINISHED / f"shard-{number}.json"
        if record.exists():
            return ShardRecord(**json.loads(record.read_bytes()))
        parts = [self._piece(piece) / f"{number}.arrow" for piece in range(n_pieces)]
        frames = [pl.read_ipc(part) for part in parts if part.exists()]
        shutil.rmtree(done, ignore_errors=True)
        done.mkdir(parents=True)
        arrays, users = self._sorted(frames, duplicates)
        for name, array in arrays.items():
            np.save(done / name, array, allow_pickle=False)
        write_ids(users, done / PEOPLE)
        digests = {name: digest(done / name) for name in (PEOPLE, *arrays)}
        made = ShardRecord(people=len(users), ratings=int(arrays[ITEMS].size), digests=digests)
        write_whole(record, json.dumps(asdict(made)).encode())
        for part in parts:
            part.unlink(missing_ok=True)
        return made

    def _sorted(
        self, frames: list[pl.DataFrame], duplicates: Any
    ) -> tuple[dict[str, npt.NDArray[Any]], pl.Series]:
        kind = pl.String if self.survey.text_users else pl.Int64
        if not frames:
            empty: dict[str, npt.NDArray[Any]] = {INDPTR: np.zeros(1, np.int64)}
            empty |= {ITEMS: np.zeros(0, np.int32), VALUES: np.zeros(0, np.float32)}
            empty |= {TIMES: np.zeros(0, np.int64)} if self.survey.has_times else {}
            return empty, pl.Series("id", [], dtype=kind)
        table = pl.concat(frames)
        data = Interactions.from_arrays(
            table["user"],
            table["item"].cast(pl.Int64),
            table["rating"],
            table["time"] if self.survey.has_times else None,
            catalog=Vocabulary.range(len(self.catalog)),
            facts=self.facts,
            duplicates=duplicates,
        )
        arrays: dict[str, npt.NDArray[Any]] = {INDPTR: data.indptr, ITEMS: data.items, VALUES: data.values}
        if data.times is not None:
            arrays[TIMES] = data.times
        return arrays, data.users.series

    def _piece(self, number: int) -> Path:
        return self.folder / UNFINISHED / f"piece-{number:05d}"
