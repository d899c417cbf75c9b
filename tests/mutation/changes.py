"""Small wrong changes of a source file, found in its syntax tree: what a good test suite must notice."""

import ast
import gc
import random
from dataclasses import dataclass

_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_BOUNDARY = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_COMPARISON = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
KINDS = ("arithmetic", "boundary", "comparison", "condition", "constant", "dropped")
# Parts of a node that are no behavior: types, decorators, and what messages say.
_NOT_CODE = {"annotation", "returns", "decorator_list", "type_params"}
_TEXT = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Change:
    """One changed place of a file: what stood there, what stands there now, and whose code it is."""

    path: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    stop: int
    owner: str

    def applied(self, source: str) -> str:
        """Return the source with this change."""
        raw = source.encode()
        return (raw[: self.start] + self.after.encode() + raw[self.stop :]).decode()


def tree(source: str) -> ast.Module:
    """Return the syntax tree of a source, and collect no garbage meanwhile.

    Python 3.11 before 3.11.8 counts the depth of all syntax trees in one place. Another thread that gets its
    turn because garbage is collected in the middle of `ast.parse` makes it fail.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_on:
            gc.enable()


def changes(path: str, source: str) -> list[Change]:
    """Return every change of a file that can be made."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, owner, decides in _code(tree(source), ""):
        for kind, after in _variants(node, decides):
            start = starts[node.lineno - 1] + node.col_offset
            stop = starts[node.end_lineno - 1] + node.end_col_offset
            before = source.encode()[start:stop].decode()
            found.append(Change(path, node.lineno, kind, before, after, start, stop, owner))
    return found


def drawn(sources: dict[str, str], groups: list[str], each: int, seed: int) -> list[Change]:
    """Return so many changes of each group of files (a start of paths): kinds in turn, lines at random."""
    kept = []
    for group in groups:
        chance = random.Random(f"{seed}/{group}")
        found = [
            one for path in sorted(sources) if path.startswith(group) for one in changes(path, sources[path])
        ]
        used: set[tuple[str, int]] = set()
        for number in range(each):
            kind = KINDS[number % len(KINDS)]
            left = [one for one in found if one.kind == kind and (one.path, one.line) not in used]
            if left:
                kept.append(chance.choice(left))
                used.add((kept[-1].path, kept[-1].line))
    return kept


def _code(node, owner):
    """Yield every node that is code, the function, class or name that holds it, and whether it decides."""
    for field, value in ast.iter_fields(node):
        if field in _NOT_CODE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or (
                isinstance(child, _TEXT) and not isinstance(child, ast.Raise)
            ):
                continue
            inside = _owner(child, owner, isinstance(node, ast.Module | ast.ClassDef))
            if isinstance(child, ast.stmt | ast.expr):
                yield child, inside, field == "test"
            if not isinstance(child, _TEXT) and not _is_for_types(child):
                yield from _code(child, inside)


def _owner(node, owner, outside_functions):
    if not outside_functions:
        return owner
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return f"{owner}.{node.name}" if owner else node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return owner or next((one.id for one in targets if isinstance(one, ast.Name)), "")


def _is_for_types(node):
    """Say whether a node only speaks to the type checker: an alias, or imports for annotations."""
    text = ast.unparse(node) if isinstance(node, ast.Subscript | ast.If) else ""
    return text.startswith(("Literal[", "NDArray[", "Callable[", "if TYPE_CHECKING"))


def _variants(node, decides):
    """Yield the kind of each change of a node, and the text to put in its place."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_union(node):
        yield "arithmetic", _text(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))
    elif isinstance(node, ast.Compare):
        for kind, table in (("boundary", _BOUNDARY), ("comparison", _COMPARISON)):
            if type(node.ops[0]) in table:
                ops = [table[type(node.ops[0])](), *node.ops[1:]]
                yield kind, _text(ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        yield "constant", repr(_other(node.value))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "condition", _text(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "condition", _text(node.operand)
    elif isinstance(node, ast.IfExp):
        yield "condition", _text(ast.IfExp(node.test, node.orelse, node.body))
    elif decides and isinstance(node, ast.Name | ast.Attribute | ast.Call):
        yield "condition", f"(not {ast.unparse(node)})"
    elif _is_droppable(node):
        yield "dropped", "pass"


def _is_droppable(node):
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return not any(isinstance(one, ast.Name | ast.Tuple) for one in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break)


def _is_union(node):
    return any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)
    )


def _other(value):
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) or value == 0 else 2 * value


def _text(node):
    return f"({ast.unparse(ast.fix_missing_locations(node))})"
