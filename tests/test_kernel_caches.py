"""Compiled kernels are made anew when anything changes that was compiled into them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from kernel_caches import _imported, _name, forget_stale

SOURCES = {
    "constants": "STEPS = 4\n",
    "shared": "@njit(cache=True)\ndef dot(): ...\n",
    "kernels": "from toy_package.shared import dot\n@compiled\ndef add(): ...\n",
    "outer": "from toy_package import constants, kernels\n@compiled\ndef f(): ...\n",
    "plain": "from toy_package.outer import f\n",
}


@pytest.fixture
def package(tmp_path):
    root = tmp_path / "toy_package"
    (root / "__pycache__").mkdir(parents=True)
    for name, text in SOURCES.items():
        (root / f"{name}.py").write_text(text, encoding="utf8")
        for ending in ("nbi", "1.nbc", "2.nbc"):
            (root / "__pycache__" / f"{name}.f-2.py311.{ending}").touch()
    return root


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        (None, []),
        ("plain", []),
        ("outer", ["outer"]),
        ("constants", ["outer"]),
        ("kernels", ["kernels", "outer"]),
        ("shared", ["kernels", "outer", "shared"]),
    ],
)
def test_what_a_change_makes_stale(package, changed, stale):
    for path in package.glob("*.py"):
        os.utime(path, ns=(0, 0))
    if changed:
        later = (package / "__pycache__" / "outer.f-2.py311.nbi").stat().st_mtime_ns + 10**9
        os.utime(package / f"{changed}.py", ns=(later, later))
        # A kernel that was compiled for one more type after the change does not hide those from before.
        for new in (package / "__pycache__").glob("*.2.nbc"):
            os.utime(new, ns=(later + 1, later + 1))
    assert forget_stale(package) == [f"toy_package.{name}" for name in stale]
    left = {path.name.split(".")[0] for path in (package / "__pycache__").glob("*.nbi")}
    assert left == SOURCES.keys() - set(stale)


def test_kernels_of_the_package_are_seen_with_what_they_import():
    root = Path(discreet.__file__).parent
    sources = {_name(path, root): path for path in root.rglob("*.py")}
    vectors = sources["discreet.statistics.item_vectors"]
    found = set(_imported(vectors, sources))
    assert found >= {"discreet.statistics.statistic", "discreet.core.kernels"}
    # The twin: what it does not import changes nothing of it.
    assert not found & {"discreet.statistics.co_occurrence", "discreet.statistics.item_context"}


COMPILE = """
import sys
from types import ModuleType
sys.stderr.isatty = lambda: {terminal}
if {notebook}:
    sys.modules["ipykernel"] = ModuleType("ipykernel")
import numpy as np
from numba import njit
from discreet.core import kernels
for loop in (njit(lambda x: x + 1), njit(lambda x: x + 2)):
    assert loop(np.ones(2)).size == 2
"""
SAID = ["Compiling numerical kernels, only the first time ..."]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("terminal", "notebook"),
    [(True, False), (False, False), pytest.param(False, True, marks=pytest.mark.slow)],
)
def test_compiling_is_announced_once_on_a_terminal_or_in_a_notebook(terminal, notebook):
    code = COMPILE.format(terminal=terminal, notebook=notebook)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.splitlines() == SAID * terminal and run.stdout.splitlines() == SAID * notebook
