"""Read spreadsheets and tables of databases: each cell becomes a text, and is read as that text.

Cells of Excel and columns of SQLite have no common type, so one user's cell must not decide how the cells of
others are read. Rows of a database have no order, so they are sorted by what is read of them.
An address is `book.xlsx`, `book.xlsx::SHEET`, `shop.db::TABLE` (SQLite or DuckDB), or `postgresql://...::TABLE`.
In place of a table's name, a query may be given.
"""

from __future__ import annotations

import re
import sqlite3
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import date
from decimal import Decimal
from importlib import import_module
from itertools import islice
from os import environ
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote

from discreet.core import logger, without_password
from discreet.core.checks import DiscreetError
from discreet.core.exports import pl
from discreet.data import errors
from discreet.data.block_sizes import block_sizes
from discreet.data.reading.blocks import ZIP
from discreet.data.reading.columns import Columns
from discreet.data.reading.frames import read_blocks
from discreet.data.reading.limits import Allowance
from discreet.data.schema import Schema
from discreet.data.vocabulary import readable_text

_POSTGRESQL = re.compile(r"postgres(ql)?:/{1,2}")
_SQLITE, _DUCKDB = b"SQLite format 3\x00", b"DUCK"
_FIRST_ROWS = 100
# A database hands over so many rows at once.
_AT_ONCE = 4096
# So many of its rows may be above the header.
_FEW_ROWS = 20
_QUERY = re.compile(r"\s*(select|with|from|values)\b", re.I)
# What may let one user's row decide about rows of others.
_ACROSS = re.compile(r"\b(?:limit|offset|fetch|having|distinct|group\s+by|over|qualify)\b", re.I)
_SELECT, _QUOTED = re.compile(r"\bselect\b", re.I), re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_TABLES = {
    "SQLite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'",
    "DuckDB": "SELECT table_name FROM information_schema.tables",
    "PostgreSQL": "SELECT CASE WHEN table_schema = current_schema() THEN '' ELSE table_schema || '.' END "
    "|| table_name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', "
    "'information_schema')",
}
# Queries for the names of views and their own queries.
_VIEWS = {
    "SQLite": "SELECT name, sql FROM sqlite_master WHERE type = 'view'",
    "DuckDB": "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal",
    "PostgreSQL": "SELECT viewname, definition FROM pg_views WHERE schemaname NOT IN ('pg_catalog', "
    "'information_schema') UNION ALL SELECT matviewname, definition FROM pg_matviews",
}
# Types of PostgreSQL of which Python can't represent every value.
_AS_TEXT = ("date", "timestamp", "timestamptz", "time", "timetz", "interval", "json", "jsonb")
# Types of DuckDB of which Python can't represent every value, or only with another package.
_ZONE_OR_SPAN = re.compile("WITH TIME ZONE|INTERVAL")
# Codes of PostgreSQL: columns, tables, schemas and functions that aren't there; rights; the grammar.
_STATES = dict.fromkeys(("42703", "42P01", "3F000", "42883"), "name")
_STATES |= {"42501": "permission", "42601": "syntax"}
Rows = Iterator[Sequence[Any]]


class Address(NamedTuple):
    """Where cells are: a kind of file or database, its path or URL, and a sheet, table or query."""

    kind: str
    place: str
    table: str
    #: Rows of a sheet above its header.
    skip: int = 0

    @property
    def name(self) -> str:
        """Return a name for the ledger: all tables and queries of one database are about the same users."""
        return _database(self.place) if self.kind == "PostgreSQL" else Path(self.place).stem

    @property
    def query(self) -> str:
        """Return the query in place of a table, or an empty text."""
        return self.table if is_query(self.table) else ""

    @property
    def shown(self) -> str:
        """Return the file for a message; a URL may contain a password."""
        return "ADDRESS" if self.kind == "PostgreSQL" else self.place


def _database(url: str) -> str:
    """Return the name of a database, which is that of its user by default, and never a password."""
    place, _, parameters = url.partition("://")[2].partition("?")
    user, _, host = place.rpartition("@")
    given = parse_qs(parameters)
    named = [unquote(host.partition("/")[2]), *given.get("dbname", []), *given.get("user", [])]
    usual = [unquote(user.partition(":")[0]), environ.get("PGDATABASE", ""), environ.get("PGUSER", "")]
    return next(filter(None, [*named, *usual]), "database")


def is_query(table: str) -> bool:
    """Return whether a text is a query in place of a table."""
    return _QUERY.match(table) is not None


def query_behind(address: Address) -> str:
    """Return the query that makes the rows at an address, which may be that of a view, or an empty text."""
    if address.query or address.kind not in _VIEWS:
        return address.query
    with _opened(address._replace(table=_VIEWS[address.kind])) as (_, rows):
        views = {str(name).lower(): str(query) for name, query in rows}
    # Without a name, the only table is read.
    name = address.table.rpartition(".")[2].lower() or next(iter(views), "")
    return views.get(name, "")


def warn_of(query: str) -> None:
    """Warn if the words of a query show that it may look at the rows of several users."""
    plain = _QUOTED.sub("", query)
    found = sorted({" ".join(word.upper().split()) for word in _ACROSS.findall(plain)})
    found += ["a second SELECT"] * (len(_SELECT.findall(plain)) > 1)
    if found:
        logger.warning(
            "The query has %s, with which one user's rows may decide about others' rows. Then the guarantee "
            "doesn't apply. Select columns and whole rows, with conditions on the row itself only.",
            ", ".join(found),
        )


def address_of(source: str | Path) -> Address | None:
    """Return the address of cells; None for a file of another kind."""
    place, _, table = str(source).partition("::")
    if _POSTGRESQL.match(place):
        # A path has no double slash.
        return Address("PostgreSQL", _POSTGRESQL.sub("postgresql://", place, count=1), table)
    kind = _kind(Path(place))
    return None if kind is None else Address(kind, place, table)


def absent_part(source: str | Path) -> str:
    """Return what does not exist of a source that can't be found: the file of an address, or all of it."""
    shown = without_password(source)
    place = shown.partition("::")[0]
    return shown if Path(place).exists() else place


def _kind(file: Path) -> str | None:
    with suppress(OSError):
        if not file.is_file():
            return None
        with file.open("rb") as opened:
            first = opened.read(16)
        if first == _SQLITE:
            return "SQLite"
        if first[8:12] == _DUCKDB:
            return "DuckDB"
        if first.startswith(ZIP):
            with suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as archive:
                return "Excel" if "xl/workbook.xml" in archive.namelist() else None
    return None


def read_cells(address: Address, schema: Schema) -> Columns:
    """Return the rows of a table of cells, each read by itself."""
    try:
        table = read_texts(
            address._replace(skip=schema.skip_rows), list(dict.fromkeys(schema.needed.values()))
        )
    except errors.NoColumn:
        refuse_first_row(address)
        raise
    if address.kind != "Excel":
        table = table.sort(table.columns, nulls_last=True)
    found = {key: table[name] for key, name in schema.needed.items()}
    is_sheet = address.kind == "Excel"
    # A database has many tables, and returns rows in any order.
    name = address.name if is_sheet else "the query" if address.query else f"table {address.table}"
    # Blank rows among the data aren't counted.
    above = schema.skip_rows + 1 if is_sheet else None
    return read_blocks(iter([found]), schema, name if address.table else address.name, above=above)


def read_texts(address: Address, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the named columns of a table as texts, each cell converted by itself; blank cells are null."""
    with _opened(address) as (columns, rows):
        header = ["" if name is None else str(name) for name in columns]
        known = [name for name in header if name]
        wanted = known if names is None else names
        for name in wanted:
            if name not in known:
                raise errors.NoColumn(column=name, role="table", columns=tuple(known), spare=True)
            if known.count(name) > 1:
                raise errors.ColumnsAlike(column=name, count=known.count(name))
        places = [header.index(name) for name in wanted]
        kept = {header[place]: pl.String for place in places}
        parts = [pl.DataFrame(schema=kept)]
        while block := list(islice(rows, block_sizes().rows)):
            texts = ([cell_text(row[k]) if k < len(row) else None for row in block] for k in places)
            parts.append(pl.DataFrame(dict(zip(kept, texts, strict=True)), schema=kept))
    return pl.concat(parts)


def cell_text(cell: Any) -> str | None:
    """Return one cell as text: a whole number without a point, a date in ISO form."""
    if type(cell) is int:
        return str(cell)
    if cell is None or isinstance(cell, bytes | memoryview) or cell != cell:
        return None
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float | Decimal):
        number = float(cell)
        is_whole = abs(number) < 2**63 and cell == int(cell)
        return str(int(cell)) if is_whole else str(cell)
    text = cell.isoformat() if isinstance(cell, date) else str(cell)
    return readable_text(text.strip()) or None


@contextmanager
def _opened(address: Address) -> Iterator[tuple[Sequence[Any], Rows]]:
    """Yield the names of the columns, and the rows."""
    opener = {"Excel": _excel, "SQLite": _sqlite, "DuckDB": _duckdb, "PostgreSQL": _postgresql}[address.kind]
    with opener(address) as found:
        yield found


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise errors.PackageMissing(package=name, extra=extra) from error


@contextmanager
def _excel(address: Address) -> Iterator[tuple[Sequence[Any], Rows]]:
    openpyxl, file = _package("openpyxl", "excel"), Path(address.place)
    budget = Allowance(file)
    with zipfile.ZipFile(file) as archive:
        budget.take_bytes(sum(member.file_size for member in archive.infolist()))
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    # The library raises whatever its XML reader does.
    except Exception as error:
        raise errors.UnreadableCells(kind="Excel", source=file.name) from error
    with closing(book):
        sheets = book.sheetnames
        if address.table and address.table not in sheets:
            raise errors.NoTable(kind="Excel", place=str(file), table=address.table, tables=tuple(sheets))
        found = book[address.table or sheets[0]]
        # An error that is kept would otherwise keep the file open.
        below = islice(found.iter_rows(values_only=True), address.skip, None)
        with closing(_filled(below, budget, file.name)) as rows:
            yield next(rows, ()), rows


def refuse_first_sheet(address: Address) -> None:
    """Raise if a book has several sheets and none is named, because its first sheet isn't a table."""
    if address.kind == "Excel" and not address.table:
        with closing(_package("openpyxl", "excel").load_workbook(address.place, read_only=True)) as book:
            if len(book.sheetnames) > 1:
                raise errors.NoTable(
                    kind="Excel", place=address.place, table="", tables=tuple(book.sheetnames)
                )


def rows_above_header(address: Address, is_header: Callable[[list[str]], bool]) -> int:
    """Return how many rows of a sheet are above its header; 0 if its first filled row is the header.

    Rows above have fewer cells than the header.
    """
    if address.kind != "Excel":
        return 0
    with _opened(address._replace(skip=0)) as (columns, rows):
        top = [columns, *islice(rows, _FEW_ROWS)]
    for place, row in enumerate(top):
        names = [str(cell) for cell in row if cell is not None]
        above = max(map(_count_filled, top[:place]), default=0)
        if above < len(names) and is_header(names):
            return place and _place_of(address, row)
    return 0


def _place_of(address: Address, wanted: Sequence[Any]) -> int:
    """Return the number of rows above a row, blank ones included."""
    openpyxl = _package("openpyxl", "excel")
    with closing(openpyxl.load_workbook(address.place, read_only=True, data_only=True)) as book:
        rows = book[address.table or book.sheetnames[0]].iter_rows(values_only=True)
        return next(place for place, row in enumerate(rows) if row == wanted)


def refuse_first_row(address: Address) -> None:
    """Raise if the first row of a sheet is a title and not the header: rows have far more cells than it."""
    if address.kind != "Excel":
        return
    with _opened(address) as (columns, rows):
        top = [columns, *islice(rows, _FIRST_ROWS)]
    names = _count_filled(columns)
    widest = max(map(_count_filled, top[1:]), default=0)
    # A column of row numbers often has no name.
    narrow = [row for row in top if _count_filled(row) <= max(1, widest - 2)]
    if not names or (names < widest and columns in narrow):
        header = next((row for row in top if row not in narrow), None)
        raise errors.HeaderNotFound(
            source=f"{address.place}::{address.table}".rstrip(":"),
            names=names,
            cells=widest,
            above=0 if header is None else _place_of(address, header),
        )


def _count_filled(row: Sequence[Any]) -> int:
    return sum(cell is not None for cell in row)


def _filled(rows: Rows, budget: Allowance, name: str) -> Generator[Sequence[Any], None, None]:
    """Yield the rows that aren't blank; the error of the library for a damaged cell quotes it."""
    try:
        for row in rows:
            if any(cell is not None for cell in row):
                budget.take_rows(1)
                yield row
    except DiscreetError:
        raise
    except Exception:
        raise errors.UnreadableCells(kind="Excel", source=name) from None


@contextmanager
def _sqlite(address: Address) -> Iterator[tuple[Sequence[Any], Rows]]:
    # Read-only, and without waiting for those who write.
    url = f"file:{quote(address.place)}?mode=ro"
    connection = sqlite3.connect(url, uri=True, timeout=5)
    connection.text_factory = _text_or_bytes
    with closing(connection), _queried(address, sqlite3.Error, connection.execute) as found:
        yield found


def _text_or_bytes(raw: bytes) -> str | bytes:
    """Return a cell that may not be UTF-8; one such cell must not reject the table."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


@contextmanager
def _duckdb(address: Address) -> Iterator[tuple[Sequence[Any], Rows]]:
    duckdb = _package("duckdb", "duckdb")
    try:
        connection = duckdb.connect(address.place, read_only=True)
        connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    except duckdb.Error as error:
        raise errors.UnreadableCells(kind="DuckDB", source=Path(address.place).name) from error

    def execute(query: str) -> Any:
        query = query.rstrip("; \n")
        described = connection.sql(query)
        columns = zip(described.columns, described.types, strict=True)
        as_text = [
            '"' + name.replace('"', '""') + '"' for name, kind in columns if _ZONE_OR_SPAN.search(str(kind))
        ]
        replaced = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in as_text)
        return connection.execute(f"SELECT * REPLACE ({replaced}) FROM ({query})" if as_text else query)

    with connection, _queried(address, duckdb.Error, execute) as found:
        yield found


@contextmanager
def _postgresql(address: Address) -> Iterator[tuple[Sequence[Any], Rows]]:
    psycopg = _package("psycopg", "postgresql")
    options = "-c default_transaction_read_only=on -c datestyle=ISO -c timezone=UTC"
    try:
        connection = psycopg.connect(address.place, options=options, autocommit=True)
    except psycopg.Error as error:
        # The error may repeat the URL with its password, so it isn't shown as the cause either.
        raise errors.UnreadableCells(
            kind="PostgreSQL", source="the database", why=_no_connection(error)
        ) from None
    # One user's date that Python doesn't have must not reject the table: it is a text that isn't a time.
    for kind in _AS_TEXT:
        connection.adapters.register_loader(kind, psycopg.types.string.TextLoader)
    with connection, _queried(address, psycopg.Error, connection.execute) as found:
        yield found


@contextmanager
def _queried(
    address: Address, failure: type[Exception], execute: Callable[[str], Any]
) -> Iterator[tuple[Sequence[Any], Rows]]:
    """Yield what a table or a query contains; the words of a database may quote a row, and are not shown."""
    try:
        table = address.table or _only_table(address, execute)
        names = ('"' + name.replace('"', '""') + '"' for name in table.split("."))
        cursor = execute(address.query or f"SELECT * FROM {'.'.join(names)}")
        yield [entry[0] for entry in cursor.description], _fetched(cursor)
    except (failure, OverflowError) as error:
        with suppress(failure):
            _refuse_absent(address, execute)
        # Codes of SQL name a rule, and quote nothing.
        why = _STATES.get(getattr(error, "sqlstate", None) or "", "query")
        source = address.table or address.name
        raise errors.UnreadableCells(kind=address.kind, source=source, why=why) from None


def _fetched(cursor: Any) -> Rows:
    while rows := cursor.fetchmany(_AT_ONCE):
        yield from rows


def _no_connection(error: Exception) -> str:
    """Return why no connection was made; only a server that answers has a severity, in any language."""
    if not isinstance(error, _package("psycopg", "postgresql").OperationalError):
        return "address"
    return "rejected" if "FATAL" in str(error) else "unreachable"


def _only_table(address: Address, execute: Callable[[str], Any]) -> str:
    tables = _tables(address, execute)
    if len(tables) != 1:
        raise errors.NoTable(kind=address.kind, place=address.shown, table="", tables=tables)
    return tables[0]


def _tables(address: Address, execute: Callable[[str], Any]) -> tuple[str, ...]:
    return tuple(sorted(str(row[0]) for row in execute(_TABLES[address.kind]).fetchall()))


def _refuse_absent(address: Address, execute: Callable[[str], Any]) -> None:
    """Raise if a table is named that the database doesn't have."""
    tables = _tables(address, execute)
    known = {name.rpartition(".")[2].lower() for name in tables}
    if not address.query and address.table.rpartition(".")[2].lower() not in known:
        raise errors.NoTable(
            kind=address.kind, place=address.shown, table=address.table, tables=tables
        ) from None
