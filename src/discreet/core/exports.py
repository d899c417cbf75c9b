"""Offer names without importing the modules they are from: each is imported when it is first used."""

from __future__ import annotations

import importlib
import sys


class Exports:
    """Know for each name of a package in which module it lives; a name with no home there is a module."""

    __slots__ = ("_homes", "_package", "names")

    def __init__(self, package: str, homes: dict[str, str]) -> None:
        self._package = package
        self._homes = {name: home for home, names in homes.items() for name in names.split()}
        self.names = sorted(self._homes)

    def find(self, name: str) -> object:
        """Return what `name` stands for and keep it, so that the next look is a plain one."""
        if name not in self._homes:
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
        module = importlib.import_module(self._homes[name])
        found = module if module.__name__.endswith(f".{name}") else getattr(module, name)
        setattr(sys.modules[self._package], name, found)
        return found


class Later:
    """Stand for a module that takes long to load, and load it when something in it is first asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        found = getattr(importlib.import_module(self._module), name)
        setattr(self, name, found)
        return found
