"""Take data in whatever form a caller has it: interactions, a path, a data frame, a matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.checks import ParameterError
from discreet.data.declaring import Duplicates
from discreet.data.interactions import Interactions


def accept(data: Any, *, implicit: bool, duplicates: Duplicates = "refuse") -> Interactions:
    """Return `data` as interactions; facts that only `read` and `from_frame` can be told are taken from it.

    With `implicit` ratings are not read. The message of a refusal names the type and nothing of the content.
    """
    if isinstance(data, Interactions):
        return data
    if isinstance(data, str | Path):
        from discreet.data.opening import open_data

        return open_data(str(data), implicit=implicit, duplicates=duplicates)
    from discreet.data.reading.readers import from_frame, from_scipy

    if hasattr(data, "tocoo"):
        return from_scipy(data)
    arrow, lazy = hasattr(data, "__arrow_c_stream__"), hasattr(data, "collect_schema")
    if arrow or lazy or (hasattr(data, "columns") and hasattr(data, "__getitem__")):
        return from_frame(data, implicit=implicit, duplicates=duplicates)
    raise ParameterError(
        f"data must be interactions, a path, a data frame or a scipy matrix, not {type(data).__name__}."
    )
