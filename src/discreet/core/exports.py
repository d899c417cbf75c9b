"""Import on first use: the names that a package exports, and modules that are slow to import."""

from __future__ import annotations

import importlib
import sys

# Replaces `typing.TYPE_CHECKING`; importing `typing` would take longer than the rest of this module.
TYPE_CHECKING = False
__all__ = ["Later", "exported", "later", "pl", "sp"]
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def exported(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    Its `__init__.pyi` lists its names, as `later` reads them. Type checkers read the same file.
    """
    # Loaders of files and of archives can read the file next to a module.
    module = sys.modules[package]
    stub: bytes = module.__loader__.get_data(f"{module.__file__}i")  # type: ignore[union-attr]
    homes = _homes(stub.decode())
    names = sorted(homes) + ["__version__"] * (b"__version__: str" in stub)
    return names, _finder(package, homes), lambda: names


def later(name: str) -> Callable[[str], object]:
    """Return `__getattr__` of a module that imports names for type checkers only: on first use, it has them.

    With `from PACKAGE import *`, it has all names that the package exports. A name is looked up once.
    """
    source: bytes = sys.modules[name].__loader__.get_data(sys.modules[name].__file__)  # type: ignore[union-attr]
    text = source.decode().partition("if TYPE_CHECKING:")[2]
    packages = [line.split()[1] for line in text.splitlines() if line.endswith(" import *")]
    return _finder(name, _homes(text), packages)


def _homes(text: str) -> dict[str, tuple[str, str]]:
    """Return the module of each name in `from MODULE import NAME as OTHER, NAME`, and its name there."""
    found = {}
    # Names in parentheses are joined into one line.
    for line in text.replace("(\n", "").replace(",\n", ",").splitlines():
        home, between, names = line.strip().removeprefix("from ").partition(" import ")
        for one in names.rstrip(",)").split(",") if between else ():
            name, _, called = one.strip().partition(" as ")
            found[called or name] = home, name
    return found


def _finder(
    owner: str, homes: dict[str, tuple[str, str]], packages: Sequence[str] = ()
) -> Callable[[str], object]:
    def find(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("discreet")
        exporting = (one for one in packages if name in importlib.import_module(one).__all__)
        home, own = homes.get(name) or (next(exporting, None), name)
        if home is None:
            module = sys.modules[owner]
            # With these fields, Python names a similar one.
            raise AttributeError(f"module {owner!r} has no attribute {name!r}", name=name, obj=module)
        place = importlib.import_module(home)
        found = getattr(place, own) if hasattr(place, own) else importlib.import_module(f"{home}.{own}")
        setattr(sys.modules[owner], name, found)
        return found

    return find


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
