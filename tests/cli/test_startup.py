"""A recommendation for one user is made without loading what takes longer than the recommendation."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

HEAVY = ("numba", "scipy", "polars", "dp_accounting", "matplotlib")
OLD = Path(__file__).parents[1] / "formats" / "v0.1"


def loaded(*arguments):
    """Return which slow libraries a verb loads in a process of its own."""
    code = (
        "import sys\n"
        "from discreet.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()[-1].split()


def test_a_list_needs_neither_a_compiler_nor_tables(model, tmp_path):
    history = tmp_path / "me.csv"
    history.write_text("item,rating\n3,5\n7,1\n")
    assert loaded("recommend", model, "--history", history) == []
    # The twin: a file that only the reader of tables understands loads it.
    history.write_text('item,rating\n"3",5\n7,1\n')
    assert "polars" in loaded("recommend", model, "--history", history)


@pytest.mark.parametrize(
    "options", [("--implicit",), ("--model", "popularity"), ("--model", "local-nuclear-plain")], ids=str
)
def test_a_new_user_needs_neither_from_any_kind_of_model(discreet, ratings, tmp_path, options):
    out = tmp_path / "m.discreet"
    code, _, told = discreet("fit", ratings, "--epsilon", "2", "--out", out, *options)
    assert code == 0, told
    # A user is looked up among the users of a collection, which are a column.
    assert set(loaded("recommend", out)) <= ({"polars"} if "local-nuclear-plain" in options else set())


@pytest.mark.few(1)
@pytest.mark.parametrize("arguments", [("label", OLD / "clicks.discreet"), ("--help",), ("models",)], ids=str)
def test_labels_and_help_need_neither(arguments):
    assert loaded(*arguments) == []


def test_the_list_of_commands_needs_no_numbers_and_no_command():
    code = (
        "import sys\n"
        "from discreet.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('numpy' in sys.modules, sum(name.startswith('discreet.') for name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    numbers, own = run.stdout.splitlines()[-1].split()
    assert numbers == "False" and int(own) < 20


KERNELS = {"compiled", "strict", "inner", "strict_inner"}
SOURCES, TESTS = Path(discreet.__file__).parent, Path(__file__).parents[1]


def kernels():
    """Yield every compiled function with its file and decorator, and the names that plain code uses."""
    found, plain = [], set()
    for path in (*SOURCES.rglob("*.py"), *TESTS.rglob("*.py")):
        for part in ast.parse(path.read_text(encoding="utf8")).body:
            marks = {mark.id for mark in getattr(part, "decorator_list", ()) if isinstance(mark, ast.Name)}
            if marks & KERNELS:
                found.append((path, part.name, *(marks & KERNELS)))
            else:
                plain |= {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
                plain |= {one.attr for one in ast.walk(part) if isinstance(one, ast.Attribute)}
    return found, plain


@pytest.mark.thorough
def test_loops_that_only_loops_call_are_compiled_without_what_lets_python_call_them():
    """To compile the rest takes as long as the loop; the first fit on a machine waits for it."""
    found, plain = kernels()
    assert len(found) > 100
    assert [name for _, name, mark in found if name not in plain and "inner" not in mark] == []


COUNTED = """
from numba.core.event import Listener, register
class Count(Listener):
    count = 0
    def on_start(self, event):
        self.count += 1
    def on_end(self, event):
        pass
count = Count()
register("numba:compile", count)
from discreet.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
print(count.count)
"""


@pytest.mark.slow
def test_the_first_fit_on_a_machine_compiles_few_functions(tmp_path):
    fit = ("fit", "discreet-demo", "--epsilon", "1", "--out", tmp_path / "m.discreet")
    counts = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", COUNTED, *map(str, fit), *(["--force"] if counts else [])],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")},
        )
        counts.append(int(run.stdout.splitlines()[-1]))
    # The second fit finds all of them, so the first one wrote what it compiled.
    assert 0 < counts[0] <= 70 and counts[1] == 0
