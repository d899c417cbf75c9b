"""Group a table of a DuckDB database into shards.

DuckDB runs the query within its own memory limit and writes the rows to Parquet. From there on they are read,
grouped and summed like the rows of any file, so a model doesn't depend on the engine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.core import ExtraMissing
from discreet.data import Address, is_query, query_behind
from discreet.sources.errors import NoDatabase, UnknownEngine, UnreadableTable

SCHEME = "duckdb:"
# Larger intermediate results go to disk. Rows are read again in pieces of about the size of a group.
_MEMORY, _ROWS_OF_A_GROUP = "2GB", 1 << 20


def export_table(address: str, table: str, file: Path) -> str:
    """Write the rows of a table, a view or a query in a database to a Parquet file; return the query.

    The database is opened for reading only. `address` is `duckdb:PATH`. A table has no query.

    Raises:
        ParameterError: The address has no path, or the package isn't installed.
        FileError: The database or table doesn't exist, or the query fails.
    """
    database = address.removeprefix(SCHEME)
    if not address.startswith(SCHEME) or not database:
        raise UnknownEngine(address=address, forms=(f"{SCHEME}PATH",))
    try:
        import duckdb
    except ImportError as error:
        raise ExtraMissing(package="duckdb", extra="discreet[duckdb]") from error
    if not Path(database).is_file():
        raise NoDatabase(path=database)
    settings: dict[str, Any] = {"memory_limit": _MEMORY, "temp_directory": str(file.parent / "duckdb")}
    try:
        with duckdb.connect(database, read_only=True, config=settings) as connection:
            target = str(file).replace("'", "''")
            connection.execute(
                f"COPY ({_query(table)}) TO '{target}' (FORMAT parquet, ROW_GROUP_SIZE {_ROWS_OF_A_GROUP})"
            )
    except duckdb.CatalogException as error:
        raise UnreadableTable(engine="DuckDB", source=table, why="no such table") from error
    except duckdb.IOException as error:
        raise UnreadableTable(engine="DuckDB", source=database, why="not a database, or in use") from error
    except duckdb.Error as error:
        # DuckDB's own sentence may quote a value of a row.
        raise UnreadableTable(engine="DuckDB", source=table, why=type(error).__name__) from error
    return query_behind(Address("DuckDB", database, table))


def _query(table: str) -> str:
    """Return the query of a table's name, or the query itself."""
    if is_query(table):
        return table.rstrip().rstrip(";")
    names = ('"' + name.replace('"', '""') + '"' for name in table.split("."))
    return f"SELECT * FROM {'.'.join(names)}"
