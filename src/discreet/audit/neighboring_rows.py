"""Search for one user whose rows change how other users' rows are read.

Pairs of files differ by the rows of one user. Both are read with one schema, and everything that is read of
the other users is compared bit by bit: the same rows, the same ratings, the same times, in the same order.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, final
from unittest import mock

import numpy as np
import polars as pl

from discreet.audit.findings import Finding
from discreet.core.checks import DiscreetError
from discreet.data.facts import Duplicates
from discreet.data.interactions import Interactions
from discreet.data.reading import blocks
from discreet.data.reading.columns import Columns
from discreet.data.reading.readers import from_frame, read
from discreet.data.schema import Schema
from discreet.data.vocabulary import Vocabulary
from discreet.distributed import pieces

#: One user's id, which no other user has.
STRANGER = "zoe"
ITEMS = ("i1", "i2", "i3", "été", "a, b", "7")
_USERS = ("ann", "bob", "7", "007", "#tag", "joé", 'o"brien', "x y")
_RATINGS = ("3", "4.5", "1e0", "2.25", "0", "5", "3,5", "1.00000005960464477539062500000001")
_WEIGHTS = ("1e17", "-1e17", "5", "2", "0.5", "1e-30", "-3")
_TIMES = (
    "5", "1700000000000000001", "1700000000000000002", "2005-03-01", "2005-03-01T12:00:00Z", "1.5",
    "03/04/2005",
)  # fmt: skip
# Bytes that change the state of a decoder or a parser, where one exists.
_ODD = (
    "\x1b$B", "\x1b(B", "\x0e", "+AGE-", '"', '""', 'a"b', '"a\\"b"', "'", "\\", "#", "# x", "\u2028", "\x0b",
    "\x85", "\r", "\t", " ", "\ufeff", "é" * 3, "x" * 70, "1.5", "nan", "-0", "+7", "1e400", "{", "[1]",
    "null", "::", ";", "|",
)  # fmt: skip
_STRANGERS = 10
_RULES: tuple[Duplicates, ...] = ("first", "last", "mean", "count")


class FileRow(NamedTuple):
    """One row as text: user, item, rating and time."""

    user: str
    item: str
    rating: str
    time: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How a pair of files is written and read."""

    form: str
    schema: Schema
    others: tuple[FileRow, ...]
    stranger: tuple[FileRow, ...]
    #: Where the stranger's rows are placed among the others.
    places: tuple[int, ...]
    ending: str = "\n"
    packed: str = ""
    block: int = 1 << 22
    piece: int = 1 << 27
    #: Whole lines of the stranger, which may not be rows at all.
    raw: tuple[str, ...] = ()

    def rows(self, *, both: bool) -> list[FileRow | str]:
        """Return the rows in order, with those of the stranger or without them."""
        rows: list[FileRow | str] = list(self.others)
        if both:
            added: list[FileRow | str] = [*self.stranger, *self.raw]
            for place, row in zip(self.places, added, strict=True):
                rows.insert(place % (len(rows) + 1), row)
        return rows


@final
@dataclass(slots=True)
class RowSearch:
    """The number of pairs, how many of them could be read, and the cases that differ."""

    pairs: int = 0
    readable: int = 0
    differences: list[Case] = field(default_factory=list)
    by_form: Counter[str] = field(default_factory=Counter)


def _quoted(text: str, delimiter: str, *, always: bool) -> str:
    needs = always or delimiter in text or '"' in text
    return '"' + text.replace('"', '""') + '"' if needs else text


def _text(case: Case, rows: list[FileRow | str], chance_to_quote: bool) -> bytes:
    schema = case.schema
    lines = [schema.delimiter.join(schema.columns)] if schema.header else []
    for row in rows:
        if isinstance(row, str):
            lines.append(row)
            continue
        plain = not schema.quote or len(schema.delimiter) > 1
        cells = row if plain else [_quoted(one, schema.delimiter, always=chance_to_quote) for one in row]
        lines.append(schema.delimiter.join(cells))
    text = "".join(line.replace("\n", " ") + case.ending for line in lines)
    return text.encode(schema.encoding, "replace")


def _json(case: Case, rows: list[FileRow | str]) -> bytes:
    lines = [row if isinstance(row, str) else json.dumps(row._asdict()) for row in rows]
    return "".join(line.replace("\n", " ") + case.ending for line in lines).encode()


def _frame(case: Case, rows: list[FileRow | str], kind: str) -> pl.DataFrame:
    kept = [row for row in rows if isinstance(row, FileRow)]
    table = pl.DataFrame(kept, schema=dict.fromkeys(FileRow._fields, pl.String), orient="row")
    return table.with_columns(pl.col("user", "item").cast(pl.Categorical)) if kind == "dictionary" else table


def _packed(content: bytes, how: str) -> bytes:
    if how == "gz":
        return gzip.compress(content, 1, mtime=0)
    if how == "zip":
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("ratings.csv", content)
        return out.getvalue()
    return content


def read_case(case: Case, folder: Path, *, both: bool) -> Interactions:
    """Write the rows of a case, and read them with its schema."""
    rows, catalog = case.rows(both=both), Vocabulary.of([*ITEMS, "new"])
    options: dict[str, Any] = {"schema": case.schema, "catalog": catalog, "drop_unknown": True}
    options |= {"low": -1e30, "high": 1e30}
    path = folder / ("ratings.csv" + (f".{case.packed}" if case.packed else ""))
    with mock.patch.object(blocks, "BLOCK", case.block), mock.patch.object(pieces, "_BYTES", case.piece):
        if case.form == "objects":
            return from_frame(_Container(rows), **options)
        if case.form in ("parquet", "dictionary"):
            _frame(case, rows, case.form).write_parquet(path)
            return read(path, **options)
        content = _json(case, rows) if case.form == "json" else _text(case, rows, case.form == "quoted")
        path.write_bytes(_packed(content, case.packed))
        return _in_pieces(path, case, catalog) if case.form == "pieces" else read(path, **options)


class _Container:
    """A data frame like that of pandas, whose columns are Python objects of several types."""

    def __init__(self, rows: list[FileRow | str]) -> None:
        kept = [row for row in rows if isinstance(row, FileRow)]
        self.columns = list(FileRow._fields)
        self._values = {
            "user": [row.user for row in kept],
            "item": [row.item for row in kept],
            "rating": [_number(row.rating) for row in kept],
            "time": [_number(row.time) for row in kept],
        }

    def __getitem__(self, name: str) -> Any:
        values = np.empty(len(self._values[name]), dtype=object)
        values[:] = self._values[name]
        return _Objects(values)


@dataclass(frozen=True, slots=True)
class _Objects:
    """A column of Python objects."""

    values: np.ndarray[Any, Any]

    def to_numpy(self) -> Any:
        """Return the objects."""
        return self.values

    def isna(self) -> list[bool]:
        """Return which of them are missing."""
        return [one is None for one in self.values]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _in_pieces(path: Path, case: Case, catalog: Vocabulary) -> Interactions:
    reader = pieces.PieceReader(schema=case.schema)
    return joined([reader.read(piece) for piece in reader.pieces(path)], case, catalog)


def joined(parts: Sequence[Columns], case: Case, catalog: Vocabulary) -> Interactions:
    """Return the rows of all pieces, as a shard of all users has them."""
    users = [str(one) for part in parts for one in part.users.cast(pl.String).to_list()]
    items = [str(one) for part in parts for one in part.items.cast(pl.String).to_list()]
    known = [item in catalog for item in items]
    values = np.concatenate([part.values.to_numpy() for part in parts if part.values is not None])
    times = np.concatenate([part.times.to_numpy() for part in parts if part.times is not None])
    return Interactions.from_arrays(
        [user for user, keep in zip(users, known, strict=True) if keep],
        [item for item, keep in zip(items, known, strict=True) if keep],
        values[known],
        times[known],
        catalog=catalog,
        low=-1e30,
        high=1e30,
        duplicates=case.schema.duplicates,
    )


def others_of(data: Interactions) -> list[tuple[Any, ...]]:
    """Return all that was read of the other users, to the last bit, in the order in which it is listed."""
    times = np.zeros(data.n_ratings, np.int64) if data.times is None else data.times
    listed = np.arange(data.n_ratings) if data.listed is None else data.listed
    rows = zip(
        listed.tolist(),
        data.users.id_at(data.rows()).tolist(),
        data.catalog.id_at(data.items).tolist(),
        data.values.view(np.uint32).tolist(),
        times.tolist(),
        strict=True,
    )
    kept = data.bounded(2)
    capped = sorted(
        zip(kept.users.id_at(kept.rows()).tolist(), kept.catalog.id_at(kept.items).tolist(), strict=True)
    )
    read_rows = [row[1:] for row in sorted(rows) if not _is_of(row[1])]
    return [*read_rows, *(one for one in capped if not _is_of(one[0]))]


def _is_of(user: Any) -> bool:
    """Return whether an id is one that the stranger's lines, which may be no rows, can have."""
    return str(user) not in _USERS


Reader = Callable[..., Interactions]


def attempt(case: Case, folder: Path, reader: Reader, *, both: bool) -> list[tuple[Any, ...]] | None:
    """Return what was read of the other users; None if the file is rejected."""
    try:
        return others_of(reader(case, folder, both=both))
    except DiscreetError:
        return None


FORMS = ("text", "quoted", "pieces", "json", "parquet", "dictionary", "objects")
_ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16-le", "utf-16-be", "cp437", "koi8-r")


def drawn(chance: random.Random, forms: Sequence[str] = FORMS, large: float = 0.005) -> Case:
    """Return a case: any form, encoding, delimiter, rule and size, with a stranger whose rows are odd."""
    form = chance.choice(forms)
    text = form in ("text", "quoted", "pieces")
    delimiter = chance.choice(",,;\t|") if form != "text" or chance.random() < 0.8 else "::"
    weighted = chance.random() < 0.4
    roles = {"user": "user", "item": "item", "time": "time", "weight" if weighted else "rating": "rating"}
    schema = Schema(
        format="json" if form == "json" else "frame" if form == "objects" else "text" if text else "parquet",
        encoding=chance.choice(_ENCODINGS) if text else "utf-8",
        delimiter=delimiter if text else ",",
        quote=chance.choice(('"', '"', '"', "", "'")) if form != "quoted" else '"',
        escape=chance.choice(("", "", "\\")),
        comment=chance.choice(("", "", "#")),
        header=text and chance.random() < 0.5,
        columns=FileRow._fields,
        date_order=chance.choice(("", "day-first", "month-first")),
        duplicates=chance.choice(_RULES),
        bad_rows="drop",
        zeros=chance.choice(("ratings", "missing")),
        **roles,  # type: ignore[arg-type]
    )
    count = chance.choice((4095, 4100) if chance.random() < large else (1, 3, 12, 40))
    ratings = _WEIGHTS if weighted else _RATINGS
    case = Case(
        form=form,
        schema=schema,
        others=tuple(_row(chance, chance.choice(_USERS), ratings) for _ in range(count)),
        stranger=(),
        places=(),
        ending=chance.choice(("\n", "\n", "\r\n")),
        packed=chance.choice(("", "", "gz", "zip")) if form in ("text", "quoted", "json") else "",
        block=chance.choice((64, 1 << 10, 1 << 22, 1 << 22, 1 << 22))
        if count < 100
        else 1 << chance.choice((12, 22)),
        piece=chance.choice((100, 300, 1000, 1 << 27)) if count < 100 else 1 << chance.choice((15, 27)),
    )
    return with_other_stranger(case, chance, large)


def with_other_stranger(case: Case, chance: random.Random, large: float) -> Case:
    """Return the same other users with another stranger among them."""
    ratings = _WEIGHTS if case.schema.weight else _RATINGS
    own = 4096 if chance.random() < large else chance.choice((1, 1, 2, 5, 20))
    stranger = tuple(_odd_row(chance, ratings) for _ in range(own))
    text = case.form in ("text", "quoted", "pieces")
    odd = chance.choice((0, 0, 1, 2)) if text else 0
    raw = tuple(_odd_line(chance, case.schema.delimiter) for _ in range(odd))
    places = tuple(chance.randrange(len(case.others) + 1) for _ in (*stranger, *raw))
    return replace(case, stranger=stranger, raw=raw, places=places)


def _row(chance: random.Random, user: str, ratings: tuple[str, ...]) -> FileRow:
    item = chance.choice(ITEMS if chance.random() < 0.9 else _ODD)
    return FileRow(user, item, chance.choice(ratings), chance.choice(_TIMES))


def _odd_row(chance: random.Random, ratings: tuple[str, ...]) -> FileRow:
    row = list(_row(chance, STRANGER, ratings))
    for place in range(1, 4):
        if chance.random() < 0.4:
            row[place] = chance.choice((*_ODD, *_TIMES, *_WEIGHTS))
    return FileRow(*row)


def _odd_line(chance: random.Random, delimiter: str) -> str:
    """Return a line with the stranger's id that may be no row: quotes, delimiters and controls anywhere."""
    parts = [STRANGER, *(chance.choice((*_ODD, *ITEMS, "3", "7")) for _ in range(chance.randrange(1, 6)))]
    first = chance.choice(("", '"', "#", "'", "\ufeff"))
    return first + chance.choice((delimiter, delimiter, '"' + delimiter, "")).join(parts)


def search(
    pairs: int,
    seed: int = 0,
    *,
    reader: Reader | None = None,
    forms: Sequence[str] = FORMS,
    large: float = 0.005,
    stop: bool = False,
) -> RowSearch:
    """Compare so many pairs of files; with `stop`, end at the first difference.

    Several strangers join the same other users, so that a file without a stranger is read once for all.
    """
    chance, result, read_one = random.Random(seed), RowSearch(), reader or read_case
    with TemporaryDirectory() as folder:
        while result.pairs < pairs:
            case = drawn(chance, forms, large)
            alone = attempt(case, Path(folder), read_one, both=False)
            for _ in range(min(_STRANGERS, pairs - result.pairs)):
                with_stranger = attempt(case, Path(folder), read_one, both=True)
                is_read = alone is not None and with_stranger is not None
                result.pairs += 1
                result.readable += is_read
                result.by_form[case.form] += is_read
                if is_read and alone != with_stranger:
                    result.differences.append(case)
                    if stop:
                        return result
                case = with_other_stranger(case, chance, large)
    return result


def audit_rows(name: str, epsilon: float, delta: float, *, pairs: int = 100, seed: int = 0) -> Finding:
    """Return what a search over neighboring files found."""
    start = time.perf_counter()
    result = search(pairs, seed)
    leaks = Counter(case.form for case in result.differences)
    return Finding(
        model=name,
        attack="files: other users' rows",
        promised=epsilon,
        delta=delta,
        refuted=math.inf if leaks else 0.0,
        confidence=1.0,
        fits=2 * result.pairs,
        seconds=time.perf_counter() - start,
        notes=tuple(f"{count} pairs of {form} files were read differently" for form, count in leaks.items()),
        broken=bool(leaks),
    )
