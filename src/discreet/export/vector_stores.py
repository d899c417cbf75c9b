"""Load item vectors into PostgreSQL with pgvector, or into Qdrant: a live server, or files to take along.

Everything written is released already, so it costs nothing; a user's vector is made when it is asked for
(`FittedModel.search_vector`) and is never stored here. A store is filled as a whole or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.core import ExtraMissing, Singles
from discreet.core.exports import pl
from discreet.models import (
    BadStoreName,
    NotOurTable,
    NulInId,
    PgvectorMissing,
    StoreUnusable,
    TableExists,
    TableInUse,
)

if TYPE_CHECKING:
    from discreet.data import Vocabulary
    from discreet.models import PublicColumns

# Links of each item, and candidates looked at while it is added: twice the usual, to agree with exact search.
LINKS, CANDIDATES = 32, 400
#: The folder and the script that files to take along are written to.
QDRANT, SQL = "qdrant", "items.sql"
# The longest vectors that pgvector makes an index for; longer ones are searched one by one, which is exact.
_LONGEST_INDEXED = 2000
_ROWS = 1 << 12
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")
# Columns that are ours, and those that PostgreSQL keeps for itself.
_TAKEN = {"place", "item", "vector", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTable:
    """What a store gets: items with equally long vectors, the label, and the name to store them under.

    `public` has titles and other texts of items; a column whose name is taken gets another one.
    """

    catalog: Vocabulary
    vectors: Singles
    label: dict[str, Any]
    name: str = "items"
    public: PublicColumns = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadStoreName(value=self.name[:60])

    def columns(self) -> dict[str, list[str | None]]:
        """Return the public columns under names of their own; None where nothing is known."""
        found: dict[str, list[str | None]] = {}
        for name, texts in self.public.items():
            while name.lower() in _TAKEN or name in found:
                name += "_"
            found[name] = [text or None for text in texts]
        return found

    def copy_lines(self) -> Iterator[str]:
        """Give the rows as PostgreSQL's COPY reads them: place, item, vector, public columns."""
        columns = list(self.columns().values())
        for start in range(0, len(self.vectors), _ROWS):
            part = self.vectors[start : start + _ROWS]
            written = pl.Series(part, dtype=pl.Array(pl.Float32, part.shape[1]))
            texts = written.arr.to_list().cast(pl.List(pl.String)).list.join(",")
            ids = self.catalog.ids[start : start + _ROWS].tolist()
            for place, (item, text) in enumerate(zip(ids, texts, strict=True), start):
                beside = "".join(f"\t{_escaped(column[place])}" for column in columns)
                yield f"{place}\t{_escaped(item)}\t[{text}]{beside}\n"

    def create_sql(self) -> tuple[str, str]:
        """Return the statements that make the table, with its label as a comment, and the one for COPY."""
        kind = "text" if self.catalog.is_text else "bigint"
        label = json.dumps(self.label).replace("'", "''")
        names = [_quoted(name) for name in self.columns()]
        texts = "".join(f", {name} text" for name in names)
        create = (
            "CREATE EXTENSION IF NOT EXISTS vector;\n"
            f'CREATE TABLE "{self.name}" (place integer PRIMARY KEY, item {kind} UNIQUE NOT NULL, '
            f"vector vector({self.vectors.shape[1]}) NOT NULL{texts});\n"
            f"COMMENT ON TABLE \"{self.name}\" IS '{label}';\n"
        )
        listed = ", ".join(["place", "item", "vector", *names])
        return create, f'COPY "{self.name}" ({listed}) FROM STDIN'

    def index_sql(self) -> str:
        """Return the statement for the index, or nothing where pgvector makes none for such long vectors."""
        if self.vectors.shape[1] > _LONGEST_INDEXED:
            return ""
        return (
            f'CREATE INDEX ON "{self.name}" USING hnsw (vector vector_ip_ops) '
            f"WITH (m = {LINKS}, ef_construction = {CANDIDATES});\n"
        )


def _quoted(name: str) -> str:
    """Return the name of a column as SQL, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _escaped(item: str | int | None) -> str:
    if item is None:
        return "\\N"
    if isinstance(item, int):
        return str(item)
    if "\0" in item:
        raise NulInId()
    found = item.replace("\\", "\\\\").replace("\t", "\\t")
    return found.replace("\n", "\\n").replace("\r", "\\r")


def write_pgvector(table: VectorTable, folder: Path) -> None:
    """Write a script that `psql` reads: all in one transaction, and nothing after the first error.

    If COPY could not begin, psql would read its lines as statements, and ids are written by strangers.
    """
    create, copy = table.create_sql()
    with (folder / SQL).open("w", encoding="utf-8", newline="\n") as script:
        script.write("\\set ON_ERROR_STOP on\nBEGIN;\nSET LOCAL standard_conforming_strings = on;\n")
        script.write(f"{create}{copy};\n")
        script.writelines(table.copy_lines())
        script.write(f"\\.\n{table.index_sql()}COMMIT;\n")


def load_pgvector(table: VectorTable, url: str, *, force: bool = False) -> None:
    """Make a table of items in a database, in one transaction.

    One of this name is left as it is; with `force` one of ours is replaced. It is read until the new one is
    filled, and who may read it may read the new one.
    """
    psycopg = library("psycopg", "discreet[pgvector]")
    with _said(table, psycopg), psycopg.connect(url) as connection, connection.cursor() as cursor:
        if not (force and _is_there(cursor, table)):
            _fill_table(cursor, table)
            return
        aside = replace(table, name=f"{table.name[:43]}_next")
        with _said(aside, psycopg):
            _fill_table(cursor, aside)
        grants = cursor.execute(_GRANTS, {"new": aside.name, "old": _quoted(table.name)}).fetchall()
        ends = ("_pkey", "_item_key", "_vector_idx")
        for statement in (
            *(grant for (grant,) in grants),
            f'DROP TABLE "{table.name}"',
            f'ALTER TABLE "{aside.name}" RENAME TO "{table.name}"',
            *(f'ALTER INDEX IF EXISTS "{aside.name}{end}" RENAME TO "{table.name}{end}"' for end in ends),
        ):
            cursor.execute(statement)


# Statements that grant on a new table what is granted on an old one.
_GRANTS = """
SELECT format('GRANT %%s ON %%I TO %%s', given.privilege_type, %(new)s::text,
              CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(given.grantee)) END)
FROM pg_class, aclexplode(relacl) AS given WHERE pg_class.oid = to_regclass(%(old)s)
"""


def _is_there(cursor: Any, table: VectorTable) -> bool:
    """Return whether the database has a table of ours of this name; a different one is rejected."""
    found = cursor.execute(
        "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass(%s)",
        (_quoted(table.name),),
    ).fetchone()
    if found is None:
        return False
    if not _is_label(found[0]):
        raise NotOurTable(name=table.name)
    return True


def _is_label(text: str | None) -> bool:
    """Return whether this is the label that we write next to vectors."""
    try:
        label = json.loads(text or "")
    except ValueError:
        return False
    return isinstance(label, dict) and {"model", "guarantee"} <= label.keys()


def _fill_table(cursor: Any, table: VectorTable) -> None:
    create, copy = table.create_sql()
    cursor.execute(create)
    with cursor.copy(copy) as rows:
        for line in table.copy_lines():
            rows.write(line)
    if index := table.index_sql():
        cursor.execute(index)


@contextmanager
def _said(table: VectorTable, psycopg: Any) -> Iterator[None]:
    """Turn the server's errors into one sentence; its own words may contain the address."""
    errors = psycopg.errors
    try:
        yield
    except errors.DuplicateTable as error:
        raise TableExists(name=table.name) from error
    except (errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise PgvectorMissing() from error
    except errors.DependentObjectsStillExist as error:
        raise TableInUse(name=table.name) from error
    except errors.InsufficientPrivilege as error:
        raise StoreUnusable(store="The database", example="postgresql://user@host/database") from error
    except psycopg.Error as error:
        raise StoreUnusable(store="The database", example="postgresql://user@host/database") from error


def write_qdrant(table: VectorTable, folder: Path) -> None:
    """Write a folder that `QdrantClient(path=...)` opens."""
    client = library("qdrant_client", "discreet[qdrant]").QdrantClient(path=str(folder / QDRANT))
    try:
        _fill(client, table)
    finally:
        client.close()


def load_qdrant(table: VectorTable, url: str, *, force: bool = False) -> None:
    """Make a collection on a server; one of this name is left as it is, or made anew by `force` if ours."""
    qdrant = library("qdrant_client", "discreet[qdrant]")
    refused = import_module("qdrant_client.http.exceptions")
    try:
        client = qdrant.QdrantClient(url=url, check_compatibility=False)
    except ValueError as error:
        raise StoreUnusable(store="Qdrant", example="http://host:6333") from error
    try:
        if client.collection_exists(table.name):
            _make_room(client, table.name, force=force)
        _fill(client, table)
    except refused.ApiException as error:
        raise StoreUnusable(store="Qdrant", example="http://host:6333") from error
    finally:
        client.close()


def _make_room(client: Any, name: str, *, force: bool) -> None:
    """Delete a collection of ours, by `force` only."""
    if not force:
        raise TableExists(name=name)
    if not _is_label((client.get_collection(name).config.metadata or {}).get("label")):
        raise NotOurTable(name=name)
    client.delete_collection(name)


def _fill(client: Any, table: VectorTable) -> None:
    models = import_module("qdrant_client.models")
    space = models.VectorParams(size=table.vectors.shape[1], distance=models.Distance.DOT)
    graph = models.HnswConfigDiff(m=LINKS, ef_construct=CANDIDATES)
    client.create_collection(
        table.name, vectors_config=space, hnsw_config=graph, metadata={"label": json.dumps(table.label)}
    )
    try:
        client.upload_collection(
            table.name,
            vectors=table.vectors,
            payload=_payloads(table),
            ids=range(len(table.vectors)),
            wait=True,
        )
    except BaseException:
        client.delete_collection(table.name)
        raise


def _payloads(table: VectorTable) -> Iterator[dict[str, Any]]:
    columns = table.columns()
    for place, item in enumerate(table.catalog.ids.tolist()):
        texts = {name: texts[place] for name, texts in columns.items()}
        yield {"item": item, **{name: text for name, text in texts.items() if text is not None}}


def library(name: str, package: str) -> Any:
    """Import what an extra brings, or say which one is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ExtraMissing(package=name, extra=package) from error
