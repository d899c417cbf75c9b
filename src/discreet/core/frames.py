"""Return results as data frames of polars, pandas or pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, get_args

from discreet.core.checks import one_of
from discreet.core.errors import ExtraMissing
from discreet.core.exports import pl

FrameKind = Literal["polars", "pandas", "pyarrow"]


def to_frame(
    columns: Mapping[str, Sequence[Any]], kind: FrameKind = "polars", *, numbers: Iterable[str] = ()
) -> Any:
    """Return columns as a data frame; `numbers` are floats also where no value is known."""
    one_of("kind", kind, get_args(FrameKind))
    types = {name: pl.Float64 for name in numbers if name in columns}
    return of_kind(pl.DataFrame(dict(columns), schema_overrides=types, strict=False), kind)


def kind_of(given: object) -> FrameKind:
    """Return which kind of frame was given; polars for everything else."""
    library = type(given).__module__.partition(".")[0]
    kinds: dict[str, FrameKind] = {"pandas": "pandas", "pyarrow": "pyarrow"}
    return kinds.get(library, "polars")


def of_kind(frame: pl.DataFrame, kind: FrameKind) -> Any:
    """Return a frame of polars as one of this kind."""
    if kind == "polars":
        return frame
    if kind == "pandas":
        return as_pandas(frame)
    try:
        return frame.to_arrow()
    except ImportError as error:
        raise ExtraMissing(package="pyarrow", extra="pyarrow") from error


def as_pandas(frame: pl.DataFrame) -> Any:
    """Return a frame of pandas; pyarrow, which polars' own conversion needs, is not."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ExtraMissing(package="pandas", extra="pandas") from error
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
