"""Kernels of a wheel are loaded only if they fit: the system, the processor, and the source."""

import importlib.util
import json
import shutil
import sys

import llvmlite.binding
import numba
import pytest
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
