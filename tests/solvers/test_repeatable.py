"""Equal sums give equal bits: no iterative solver draws a direction of its own."""

import ast
from pathlib import Path

import pytest

import discreet

ROOT = Path(discreet.__file__).parent
ITERATIVE = {"eigs", "eigsh", "lobpcg", "svds"}


def unseeded(source):
    """Return the iterative solvers that a module calls without the fixed generator."""
    return [
        node.func.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ITERATIVE
        if "REPEATABLE" not in [one.value.id for one in node.keywords if isinstance(one.value, ast.Name)]
    ]


def test_every_iterative_solver_has_the_fixed_generator():
    found = {path.name: unseeded(path.read_text(encoding="utf8")) for path in ROOT.rglob("*.py")}
    assert not {name: calls for name, calls in found.items() if calls}


@pytest.mark.parametrize(
    ("call", "found"), [("svds(m, **REPEATABLE)", []), ("eigsh(m, k=1, v0=v)", ["eigsh"])]
)
def test_a_call_without_it_is_found(call, found):
    assert unseeded(f"x = {call}") == found
