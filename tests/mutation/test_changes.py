"""The mutation pass changes what it says, and chooses the tests that run what it changed."""

import ast
import importlib
import json
import random

import pytest

from mutation.changes import KINDS, changes, drawn, tree
from mutation.in_place import made
from mutation.privacy import NAMED, SUBJECTS, TESTS, named, sample
from mutation.run import EQUIVALENT, GROUPS, ROOT
from mutation.selection import Selection

#: The results of the last run, and tests of a subject in other folders: noise that parties share, labels.
KEPT = EQUIVALENT.with_name("privacy_results.json")
NEAR = {"privacy": ("tests/federated/test_federated_noise", "tests/report/"), "report": ("tests/privacy/",)}
SOURCE = '''"""Docstrings have 3 + 4 numbers that stay."""

LIMIT = 8


def f(x: "int" = 5, é: bool = True) -> int:
    """Say 1 < 2."""
    if x < LIMIT and é:
        raise ValueError(f"{x + 1}")
    if é:
        x.count += 1
    g(x)
    return x * 2 if x == 4 else -x


class Box:
    size: int = 7

    def area(self):
        return self.size**2
'''
IN_PLACE = """
from dataclasses import dataclass

from numba import njit

LIMIT = 7

def area(a, b):
    return a * b

@dataclass(frozen=True, slots=True)
class Box:
    side: int

    def double(self):
        return 2 * self.side

@njit
def inner(x):
    return x + 2

@njit
def outer(x):
    return inner(x) + 1
"""


def test_every_kind_of_change_is_found_and_made_in_its_place():
    found = {(one.kind, one.before, one.after) for one in changes("a.py", SOURCE)}
    assert found == {
        ("constant", "8", "9"),
        ("constant", "5", "6"),
        ("constant", "True", "False"),
        ("condition", "x < LIMIT and é", "(x < LIMIT or é)"),
        ("boundary", "x < LIMIT", "(x <= LIMIT)"),
        ("comparison", "x < LIMIT", "(x >= LIMIT)"),
        ("dropped", 'raise ValueError(f"{x + 1}")', "pass"),
        ("condition", "é", "(not é)"),
        ("dropped", "x.count += 1", "pass"),
        ("constant", "1", "2"),
        ("dropped", "g(x)", "pass"),
        ("condition", "x * 2 if x == 4 else -x", "(-x if x == 4 else x * 2)"),
        ("arithmetic", "x * 2", "(x / 2)"),
        ("constant", "2", "3"),
        ("comparison", "x == 4", "(x != 4)"),
        ("constant", "4", "5"),
        ("constant", "7", "8"),
        ("arithmetic", "self.size**2", "(self.size * 2)"),
    }
    for one in changes("a.py", SOURCE):
        raw, other = SOURCE.encode(), one.applied(SOURCE).encode()
        assert other[: one.start] == raw[: one.start] and other.endswith(raw[one.stop :]) and other != raw
        tree(one.applied(SOURCE))


def test_changes_know_whose_they_are():
    owners = {one.before: one.owner for one in changes("a.py", SOURCE)}
    assert (owners["8"], owners["g(x)"], owners["7"]) == ("LIMIT", "f", "Box")
    assert owners["self.size**2"] == "Box.area"


@pytest.mark.thorough
@pytest.mark.parametrize("group", GROUPS)
def test_draws_can_be_repeated_and_every_change_is_still_a_program(group):
    # A third of the files: reading all of them twice takes long, and draws do not know how many there are.
    paths = sorted((ROOT / group).rglob("*.py"))[::3]
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf8") for path in paths}
    found = drawn(sources, [group], 12, 3)
    assert found == drawn(dict(reversed(sources.items())), [group], 12, 3)
    assert [one.kind for one in found] == [*KINDS, *KINDS]
    for one in random.Random(1).sample(found, 6):
        assert ast.dump(tree(one.applied(sources[one.path]))) != ast.dump(tree(sources[one.path]))


@pytest.mark.thorough
def test_the_sample_of_privacy_has_all_subjects_and_can_be_repeated():
    found = list(sample(ROOT, seed=1).values())
    assert len(found) >= 200 and found == list(sample(ROOT, seed=1).values())
    assert len({(one.path, one.line) for one in found}) == len(found)
    own = {one.path.removeprefix("src/discreet/") for one in found}
    assert all(any(path.startswith(files) for path in own) for _, files in SUBJECTS.values())
    assert all((ROOT / one).exists() for one in TESTS)


def test_named_changes_fit_the_sources_and_are_programs():
    found = named(ROOT)
    assert len(found) == len(json.loads(NAMED.read_text(encoding="utf8"))) >= 19
    for one in found.values():
        source = (ROOT / one.path).read_text(encoding="utf8")
        assert one.owner.rpartition(".")[2] in source, one
        assert ast.dump(tree(one.applied(source))) != ast.dump(tree(source))


def test_a_test_of_its_subject_notices_every_named_change():
    rows = {row["number"]: row for row in json.loads(KEPT.read_text(encoding="utf8"))["rows"]}
    chosen = [row for number, row in rows.items() if not number.isdigit()]
    assert {row["number"] for row in chosen} == {one["name"] for one in json.loads(NAMED.read_text("utf8"))}
    for row in chosen:
        # A test of its own subject notices: of the package, or of what all models or statistics must keep to.
        subject = row["path"].split("/")[2]
        own = (f"tests/{subject}/", f"src/discreet/{subject}/", "tests/contracts/", *NEAR.get(subject, ()))
        assert row["result"] == "caught" and row["by"].startswith(own), row


def test_a_change_in_place_reaches_whoever_imported_the_function(tmp_path, monkeypatch):
    (tmp_path / "changed_in_place.py").write_text(IN_PLACE, encoding="utf8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("changed_in_place")
    function, method, kernel = module.area, module.Box(3).double, module.outer
    assert (function(2, 3), method(), kernel(2)) == (6, 6, 5)
    found = {one.before: one for one in changes("changed_in_place.py", IN_PLACE)}
    # What runs on import alone can't be changed in place.
    assert not made(found["7"], tmp_path)
    for before, wrong in (("a * b", (1, 6, 5)), ("2 * self.side", (9, 2 / 3, 5)), ("x + 2", (9, 6, 1))):
        assert made(found[before], tmp_path)
        assert (function(3, 3), method(), kernel(2)) == wrong


def test_changes_that_make_no_difference_are_of_lines_that_are_there():
    for known in json.loads(EQUIVALENT.read_text(encoding="utf8")):
        source = (ROOT / known["path"]).read_text(encoding="utf8")
        assert known["before"] in source, known


def test_tests_are_chosen_by_what_they_run_or_by_what_names_it():
    sources = {
        "src/discreet/data/a.py": "LIMIT = 3\n@compiled\ndef inner(): return LIMIT\n"
        "@compiled\ndef loop(): inner()\ndef f(): loop()\ndef g(): ...\n",
        "src/discreet/data/b.py": "def alone(): ...\n",
    }
    found = {
        "tests": {"tests/t.py::broad": 1.0, "tests/t.py::focused": 2.0, "tests/data/u.py::other": 3.0},
        "functions": {"src/discreet/data/a.py::f": [0, 1], "src/discreet/data/a.py::g": [0, 2]},
    }
    chosen = Selection(found, sources, {})
    for owner in ("f", "loop", "inner", "LIMIT"):
        assert chosen.of("src/discreet/data/a.py", owner, 10, 10) == [
            "tests/t.py::focused",
            "tests/t.py::broad",
        ]
    assert chosen.of("src/discreet/data/a.py", "f", 1.5, 10) == ["tests/t.py::broad"]
    assert chosen.of("src/discreet/data/a.py", "f", 10, 1) == ["tests/t.py::focused"]
    assert chosen.of("src/discreet/data/b.py", "alone", 10, 10) == ["tests/data/u.py::other"]
    # A test that calls a compiled function itself shows in its file only; what is traced needs no names.
    naming = Selection(found, sources, {"tests/data/u.py": "a.loop(), f()", "tests/t.py": "looped"})
    assert set(naming.of("src/discreet/data/a.py", "loop", 10, 10)) == set(found["tests"])
    assert "tests/data/u.py::other" not in naming.of("src/discreet/data/a.py", "f", 10, 10)
