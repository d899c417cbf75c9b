"""The label as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee


def label_table(guarantee: Guarantee, title: str) -> Table:
    """Return the table that `discreet label` prints: the promise, line by line."""
    table = Table(title=Text(title, style="bold"), show_header=False, min_width=60)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("value")
    previous = ""
    for what, value in guarantee.rows():
        table.add_row("" if what == previous else what, Text(value))
        previous = what
    return table
