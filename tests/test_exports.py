"""The door: everything a user needs is offered, and nothing is loaded before it is used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet import model_settings

PACKAGES = tuple(
    f"discreet.{name}".rstrip(".")
    for name in ("", "audit", "collect", "evaluation", "federated", "follow", "testing")
)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_found_and_is_the_one_that_type_checkers_see(name):
    package = importlib.import_module(name)
    tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf8"))
    homes = {
        alias.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert set(homes) == set(package.__all__) - {"__version__"}
    for exported, home in homes.items():
        module = importlib.import_module(home)
        expected = getattr(module, exported, None) or importlib.import_module(f"{home}.{exported}")
        assert getattr(package, exported) is expected, exported
    with pytest.raises(AttributeError) as caught:
        _ = package.nonsense
    assert "nonsense" in str(caught.value)


def test_every_estimator_and_error_is_offered():
    for name, kind in model_settings.MODELS.items():
        assert getattr(discreet, kind.__name__) is kind and kind.name == name
    errors = {
        name for name in vars(importlib.import_module("discreet.core.checks")) if name.endswith("Error")
    }
    assert errors <= set(discreet.__all__)
    assert discreet.__version__.count(".") == 2


def test_a_function_stays_a_function_when_its_neighbors_are_imported():
    importlib.import_module("discreet.evaluation.protocol")
    assert callable(discreet.evaluate) and callable(discreet.compare)


def test_importing_discreet_loads_next_to_nothing():
    code = "import sys; before = set(sys.modules); import discreet; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert [name for name in loaded if name.startswith("discreet")] == [
        "discreet",
        "discreet.core",
        "discreet.core.exports",
    ]
    assert len(loaded) <= 10, loaded
