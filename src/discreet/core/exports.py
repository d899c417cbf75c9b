"""Export names lazily: import a module when one of its names is first used."""

from __future__ import annotations

import importlib
import sys


class Exports:
    """Exported names of a package with their modules. The name of a module means the module."""

    __slots__ = ("_modules", "_package", "names")

    def __init__(self, package: str, modules: dict[str, str]) -> None:
        self._package = package
        self._modules = {name: module for module, names in modules.items() for name in names.split()}
        self.names = sorted(self._modules)

    def find(self, name: str) -> object:
        """Return the object called `name`, and set it on the package so that it is looked up once."""
        if name not in self._modules:
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
        module = importlib.import_module(self._modules[name])
        found = module if module.__name__.endswith(f".{name}") else getattr(module, name)
        setattr(sys.modules[self._package], name, found)
        return found


class Later:
    """A module that is slow to import, imported on first use."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        found = getattr(importlib.import_module(self._module), name)
        setattr(self, name, found)
        return found
