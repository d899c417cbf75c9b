"""Count the rows whose value no weight lists, and find listed values that no row has, for the data owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from discreet.core import logger
from discreet.data.schema import Schema, WeightRule, conditions_of

if TYPE_CHECKING:
    import polars as pl


@final
@dataclass(slots=True)
class _Seen:
    """What was seen of one column: how many rows, how many with a listed value, and which values are left."""

    listed: tuple[str, ...]
    rows: int = 0
    known: int = 0
    absent: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.absent = set(self.listed)


_watched: ContextVar[dict[str, _Seen] | None] = ContextVar("watched", default=None)


@contextmanager
def remarking_on_values(schema: Schema) -> Iterator[None]:
    """Log, for the data owner, values without a weight, and listed values that no row has.

    Within another such context, rows are counted with the others there.
    """
    if _watched.get() is not None:
        yield
        return
    seen = {column: _Seen(values) for column, values in _listed(schema).items()}
    token = _watched.set(seen)
    try:
        yield
    finally:
        _watched.reset(token)
    for column, one in seen.items():
        _remark(one, column, weighs=bool(schema.weights) and column == schema.weight)


@contextmanager
def unwatched() -> Iterator[None]:
    """Log nothing about values: of a few users' rows, some values are missing as a rule."""
    token = _watched.set({})
    try:
        yield
    finally:
        _watched.reset(token)


def _listed(schema: Schema) -> dict[str, tuple[str, ...]]:
    """Return the values that are listed by column, also those that weigh nothing."""
    found = conditions_of(schema.only)
    for rule in map(WeightRule.of, schema.weights):
        found[rule.column] = (*found.get(rule.column, ()), rule.value)
    return found


def _remark(seen: _Seen, column: str, *, weighs: bool) -> None:
    said = []
    if weighs and seen.known < seen.rows:
        others = f"{seen.rows - seen.known:,} of {seen.rows:,} rows are skipped"
        said.append(f"{others}, because their values of {column} have no weight.")
    if seen.rows and seen.absent:
        absent = " or ".join(f"{column}={value}" for value in seen.listed if value in seen.absent)
        said.append(f"No row has {absent}. Check the spelling.")
    if said:
        logger.warning("%s", " ".join(said))


def watch(column: str, texts: pl.Series) -> None:
    """Count the values of a condition's column, if someone asked."""
    seen = (_watched.get() or {}).get(column)
    if seen is None:
        return
    seen.rows += len(texts)
    seen.known += int(texts.is_in(seen.listed).sum())
    if seen.absent:
        seen.absent -= set(texts.filter(texts.is_in(list(seen.absent))).unique())


def watch_again() -> None:
    """Forget what was counted, because the same rows are read again."""
    for seen in (_watched.get() or {}).values():
        seen.rows, seen.known, seen.absent = 0, 0, set(seen.listed)
