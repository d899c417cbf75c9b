"""Defaults of the public interface are kept in a table: whoever changes one says so.

After a change on purpose (say why in CHANGELOG.md) write the table anew:
`PYTHONPATH=src:tests python tests/contracts/test_default_settings.py`.
"""

import enum
import importlib
import inspect
import json
import re
from pathlib import Path

TABLE = Path(__file__).parents[1] / "golden" / "defaults.json"
PACKAGES = ("discreet", "discreet.collect", "discreet.federated")


def defaults_of(function):
    """Return the default of every parameter that has one, as a text."""
    found = inspect.signature(function).parameters.values()
    given = {one.name: one.default for one in found if one.default is not inspect.Parameter.empty}
    # The text of a function names a place in memory.
    return {name: getattr(value, "__qualname__", repr(value)) for name, value in given.items()}


def is_ours(thing):
    return getattr(thing, "__module__", "").startswith("discreet.")


def callables():
    """Yield everything public that can be called, with its name: functions, classes and their methods."""
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            offered = getattr(package, name)
            if inspect.isfunction(offered) and is_ours(offered):
                yield name, offered
            # The parameters of errors and enumerations are Python's.
            if inspect.isclass(offered) and not issubclass(offered, (BaseException, enum.Enum)):
                yield name, offered
                for method, function in inspect.getmembers(offered, callable):
                    if not method.startswith("_") and not inspect.isclass(function) and is_ours(function):
                        yield f"{name}.{method}", function


def public_defaults():
    found = {name: defaults_of(function) for name, function in callables()}
    return {name: found[name] for name in sorted(found) if found[name]}


def test_every_default_is_the_one_in_the_table():
    kept, found = json.loads(TABLE.read_text(encoding="utf8")), public_defaults()
    changed = {name for name in kept.keys() | found.keys() if kept.get(name) != found.get(name)}
    shown = "\n".join(f"{name}: {kept.get(name)} became {found.get(name)}" for name in sorted(changed))
    assert not changed, f"Defaults differ from {TABLE.name}:\n{shown}"


def test_the_table_holds_every_estimator_and_nothing_of_one_machine():
    from discreet.model_settings import MODELS

    kept = json.loads(TABLE.read_text(encoding="utf8"))
    assert {kind.__name__ for kind in MODELS.values()} <= kept.keys()
    assert kept["UserFactorization"]["delta"] == "1e-06" and kept["AveragedUsers"]["factors"] == "4"
    assert not [text for own in kept.values() for text in own.values() if re.search(r" at 0x|/", text)]


if __name__ == "__main__":
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(own)}" for name, own in public_defaults().items())
    TABLE.write_text(f"{{\n{rows}\n}}\n", encoding="utf8")
