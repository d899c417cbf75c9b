"""Make a change in a process that has imported everything, so that a trial costs its tests alone.

A function keeps its identity and gets changed code, so modules that imported it see the change. Kernels are
compiled again, with all kernels that call them. What runs once, on import, can't be changed this way.
"""

import gc
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from mutation.changes import Change


class Loaded:
    """All functions and kernels of this process; finding them once makes each trial cheaper."""

    def __init__(self) -> None:
        from numba.core.dispatcher import Dispatcher

        # Frozen objects aren't listed.
        gc.unfreeze()
        objects = gc.get_objects()
        self.functions: dict[str, list[FunctionType]] = {}
        for one in objects:
            if type(one) is FunctionType:
                self.functions.setdefault(one.__code__.co_filename, []).append(one)
        # Not `isinstance`, which asks a weak reference for the class of an object that may be gone.
        self.kernels = [one for one in objects if issubclass(type(one), Dispatcher)]

    def compiles(self, path: str, owner: str) -> bool:
        """Return whether a function of a file is a kernel."""
        codes = [kernel.py_func.__code__ for kernel in self.kernels]
        return any(code.co_qualname == owner and code.co_filename.endswith(path) for code in codes)

    def load_kernels(self) -> None:
        """Load what is kept of compiled kernels, so that no fork of this process has to."""
        for kernel in self.kernels:
            kept = getattr(kernel._cache, "_cache_file", None)
            for signature, *_ in kept._load_index() if kept is not None else ():
                kernel.compile(signature)


def made(change: Change, root: Path, loaded: Loaded | None = None) -> bool:
    """Make the change in this process; return False if no function of the module is different with it."""
    loaded = loaded or Loaded()
    path = root / change.path
    source = path.read_text(encoding="utf8")
    new = _functions(compile(change.applied(source), str(path), "exec"))
    old = _functions(compile(source, str(path), "exec"))
    place = {(code.co_qualname, code.co_firstlineno): key for key, code in old.items()}
    changed = []
    for function in loaded.functions.get(str(path), ()):
        code = function.__code__
        other = new.get(place.get((code.co_qualname, code.co_firstlineno)))
        if other is not None and _shape(other) != _shape(code) and other.co_freevars == code.co_freevars:
            function.__code__ = other
            changed.append(function)
    _compile_again(changed, loaded.kernels)
    return bool(changed)


def _functions(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the code of all functions by name, and by place among those of one name."""
    found: dict[tuple[str, int], CodeType] = {}
    waiting = [code]
    while waiting:
        one = waiting.pop(0)
        number = sum(name == one.co_qualname for name, _ in found)
        found[one.co_qualname, number] = one
        waiting += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
    return found


def _shape(code: CodeType) -> tuple:
    """Return what a function does, without the places of its lines."""
    consts = tuple(
        _shape(one) if isinstance(one, CodeType) else (type(one).__name__, repr(one))
        for one in code.co_consts
    )
    return code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars


def _compile_again(changed: list[FunctionType], kernels: Iterable[Any]) -> None:
    """Forget the compiled forms of changed kernels, and of all kernels that call them."""
    from numba.core.caching import NullCache

    stale = {id(one) for one in kernels if any(one.py_func is function for function in changed)}
    grown = -1
    while stale and grown != len(stale):
        grown = len(stale)
        for one in kernels:
            named = (one.py_func.__globals__.get(name) for name in one.py_func.__code__.co_names)
            if any(id(other) in stale for other in named):
                stale.add(id(one))
    for one in kernels:
        if id(one) in stale:
            one._reset_overloads()
            one._cache = NullCache()
