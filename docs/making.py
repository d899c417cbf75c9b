"""Where the builds of this folder write, and with which options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Making(NamedTuple):
    """Options of a build, and the folder that its files go to."""

    options: argparse.Namespace
    folder: Path

    @property
    def toy(self) -> bool:
        """Return whether this run only checks that the build works."""
        return bool(self.options.toy)

    def place(self, path: Path) -> Path:
        """Return where to write a file of the repository."""
        place = self.folder / path.resolve().relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def write(self, path: Path, text: str) -> None:
        """Write a text file of the repository."""
        self.place(path).write_text(text, encoding="utf8")
