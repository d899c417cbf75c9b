"""Assertions on errors: their codes and fields, not their sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from discreet.core import message
from discreet.core.errors import DiscreetError

_Kind = TypeVar("_Kind", bound=DiscreetError)


class Caught(Generic[_Kind]):
    """The error that a block raised. `value` is set when the block has ended."""

    value: _Kind


@contextmanager
def refuses(expected: str | type[DiscreetError], **facts: Any) -> Iterator[Caught[Any]]:
    """Raise an `AssertionError` unless the block raises this error with these fields.

    `expected` is a code or a class of errors. Other fields may have any value.

        with refuses("out-of-range", name="epsilon", value=-1):
            Popularity(epsilon=-1)
    """
    caught: Caught[Any] = Caught()
    try:
        yield caught
    except DiscreetError as error:
        caught.value = error
        check_refusal(error, expected, **facts)
    else:
        raise AssertionError(f"Nothing was raised. Expected: {_code(expected)}.")


def check_refusal(error: DiscreetError, expected: str | type[DiscreetError], **facts: Any) -> None:
    """Raise an `AssertionError` unless an error has this code and these fields, and a complete message."""
    known = error.code == expected if isinstance(expected, str) else isinstance(error, expected)
    assert known, f"{error.code} ({error}) instead of {_code(expected)}."
    found = error.facts()
    assert facts.keys() <= found.keys(), f"{error.code} has the fields {', '.join(found)}."
    other = {name: found[name] for name, value in facts.items() if found[name] != value}
    assert not other, f"{error.code} has {other} instead of { {name: facts[name] for name in other} }."
    said = message(error)
    assert said.endswith((".", "?")) and "\n" not in said, said


def _code(expected: str | type[DiscreetError]) -> str:
    return expected if isinstance(expected, str) else expected.code
