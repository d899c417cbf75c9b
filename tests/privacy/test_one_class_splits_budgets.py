"""One class splits budgets: `Session` (a rule on the syntax trees of all modules)."""

import ast
import re
from pathlib import Path

import pytest

import discreet

ROOT = Path(discreet.__file__).parent
REMAINDERS = ("left", "budget", "rest", "remaining", "allowance")
# Parsing every module takes seconds; most of them set none of these.
SET = re.compile(rf"\._*(?:{'|'.join(REMAINDERS)})\w*\s*-?=")


def splitters(text):
    """Return the classes that hand out sessions, or that subtract from a budget that they keep."""
    if "Session" not in text and not SET.search(text):
        return set()
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return {kind.name for kind in classes for node in ast.walk(kind) if _hands_out(node) or _subtracts(node)}


def _hands_out(node):
    if not isinstance(node, ast.FunctionDef) or node.returns is None:
        return False
    return "Session" in ast.unparse(node.returns) and "tuple" in ast.unparse(node.returns)


def _subtracts(node):
    """Return whether `x.left -= y` or `x.left = x.left - y` is there."""
    if isinstance(node, ast.AugAssign):
        target, takes = node.target, isinstance(node.op, ast.Sub)
    elif isinstance(node, ast.Assign):
        target = node.targets[0]
        takes = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Sub)
    else:
        return False
    return takes and isinstance(target, ast.Attribute) and target.attr.strip("_").startswith(REMAINDERS)


def test_the_session_alone_splits_budgets():
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in ROOT.rglob("*.py")
        for name in splitters(path.read_text(encoding="utf8"))
    }
    # What is left there are random bytes.
    assert found == {("privacy/session.py", "Session"), ("core/randomness.py", "PrivacyRandom")}


@pytest.mark.parametrize(
    "body",
    [
        "def split(self, share: Fraction) -> tuple[Session, Session]: ...",
        "def spend(self, share):\n        self._left -= share",
        "def spend(self, share):\n        self.budget_left = self.budget_left - share",
    ],
)
def test_the_twin_is_found(body):
    assert splitters(f"class Purse:\n    {body}\n") == {"Purse"}
