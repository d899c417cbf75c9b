"""Write pip constraints that hold every library to the lowest version pyproject.toml allows.

    python .ci/lowest.py [EXTRA ...] > constraints.txt

Only what discreet itself names is held; what those libraries need is pip's to choose.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_BOUND = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=([0-9.]+)")


def lowest(project: dict, extras: list[str]) -> list[str]:
    """Return `name==version` for each library that is asked for with a lower bound."""
    optional = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    found = (_BOUND.match(line) for line in wanted)
    return sorted({f"{match[1]}=={match[2]}" for match in found if match})


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "pyproject.toml"
    print(*lowest(tomllib.loads(path.read_text(encoding="utf8"))["project"], sys.argv[1:]), sep="\n")
