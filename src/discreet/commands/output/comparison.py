"""A comparison as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from discreet.evaluation.references import PREFIX
from discreet.evaluation.report import reference_rows, report_rows

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation


def comparison_table(found: Sequence[Evaluation]) -> Table:
    """Return the table that `discreet compare` prints; the simple floors come last."""
    names = tuple(dict.fromkeys(name for one in found for name in one.metrics))
    table = Table("model", "epsilon", "protects", *names)
    table.columns[0].overflow = "fold"
    for column in table.columns[3:]:
        column.justify = "right"
    for row in report_rows(found, names):
        table.add_row(row["model"], row["epsilon"], row["protects"], *row["scores"])
    for row in reference_rows(found, names):
        table.add_row(row["name"].removeprefix(PREFIX), "-", "reference", *row["scores"], style="dim")
    return table
