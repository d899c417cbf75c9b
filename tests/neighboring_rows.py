"""Search for one user whose rows change how other users' rows are read.

Pairs of files differ by the rows of one user. Both are read with one schema, and everything that is read of
the other users is compared bit by bit: the same rows, the same ratings, the same times, in the same order.
A case has several strangers, and is read with each subset of them. Two subsets that differ by one stranger
are a neighboring pair, so one reading serves several pairs.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import random
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from datetime import time as time_of_day
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, final

import numpy as np
import polars as pl

import frames_of_rows
from discreet.core.checks import DiscreetError
from discreet.data import (
    Columns,
    Duplicates,
    EmptyData,
    Interactions,
    Schema,
    Vocabulary,
    other_block_sizes,
    read,
)
from discreet.sources import PieceReader, make_shards, open_shards

#: IDs that no other user has.
STRANGERS = ("zoe", "yan", "xia", "wim", "vic")
ITEMS = ("i1", "i2", "i3", "été", "a, b", "7")
_USERS = ("ann", "bob", "7", "007", "#tag", "joé", 'o"brien', "x y")
_NUMBERS = (
    *(str(10 + place) for place in range(len(_USERS))),
    *map(str, frames_of_rows.WHOLE_USERS.values()),
)
_RATINGS = ("3", "4.5", "1e0", "2.25", "0", "5", "3,5", "1.00000005960464477539062500000001")
_WEIGHTS = ("1e17", "-1e17", "5", "2", "0.5", "1e-30", "-3")
_MOMENTS = ("5", "1700000000000000001", "1700000000000000002", "-3")
_TIMES = (
    *_MOMENTS, "2005-03-01", "2005-03-01T12:00:00Z", "1.5", "03/04/2005", "2005-10-30 02:30:00",
    "2005-03-27 02:30:00",
)  # fmt: skip
# Bytes that change the state of a decoder or a parser, where one exists.
_ODD = (
    "\x1b$B", "\x1b(B", "\x0e", "+AGE-", '"', '""', 'a"b', '"a\\"b"', "'", "\\", "#", "# x", "\u2028", "\x0b",
    "\x85", "\r", "\t", " ", "\ufeff", "é" * 3, "x" * 70, "1.5", "nan", "-0", "+7", "1e400", "{", "[1]",
    "null", "::", ";", "|", "9223372036854775808", "-9223372036854775808", "1e300", "\x00",
)  # fmt: skip
# What files of other kinds begin with.
_BEGINNINGS = ("PAR1", "PK\x03\x04", "SQLite format 3\x00", "\x1f\x8b\x08", "user,i1,DUCK", "[{", "<html>")
# Lines above a header.
_TITLE = ('Sales, "2025', "")
# Numbers of rows on both sides of a limit of 4,096.
_LARGE = (4095, 4100)
_BLOCKS = (1 << 10, 1 << 12, 1 << 22)
# Scales with a step and without one; ratings off them are clipped or dropped.
_WIDE, _STARS = (-1e30, 1e30, None), (0.5, 4.5, 0.5)
_ON_SCALE = ("3", "4.5", "0.5", "1e0")
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
    #: The rows of each stranger, and whole lines that may not be rows at all, with their places in the file.
    strangers: tuple[tuple[tuple[int, FileRow | str], ...], ...] = ()
    ending: str = "\n"
    packed: str = ""
    block: int = 1 << 22
    piece: int = 1 << 27
    scale: tuple[float, float, float | None] = _WIDE
    #: Of more rows than this, columns are numbered by several threads and sorted as those of large files are.
    few: int = 4096
    #: Users, items and places of fewer bits are sorted as one number.
    key_bits: int = 63

    def rows(self, present: int) -> list[FileRow | str]:
        """Return the rows in order, with those of the strangers whose bits are set."""
        added = [entry for bit, own in enumerate(self.strangers) if present >> bit & 1 for entry in own]
        rows: list[FileRow | str] = list(self.others)
        # From the end on, so that places are those among the other users' rows.
        for place, row in sorted(added, key=lambda entry: -entry[0]):
            rows.insert(place, row)
        return rows


@final
@dataclass(slots=True)
class RowSearch:
    """The number of pairs, how many of them could be read, and the cases that differ."""

    pairs: int = 0
    readable: int = 0
    differences: list[Case] = field(default_factory=list)
    by_form: Counter[str] = field(default_factory=Counter)
    #: A digest of everything that was read; it does not depend on the number of threads.
    digest: str = ""


def _quoted(text: str, delimiter: str, *, always: bool) -> str:
    needs = always or delimiter in text or '"' in text
    return '"' + text.replace('"', '""') + '"' if needs else text


def _text(case: Case, rows: list[FileRow | str], chance_to_quote: bool) -> bytes:
    schema = case.schema
    lines = [*_TITLE[: schema.skip_rows], *([schema.delimiter.join(schema.columns)] * schema.header)]
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
    lines = [row if isinstance(row, str) else json.dumps(_keys(case, row)) for row in rows]
    return "".join(line.replace("\n", " ") + case.ending for line in lines).encode()


def _keys(case: Case, row: FileRow) -> dict[str, Any]:
    """Return the object of a row; in nested ones, IDs are below other keys, and values have types."""
    if case.form == "json":
        return row._asdict()
    values = [frames_of_rows.value_of(cell) for cell in row]
    ids = {"by": {"user": row.user, "of": [row.time]}, "what": {"it": {"item": values[1]}}}
    return {**ids, "rating": values[2], "time": values[3]}


def _frame(case: Case, rows: list[FileRow | str], kind: str) -> pl.DataFrame:
    kept = [row for row in rows if isinstance(row, FileRow)]
    table = pl.DataFrame(kept, schema=dict.fromkeys(FileRow._fields, pl.String), orient="row")
    table = frames_of_rows.with_types(table)
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


def read_case(case: Case, folder: Path, present: int) -> Interactions:
    """Write the rows of a case, and read them with its schema, or with what its layout's name declares."""
    rows = 1 + case.block // 50
    with other_block_sizes(
        text=case.block,
        parquet=rows,
        rows=rows,
        piece=case.piece,
        ids=2 if case.block < 1000 else 1024,
        numbered_alone=case.few,
        key_bits=case.key_bits,
    ):
        return _read_case(case, folder, present)


def _read_case(case: Case, folder: Path, present: int) -> Interactions:
    rows, catalog = case.rows(present), Vocabulary.of([*ITEMS, "new"])
    options: dict[str, Any] = {"schema": case.schema, "catalog": catalog, "drop_unknown": True}
    options |= dict(zip(("low", "high", "step"), case.scale, strict=True))
    path = folder / ("ratings.csv" + (f".{case.packed}" if case.packed else ""))
    if case.form in _NAMED:
        return _of_layout(case, rows, folder, catalog)
    if case.form in frames_of_rows.KINDS:
        kept: list[Sequence[str]] = [row for row in rows if isinstance(row, FileRow)]
        return frames_of_rows.read_frame(case.form, kept, case.schema, options)
    if case.form in ("parquet", "dictionary"):
        # Rows of others are in several groups, of which one user's rows move the edges.
        _frame(case, rows, case.form).write_parquet(path, row_group_size=3 + len(rows) // 10)
        return read(path, **options | {"schema": replace(case.schema, format="parquet")})
    if case.form == "sqlite":
        return read(_in_database(rows, folder), **options)
    if case.form == "excel":
        return read(_in_book(rows, folder), **options)
    if case.form in ("folder", "hive"):
        return read(_in_folder(case, folder, present), **options)
    in_json = case.form in ("json", "nested")
    content = _json(case, rows) if in_json else _text(case, rows, case.form == "quoted")
    path.write_bytes(_packed(content, case.packed))
    if case.form == "guessed":
        return _guessed(case, path, options)
    if case.form == "shards":
        return _in_shards(path, case, catalog)
    return _in_pieces(path, case, catalog) if case.form == "pieces" else read(path, **options)


def _guessed(case: Case, path: Path, options: dict[str, Any]) -> Interactions:
    """Describe the file instead of reading it with its schema."""
    del options["schema"]
    columns = {role: case.schema.roles.get(role) for role in ("user", "item", "rating", "weight")}
    columns["time"] = f"time:{case.schema.date_order or 'day-first'}"
    rules: dict[str, Any] = {"skip_bad_lines": True, "duplicates": case.schema.duplicates}
    rules |= {"only": case.schema.only, "weights": case.schema.weights or None}
    return read(path, columns=columns, **rules, **options)


def _in_shards(path: Path, case: Case, catalog: Vocabulary) -> Interactions:
    """Return the rows of all shards, of any number, in one."""
    with TemporaryDirectory(dir=path.parent) as folder:
        reader = PieceReader(schema=case.schema, known=catalog)
        rule = "last" if case.schema.duplicates == "count" else case.schema.duplicates
        facts: dict[str, Any] = {"catalog": catalog, "low": -1e30, "high": 1e30, "duplicates": rule}
        make_shards([path], Path(folder, "out"), reader=reader, n_shards=1 + case.piece % 7, **facts)
        shards = open_shards(Path(folder, "out"))
        parts = [shards.shard(number) for number in range(shards.n_shards)]
        return Interactions.from_arrays(
            [str(one) for part in parts for one in part.users.id_at(part.rows()).tolist()],
            np.concatenate([part.catalog.id_at(part.items) for part in parts]).tolist(),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.times for part in parts if part.times is not None]),
            catalog=catalog,
            low=-1e30,
            high=1e30,
        )


#: How a layout writes a row of numbers for the user, the item, the rating and the time.
_NAMED = {
    "movielens": "{}::{}::{}::{}",
    "lightgcn": "{} {}",
    "sasrec": "{} {}",
    "recbole": "{}\t{}\t{}\t{}",
    "netflix": "{1}:{end}{0},{2},2005-01-{3}",
}
_FILES = {"recbole": "ratings.inter"}
_RECBOLE = "user_id:token\titem_id:token\trating:float\ttimestamp:float"


def _of_layout(case: Case, rows: list[FileRow | str], folder: Path, catalog: Vocabulary) -> Interactions:
    """Write numbers of users and items as a layout does, and read them by its name."""
    numbers = {item: str(place) for place, item in enumerate(catalog.ids.tolist())}
    lines = [_RECBOLE] * (case.form == "recbole")
    for row in rows:
        if not isinstance(row, str):
            numbered = _numbered(row, numbers, netflix=case.form == "netflix")
            lines.append(_NAMED[case.form].format(*numbered, end=case.ending))
        elif case.form != "netflix":
            # No line of that layout can be skipped.
            lines.append(row)
    path = folder / _FILES.get(case.form, "ratings.dat")
    plain = [line if case.form == "netflix" else line.replace("\n", " ") for line in lines]
    path.write_bytes("".join(line + case.ending for line in plain).encode())
    facts: dict[str, Any] = {"catalog": range(len(numbers)), "drop_unknown": True}
    rated = case.form not in ("lightgcn", "sasrec")
    facts |= {"low": -1e30, "high": 1e30} if rated else {"implicit": True}
    rules: dict[str, Any] = {"skip_bad_lines": case.form != "netflix", "duplicates": case.schema.duplicates}
    return read(path, layout=case.form, **rules, **facts)


def _numbered(row: FileRow, items: dict[str, str], *, netflix: bool) -> FileRow:
    """Return a row with numbers for IDs, of which no other user has a stranger's."""
    item = items.get(row.item, "6" if netflix else row.item)
    known = row.user in _USERS
    user = str(10 + _USERS.index(row.user) if known else 90 + STRANGERS.index(row.user))
    if netflix:
        return FileRow(user, item, str(1 + len(row.rating) % 5), str(10 + len(row.time) % 20))
    # The layouts have no dates.
    time = row.time if row.time.isdigit() or not known else "5"
    return row._replace(user=user, item=item, time=time)


def _in_database(rows: list[FileRow | str], folder: Path) -> str:
    """Write rows to a table whose columns have no type, so that cells have types of their own."""
    path = folder / "ratings.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(f"CREATE TABLE rated ({', '.join(FileRow._fields)})")
        kept = [row for row in rows if isinstance(row, FileRow)]
        cells = [[frames_of_rows.value_of(cell) for cell in row] for row in kept]
        base.executemany("INSERT INTO rated VALUES (?, ?, ?, ?)", [[*map(_cell, row)] for row in cells])
        base.execute("UPDATE rated SET item = CAST(X'ff41' AS TEXT) WHERE item = 'x y z'")
    return f"{path}::rated"


def _in_book(rows: list[FileRow | str], folder: Path) -> Path:
    """Write rows to a spreadsheet, whose cells have types of their own."""
    book = import_module("openpyxl").Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(FileRow._fields)
    for row in rows:
        if isinstance(row, FileRow):
            sheet.append([_in_sheet(frames_of_rows.value_of(cell)) for cell in row])
    book.save(folder / "ratings.xlsx")
    return folder / "ratings.xlsx"


def _in_sheet(value: Any) -> Any:
    """Return a value that a spreadsheet can store."""
    dates = {"2005-03-01": datetime(2005, 3, 1), "1.5": True, "{": "=1/0", "[1]": time_of_day(3, 4)}
    is_number = isinstance(value, float) and not math.isfinite(value)
    text = str(value) if is_number or isinstance(value, str) else None
    return value if text is None else dates.get(text, "".join(one for one in text if one >= " "))


def _cell(value: Any) -> Any:
    """Return a value that SQLite can store; whole numbers have 64 bits there."""
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def _in_folder(case: Case, folder: Path, present: int) -> Path:
    """Write the others to two files, and each stranger to one, which is empty without their rows."""
    place = folder / case.form
    place.mkdir(exist_ok=True)
    half = len(case.others) // 2
    parts: list[list[FileRow | str]] = [list(case.others[:half]), list(case.others[half:])]
    for bit, own in enumerate(case.strangers):
        listed = [row for _, row in sorted(own, key=lambda entry: entry[0])]
        parts.insert(1, listed if present >> bit & 1 else [])
    for number, rows in enumerate(parts):
        # In hive partitions the path has the time of all rows of a file.
        below = place / f"time={100 + number}" if case.form == "hive" else place
        below.mkdir(exist_ok=True)
        cut = [row if isinstance(row, str) else FileRow(*row[:3], "") for row in rows]
        (below / f"{number}.csv").write_bytes(_text(case, cut if case.form == "hive" else rows, False))
    return place


def _in_pieces(path: Path, case: Case, catalog: Vocabulary) -> Interactions:
    reader = PieceReader(schema=case.schema)
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
    return str(user) not in _USERS and str(user) not in _NUMBERS


Reader = Callable[..., Interactions]


class OthersRead(NamedTuple):
    """What was read of the other users, and the schema if something of it was guessed.

    Instead of rows, a rejected file has the code of the error.
    """

    others: list[tuple[Any, ...]] | str
    guess: Schema | None


def attempt(case: Case, folder: Path, reader: Reader, present: int) -> OthersRead:
    """Return what was read with these strangers, or why the file is rejected."""
    try:
        data = reader(case, folder, present)
    except EmptyData:
        return OthersRead([], None)
    except DiscreetError as error:
        return OthersRead(error.code, None)
    is_guessed = data.schema is not None and bool(data.schema.guessed)
    return OthersRead(others_of(data), data.schema if is_guessed else None)


FORMS = (
    *("text", "quoted", "pieces", "folder", "hive", "json", "nested", "parquet", "dictionary", "guessed"),
    *("shards", "sqlite", *frames_of_rows.KINDS),
    *(["excel"] if find_spec("openpyxl") else []),
    *_NAMED,
)
_TEXTS = ("text", "quoted", "pieces", "folder", "hive", "guessed", "shards")
# Forms that take far longer than others.
_SLOW = {"shards": 0.02, "duckdb": 0.3}
# Forms that are read with rules for ratings off the scale.
_SCALED = ("text", "quoted", "folder", "json", "parquet", "dictionary", "typed", "arrow", "sqlite", "excel")
_ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16-le", "utf-16-be", "cp437", "koi8-r")


def drawn(chance: random.Random, forms: Sequence[str] = FORMS, large: float = 0.001) -> Case:
    """Return a case: any form, encoding, delimiter, rule and size, with a stranger whose rows are odd."""
    form = chance.choices(forms, [_SLOW.get(form, 1.0) for form in forms])[0]
    text = form in _TEXTS
    delimiter = chance.choice(",,;\t|") if form != "text" or chance.random() < 0.8 else "::"
    repeated = chance.random() < 0.35
    weighted = repeated or chance.random() < 0.4
    roles = {"user": "user", "item": "item", "time": "time", "weight" if weighted else "rating": "rating"}
    if form == "guessed":
        delimiter = ","
    if form == "nested":
        roles |= {"user": "by.user", "item": "what.it.item"}
    kinds = {"json": "json", "nested": "json", "sqlite": "cells", "excel": "cells"}
    scale = chance.choice((_WIDE, _STARS)) if not weighted and form in _SCALED else _WIDE
    schema = Schema(
        format=kinds.get(form, "text" if text else "frame"),
        off_scale=chance.choice(("clip", "drop")) if scale == _STARS else "reject",
        keys=("time",) if form == "hive" else (),
        encoding=chance.choice(_ENCODINGS) if text and form != "guessed" else "utf-8",
        delimiter=delimiter if text else ",",
        quote=chance.choice(('"', '"', '"', "", "'")) if form != "quoted" else '"',
        escape=chance.choice(("", "", "\\")),
        comment=chance.choice(("", "", "#")),
        header=form == "guessed" or (text and chance.random() < 0.5),
        columns=FileRow._fields,
        user_type=chance.choice(("text", "integer")) if form == "numbers" else "text",
        date_order=chance.choice(("", "day-first", "month-first")),
        time_zone=chance.choice(("UTC", "UTC", "Europe/Berlin")),
        decimal=chance.choice(("either", "point", "comma")),
        duplicates=chance.choice(_RULES[2:] if repeated else _RULES),
        bad_rows="drop",
        zeros=chance.choice(("ratings", "missing")),
        **roles,  # type: ignore[arg-type]
    )
    is_large = chance.random() < large
    few = (48, 60) if repeated else (1, 3, 3, 12, 12, 40)
    count = chance.choice(_LARGE if is_large else few)
    ratings: tuple[str, ...] = _WEIGHTS if weighted else _RATINGS
    if scale == _STARS and chance.random() < 0.75:
        # A rating between the steps is a stranger's then.
        ratings = _ON_SCALE
    case = Case(
        form=form,
        schema=schema,
        others=_repeated(chance, count) if repeated else _others(chance, count, ratings),
        scale=scale,
        ending=chance.choice(("\n", "\n", "\r\n")),
        packed=chance.choice(("", "", "gz", "zip")) if form in ("text", "quoted", "json", "nested") else "",
        # The stranger's rows decide on which side of such a limit a file is.
        few=chance.choice((4096, 0, count, count if repeated else count // 2)),
        key_bits=chance.choice((63, 12, 0)),
    )
    # One long stranger at most: every subset of them is read.
    long = chance.choice(STRANGERS) if not is_large and chance.random() < large else ""
    strangers = tuple(_stranger(case, user, chance, is_long=user == long) for user in STRANGERS)
    if form not in _NAMED and chance.random() < 0.3:
        case = replace(case, schema=case.schema.changed(only=_conditions(chance, case)))
    if weighted and form not in _NAMED and chance.random() < 0.3:
        case = replace(case, schema=case.schema.changed(weights=_weights(chance, case)))
    if text and form != "guessed" and chance.random() < 0.2:
        case = replace(case, schema=case.schema.changed(skip_rows=len(_TITLE)))
    is_short = count + max(map(len, strangers)) < 40
    # A small block of a long file takes long, and shows nothing that it doesn't show in a short one.
    sizes = (100, 300, 1 << 22, 1 << 22) if is_short else (1 << 16, 1 << 22) if is_large else _BLOCKS
    block = chance.choice(sizes)
    piece = chance.choice((100, 300, 1 << 27)) if is_short else 1 << chance.choice((9, 15, 27))
    return replace(case, strangers=strangers, block=block, piece=piece)


def _conditions(chance: random.Random, case: Case) -> tuple[str, ...]:
    """Return conditions on one or two columns, which skip some rows of others and of strangers."""
    schema = case.schema
    values: dict[str, tuple[str, ...]] = {
        schema.item: ("i1", "i2", "été", "7"),
        schema.weight or schema.rating: ("3", "5", "1e17", "2"),
    }
    if schema.keys:
        values = {schema.time: ("100", "101", "103")}
    if case.form in ("typed", "parquet", "dictionary"):
        values |= frames_of_rows.TYPED_CONDITIONS
    chosen = chance.sample(list(values.items()), chance.randint(1, min(2, len(values))))
    return tuple(f"{name}={value}" for name, own in chosen for value in own)


def _weights(chance: random.Random, case: Case) -> tuple[str, ...]:
    """Return what values of the column of weights weigh; rows with others are skipped."""
    column, values = case.schema.weight, chance.sample(_WEIGHTS, chance.randint(1, len(_WEIGHTS)))
    others = (f"{column}={value}:{chance.choice((0.3, 1, 5, 0))}" for value in values[1:])
    return (f"{column}={values[0]}:2", *others)


def _stranger(
    case: Case, user: str, chance: random.Random, *, is_long: bool
) -> tuple[tuple[int, FileRow | str], ...]:
    """Return the rows of a stranger, and odd lines, each with its place among the others."""
    ratings = _WEIGHTS if case.schema.weight else _RATINGS
    own = 4096 if is_long else chance.choice((1, 1, 2, 5))
    rows: list[FileRow | str] = [_odd_row(chance, user, ratings) for _ in range(own)]
    odd = chance.choice((0, 0, 1, 2)) if case.form in (*_TEXTS, *_NAMED) else 0
    rows += [_odd_line(chance, user, case.schema.delimiter) for _ in range(odd)]
    # The first line decides most, where one does; rows at the end leave a sorted file sorted.
    last = len(case.others)
    return tuple((chance.choice((0, last, chance.randrange(last + 1))), row) for row in rows)


def _others(chance: random.Random, count: int, ratings: tuple[str, ...]) -> tuple[FileRow, ...]:
    """Return rows of the other users, mostly of different pairs."""
    # Dates take far longer than numbers.
    times = _TIMES if chance.random() < 0.3 and count < _LARGE[0] else _MOMENTS
    return tuple(_row(chance, chance.choice(_USERS), ratings, times) for _ in range(count))


def _repeated(chance: random.Random, count: int) -> tuple[FileRow, ...]:
    """Return rows of a few pairs whose huge weights cancel, in order or not.

    Small weights are what is left of a sum, if it is exact. Otherwise the order of its rows decides.
    """
    pairs, rows = list(product(_USERS[:2], ITEMS[:2])), list[FileRow]()
    for place in range(count):
        # Weights of a pair are huge, its opposite and a small one in turn.
        turn = place // len(pairs) % 3
        weight = _WEIGHTS[turn] if turn < 2 else chance.choice(_WEIGHTS[2:])
        rows.append(FileRow(*pairs[place % len(pairs)], weight, chance.choice(_MOMENTS)))
    chance.shuffle(rows)
    return tuple(sorted(rows, key=lambda row: row[:2]) if chance.random() < 0.5 else rows)


def _row(chance: random.Random, user: str, ratings: tuple[str, ...], times: tuple[str, ...]) -> FileRow:
    item = chance.choice(ITEMS if chance.random() < 0.9 else _ODD)
    return FileRow(user, item, chance.choice(ratings), chance.choice(times))


def _odd_row(chance: random.Random, user: str, ratings: tuple[str, ...]) -> FileRow:
    row = list(_row(chance, user, ratings, _MOMENTS))
    for place in range(1, 4):
        if chance.random() < 0.4:
            row[place] = chance.choice((*_ODD, *_TIMES, *_WEIGHTS))
    return FileRow(*row)


def _odd_line(chance: random.Random, user: str, delimiter: str) -> str:
    """Return a line with a stranger's ID that may not be a row: quotes, delimiters and controls anywhere."""
    parts = [user, *(chance.choice((*_ODD, *ITEMS, "3", "7")) for _ in range(chance.randrange(1, 6)))]
    first = chance.choice(("", '"', "#", "'", "\ufeff", *_BEGINNINGS))
    return first + chance.choice((delimiter, delimiter, '"' + delimiter, "")).join(parts)


def search(
    pairs: int,
    seed: int = 0,
    *,
    reader: Reader | None = None,
    forms: Sequence[str] = FORMS,
    large: float = 0.001,
    stop: bool = False,
) -> RowSearch:
    """Compare at least so many pairs of files; with `stop`, end at the first difference."""
    chance, result, read_one = random.Random(seed), RowSearch(), reader or read_case
    digest, subsets = hashlib.sha256(), range(2 ** len(STRANGERS))
    with TemporaryDirectory() as folder:
        while result.pairs < pairs:
            case = drawn(chance, forms, large)
            readings = [
                attempt(case, Path(folder), read_one, subset) for subset in range(2 ** len(STRANGERS))
            ]
            digest.update(repr(readings).encode())
            for without, bit in product(subsets, range(len(STRANGERS))):
                if without >> bit & 1:
                    continue
                one, other = readings[without], readings[without | 1 << bit]
                # A guess is a condition of the guarantee: files with other guesses aren't neighbors.
                is_read = bool(one.others and other.others) and one.guess == other.guess
                is_read &= not isinstance(one.others, str) or not isinstance(other.others, str)
                result.pairs += 1
                result.readable += is_read
                result.by_form[case.form] += is_read
                if is_read and one != other:
                    result.differences.append(case)
                    if stop:
                        return result
    result.digest = digest.hexdigest()
    return result
