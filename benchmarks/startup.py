"""How long a program waits before it can work: imports and commands, as ratios to `python -c pass`.

    python benchmarks/startup.py [--json] [--repeat 5]

Processor time of the child (user and system), the least of several runs: other work on the machine only adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import harness

VERB = ["-m", "discreet"]
IMPORTS = ("discreet", "numpy", "polars", "numba")


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


def with_a_model(folder: Path) -> dict[str, list[str]]:
    """Fit a model, and return the commands that read it."""
    model, history = str(folder / "m.discreet"), folder / "me.csv"
    fit = ["fit", "discreet-demo", "--epsilon", "1", "--out", model]
    subprocess.run([sys.executable, *VERB, *fit], check=True, stdout=subprocess.DEVNULL)
    history.write_text("item,rating\nReturn of the Satellite,5\nThe Cursed Doll and I,1\n")
    return {
        "discreet model label": [*VERB, "label", model, "--json"],
        "discreet recommend": [*VERB, "recommend", model, "--history", str(history), "--json"],
    }


def main() -> None:
    options = harness.options(__doc__, toy={"repeat": 1}, repeat=5)
    runs = {"python -c pass": ["-c", "pass"], "discreet --version": [*VERB, "--version"]}
    with tempfile.TemporaryDirectory() as folder:
        if not options.toy:
            runs |= {f"import {name}": ["-c", f"import {name}"] for name in IMPORTS}
            runs |= {"discreet --help": [*VERB, "--help"], **with_a_model(Path(folder))}
        seconds = {name: cost(arguments, options.repeat) for name, arguments in runs.items()}
    base = max(seconds["python -c pass"], 1e-3)
    rows = {
        name: {"seconds": round(value, 3), "ratio": round(value / base, 1)} for name, value in seconds.items()
    }
    harness.tell(rows, options)


if __name__ == "__main__":
    main()
