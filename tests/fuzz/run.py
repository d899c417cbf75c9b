"""Run one target for some seconds in a process of its own and print what happened, as JSON.

`python -m fuzz.run model --seconds 5`: every execution must end in a value or a `DiscreetError`, and the
process must not need more memory than the target allows. A crash of the process is a finding, too.
"""

import argparse
import importlib
import json
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from discreet.checks import DiscreetError

TARGETS = {
    "model": "fuzz.models:ModelFiles",
    "model-arrays": "fuzz.models:ModelArrays",
    "campaign": "fuzz.parsers:Campaigns",
    "report": "fuzz.parsers:Reports",
    "federated": "fuzz.parsers:Messages",
    "ledger": "fuzz.parsers:Ledgers",
    "journal": "fuzz.parsers:Journals",
    "table": "fuzz.parsers:Tables",
    "signature": "fuzz.kept:Signatures",
    "device": "fuzz.kept:Devices",
    "shards": "fuzz.kept:Shards",
}
_GIGABYTE = 1 << 30


def execute(name: str, seconds: float, seed: int) -> dict:
    """Return how often the target was tried and what came of it, with the first findings in full."""
    module, _, kind = TARGETS[name].partition(":")
    warnings.simplefilter("ignore")
    counts = {"executions": 0, "accepted": 0, "refused": 0}
    findings = []
    # In memory, where there is such a folder: syncing to a disk is not what is tried here.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        target = getattr(importlib.import_module(module), kind)(Path(folder))
        target.honest()
        before = peak()
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(findings) < 3:
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
    return {"target": name, **counts, "megabytes": (peak() - before) // 1024, "findings": findings}


def peak() -> int:
    """Return the most memory this process ever held, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    # What asks for more than this fails at once instead of taking the machine down.
    resource.setrlimit(resource.RLIMIT_AS, (6 * _GIGABYTE, 6 * _GIGABYTE))
    json.dump(execute(asked.target, asked.seconds, asked.seed), sys.stdout)


if __name__ == "__main__":
    main()
