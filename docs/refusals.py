"""Find every sentence that the program may refuse with, by reading its source.

A sentence stands where an error is made, or it has a name, comes from a function, or is a rule that
`checks.require` completes. What cannot be followed is reported, so that the page cannot lose one silently.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

_FIRST = "DiscreetError"
# The command line's own: arguments that could not be understood.
_MISUNDERSTOOD = "BadParameter"
_GAP = "…"


class Refusal(NamedTuple):
    """One sentence: its error, its words with dots for what is filled in, and when it is said."""

    kind: str
    sentence: str
    when: str


@dataclass
class Source:
    """Modules of a package, and the names that their messages can have."""

    trees: dict[Path, ast.Module]
    kinds: set[str] = field(default_factory=set)
    functions: dict[str, list[ast.FunctionDef]] = field(default_factory=dict)
    enums: dict[str, dict[str, str]] = field(default_factory=dict)
    callers: dict[str, list[tuple[ast.Call, ast.Module]]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Source:
        """Read a folder."""
        paths = sorted(folder.rglob("*.py"))
        return cls.of_trees({path: ast.parse(path.read_text(encoding="utf8")) for path in paths})

    @classmethod
    def of_trees(cls, trees: dict[Path, ast.Module]) -> Source:
        """Collect the classes of errors, the functions, their callers and the words of enumerations."""
        source = cls(trees)
        bases: dict[str, set[str]] = {}
        for module, node in ((tree, node) for tree in trees.values() for node in ast.walk(tree)):
            if isinstance(node, ast.Call):
                source.callers.setdefault(_name(node.func), []).append((node, module))
            elif isinstance(node, ast.FunctionDef):
                source.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                bases[node.name] = {_name(base) for base in node.bases}
                if bases[node.name] & {"StrEnum", "Enum"}:
                    source.enums[node.name] = dict(_named_texts(node.body))
        source.kinds = {_FIRST}
        while more := {name for name, above in bases.items() if above & source.kinds} - source.kinds:
            source.kinds |= more
        return source

    @cached_property
    def refusals(self) -> tuple[list[Refusal], list[str]]:
        """Return every refusal once, in order, and where a sentence could not be followed."""
        found, lost = set(), []
        for path, tree in self.trees.items():
            for call, function in _calls(tree, None):
                kind = _name(call.func)
                if kind not in {*self.kinds, _MISUNDERSTOOD}:
                    continue
                # An error with a code has no sentence here: its class has the template.
                sentences = list(self._texts(call.args[0], function, tree)) if call.args else [""]
                said = (function and ast.get_docstring(function)) or ast.get_docstring(tree) or ""
                when = said.partition("\n")[0]
                found |= {Refusal(kind, one, when) for one in sentences if any(map(str.isalpha, one))}
                if not sentences:
                    lost.append(f"{path.name}:{call.lineno} {ast.unparse(call)}")
        return sorted(found), lost

    def causes(self) -> dict[str, str]:
        """Return what each kind of error that has sentences is for."""
        said = {_MISUNDERSTOOD: "Report arguments that could not be understood; the exit code is 2."}
        for node in (node for tree in self.trees.values() for node in ast.walk(tree)):
            if isinstance(node, ast.ClassDef) and node.name in self.kinds:
                said[node.name] = (ast.get_docstring(node) or "").partition("\n")[0]
        return {kind: said[kind] for kind in sorted({one.kind for one in self.refusals[0]})}

    def _texts(self, node: ast.expr, function: ast.FunctionDef | None, tree: ast.Module) -> Iterator[str]:
        """Yield the texts that an expression may mean; none if they can't be found."""
        if isinstance(node, ast.Constant):
            yield str(node.value)
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else _GAP for part in node.values)
        elif isinstance(node, ast.BinOp):
            yield "".join(next(self._texts(side, function, tree), _GAP) for side in (node.left, node.right))
        elif isinstance(node, ast.IfExp):
            yield from self._texts(node.body, function, tree)
            yield from self._texts(node.orelse, function, tree)
        elif isinstance(node, ast.Attribute) and _name(node.value) in self.enums:
            yield self.enums[_name(node.value)].get(node.attr, "")
        elif isinstance(node, ast.Name):
            yield from self._assigned(node.id, function, tree)
        elif isinstance(node, ast.Call):
            yield from self._returned(node, function, tree)

    def _assigned(self, name: str, function: ast.FunctionDef | None, tree: ast.Module) -> Iterator[str]:
        for room in (function, tree):
            for node in ast.walk(room) if room is not None else ():
                if isinstance(node, ast.Assign) and any(_name(target) == name for target in node.targets):
                    yield from self._texts(node.value, None, tree)
        if function is not None:
            yield from self._handed(name, function)

    def _handed(self, name: str, function: ast.FunctionDef) -> Iterator[str]:
        """Yield what callers of a function give to its parameter."""
        given = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
        for call, tree in self.callers.get(function.name, []) if name in given else ():
            named = [one.value for one in call.keywords if one.arg == name]
            for value in (*call.args[given.index(name) :][:1], *named):
                yield from self._texts(value, None, tree)

    def _returned(self, call: ast.Call, function: ast.FunctionDef | None, tree: ast.Module) -> Iterator[str]:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("format", "join"):
            yield from self._texts(call.func.value, function, tree)
        for made in self.functions.get(_name(call.func), []):
            for node in ast.walk(made):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self._texts(node.value, made, tree)


def _calls(
    node: ast.AST, function: ast.FunctionDef | None
) -> Iterator[tuple[ast.Call, ast.FunctionDef | None]]:
    """Yield the calls in a tree, each with the innermost function around it."""
    for child in ast.iter_child_nodes(node):
        inner = child if isinstance(child, ast.FunctionDef) else function
        if isinstance(child, ast.Call):
            yield child, inner
        yield from _calls(child, inner)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _named_texts(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for line in body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
            yield _name(line.targets[0]), str(line.value.value)
