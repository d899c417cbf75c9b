"""Write what pages and pictures show: `python docs/build.py readme results`.

Each name is a function of a module of this folder. With `--toy`, a build does as little as possible and
writes into a temporary folder. A test runs all of them this way.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: Builds by name, each with its module and function; drawing needs matplotlib, so modules are loaded late.
BUILDS = {
    "choosing": ("pages", "write_accuracy"),
    "constants": ("pages", "write_constants"),
    "papers": ("pages", "write_papers"),
    "readme": ("pages", "write_parts"),
    "tutorial": ("pages", "write_tutorial"),
    "results": ("results", "write_results"),
    "figures": ("pictures", "draw_measured"),
    "fresh": ("pictures", "draw_fresh"),
    "map": ("pictures", "draw_layers"),
    "overview": ("pictures", "draw_overview"),
    "pictures": ("pictures", "draw_explanations"),
    "screenshots": ("screenshots", "take_pictures"),
}


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


def main() -> None:
    """Build what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+", choices=sorted(BUILDS), metavar="NAME", help=", ".join(BUILDS))
    parser.add_argument("--toy", action="store_true", help="small, and into a folder that is thrown away")
    parser.add_argument("--demo", action="store_true", help="readme: also run the demo and show its output")
    parser.add_argument("--draw", action="store_true", help="figures: draw the committed numbers only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            module, function = BUILDS[name]
            made = Making(options, Path(folder) if options.toy else ROOT)
            getattr(importlib.import_module(module), function)(made)


if __name__ == "__main__":
    main()
