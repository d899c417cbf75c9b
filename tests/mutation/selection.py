"""Which tests to run for a change: those that run the changed function, the most focused ones first.

Compiled functions, constants and classes do not show in a trace. Their tests are those of the functions that
name them.
"""

import ast
import re
from collections import Counter
from pathlib import Path

_COMPILED = re.compile(r"^(compiled|njit)\b")


class Selection:
    """Know which tests run which function, and which function names which others."""

    def __init__(self, found: dict, sources: dict[str, str]) -> None:
        self.tests = list(found["tests"])
        self.seconds = list(found["tests"].values())
        self.functions = {name: set(numbers) for name, numbers in found["functions"].items()}
        self.breadth = Counter(number for numbers in self.functions.values() for number in numbers)
        self.users: dict[str, set[str]] = {}
        self.compiled: set[str] = set()
        for path, source in sources.items():
            self._read(path, ast.parse(source))

    def _read(self, path: str, tree: ast.Module) -> None:
        for node in tree.body:
            inner = node.body if isinstance(node, ast.ClassDef) else [node]
            for part in inner:
                prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
                place = f"{path}::{prefix}{getattr(part, 'name', _target(part))}"
                if any(_COMPILED.match(ast.unparse(one)) for one in getattr(part, "decorator_list", [])):
                    self.compiled.add(place)
                for one in ast.walk(part):
                    name = getattr(one, "id", getattr(one, "attr", None))
                    if isinstance(name, str):
                        self.users.setdefault(name, set()).add(place)

    def of(self, path: str, owner: str, seconds: float, most: int) -> list[str]:
        """Return the tests of a function, class or name that fit into so many seconds, most focused first."""
        numbers = self._of(f"{path}::{owner}", set())
        if not numbers:
            numbers = {
                one for name, some in self.functions.items() if name.startswith(f"{path}::") for one in some
            }
        if not numbers:  # it runs only in other processes
            folder = f"tests/{Path(path).parts[2]}/"
            numbers = {number for number, test in enumerate(self.tests) if test.startswith(folder)}
        chosen = []
        for number in sorted(numbers, key=lambda one: (self.breadth[one], self.seconds[one])):
            if self.seconds[number] <= seconds and len(chosen) < most:
                seconds -= self.seconds[number]
                chosen.append(self.tests[number])
        return chosen

    def _of(self, place: str, seen: set[str]) -> set[int]:
        seen.add(place)
        if place in self.functions:
            return self.functions[place]
        users = self.users.get(re.split(r"::|\.", place)[-1], set()) - seen
        return {number for user in users for number in self._of(user, seen)}


def _target(node: ast.stmt) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return next((one.id for one in targets if isinstance(one, ast.Name)), "")
