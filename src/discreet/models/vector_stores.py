"""Load item vectors into PostgreSQL with pgvector, or into Qdrant: a live server, or files to take along.

Everything written is released already, so it costs nothing; a person's vector is made when it is asked for
(`FittedModel.search_vector`) and is never stored here. A store is filled as a whole or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.core.arrays import Singles
from discreet.core.checks import DataError, FileError, ParameterError
from discreet.core.exports import Later

if TYPE_CHECKING:
    import polars as pl

    from discreet.data.vocabulary import Vocabulary
else:
    pl = Later("polars")

# Links of each item, and candidates looked at while it is added: twice the usual, to agree with exact search.
LINKS, CANDIDATES = 32, 400
#: The folder and the script that files to take along are written to.
QDRANT, SQL = "qdrant", "items.sql"
# The longest vectors that pgvector makes an index for; longer ones are searched one by one, which is exact.
_LONGEST_INDEXED = 2000
_ROWS = 1 << 12
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTable:
    """What a store gets: items with equally long vectors, the label, and the name to store them under."""

    catalog: Vocabulary
    vectors: Singles
    label: dict[str, Any]
    name: str = "items"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ParameterError(
                f"name={self.name[:60]!r} cannot name a table. Use up to 48 letters, digits and underscores."
            )

    def copy_lines(self) -> Iterator[str]:
        """Give the rows as PostgreSQL's COPY reads them: place, item, vector."""
        for start in range(0, len(self.vectors), _ROWS):
            part = self.vectors[start : start + _ROWS]
            written = pl.Series(part, dtype=pl.Array(pl.Float32, part.shape[1]))
            texts = written.arr.to_list().cast(pl.List(pl.String)).list.join(",")
            ids = self.catalog.ids[start : start + _ROWS].tolist()
            for place, (item, text) in enumerate(zip(ids, texts, strict=True), start):
                yield f"{place}\t{_escaped(item)}\t[{text}]\n"

    def create_sql(self) -> tuple[str, str]:
        """Return the statements that make the table, with its label as a comment, and the one for COPY."""
        kind = "text" if self.catalog.is_text else "bigint"
        label = json.dumps(self.label).replace("'", "''")
        create = (
            "CREATE EXTENSION IF NOT EXISTS vector;\n"
            f'CREATE TABLE "{self.name}" (place integer PRIMARY KEY, item {kind} UNIQUE NOT NULL, '
            f"vector vector({self.vectors.shape[1]}) NOT NULL);\n"
            f"COMMENT ON TABLE \"{self.name}\" IS '{label}';\n"
        )
        return create, f'COPY "{self.name}" (place, item, vector) FROM STDIN'

    def index_sql(self) -> str:
        """Return the statement for the index, or nothing where pgvector makes none for such long vectors."""
        if self.vectors.shape[1] > _LONGEST_INDEXED:
            return ""
        return (
            f'CREATE INDEX ON "{self.name}" USING hnsw (vector vector_ip_ops) '
            f"WITH (m = {LINKS}, ef_construction = {CANDIDATES});\n"
        )


def _escaped(item: str | int) -> str:
    if isinstance(item, int):
        return str(item)
    if "\0" in item:
        raise DataError("An item id has a NUL character, which PostgreSQL does not store. Rename that item.")
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


def load_pgvector(table: VectorTable, url: str) -> None:
    """Make a table of items in a database, in one transaction; one of this name is left as it is."""
    psycopg = library("psycopg", "discreet[pgvector]")
    create, copy = table.create_sql()
    with _said(table, psycopg), psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(create)
        with cursor.copy(copy) as rows:
            for line in table.copy_lines():
                rows.write(line)
        if index := table.index_sql():
            cursor.execute(index)


@contextmanager
def _said(table: VectorTable, psycopg: Any) -> Iterator[None]:
    """Turn what the server refuses into one sentence; its own words may hold the address."""
    errors = psycopg.errors
    try:
        yield
    except errors.DuplicateTable as error:
        raise FileError(
            f"The database has a table {table.name!r} already, which was left as it is. Choose another "
            "--name."
        ) from error
    except (errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise FileError(
            "The database has no extension `vector`. Install pgvector on its server (on Debian: "
            "postgresql-17-pgvector)."
        ) from error
    except errors.InsufficientPrivilege as error:
        raise FileError(
            "The database refuses its user. Let that user create tables, and create the extension `vector` "
            "as an administrator."
        ) from error
    except psycopg.Error as error:
        raise FileError(
            "The database cannot be used. Check the address (postgresql://user@host/database) and the "
            "server's log."
        ) from error


def write_qdrant(table: VectorTable, folder: Path) -> None:
    """Write a folder that `QdrantClient(path=...)` opens."""
    client = library("qdrant_client", "discreet[qdrant]").QdrantClient(path=str(folder / QDRANT))
    try:
        _fill(client, table)
    finally:
        client.close()


def load_qdrant(table: VectorTable, url: str) -> None:
    """Make a collection on a server; one of this name is left as it is."""
    qdrant = library("qdrant_client", "discreet[qdrant]")
    refused = import_module("qdrant_client.http.exceptions")
    try:
        client = qdrant.QdrantClient(url=url, check_compatibility=False)
    except ValueError as error:
        raise FileError("The address of Qdrant is not understood. Write http://host:6333.") from error
    try:
        if client.collection_exists(table.name):
            raise FileError(
                f"Qdrant has a collection {table.name!r} already, which was left as it is. Choose another "
                "--name."
            )
        _fill(client, table)
    except refused.ApiException as error:
        raise FileError("Qdrant cannot be used: check the address and the server's log.") from error
    finally:
        client.close()


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
            payload=({"item": item} for item in table.catalog.ids.tolist()),
            ids=range(len(table.vectors)),
            wait=True,
        )
    except BaseException:
        client.delete_collection(table.name)
        raise


def library(name: str, package: str) -> Any:
    """Import what an extra brings, or say which one is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ParameterError(f"This needs {name}. Install it with `pip install '{package}'`.") from error
