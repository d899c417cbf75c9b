"""Write what pages and pictures show: `python docs/build.py readme results`.

Each name is a module `make_NAME.py` of this folder, with a function `build` that writes its files. With
`--toy`, a build does as little as possible and writes into a temporary folder. A test runs all of them this
way.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from pathlib import Path

from making import ROOT, Making

NAMES = sorted(path.stem.removeprefix("make_") for path in Path(__file__).parent.glob("make_*.py"))


def main() -> None:
    """Build what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--toy", action="store_true", help="small, and into a folder that is thrown away")
    parser.add_argument("--demo", action="store_true", help="readme: also run the demo and show its output")
    parser.add_argument("--draw", action="store_true", help="figures: draw the committed numbers only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            made = Making(options, Path(folder) if options.toy else ROOT)
            importlib.import_module(f"make_{name}").build(made)


if __name__ == "__main__":
    main()
