"""Accept data in any form: interactions, a path, a dataset's name, a data frame, a matrix, a history.

One rule decides which histories have an order. Where there are times, they decide, and items of one time are
side by side. A list without times is read oldest first. Tables without times, mappings and sets have no
order: many files are sorted by item, and JSON does not keep the order of an object's keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack, cast, final

import numpy as np
import numpy.typing as npt

from discreet.core import WrongKind
from discreet.core.checks import DataError
from discreet.data.errors import BadHistory, ColumnsUnused, NoColumn, NoSuchData, OneUserNeeded
from discreet.data.facts import Declarations, check_scale
from discreet.data.interactions import Interactions
from discreet.data.reading.cells import absent_part, address_of
from discreet.data.reading.named import files_of_layout, has_own_form
from discreet.data.reading.readers import AcceptOptions, ReadOptions, TableOptions, Zeros, read
from discreet.data.reading.tables import is_there, tables_at
from discreet.data.roles import USER, Choice, as_history
from discreet.data.schema import Schema

ItemId: TypeAlias = str | int
_RECORD = {"item", "rating", "time"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserHistory:
    """The ratings or interactions of one user, each item once; `times` is None without an order.

    Only the order of times matters. `user` is the user's id, for models that hold rows of their own users.
    """

    items: list[ItemId]
    ratings: list[float] | None = None
    times: npt.NDArray[np.int64] | None = None
    user: ItemId | None = None

    @classmethod
    def of(
        cls,
        items: Sequence[ItemId],
        ratings: Sequence[float] | None,
        times: Sequence[int] | None,
        user: ItemId | None = None,
    ) -> UserHistory:
        """Return the history of these rows; of an item that comes twice the latest row counts."""
        if len(set(items)) == len(items):
            return cls(
                items=list(items),
                ratings=None if ratings is None else list(ratings),
                times=None if times is None else np.array(times, dtype=np.int64),
                user=user,
            )
        order = range(len(items)) if times is None else sorted(range(len(items)), key=times.__getitem__)
        last = sorted({items[index]: index for index in order}.values())
        return cls(
            items=[items[index] for index in last],
            ratings=None if ratings is None else [ratings[index] for index in last],
            times=None if times is None else np.array([times[index] for index in last], dtype=np.int64),
            user=user,
        )


History: TypeAlias = (
    UserHistory
    | Interactions
    | Mapping[ItemId, float]
    | Iterable[ItemId | tuple[ItemId, float] | Mapping[str, Any]]
)


def accept(
    data: Any, *, implicit: bool, columns: Choice | None = None, **declared: Unpack[AcceptOptions]
) -> Interactions:
    """Return `data` as interactions; facts that are not declared are taken from them.

    With `implicit` ratings are not read; `columns` names the columns of a file or a frame. The message of a
    refusal names the type and nothing of the content. Callers reject repeated pairs by default, so
    a schema's own rule replaces that.
    """
    if declared.get("schema") is not None and declared.get("duplicates") == "refuse":
        declared.pop("duplicates")
    if isinstance(data, str | Path):
        return open_data(str(data), implicit=implicit, columns=columns, **declared)
    arrow, lazy = hasattr(data, "__arrow_c_stream__"), hasattr(data, "collect_schema")
    if arrow or lazy or (hasattr(data, "columns") and hasattr(data, "__getitem__")):
        from discreet.data.reading.readers import from_frame

        return from_frame(data, implicit=implicit, columns=columns, **cast(Any, declared))
    refuse_columns(columns, data)
    if isinstance(data, Interactions):
        refuse_declared(declared, data)
        return data
    if hasattr(data, "tocoo"):
        from discreet.data.reading.readers import from_scipy

        said = {name: declared.pop(name) for name in TableOptions.__annotations__ if name in declared}  # type: ignore[misc]
        refuse_declared(said, data)
        return from_scipy(data, **cast(Declarations, declared))
    raise WrongKind(
        name="data", kind="interactions, a path, a data frame, or a scipy matrix", found=type(data).__name__
    )


def refuse_columns(columns: Choice | None, data: object) -> None:
    """Reject names of columns for data without columns."""
    if columns is not None:
        raise ColumnsUnused(argument="columns", found=type(data).__name__)


def refuse_declared(declared: Mapping[str, Any], data: object) -> None:
    """Reject facts about data that carry their own; what becomes of repeated pairs was settled as well."""
    said = [name for name, value in declared.items() if value is not None and name != "duplicates"]
    if said:
        raise ColumnsUnused(argument=said[0], found=type(data).__name__)


def accept_history(history: Any, *, implicit: bool = False, columns: Choice | None = None) -> UserHistory:
    """Return one user's history from any form; the rule above decides whether it has an order."""
    # A series is a stream of arrow's, too, but no table.
    if hasattr(history, "columns") or hasattr(history, "collect_schema"):
        return _of_frame(history, columns, implicit=implicit)
    refuse_columns(columns, history)
    if isinstance(history, UserHistory):
        return history
    if isinstance(history, Interactions):
        return of_row(history)
    if isinstance(history, str | bytes) or not isinstance(history, Iterable):
        raise BadHistory(must="have entries")
    # A series of pandas is a mapping that does not say so.
    pairs = getattr(history, "items", None)
    if callable(pairs):
        rated = dict(pairs())
        return UserHistory(items=list(rated), ratings=_numbers(rated.values()))
    if isinstance(history, Set):
        return UserHistory(items=list(history))
    return _of_list(history.tolist() if isinstance(history, np.ndarray) else list(history))


def of_row(data: Interactions, row: int | None = None) -> UserHistory:
    """Return the history in one row; without a number, it must be the only one."""
    if row is None and data.n_users != 1:
        raise OneUserNeeded(users=data.n_users)
    row = row or 0
    cells = slice(int(data.indptr[row]), int(data.indptr[row + 1]))
    return UserHistory(
        items=data.catalog.id_at(data.items[cells]).tolist(),
        ratings=data.values[cells].tolist(),
        times=None if data.times is None else data.times[cells],
        user=data.users.ids[row : row + 1].tolist()[0],
    )


def _of_frame(frame: Any, columns: Choice | None, *, implicit: bool) -> UserHistory:
    """Read a data frame of one user; without a user column all rows belong to that user."""
    from discreet.data.reading.readers import from_frame

    def attempt(choice: Choice | None) -> Interactions:
        return from_frame(frame, columns=choice, implicit=implicit, duplicates="last")

    def of_one(choice: Choice | None) -> UserHistory:
        try:
            named = attempt(choice)
        except NoColumn:
            raise
        except DataError:
            if (choice or {}).get(USER) is not None:
                raise
            return replace(of_row(attempt({**(choice or {}), USER: None})), user=None)
        return of_row(named)

    return as_history(of_one, columns)


def _of_list(entries: list[Any]) -> UserHistory:
    """Return a list's history: ids, pairs or records, all of one kind."""
    positions = range(len(entries))
    if entries and all(isinstance(entry, Mapping) for entry in entries):
        return _of_records(entries)
    if not any(isinstance(entry, Iterable) and not isinstance(entry, str) for entry in entries):
        return UserHistory.of(entries, None, positions)
    if not all(isinstance(entry, tuple | list) and len(entry) == 2 for entry in entries):
        raise BadHistory(must="have entries of one kind")
    return UserHistory.of([item for item, _ in entries], _numbers(value for _, value in entries), positions)


def _of_records(records: list[Mapping[str, Any]]) -> UserHistory:
    """Return the history in rows that name their fields; times decide if they are there, else the list."""
    names = set(records[0])
    if "item" not in names or not names <= _RECORD or any(set(record) != names for record in records):
        raise BadHistory(must='have "item" in every row, and the same of "rating" and "time"')
    return UserHistory.of(
        [record["item"] for record in records],
        _numbers(record["rating"] for record in records) if "rating" in names else None,
        _moments([record["time"] for record in records]) if "time" in names else range(len(records)),
    )


def _numbers(values: Iterable[Any]) -> list[float]:
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise BadHistory(must="have numbers as ratings") from None


def _moments(times: list[Any]) -> list[int]:
    """Return times as whole numbers: numbers as they are, dates as tables' are read."""
    if all(type(time) is int and abs(time) < 2**63 for time in times):
        return times
    from discreet.data.reading.times import times_of_objects

    found = times_of_objects(times, Schema(date_order=_order(times)))
    if found.null_count():
        raise BadHistory(must="have numbers or dates as times")
    return [int(moment) for moment in found.to_list()]


def _order(times: list[Any]) -> str:
    import polars as pl

    from discreet.data.guessing import shown_order

    texts = [time if isinstance(time, str) else None for time in times]
    return shown_order(pl.Series(texts, dtype=pl.String), None)


def open_data(
    source: str,
    *,
    columns: Choice | None = None,
    name: str | None = None,
    implicit: bool = False,
    zeros: Zeros | None = None,
    schema: Schema | str | Path | None = None,
    **options: Unpack[ReadOptions],
) -> Interactions:
    """Return the interactions behind a path or a dataset's name; what is not declared is read.

    A known dataset brings its own scale, catalog and columns; of the declarations only the cap and the scale
    count there. A scale of two numbers allows every value between them.
    """
    if is_there(source):
        return read(
            source,
            columns=columns,
            name=name,
            implicit=implicit,
            zeros=zeros,
            schema=schema,
            **options,
        )
    # Loads what makes and fetches data sets; a model that only answers needs neither.
    from discreet.data.datasets import catalog

    if source not in catalog.DATASETS:
        raise NoSuchData(name=absent_part(source), datasets=tuple(catalog.DATASETS))
    data = catalog.load(source, max_per_user=options.get("max_per_user"), name=name)
    low, high = options.get("low"), options.get("high")
    if low is not None and high is not None:
        scale = replace(data.facts, low=low, high=high, step=options.get("step"))
        check_scale(data.values, scale)
        data = data.with_facts(scale)
    return data.without_ratings() if implicit else data


def files_of(source: str, layout: str | None = None) -> list[Path]:
    """Return the files that a path or a dataset's name is read from; none if it is not on this machine."""
    if has_own_form(layout):
        return files_of_layout(Path(source), str(layout))
    address = address_of(source)
    if address is not None:
        return [Path(address.place)] if Path(address.place).is_file() else []
    if is_there(source):
        return tables_at(source)
    from discreet.data.datasets import catalog

    here = catalog.find(source) if source in catalog.DATASETS else None
    return [] if here is None else [here]


def folder_of(source: str, layout: str | None = None) -> Path | None:
    """Return the folder to search for the files of a given split."""
    return next((file.parent for file in files_of(source, layout)), None)
