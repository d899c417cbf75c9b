"""How long a program waits before it can work: imports and commands, as ratios to `python -c pass`.

    python benchmarks/startup.py [--json] [--repeat 5]

Processor time of the child (user and system), the least of several runs: other work on the machine only adds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def cost(arguments: list[str], repeat: int) -> float:
    found = []
    for _ in range(repeat):
        before = os.times()
        subprocess.run(
            [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        found.append(spent)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, history = str(Path(folder) / "m.discreet"), Path(folder) / "me.csv"
        verb = ["-m", "discreet"]
        fit = ["fit", "discreet-demo", "--epsilon", "1", "--out", model]
        subprocess.run([sys.executable, *verb, *fit], check=True, stdout=subprocess.DEVNULL)
        history.write_text("item,rating\nReturn of the Satellite,5\nThe Cursed Doll and I,1\n")
        recommend = ["recommend", model, "--history", str(history), "--json"]
        runs = {
            "python -c pass": ["-c", "pass"],
            "import discreet": ["-c", "import discreet"],
            "import numpy": ["-c", "import numpy"],
            "import polars": ["-c", "import polars"],
            "import numba": ["-c", "import numba"],
            "discreet --version": [*verb, "--version"],
            "discreet --help": [*verb, "--help"],
            "discreet label": [*verb, "label", model, "--json"],
            "discreet recommend": [*verb, *recommend],
        }
        seconds = {name: cost(arguments, options.repeat) for name, arguments in runs.items()}
    base = seconds["python -c pass"]
    rows = {
        name: {"seconds": round(value, 3), "ratio": round(value / base, 1)} for name, value in seconds.items()
    }
    if options.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(f"{name:22} {row['seconds']:6.3f} s  {row['ratio']:6.1f} x")


if __name__ == "__main__":
    main()
