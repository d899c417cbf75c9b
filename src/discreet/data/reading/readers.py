"""Read ratings from files, data frames and matrices, through polars."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack, cast, get_args

import numpy as np

from discreet.core import WrongKind, logger, one_of
from discreet.core.exports import pl
from discreet.data.encoding import Column
from discreet.data.errors import CatalogNeeded, EmptyData
from discreet.data.facts import (
    FRAME,
    N_ITEMS,
    QUERY,
    QUOTES,
    READABLE,
    STEP_ERROR,
    Declarations,
    DeclaredFacts,
    Duplicates,
    PublicFacts,
    refuse_unknown_names,
)
from discreet.data.guessing import Only, TextOptions, Weights, Wishes
from discreet.data.id_lists import checked_declarations
from discreet.data.interactions import Interactions
from discreet.data.reading.cells import warn_of
from discreet.data.reading.columns import Columns, joined_columns
from discreet.data.reading.frames import Block, opened, or_unreadable, read_blocks
from discreet.data.reading.listed_values import remarking_on_values
from discreet.data.reading.tables import (
    TableSource,
    choice_of,
    read_rows,
    refuse_other_kinds,
    tables_at,
)
from discreet.data.reading.times import are_mixed
from discreet.data.roles import Choice, check_conditions, choose, how_to_read
from discreet.data.schema import LAYOUTS, Schema, condition_key
from discreet.data.synthetic_labels import origin_of
from discreet.data.vocabulary import Vocabulary


class ReadOptions(Declarations, TextOptions, total=False):
    """The keywords of `read`: those of `Declarations` and of `TextOptions`."""


class TableOptions(TextOptions, total=False):
    """How a path or a data frame is read, as in `read`. A data frame has no lines, so it takes fewer.

    Attributes:
        zeros: Whether a rating of 0 is one of the "ratings", or "missing".
        schema: A schema, or its path. Its own rule for repeated pairs replaces the default.
    """

    zeros: Zeros | None
    schema: Schema | str | Path | None


class SourceOptions(DeclaredFacts, TableOptions, total=False):
    """The keywords of functions that read a path or a data frame: those of facts and of `TableOptions`."""


class AcceptOptions(SourceOptions, total=False):
    """The same keywords, with the rule for repeated pairs."""

    duplicates: Duplicates


def read(
    path: str | Path,
    *,
    columns: Choice | None = None,
    name: str | None = None,
    implicit: bool = False,
    zeros: Zeros | None = None,
    schema: Schema | str | Path | None = None,
    **options: Unpack[ReadOptions],
) -> Interactions:
    """Read ratings from a file, several files, a folder, a spreadsheet or a table of a database.

    Files are CSV, TSV, JSON lines or Parquet, also with `.gz` or `.zip`, and known layouts such as MovieLens.
    To read several files with one schema, pass a folder (flat, by month, or with Hive partitions), a pattern
    such as `2025-*.csv`, or paths separated by commas. Further sources are `book.xlsx::SHEET`,
    `shop.db::TABLE` (SQLite and DuckDB), and `postgresql://...::TABLE`. A query can replace a table.

    `read` recognizes columns with usual names (`userId`, `item_id`, `rating`, `timestamp`...). `columns`
    names other columns, such as `{"user": "who", "item": "what"}`. `{"time": None}` ignores times, and with
    `{"user": None}`, all rows are one user's history. A file without a header lists user, item, rating, and
    time, in columns named column_1, column_2, and so on. With `implicit`, ratings are not read and count as
    1. With `zeros="missing"`, a rating of 0 means a missing rating. Further keywords are the fields of
    `Declarations` (what is public, and how to handle duplicates) and of `TextOptions` (unusual text files).

    A `schema`, or the path of a schema, declares the layout of the file. The other keywords override its
    fields. Without a schema, `read` guesses the layout, and guarantees apply only if the layout is public.

    Raises:
        FileError: The file doesn't exist, or it cannot be read as a table.
        DataError: The table lacks a column, has no ratings, or ratings that cannot be used.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "books.csv")
        ...     pl.DataFrame({"who": [7, 7], "sku": [1, 1], "stars": [4, 5]}).write_csv(file)
        ...     read(file, columns={"user": "who"}, low=1, high=5, duplicates="last")
        <Interactions 'books': 1 users, 1 items, 1 ratings>
    """
    if not isinstance(path, str | Path):
        raise WrongKind(name="path", kind="a text or a Path", found=type(path).__name__)
    declared = dict(options)
    wishes = Wishes.taken_from(declared, columns, implicit=implicit)
    form = None if schema is None else overridden(schema, wishes)
    sources = [read_source(path, wishes, form)]
    is_table = sources[0].schema.format not in ("cells", *LAYOUTS)
    weighted = weighs(sources[0].schema, declared, implicit=implicit)
    data = build(sources, name=name, declared=cast(Declarations, declared), zeros=zeros, weighted=weighted)
    return replace(data, origin=origin_of(tables_at(path)[0] if is_table else Path(path)))


def overridden(schema: Schema | str | Path, wishes: Wishes) -> Schema:
    """Return a schema, or that of a file, with what the caller declares in place of its fields."""
    form = schema if isinstance(schema, Schema) else Schema.read(schema)
    changes = {**wishes.declared, **{role: name or "" for role, name in (wishes.choice or {}).items()}}
    if wishes.implicit:
        changes["rating"] = ""
    return form.with_fields(**changes)


def from_frame(
    frame: Any,
    *,
    columns: Choice | None = None,
    name: str = "data",
    implicit: bool = False,
    zeros: Zeros | None = None,
    schema: Schema | str | Path | None = None,
    only: Only | None = None,
    weights: Weights | None = None,
    skip_bad_lines: bool = False,
    **declared: Unpack[Declarations],
) -> Interactions:
    """Read a data frame of polars, pandas, or pyarrow, or an Arrow stream. Columns are found as in `read`.

    With `skip_bad_lines`, rows without a readable ID, rating or time are skipped. Further keywords are the
    fields of `Declarations`. The library that made the frame may have changed values earlier: in pandas, one
    missing number turns a column into floats.

    Example:
        >>> frame = pl.DataFrame({"who": ["ann", "bob"], "item": ["tea", "jam"], "rating": [5, 3]})
        >>> from_frame(frame, columns={"user": "who"}, low=1, high=5, name="shop")
        <Interactions 'shop': 2 users, 2 items, 2 ratings>
    """
    from discreet.data.guessing_types import frame_schema, unread_of_types

    refuse_unknown_names(declared, from_frame)
    said = {"only": only, "weights": weights, "skip_bad_lines": skip_bad_lines}
    wishes = Wishes.taken_from(said, columns, implicit=implicit)
    form = None if schema is None else overridden(schema, wishes)
    choice = wishes.choice if form is None else choice_of(form)
    with or_unreadable(frame):
        table = opened(frame)
        roles = choose(list(table.kinds), choice, implicit=implicit and form is None)
        conditions = wishes.conditions if form is None else form.conditions
        check_conditions(list(table.kinds), conditions)
        blocks = table.blocks({**roles, **{condition_key(name): name for name in conditions}})
        if form is None:
            # Whether the day or the month is first in dates follows from all of them.
            whole = _joined_blocks(list(blocks))
            form, blocks = frame_schema(whole, roles, wishes), iter([whole])
        with remarking_on_values(form):
            found = read_blocks(blocks, form, name)
    found = replace(found, unread_times=unread_of_types(table.kinds, roles, choice))
    sources = [TableSource(columns=found, name=name, schema=form)]
    weighted = weighs(form, declared, implicit=implicit)
    return build(sources, name=name, declared=declared, zeros=zeros, weighted=weighted)


def _joined_blocks(blocks: list[Block]) -> Block:
    """Return blocks of one frame as one."""
    if len(blocks) == 1:
        return blocks[0]
    return {role: pl.concat([block[role] for block in blocks]) for role in blocks[0]}


def read_source(path: str | Path, wishes: Wishes, schema: Schema | None = None) -> TableSource:
    """Return the needed columns of a file, or of several files of one form, with a schema or without one."""
    unread = None
    if schema is None:
        from discreet.data.guessing_types import schema_of

        schema, unread = schema_of(path, wishes)
    with remarking_on_values(schema):
        found = read_rows(path, schema)
    if not len(found.columns.items):
        refuse_other_kinds(path, found.schema)
    return replace(found, columns=replace(found.columns, unread_times=unread or found.columns.unread_times))


def from_scipy(matrix: Any, *, name: str = "data", **declared: Unpack[Declarations]) -> Interactions:
    """Read a sparse matrix of users by items; ids are row and column numbers, stored zeros are ratings."""
    if not hasattr(matrix, "tocoo"):
        raise WrongKind(name="matrix", kind="a sparse matrix of scipy", found=type(matrix).__name__)
    cells = matrix.tocoo()
    shape: Declarations = {
        "catalog": Vocabulary.range(matrix.shape[1]),
        "people": Vocabulary.range(matrix.shape[0]),
    }
    declared = _over(shape, declared)
    return Interactions.from_arrays(cells.row, cells.col, cells.data, name=name, **declared)


def build(
    sources: list[TableSource],
    *,
    name: str | None,
    declared: Declarations,
    zeros: Zeros | None = None,
    weighted: bool = False,
) -> Interactions:
    """Put the columns of one or several files together; what the caller declares beats what a layout does.

    If `weighted`, values are weights of interactions and not ratings, so they need no scale.

    The list of sources is emptied: their columns are freed as soon as they are numbered.
    """
    schema = sources[0].schema
    zeros = cast(Zeros, zeros or schema.zeros)
    one_of("zeros", zeros, get_args(Zeros))
    parts = [source.columns for source in sources]
    if zeros == "missing":
        parts = [without_zeros(part) for part in parts]
    declared = checked_declarations(_over(_over(sources[0].declared, declared_in(schema)), declared))
    schema = _settled(schema, zeros, declared)
    parts = [on_scale(part, schema.off_scale, declared) for part in parts]
    _refuse_empty(parts, sources[0].name, what_is_read(schema))
    if declared.get("drop_unknown"):
        parts = [_of_catalog(part, declared.get("catalog")) for part in parts]
        _refuse_empty(parts, sources[0].name, "items of the catalog")
    if zeros == "ratings" and declared.get("low") is None:
        remark_on_zeros(parts, sources[0].name)
    whole = joined_columns(parts)
    # Rows are counted whatever they were rated, unless events have weights.
    rated = whole.weighted or declared.get("duplicates") != "count"
    given: list[Column | None] = [whole.users, whole.items, whole.values if rated else None, whole.times]
    schemas = [schema, *(source.schema for source in sources[1:])]
    queries = {source.query for source in sources}
    unread = sources[0].columns.unread_times
    if are_mixed(whole.times_are):
        logger.warning(
            "Times of %s are in several units (%s) and are compared as numbers. Convert them to one.",
            sources[0].name,
            "; ".join(whole.times_are),
        )
    if unread is not None:
        logger.warning("%s: %s.", sources[0].name, how_to_read(unread))
    name, how_read = name or sources[0].name, sources[0].how_read()
    del whole
    parts.clear()
    sources.clear()
    facts = declared.get("facts")
    if weighted and facts is not None:
        declared = cast(Declarations, {**declared, "facts": replace(facts, weights=schema.weights_text())})
    if weighted:
        declared = cast(Declarations, {**declared, "low": None, "high": None, "step": None})
    data = Interactions.from_columns(given, name=name, **declared)
    if weighted:
        data = replace(data, schema=schema).weighted()
    again = {"duplicates": declared.get("duplicates", "refuse")}
    return replace(
        data,
        how_read={**how_read, **again},
        unread_times=unread,
        schema=schema,
        facts=as_read(data.facts, schemas, declared, queries),
    )


def as_read(
    facts: PublicFacts, schemas: Sequence[Schema], declared: Declarations, queries: Collection[str] = ()
) -> PublicFacts:
    """Return the facts of data that were read with these schemas: what was guessed, and what is assumed.

    `declared` has the facts and rules that were applied, whichever schemas declare others. `queries` are
    those of a database that gave rows, which are searched for what looks at several rows.
    """
    for query in filter(None, queries):
        warn_of(query)
    layouts = dict.fromkeys(schema.summary() for schema in schemas if schema.guessed)
    assumed = {
        FRAME: any(schema.format in ("frame", "cells") for schema in schemas),
        READABLE: any(_rejecting(schema, declared) for schema in schemas),
        QUOTES: any(schema.multiline for schema in schemas),
        QUERY: any(queries),
    }
    reading = tuple(name for name, applies in assumed.items() if applies)
    rows = next((_rows_with(schema) for schema in schemas if schema.conditions), "")
    return replace(facts, layout=" | ".join(layouts), reading=reading, rows=rows)


def what_is_read(schema: Schema) -> str:
    """Return what a source is read for, for an error about a source without any of it."""
    return f"readable rows with {_rows_with(schema)}" if schema.conditions else "ratings"


def _rows_with(schema: Schema) -> str:
    return " and ".join(f"{name}={' or '.join(values)}" for name, values in schema.conditions.items())


def rejecting_rules(data: Interactions) -> list[str]:
    """Return the rules by which one row could have rejected these data, as `facts.reading` states."""
    schema = data.schema
    if schema is None:
        return []
    declared: dict[str, Any] = {name: getattr(schema, name) for name in ("low", "high", "step", "duplicates")}
    declared["drop_unknown"] = schema.unknown_items == "drop"
    declared["catalog"] = None if N_ITEMS in data.facts.from_file else data.catalog
    return _rejecting(schema, cast(Declarations, declared))


def _rejecting(schema: Schema, declared: Declarations) -> list[str]:
    """Return the rules by which one row can reject all of them, as fields of a schema.

    Nothing is outside a catalog taken from the rows.
    """
    by_catalog = any(declared.get(name) is not None for name in ("catalog", "n_items", "facts"))
    rules = {
        # No row of this layout is skipped.
        "format": schema.format == "jester",
        "bad_rows": schema.bad_rows == "reject",
        "duplicates": declared.get("duplicates", "refuse") == "refuse",
        "user": declared.get("people") is not None,
        "unknown_items": by_catalog and not declared.get("drop_unknown"),
        "off_scale": _may_be_off_scale(schema, declared),
    }
    return [name for name, rejects in rules.items() if rejects]


def _may_be_off_scale(schema: Schema, declared: Declarations) -> bool:
    """Return whether a rating, or a sum, may be off a declared scale or its steps, or too large for a single.

    Only on a scale with both ends are ratings moved or dropped. Sums are moved to its ends, not to its steps.
    """
    low, high, step = _scale_of(declared)
    is_rated = bool(schema.rating or schema.weight)
    if low is None and high is None:
        # Sums of declared weights are far below what fits into a single.
        return schema.weight != "" and not schema.weights
    if low is None or high is None or schema.off_scale == "reject":
        return is_rated or (step is not None and declared.get("duplicates") == "count")
    return step is not None and (declared.get("duplicates") == "count" or not _has_all_steps(low, high, step))


def _has_all_steps(low: float, high: float, step: float) -> bool:
    """Return whether no rating that is moved to the nearest step is off it as a single."""
    steps = (high - low) / step
    beyond = max(math.floor(steps + STEP_ERROR) - steps, 0.0)
    rounding = float(np.spacing(np.float32(max(abs(low), abs(high))))) / 2
    return beyond + rounding / step < STEP_ERROR


def weighs(schema: Schema, declared: Mapping[str, Any], *, implicit: bool) -> bool:
    """Return whether values are weights of interactions. On a scale, sums of weights are ratings."""
    low, high, _ = _scale_of(_over(declared_in(schema), cast(Declarations, declared)))
    return implicit and schema.weight != "" and (low is None or high is None or low == high)


def _scale_of(declared: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return the declared ends and the step of the scale."""
    facts = declared.get("facts")
    if facts is not None:
        return facts.low, facts.high, facts.step
    return declared.get("low"), declared.get("high"), declared.get("step")


def with_rules_of(schema: Schema | None, declared: Declarations) -> Declarations:
    """Return what the caller declares, and for the rest what a schema does."""
    return checked_declarations(_over({} if schema is None else declared_in(schema), declared))


def declared_in(schema: Schema) -> Declarations:
    """Return the facts and rules that a schema declares."""
    found: dict[str, Any] = {name: getattr(schema, name) for name in ("low", "high", "step", "max_per_user")}
    found["catalog"] = schema.catalog or None
    found["duplicates"] = None if schema.duplicates == "refuse" else schema.duplicates
    found["drop_unknown"] = True if schema.unknown_items == "drop" else None
    return cast(Declarations, found)


def _settled(schema: Schema, zeros: Zeros, declared: Declarations) -> Schema:
    """Return the schema with the rules that were applied; a catalog stays where it was declared."""
    scale = {name: declared.get(name) for name in ("low", "high", "step", "max_per_user")}
    facts = declared.get("facts")
    if facts is not None:
        scale = {name: getattr(facts, name) for name in scale}
    rules: dict[str, Any] = {**scale, "zeros": zeros, "duplicates": declared.get("duplicates", "refuse")}
    rules["unknown_items"] = "drop" if declared.get("drop_unknown") else "reject"
    return replace(schema, **rules)


def on_scale(columns: Columns, rule: str, declared: Mapping[str, Any]) -> Columns:
    """Return ratings moved to the nearest of the declared scale, or those on it, each judged by itself."""
    low, high, step = _scale_of(declared)
    if rule == "reject" or columns.values is None or low is None or high is None:
        return columns
    values = columns.values
    if rule == "drop":
        on_it = values.is_between(low, high)
        if step is not None:
            steps = (values.cast(pl.Float64) - low) / step
            on_it &= (steps - steps.round()).abs() <= STEP_ERROR
        return columns.only(on_it.fill_null(True))
    if step is not None:
        most = math.floor((high - low) / step + STEP_ERROR)
        steps = ((values.cast(pl.Float64) - low) / step).round().clip(0, most)
        values = (low + step * steps).cast(pl.Float32)
    return replace(columns, values=values.clip(low, high))


def _refuse_empty(parts: list[Columns], name: str, what: str = "ratings") -> None:
    if not sum(len(part.users) for part in parts):
        raise EmptyData(name=name, what=what)


def _of_catalog(columns: Columns, catalog: Any) -> Columns:
    """Return the ratings of items that the declared catalog has, each judged by itself."""
    if catalog is None:
        raise CatalogNeeded()
    return columns.only(pl.Series(catalog.index_of(columns.items) >= 0))


def _over(layout: Declarations, caller: Declarations) -> Declarations:
    """Return declarations in which the caller's replace those of a layout; its step belongs to its scale."""
    known, said = (
        {key: value for key, value in one.items() if value is not None} for one in (layout, caller)
    )
    scale = {"step": None} if said.keys() & {"low", "high"} else {}
    return cast(Declarations, {**known, **scale, **said})


Zeros = Literal["ratings", "missing"]
"""Whether a rating of 0 is a rating, or means that there is none."""
# So many zeros on a scale of more than two values are rarely the worst rating.
_MANY = 0.25


def without_zeros(columns: Columns) -> Columns:
    """Return the rows whose rating is not 0, each judged by itself; without ratings, all of them."""
    if columns.values is None:
        return columns
    return columns.only((columns.values != 0).fill_null(True))


def remark_on_zeros(parts: Sequence[Columns], name: str) -> None:
    """Log for the data owner that many ratings are 0, which may mean that there is none."""
    values = [part.values for part in parts if part.values is not None]
    if not values or not all(_looks_like_gaps(one) for one in values):
        return
    logger.warning(
        'More than a quarter of the ratings of %s are 0; if 0 means "no rating" there, '
        'pass zeros="missing" (--zeros missing), else declare the scale.',
        name,
    )


def _looks_like_gaps(values: pl.Series) -> bool:
    if not values.dtype.is_numeric() or values.len() == 0 or values.min() != 0:
        return False
    zeros = int((values == 0).sum())
    return zeros > _MANY * values.len() and int((values > 2).sum()) > 0
