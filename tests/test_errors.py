"""Errors carry codes and fields; every dialect has a complete message for each of them."""

import ast
import json
import pickle
import re
from pathlib import Path

import pytest

import discreet
from discreet.cli import messages
from discreet.cli.error_codes import described, error_classes
from discreet.core.errors import (
    DataError,
    Dialect,
    DiscreetError,
    FileError,
    OutOfRange,
    ParameterError,
    Spent,
    UnknownChoice,
    message,
)
from discreet.service.limits import HTTP
from discreet.testing import refuses

KINDS = error_classes()


class LostBooks(FileError):
    """Some books are gone."""

    count: int
    shelves: tuple[str, ...] = ("top",)
    near: str | None = None
    text = "{count:book is|books are} gone from {shelves:and}.{near:?} Pass {arg:search=deep}."


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_template_uses_fields_that_exist(kind):
    """Fill a template with examples, for each dialect; a field or a property that doesn't exist raises."""
    types = described(kind)["fields"]
    error = kind(**{name: example(name, type_) for name, type_ in types.items()})
    for dialect in (Dialect(), HTTP, *map(messages.CommandLine, (None, {"set"}, set()))):
        said = message(error, dialect)
        assert said.endswith((".", "?", ")")), said
        assert "{" not in said and "  " not in said and "\n" not in said, said
    assert pickle.loads(pickle.dumps(error)).facts() == error.facts()
    assert error.to_json()["code"] == kind.code


def example(name, type_):
    """Return a value of an annotated type."""
    if name == "do":
        return "Do something else."
    if name == "found" or type_.startswith(("str", "Path")):
        return name
    if type_.startswith(("int", "float")):
        return 2
    if type_.startswith("bool"):
        return True
    if type_.startswith(("Collection", "Sequence", "tuple", "list", "Iterable")):
        return ("first", "second", "third")
    if type_.startswith(("dict", "Mapping")):
        return {"first": 1}
    return name


def test_codes_are_unique_and_messages_name_arguments_of_every_caller():
    declared = {kind for kind in subclasses(DiscreetError) if kind.text and "discreet" in kind.__module__}
    assert len({kind.code for kind in declared}) == len(declared)
    for kind in declared:
        if not kind.__module__.startswith("discreet.cli"):
            assert not re.search(r"--[a-z]", kind.text), f"{kind.__name__}: write {{arg:NAME=VALUE}}."
    assert messages.TEMPLATES.keys() | HTTP.templates.keys() <= KINDS.keys()


def subclasses(kind):
    return [each for one in kind.__subclasses__() for each in (one, *subclasses(one))]


def test_errors_of_packages_are_declared_in_their_errors_module():
    for kind in KINDS.values():
        assert kind.__module__.endswith(".errors"), kind


LOOK = "Look on {shelves:or}."


def test_a_template_is_filled_in_the_words_of_each_dialect(snapshot):
    error = LostBooks(count=2, shelves=("left", "right", "top"), near="top")
    dialects = (messages.CommandLine(), messages.CommandLine({"set"}), HTTP, Dialect({"lost-books": LOOK}))
    told = [str(error), *(message(error, one) for one in dialects)]
    snapshot("\n".join([*told, message(LostBooks(count=1), messages.CommandLine(set()))]))
    assert HTTP.argument("ignore_unknown", "True") == '"ignore_unknown": true'
    error.spent = Spent(1.0, 1e-6, "shop")
    assert "epsilon=1, delta=1e-06 of 'shop'" in str(error)


def test_facts_are_checked_copied_and_stored_as_json():
    error = LostBooks(count=2, shelves=("left",))
    assert isinstance(error, OSError) and error.code == "lost-books"
    assert error.to_json() == {"code": "lost-books", "count": 2, "shelves": ["left"], "near": None}
    assert pickle.loads(pickle.dumps(error)).to_json() == error.to_json()
    for wrong in ({}, {"count": 1, "color": "red"}):
        with pytest.raises(TypeError):
            LostBooks(**wrong)
    with pytest.raises(TypeError):
        type("Bad", (DataError,), {"__annotations__": {"filename": "str"}})
    with pytest.raises(ParameterError):
        pickle.loads(pickle.dumps(ParameterError("old"))).__reduce__()
        raise OutOfRange(name="k", value=0, least=1)


def test_untrusted_text_stays_on_one_line():
    said = str(UnknownChoice(name="k", value="a\nb\x1b[31m", choices=["c"]))
    assert "\n" not in said and "\x1b" not in said
    assert "\x1b" not in str(DataError("a\x1b"))
    assert len(str(UnknownChoice(name="k", value="a" * 10_000, choices=range(10_000)))) < 400


def test_refuses_notices_other_errors():
    with refuses("lost-books", count=2) as caught:
        raise LostBooks(count=2)
    assert caught.value.count == 2
    for raised, expected, facts in (
        (LostBooks(count=2), "lost-books", {"count": 3}),
        (LostBooks(count=2), "lost-books", {"number": 2}),
        (LostBooks(count=2), "out-of-range", {}),
        (None, "lost-books", {}),
    ):
        with pytest.raises(AssertionError), refuses(expected, **facts):
            if raised is not None:
                raise raised


def test_the_command_explains_each_code(discreet):
    code, out, _ = discreet("errors", "out-of-range", "--json")
    assert code == 0 and '"parent": "ParameterError"' in out
    messages = [row["message"] for row in json.loads(discreet("errors", "--json")[1])]
    # No template is shown raw: options are as typed, and fields have their names.
    assert not [one for one in messages if "{" in one.replace("{who: [items]}", "")]
    code, out, _ = discreet("errors")
    assert code == 0 and "out-of-range" in out
    code, _, error = discreet("errors", "out-of-rage")
    assert code == 1 and error.rstrip().endswith("[unknown-choice]") and "'out-of-range'?" in error


def test_declaring_errors_is_cheap_to_import():
    light = {"__future__", "re", "collections.abc", "string", "typing", "difflib", "pathlib", "discreet.core"}
    for path in Path(discreet.__path__[0]).rglob("errors.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf8"))))
        names = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
        names |= {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
        assert {name for name in names if not re.fullmatch(r"discreet\.[\w.]*errors", name)} <= light, path
