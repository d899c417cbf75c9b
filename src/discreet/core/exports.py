"""Import on first use: the names that a package exports, and modules that are slow to import."""

from __future__ import annotations

import importlib
import sys

# Replaces `typing.TYPE_CHECKING`; importing `typing` would take longer than the rest of this module.
TYPE_CHECKING = False
__all__ = ["Later", "exported", "pl", "sp"]
if TYPE_CHECKING:
    from collections.abc import Callable


def exported(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    Each line of its `__init__.pyi` names a module and one of its names, or a module: `from MODULE import NAME
    as NAME`. Type checkers read the same file. A name is looked up once.
    """
    module = sys.modules[package]
    # Loaders of files and of archives can read the file next to a module.
    stub: bytes = module.__loader__.get_data(f"{module.__file__}i")  # type: ignore[union-attr]
    lines = stub.decode().splitlines()
    homes = {line.split()[-1]: line.split()[1] for line in lines if line.startswith("from ")}
    names = sorted(homes) + ["__version__"] * ("__version__: str" in lines)

    def find(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version(package)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        found = (
            getattr(home, name) if hasattr(home, name) else importlib.import_module(f"{homes[name]}.{name}")
        )
        setattr(module, name, found)
        return found

    return names, find, lambda: names


class Later:
    """A module that is slow to import, imported on first use."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        found = getattr(importlib.import_module(self._module), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp
else:
    pl, sp = Later("polars"), Later("scipy.sparse")
