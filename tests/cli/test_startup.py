"""A list for one person is made without loading what takes longer than the list."""

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("arguments", [("label", OLD / "clicks.discreet"), ("--help",), ("models",)], ids=str)
def test_labels_and_help_need_neither(arguments):
    assert loaded(*arguments) == []
