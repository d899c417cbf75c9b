"""Load kernels that the wheel contains as machine code, and compile only the others.

`.ci/kernels.py` writes the folder before a wheel is built: files of numba's own cache, for a processor that
most machines have. numba compares the content of each kernel's module, its own version, and that of Python.
Kernels that don't fit are compiled at their first use, as in a checkout, which has no such folder.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import llvmlite.binding
import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

FOLDER = Path(__file__).with_name("compiled")
STATED = "target.json"


class Target(NamedTuple):
    """What kernels were compiled for: a kind of system, a processor, and its instructions."""

    system: str
    processor: str
    features: str


@lru_cache(maxsize=1)
def shipped() -> Target | None:
    """Return what the kernels in the wheel were compiled for, or None if this machine can't run them."""
    try:
        stated = json.loads((FOLDER / STATED).read_text(encoding="utf8"))
    except FileNotFoundError:
        return None
    target = Target(stated["system"], stated["processor"], stated["features"])
    here = llvmlite.binding.get_host_cpu_features()
    wished = numba.config.CPU_NAME  # type: ignore[attr-defined]
    fits = (
        target.system == llvmlite.binding.get_process_triple()
        and all(here.get(name[1:]) for name in target.features.split(",") if name.startswith("+"))
        and wished in (None, target.processor)
    )
    return target if fits else None


class ShippedFirst(FunctionCache):
    """A kernel's cache that looks into the wheel before it looks where numba keeps compiled kernels."""

    _impl: Any

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        target, super_class = shipped(), cast("Any", super())
        if target is not None:
            _, _, code = cast("Any", self)._index_key(sig, target_context.codegen())
            stamp = self._impl.locator.get_source_stamp()
            files = cast("Any", IndexDataCacheFile)(str(FOLDER), self._impl.filename_base, stamp)
            found = files.load((sig, tuple(target), code))
            if found is not None:
                return self._impl.rebuild(target_context, found)
        return super_class._load_overload(sig, target_context)


def load_shipped(kernel: Any) -> Any:
    """Return a kernel that is loaded from the wheel if it is there."""
    # Without just-in-time compilation, a kernel is a plain function.
    if shipped() is not None and hasattr(kernel, "py_func"):
        kernel._cache = cast("Any", ShippedFirst)(kernel.py_func)
    return kernel
