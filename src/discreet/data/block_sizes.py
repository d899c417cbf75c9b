"""How much is read, numbered, and sorted at a time.

No result depends on a size. The search over files (`tests/neighboring_rows.py`) reads with sizes small
enough that the edges of blocks fall anywhere, and compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSizes:
    """The sizes of all blocks that a reader works through one after the other.

    Stability
        Internal.
    """

    #: Bytes of text, rows of Parquet, and rows of a database or a sheet.
    text: int = 1 << 19
    parquet: int = 1 << 20
    rows: int = 1 << 16
    #: Bytes of a part of a file that one worker reads.
    piece: int = 1 << 27
    #: Room for IDs before a table of them grows.
    ids: int = 1 << 10
    #: Columns with fewer rows are numbered one after the other, and longer ones at the same time.
    numbered_alone: int = 1 << 12
    #: Users, items, and places of so many bits are sorted as one number.
    key_bits: int = 63


# Threads of a pool read the same sizes, so this is not a context variable.
_sizes = BlockSizes()


def block_sizes() -> BlockSizes:
    """Return the sizes in use."""
    return _sizes


@contextmanager
def other_block_sizes(**changed: Any) -> Iterator[None]:
    """Use other sizes for a while, in all threads."""
    global _sizes
    before = _sizes
    _sizes = replace(before, **changed)
    try:
        yield
    finally:
        _sizes = before
