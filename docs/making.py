"""Shared options of the scripts in this folder: where they write, and a toy size.

With `--toy`, every script does as little as possible and writes into a temporary folder. A test runs all of
them this way.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Making(NamedTuple):
    """Options of a script, and the folder that its files go to."""

    options: argparse.Namespace
    folder: Path

    @property
    def toy(self) -> bool:
        """Return whether this run only checks that the script works."""
        return bool(self.options.toy)

    def place(self, path: Path) -> Path:
        """Return where to write a file of the repository."""
        place = self.folder / path.resolve().relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


@contextmanager
def making(about: str, **flags: str) -> Iterator[Making]:
    """Parse `--toy` and the flags of a script, each with its help; yield where to write."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--toy", action="store_true", help="small, and into a folder that is thrown away")
    for name, words in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=words)
    options = parser.parse_args()
    if not options.toy:
        yield Making(options, ROOT)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Making(options, Path(folder))
