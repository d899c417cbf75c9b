"""Which tests to run for a change: those that run the changed function, the most focused ones first.

Compiled functions, constants and classes do not show in a trace. Their tests are those of the functions that
name them, and those in files of tests that name them.
"""

import ast
import re
from collections import Counter
from pathlib import Path

from mutation.changes import tree


class Selection:
    """Know which tests run which function, and which function names which others."""

    def __init__(self, found: dict, sources: dict[str, str], texts: dict[str, str]) -> None:
        self.tests = list(found["tests"])
        self.words = {path: set(re.findall(r"\w+", text)) for path, text in texts.items()}
        self.seconds = list(found["tests"].values())
        self.functions = {name: set(numbers) for name, numbers in found["functions"].items()}
        self.breadth = Counter(number for numbers in self.functions.values() for number in numbers)
        self.users: dict[str, set[str]] = {}
        self.imports: dict[str, set[str]] = {}
        for path, source in sources.items():
            self._read(path, tree(source))

    def _read(self, path: str, tree: ast.Module) -> None:
        imports = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) and one.module]
        self.imports[path] = {one.module.rpartition(".")[2] for one in imports}
        self.imports[path] |= {name.name for one in imports for name in one.names}
        for node in tree.body:
            inner = node.body if isinstance(node, ast.ClassDef) else [node]
            for part in inner:
                prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
                place = f"{path}::{prefix}{getattr(part, 'name', _target(part))}"
                for one in ast.walk(part):
                    name = getattr(one, "id", getattr(one, "attr", None))
                    if isinstance(name, str):
                        self.users.setdefault(name, set()).add(place)

    def of(self, path: str, owner: str, seconds: float, most: int) -> list[str]:
        """Return the tests of a function, class or name that fit into so many seconds, most focused first."""
        numbers = self._of(f"{path}::{owner}", set())
        if f"{path}::{owner}" not in self.functions:
            numbers |= self._in_files_with(owner.rpartition(".")[2])
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
        path, _, owner = place.partition("::")
        name = owner.rpartition(".")[2]
        users = {user for user in self.users.get(name, set()) - seen if self._may_use(user, path)}
        return {number for user in users for number in self._of(user, seen)}

    def _in_files_with(self, name: str) -> set[int]:
        files = {path for path, words in self.words.items() if name in words}
        return {number for number, test in enumerate(self.tests) if test.partition("::")[0] in files}

    def _may_use(self, user: str, path: str) -> bool:
        """Say whether whoever uses a name may mean the one of this file."""
        own = user.partition("::")[0]
        return own == path or Path(path).stem in self.imports[own]


def _target(node: ast.stmt) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return next((one.id for one in targets if isinstance(one, ast.Name)), "")
