"""Every parser under fire: some seconds each by default, longer with `make test-slow`."""

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


def fuzz(target, seconds, seed, **environment):
    """Run a target in a process of its own: a crash or a bomb must not take the other tests with it."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-m", "fuzz.run", target, "--seconds", str(seconds), "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
        timeout=seconds + 300,
    )
    assert found.returncode == 0, f"{target} ended the process:\n{found.stderr[-3000:]}"
    return json.loads(found.stdout)


def check(found):
    """Demand sentences only, and memory that has a bound."""
    assert not found["findings"], "\n\n".join(found["findings"])
    assert found["executions"] > 5 and found["refused"] > 0
    assert found["megabytes"] < MOST_MEGABYTES


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_but_sentences(target):
    # Loops that are not compiled look before they read, and say so.
    check(fuzz(target, 2, seed=0, NUMBA_DISABLE_JIT="1"))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_but_sentences_for_longer(target, tmp_path):
    compiled = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    check(fuzz(target, 120, seed=1, **compiled))
