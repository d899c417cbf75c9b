"""Kernels of a wheel are loaded only if they fit: the system, the processor, and the source."""

import gc
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import llvmlite.binding
import numba
import pytest
from numba.core.event import trigger_event
from numba.core.registry import cpu_target

from discreet.core import kernels

SOURCE = """
from discreet.core.kernels import strict

@strict
def double(number):
    return number * {factor}
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Return a function that imports a module with one kernel, whose compiled form is kept in a folder."""
    monkeypatch.setattr(kernels, "FOLDER", tmp_path / "shipped")
    # Python would run the old bytecode of a source that changes within a second and keeps its size.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "loops.py"

    def imported(cache, factor=2):
        kernels.shipped.cache_clear()
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / cache))
        file.write_text(SOURCE.format(factor=factor))
        spec = importlib.util.spec_from_file_location("loops", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.double(21) == 21 * factor
        return module.double.stats

    yield imported
    kernels.shipped.cache_clear()


@pytest.fixture
def ship(kernel, tmp_path):
    """Return a function that puts a compiled kernel into the folder of a wheel, for a stated machine."""

    def shipped(**stated):
        kernel("own")
        system, processor, features = cpu_target.target_context.codegen().magic_tuple()
        target = {"system": system, "processor": processor, "features": features} | stated
        (tmp_path / "shipped").mkdir()
        for file in (tmp_path / "own").rglob("*.nb?"):
            shutil.copy(file, tmp_path / "shipped")
        (tmp_path / "shipped" / "target.json").write_text(json.dumps(target))

    return shipped


def compiled_in(folder):
    return list(folder.rglob("*.nbc"))


def test_a_kernel_of_the_wheel_is_not_compiled(kernel, ship, tmp_path):
    ship()
    stats = kernel("other")
    assert sum(stats.cache_hits.values()) == 1 and not compiled_in(tmp_path / "other")


def other_features():
    missing = [name for name, here in llvmlite.binding.get_host_cpu_features().items() if not here]
    return f"+{missing[0]}" if missing else "+no-such-instructions"


@pytest.mark.parametrize(
    "stated",
    [{"system": "sparc-sun-solaris"}, {"features": other_features()}, {"processor": "some-other"}],
    ids=lambda stated: next(iter(stated)),
)
def test_kernels_for_another_machine_are_compiled_here(stated, kernel, ship, tmp_path):
    ship(**stated)
    stats = kernel("other")
    assert not stats.cache_hits and compiled_in(tmp_path / "other")


def test_a_changed_source_is_compiled_again(kernel, ship, tmp_path):
    ship()
    stats = kernel("other", factor=3)
    assert not stats.cache_hits and compiled_in(tmp_path / "other")


def test_without_kernels_in_the_wheel_numba_keeps_its_own(kernel):
    kernel("own")
    assert sum(kernel("own").cache_hits.values()) == 1


INNER = """
from discreet.core.kernels import inner
{first}
@inner
def {name}(x):
    return {value}
"""
OUTER = """
from discreet.core.kernels import strict
from toy_constants import NONE, STEPS
from toy_middle import two

@strict
def steps(x):
    return two(x) + STEPS + below(x) + NONE[0]

from toy_below import below
"""
CONSTANTS = "import numpy as np\nSTEPS = 4\nOTHER = 5\nNONE = np.zeros(1, np.int64)\n"
LOOPS = {
    "constants": CONSTANTS,
    "shared": INNER.format(first="", name="one", value="x"),
    "middle": INNER.format(first="from toy_shared import one", name="two", value="one(x)"),
    "outer": OUTER,
    "below": INNER.format(first="", name="below", value="0"),
    "unused": "SIZE = 3\n",
}
CALL = "import toy_unused; from toy_outer import steps; print(steps(1), sum(steps.stats.cache_hits.values()))"


def hits(folder, **changed):
    """Return the answer of a kernel in a new process, and how often its machine code was found."""
    for name, text in {**LOOPS, **changed}.items():
        (folder / f"toy_{name}.py").write_text(text)
    own = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    own |= {"PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, "-c", CALL], env=os.environ | own, capture_output=True, text=True)
    assert not run.returncode, run.stderr
    return tuple(map(int, run.stdout.split()))


@pytest.mark.few(2, "shared")
@pytest.mark.parametrize(
    ("changed", "old", "new", "answer"),
    [
        ("shared", "return x", "return 2 * x", 6),
        ("constants", "STEPS = 4", "STEPS = 7", 8),
        ("constants", "np.zeros", "np.ones", 6),
        ("middle", "one(x)", "3 * one(x)", 7),
        ("below", "return 0", "return 9", 14),
    ],
)
def test_a_kernel_is_compiled_again_if_what_is_compiled_into_it_changes(tmp_path, changed, old, new, answer):
    assert hits(tmp_path) == (5, 0)
    # The twins: nothing changes, or something that the kernel doesn't contain.
    assert hits(tmp_path, unused="SIZE = 4\n", constants=CONSTANTS.replace("OTHER = 5", "OTHER = 6")) == (
        5,
        1,
    )
    assert hits(tmp_path, **{changed: LOOPS[changed].replace(old, new)}) == (answer, 0)


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


def test_garbage_is_not_collected_while_the_outermost_kernel_is_compiled():
    was_on = gc.isenabled()
    gc.enable()
    try:
        with trigger_event("numba:compile"):
            assert not gc.isenabled()
            with trigger_event("numba:compile"):
                pass
            assert not gc.isenabled()
        assert gc.isenabled()
        gc.disable()
        with trigger_event("numba:compile"):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable() if was_on else gc.disable()
