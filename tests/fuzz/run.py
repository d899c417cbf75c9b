"""Run targets, each in a process of its own, and print what happened, as JSON.

`python -m fuzz.run model table --executions 100`, or `--seconds 5`: every execution must end in a value or a
`DiscreetError`, and the process must not need more memory than the target allows. A crash of the process is a
finding, too.
"""

import argparse
import importlib
import json
import math
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from discreet.core.checks import DiscreetError

TARGETS = {
    "model": "fuzz.models:ModelFiles",
    "model-arrays": "fuzz.models:ModelArrays",
    "campaign": "fuzz.parsers:Campaigns",
    "report": "fuzz.parsers:Reports",
    "federated": "fuzz.parsers:Messages",
    "ledger": "fuzz.parsers:Ledgers",
    "journal": "fuzz.parsers:Journals",
    "table": "fuzz.parsers:Tables",
    "layouts": "fuzz.parsers:Layouts",
    "signature": "fuzz.kept:Signatures",
    "device": "fuzz.kept:Devices",
    "shards": "fuzz.kept:Shards",
    "http": "fuzz.served:HttpBodies",
    "invitations": "fuzz.served:Invitations",
    "keeper": "fuzz.served:KeeperMessages",
    "parquet": "fuzz.served:ParquetPages",
}
_GIGABYTE = 1 << 30


def kind_of(name: str) -> type:
    """Return the class of a target."""
    module, _, kind = TARGETS[name].partition(":")
    return getattr(importlib.import_module(module), kind)


def execute(name: str, executions: float, seconds: float, seed: int) -> dict:
    """Return how often the target was tried and what came of it, with the first findings in full."""
    warnings.simplefilter("ignore")
    counts = {"executions": 0, "accepted": 0, "refused": 0}
    findings = []
    # In memory, where there is such a folder: syncing to a disk is not what is tried here.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        target = kind_of(name)(Path(folder))
        target.honest()
        before = peak()
        end = time.monotonic() + seconds
        while counts["executions"] < executions and time.monotonic() < end and len(findings) < 3:
            chance = random.Random(f"{seed}/{counts['executions']}")
            counts["executions"] += 1
            try:
                target.attack(chance)
                counts["accepted"] += 1
            except DiscreetError as error:
                counts["refused"] += 1
                if "\n" in str(error) or "\x1b" in str(error):
                    findings.append(f"not one plain sentence: {error!r}")
            except Exception:
                findings.append(f"execution {counts['executions'] - 1}: {traceback.format_exc()}")
    return {**counts, "megabytes": (peak() - before) // 1024, "findings": findings}


def apart(name: str, *limits: float) -> dict | None:
    """Execute a target in a child of this process, which has imported everything; None if the child died."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with os.fdopen(write, "w") as answer:
                json.dump(execute(name, *limits), answer)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    return json.loads(said) if os.waitpid(child, 0)[1] == 0 else None


def peak() -> int:
    """Return the most memory this process ever held, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="+", choices=TARGETS)
    parser.add_argument("--executions", type=float, default=math.inf)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    # What asks for more than this fails at once instead of taking the machine down.
    resource.setrlimit(resource.RLIMIT_AS, (6 * _GIGABYTE, 6 * _GIGABYTE))
    for name in asked.targets:
        kind_of(name)
    limits = asked.executions, asked.seconds, asked.seed
    json.dump({name: apart(name, *limits) for name in asked.targets}, sys.stdout)


if __name__ == "__main__":
    main()
