"""The door: everything a user needs is offered, and nothing is loaded before it is used."""

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

import discreet
from discreet import model_settings

PACKAGES = tuple(
    f"discreet.{name}".rstrip(".")
    for name in ("", "audit", "collect", "evaluation", "federated", "follow", "testing")
)
#: How firm the names of a class are (docs/stability.md).
LEVELS = ("Stable", "Provisional", "Internal")
#: Packages whose `__init__.pyi` lists what other packages use of them.
SHARED = ("core", "data", "models", "privacy", "report", "solvers", "sources", "statistics")


def taught(kind):
    """Return the level of stability that a class states, and how many examples it has for doctest to run."""
    text = inspect.cleandoc(kind.__doc__ or "")
    level = text.partition("\nStability\n    ")[2].partition(".")[0].partition(":")[0]
    return level, len(doctest.DocTestParser().get_examples(text))


def exported_classes():
    """Return every exported class; errors and enumerations explain themselves by their texts and members."""
    for name in (*PACKAGES, "discreet.reproduce"):
        package = importlib.import_module(name)
        for one in (getattr(package, exported) for exported in package.__all__):
            if inspect.isclass(one) and not issubclass(one, Exception | Enum):
                yield one


@pytest.mark.parametrize("name", (*PACKAGES, *(f"discreet.{one}" for one in SHARED)))
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
        if not hasattr(module, exported):
            module = importlib.import_module(f"{home}.{exported}")
        assert getattr(package, exported) is getattr(module, exported, module), exported
    with pytest.raises(AttributeError) as caught:
        _ = package.nonsense
    assert "nonsense" in str(caught.value)


def test_every_name_that_commands_use_is_found():
    lib = importlib.import_module("discreet.cli.lib")
    imports = [
        node
        for node in ast.walk(ast.parse(Path(lib.__file__).read_text(encoding="utf8")))
        if isinstance(node, ast.ImportFrom) and node.col_offset
    ]
    names = {alias.asname or alias.name for node in imports for alias in node.names if alias.name != "*"}
    exporting = [importlib.import_module(node.module) for node in imports if node.names[0].name == "*"]
    names |= {name for package in exporting for name in package.__all__}
    assert len(exporting) == 5 and len(names) > 100 and all(hasattr(lib, name) for name in names)
    with pytest.raises(AttributeError) as caught:
        _ = lib.nonsense
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


def test_every_exported_class_states_its_stability_and_has_an_example():
    found = {one.__qualname__: taught(one) for one in exported_classes()}
    assert len(found) > 60
    assert not {name for name, (level, count) in found.items() if level not in LEVELS or not count}


def test_a_class_that_teaches_nothing_is_found():
    class Plain:
        """A class.

        Stability
            Soon.
        """

    level, count = taught(Plain)
    assert level not in LEVELS and not count


def imported_around(package, source, own):
    """Return the exported names that a module of another package imports from a module of this package."""
    stub = (Path(discreet.__file__).parent / package / "__init__.pyi").read_text(encoding="utf8")
    homes = {(line.split()[1], line.split()[-1]) for line in stub.splitlines() if line.startswith("from ")}
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return [
        one.name
        for node in nodes
        for one in node.names
        if own != package and (node.module, one.name) in homes
    ]


def test_exported_names_are_imported_from_their_package():
    root = Path(discreet.__file__).parent
    for path in root.rglob("*.py"):
        for package in SHARED:
            source, own = path.read_text(encoding="utf8"), path.relative_to(root).parts[0]
            assert not imported_around(package, source, own), path
    # The twin: the same name from its module.
    line = "from discreet.privacy.session import Session"
    assert imported_around("privacy", line, "models") == ["Session"] and not imported_around(
        "privacy", line, "privacy"
    )
