"""Make a folder of shards from files of any number and size; a user's rows may be anywhere in them.

The files are read twice, piece by piece: once to survey them, once to distribute the ratings to the shards of
their users. Finished work is kept in `unfinished`, so that an interrupted run can be resumed. The manifest is
written last and finishes the folder.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, Self, cast, final

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core import integer, without_password, write_whole
from discreet.core.checks import DataError, FileError, ParameterError
from discreet.data import (
    N_ITEMS,
    NOT_PACKED,
    NOTHING,
    SCALE,
    UNKNOWN,
    Address,
    CatalogNeeded,
    Columns,
    Declarations,
    Interactions,
    PublicFacts,
    Schema,
    Span,
    Vocabulary,
    Wishes,
    address_of,
    as_read,
    as_series,
    count_off_step,
    encode,
    files_of_layout,
    has_own_form,
    hash_ids,
    on_scale,
    or_damaged,
    packing,
    query_behind,
    read_rows,
    scanned,
    schema_of,
    spans,
    tables_at,
    to_times,
    to_values,
    with_rules_of,
    without_zeros,
)
from discreet.data.block_sizes import block_sizes
from discreet.sources import errors
from discreet.sources.shards import (
    CATALOG,
    INDPTR,
    ITEMS,
    MANIFEST,
    MOST_SHARDS,
    PEOPLE,
    TIMES,
    VALUES,
    Manifest,
    ShardRecord,
    digest,
    shard_folder,
    shard_of_hash,
    write_ids,
)

_ROWS = 1 << 22


class Piece(NamedTuple):
    """A part of a file (rows of Parquet, or bytes of text below its header), and the schema of the file.

    For a spreadsheet or a database, `file` is its address.
    """

    file: str | Path
    start: int
    stop: int
    schema: Schema
    #: Whether the file is read at once: packed files, cells, and layouts that are not tables are.
    whole: bool = False

    @property
    def address(self) -> Address | None:
        """Return the address of cells; None for a file."""
        return address_of(self.file) if self.schema.format == "cells" else None

    def identity(self) -> list[str | int]:
        """Return what shows on another run whether this is the same piece of the same file.

        A server doesn't state when its rows changed. Passwords are replaced.
        """
        address, changed = self.address, [0, 0]
        place = self.file if address is None else address.place
        name = without_password(place)
        if address is None or address.kind != "PostgreSQL":
            state = Path(place).stat()
            name, changed = str(Path(place).resolve()), [state.st_size, state.st_mtime_ns]
        return [name, address.table if address else "", *changed, self.start, self.stop]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PieceReader:
    """A reader of files piece by piece, with the given settings.

    All pieces of a file are read with one schema: that of the settings, or one that describes the whole file.
    """

    wishes: Wishes = NOTHING
    schema: Schema | None = None
    zeros: str | None = None
    #: The declared scale, for schemas that drop or clip ratings off it.
    scale: Mapping[str, Any] = field(default_factory=dict)
    #: Users to skip, as texts, and the only items to keep.
    without: Vocabulary | None = None
    known: Vocabulary | None = None

    def pieces(self, path: str | Path) -> list[Piece]:
        """Return the pieces of a file in order; some files are one piece."""
        schema = schema_of(path, self.wishes)[0] if self.schema is None else self.schema
        if has_own_form(schema.format):
            files = files_of_layout(Path(path), schema.format)
            return [Piece(file, 0, file.stat().st_size, schema, True) for file in files]
        if schema.format == "cells":
            return [Piece(path, 0, 0, schema, True)]
        return [piece for file in tables_at(path) for piece in self._of_file(file, schema)]

    def _of_file(self, file: Path, schema: Schema) -> list[Piece]:
        if schema.format in ("parquet", "frame"):
            rows = _count_rows(file)
            return [Piece(file, at, min(at + _ROWS, rows), schema) for at in range(0, rows, _ROWS)]
        if schema.format != "text" or schema.multiline or packing(file, schema.packed) != NOT_PACKED:
            return [Piece(file, 0, file.stat().st_size, schema, True)]
        return [
            Piece(file, start, stop, schema)
            for start, stop in spans(file, schema.in_files(), block_sizes().piece)
        ]

    def read(self, piece: Piece) -> Columns:
        """Return the columns of a piece."""
        span = None if piece.whole else Span(piece.start, piece.stop)
        columns = read_rows(piece.file, piece.schema, span).columns
        columns = on_scale(columns, piece.schema.off_scale, self.scale)
        if (self.zeros or piece.schema.zeros) == "missing":
            columns = without_zeros(columns)
        if self.without is not None:
            gone = self.without.index_of(columns.users.cast(pl.String)) != UNKNOWN
            columns = columns.only(pl.Series(~gone))
        if self.known is not None:
            columns = columns.only(pl.Series(self.known.index_of(columns.items) != UNKNOWN))
        return columns

    def described(self) -> dict[str, str]:
        """Return a description that is equal for readers with equal settings."""
        plain = replace(self, without=None, known=None)
        filters = {"without": self.without, "known": self.known}
        return {"reader": repr(plain)} | {
            name: str(int(hash_ids(ids).sum())) for name, ids in filters.items() if ids is not None
        }


def _count_rows(file: Path) -> int:
    with or_damaged(file):
        return int(scanned(file).select(pl.len()).collect().item())


def as_texts(ids: Iterable[Any]) -> Vocabulary:
    """Return distinct ids as texts: files may hold the same users as numbers or as text."""
    return Vocabulary(pl.Series("id", sorted({str(one) for one in ids}), dtype=pl.String))


_USUAL_STEPS = (1.0, 0.5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The properties of some pieces; surveys of several pieces add up."""

    items: pl.Series
    ratings: int
    text_users: bool
    least: float
    most: float
    steps: tuple[float, ...]
    has_values: bool
    has_times: bool

    @classmethod
    def of(cls, columns: Columns) -> Self:
        """Survey one piece."""
        values = to_values(columns.values, len(columns.items))
        return cls(
            items=as_series(columns.items, "item ids").unique(),
            ratings=len(columns.items),
            text_users=as_series(columns.users, "user ids").dtype == pl.String,
            least=float(values.min()) if values.size else np.inf,
            most=float(values.max()) if values.size else -np.inf,
            steps=tuple(step for step in _USUAL_STEPS if count_off_step(values, 0.0, step) == 0),
            has_values=columns.values is not None,
            has_times=columns.times is not None,
        )

    def __add__(self, other: Survey) -> Survey:
        """Return the survey of both."""
        if (self.has_values, self.has_times) != (other.has_values, other.has_times):
            raise errors.MixedColumns()
        return replace(
            self,
            items=pl.concat(_of_one_kind([self.items, other.items])).unique(),
            ratings=self.ratings + other.ratings,
            text_users=self.text_users or other.text_users,
            least=min(self.least, other.least),
            most=max(self.most, other.most),
            steps=tuple(step for step in self.steps if step in other.steps),
        )

    def settle(self, declared: Declarations, *, weights: str = "") -> tuple[PublicFacts, Vocabulary]:
        """Return the facts and the catalog: as declared, and the rest as found in the files."""
        if not self.ratings:
            raise errors.NoRatings()
        catalog, from_file = declared.get("catalog"), [] if declared.get("catalog") else [N_ITEMS]
        catalog = Vocabulary(self.items.sort()) if catalog is None else catalog
        low, high, step = declared.get("low"), declared.get("high"), declared.get("step")
        if weights or (not self.has_values and low is None and high is None):
            low = high = 1.0
        if low is None or high is None:
            from_file.append(SCALE)
            low = self.least if low is None else low
            high = self.most if high is None else high
            step = next((one for one in self.steps if (low / one).is_integer()), step)
        facts = PublicFacts(
            n_items=len(catalog),
            low=low,
            high=high,
            step=step,
            max_per_user=declared.get("max_per_user"),
            n_users=declared.get("n_users"),
            from_file=tuple(from_file),
            weights=weights,
        )
        return facts, catalog

    def to_json(self) -> dict[str, Any]:
        """Return everything but the items."""
        record = {name: getattr(self, name) for name in self.__slots__ if name != "items"}
        return {**record, "steps": list(self.steps)}

    @classmethod
    def from_json(cls, record: dict[str, Any], items: pl.Series) -> Self:
        """Read what `to_json` returned."""
        return cls(**{**record, "steps": tuple(record["steps"])}, items=items)


def _of_one_kind(parts: list[pl.Series]) -> list[pl.Series]:
    return parts if len({part.dtype for part in parts}) == 1 else [part.cast(pl.String) for part in parts]


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

    `declared` are facts as in `discreet.read`: low, high, step, catalog, max_per_user, n_users, duplicates,
    drop_unknown. The others are those of the reader's schema.
    An interrupted run is resumed by another call with the same files and settings.

    Raises:
        FileError: The folder is finished already, or has an unfinished run with other files or settings.
        DataError: The files hold no ratings, or ratings that cannot be used.
    """
    if not (len(files) > 0):
        raise errors.NoRatings()
    if n_shards is not None:
        integer("n_shards", n_shards, least=1, most=MOST_SHARDS)
    folder = Path(out)
    reader, declared = _settled(reader or PieceReader(), cast(Declarations, declared))
    if (folder / MANIFEST).exists():
        # A run that was killed after its manifest may have left some of its work.
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        raise errors.ShardsFinished(folder=folder)
    pieces = [piece for file in files for piece in reader.pieces(file)]
    plan = {**reader.described(), "shards": n_shards, **_plain(declared)}
    new = not folder.exists()
    with _writing_to(folder), _alone(_begin(folder, pieces, plan)) as work:
        try:
            survey = _survey(work, pieces, reader, progress)
            weights = pieces[0].schema.weights_text() if _weighs(reader, declared) else ""
            sharder = _Sharder.of(folder, pieces, survey, n_shards, declared, weights=weights)
            called, duplicates = name or folder.resolve().name, declared.get("duplicates") or "refuse"
            return sharder.manifest(called, pieces, reader, duplicates, progress)
        except (DataError, ParameterError):
            # Other options are needed, with which nothing could be resumed.
            if new:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _settled(reader: PieceReader, declared: Declarations) -> tuple[PieceReader, dict[str, Any]]:
    """Return a reader that applies the facts and rules, and these: as declared, or as in its schema."""
    found: dict[str, Any] = {**with_rules_of(reader.schema, declared)}
    # The scale is settled before shards are sorted, and counts are known only then. Weights need no scale.
    if found.get("duplicates") == "count" and not _weighs(reader, found):
        raise errors.CountNotSharded()
    catalog = found.get("catalog")
    if found.get("drop_unknown"):
        if catalog is None:
            raise CatalogNeeded()
        reader = replace(reader, known=catalog if reader.known is None else reader.known)
    found["drop_unknown"] = catalog is not None and reader.known is catalog
    scale = {name: found[name] for name in ("low", "high", "step") if found.get(name) is not None}
    return replace(reader, scale=scale), found


def _weighs(reader: PieceReader, declared: Mapping[str, Any]) -> bool:
    """Return whether values are weights of interactions, which need no scale."""
    schema, choice = reader.schema, reader.wishes.choice or {}
    column = choice.get("weight") if schema is None else schema.weight
    is_rated = declared.get("low") != declared.get("high")
    return reader.wishes.implicit and bool(column) and not is_rated


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Turn a full disk, or a folder that cannot be written, into one sentence."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise errors.ShardingStopped(folder=folder, reason=reason) from error


@contextmanager
def _alone(work: Path) -> Iterator[Path]:
    """Lock the folder against a second run; the lock ends with the process."""
    with (work / _PLAN).open("rb") as plan:
        try:
            fcntl.flock(plan, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise errors.ShardsInUse(folder=work.parent) from error
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
        raise errors.FolderOccupied(folder=folder)
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
        raise errors.NoRatings()
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
        *,
        weights: str = "",
    ) -> Self:
        """Return what distributes pieces, with facts and a catalog as declared or as found in them."""
        facts, catalog = survey.settle(cast(Declarations, declared), weights=weights)
        queries = {query_behind(piece.address) for piece in pieces if piece.address is not None}
        rules = cast(Declarations, declared)
        facts = as_read(facts, [piece.schema for piece in pieces], rules, queries)
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
