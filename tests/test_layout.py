"""Files hold whole subjects: few very short ones, and a name means one class."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "discreet"
FEW_LINES, MOST_SHORT = 50, 0.2


def modules(root=ROOT):
    return sorted(path for path in root.rglob("*.py") if path.name != "__init__.py")


def lines(path):
    return len(path.read_text(encoding="utf8").splitlines())


def classes(paths):
    """Return the modules of each public class by its name."""
    found = defaultdict(list)
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.name)
    return found


def named_twice(paths):
    return {name: places for name, places in classes(paths).items() if len(places) > 1}


def share_of_short(paths):
    return sum(lines(path) < FEW_LINES for path in paths) / len(paths)


def test_few_files_are_short():
    assert share_of_short(modules()) <= MOST_SHORT, "Put short modules where they are used."


def test_no_two_classes_share_a_name():
    assert not named_twice(modules()), "Rename one: a reader searches by name."


@pytest.fixture
def twins(tmp_path):
    """Return a package that breaks every rule."""
    (tmp_path / "long.py").write_text("class Same: ...\n" + "x = 1\n" * FEW_LINES, encoding="utf8")
    (tmp_path / "short.py").write_text("class Same: ...\nclass _Own: ...\n", encoding="utf8")
    (tmp_path / "other.py").write_text("class _Own: ...\n", encoding="utf8")
    return modules(tmp_path)


def test_what_breaks_a_rule_is_found(twins):
    assert share_of_short(twins) > MOST_SHORT
    assert named_twice(twins) == {"Same": ["long.py", "short.py"]}
