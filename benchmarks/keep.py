"""Run a benchmark and keep its result in benchmarks/results, with all that says how it was measured.

    python benchmarks/keep.py scale.py --millions 1,10
    python benchmarks/keep.py --name als_ratings als.py --millions 1

`docs/build.py results` makes the tables of the documentation from these files. A file holds the command, the
date, the version, the commit, the kind of machine, how busy it was, the processor seconds of the whole run,
and `result`, which is what the benchmark prints with `--json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def measured(script: str, arguments: list[str]) -> dict[str, Any]:
    """Run a benchmark in a process of its own and return its result with how it was measured."""
    busy = os.getloadavg()[0]
    command = [sys.executable, str(HERE / script), "--json", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        **how(script, ["--json", *arguments]),
        "commit": _commit(),
        "load_before": round(busy, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime),
        "result": json.loads(done.stdout),
    }


def how(script: str, arguments: list[str]) -> dict[str, Any]:
    """Return the command, today, the version and the kind of machine."""
    return {
        "command": " ".join(["python", f"benchmarks/{script}", *arguments]),
        "date": datetime.now(UTC).date().isoformat(),
        "version": version("discreet"),
        "machine": _machine(),
    }


def _machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    }


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", help="the name of the result; by default the script's")
    parser.add_argument("--toy", action="store_true", help="run a toy size, and keep nothing")
    parser.add_argument("--json", action="store_true", help="print the kept object as JSON")
    parser.add_argument("script", nargs="?", default="audit.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    kept = measured(options.script, [*options.arguments, *(["--toy"] if options.toy else [])])
    text = json.dumps(kept, indent=1) + "\n"
    if not options.toy:
        (RESULTS / f"{options.name or Path(options.script).stem}.json").write_text(text, encoding="utf8")
    if options.json:
        print(text)


if __name__ == "__main__":
    main()
