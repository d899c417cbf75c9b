"""Every parser under fire: some executions each by default, minutes with `make test-slow`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.run import TARGETS

TESTS = Path(__file__).parents[1]
# What a target may hold besides what it holds after one honest message, in megabytes.
MOST_MEGABYTES = 400


def fuzz(targets, seed, *limits, **environment):
    """Run targets in processes of their own: a crash or a bomb must not take the other tests with it."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-m", "fuzz.run", *targets, *limits, "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    assert found.returncode == 0, found.stderr[-3000:]
    results = json.loads(found.stdout)
    dead = [name for name, result in results.items() if result is None]
    assert not dead, f"{dead} ended the process:\n{found.stderr[-3000:]}"
    return results


def check(found):
    """Demand sentences only, and memory that has a bound."""
    assert not found["findings"], "\n\n".join(found["findings"])
    assert found["executions"] > 5 and found["refused"] > 0
    assert found["megabytes"] < MOST_MEGABYTES


@pytest.mark.thorough
def test_nothing_but_sentences():
    # Loops that are not compiled look before they read, and say so.
    found = fuzz(TARGETS, 0, "--executions", "25", NUMBA_DISABLE_JIT="1")
    assert found.keys() == TARGETS.keys()
    for result in found.values():
        check(result)
        assert result["executions"] == 25


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_but_sentences_for_longer(target, tmp_path):
    compiled = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    check(fuzz([target], 1, "--seconds", "120", **compiled)[target])
