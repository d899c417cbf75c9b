"""Zeros may be ratings, or stand for none: leave them out when told so, and point them out otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from discreet.data.reading.columns import Columns
from discreet.exports import Later
from discreet.log import logger

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

Zeros = Literal["ratings", "missing"]
# So many zeros on a scale of more than two values are rarely the worst rating.
_MANY = 0.25


def without_zeros(columns: Columns) -> Columns:
    """Return the rows whose rating is not 0, each judged by itself; without ratings, all of them."""
    if columns.values is None:
        return columns
    return columns.only((columns.values != 0).fill_null(True))


def remark_on_zeros(parts: Sequence[Columns], name: str) -> None:
    """Tell the holder of the data that many ratings are 0, which may mean that there is none."""
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
