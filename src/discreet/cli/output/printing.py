"""Print a verb's output: user text literally, and one sentence if standard output can't be written."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import typer

from discreet.cli import lib
from discreet.cli.errors import OutputFailed
from discreet.core import logger
from discreet.core.checks import visible

if TYPE_CHECKING:
    from pathlib import Path


class UnreadError(Exception):
    """A closed pipe: the reader of our output stopped reading, as `head` does."""


def show(*parts: lib.RenderableType) -> None:
    """Print tables and sentences for readers."""
    from discreet.cli.output.terminal import plain_console

    console = plain_console(stderr=False)
    with answering():
        for part in parts:
            console.print(part)


def table_of(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, right: int | None = None
) -> lib.Table:
    """Return a table for readers. Columns from the place `right` on have numbers and are set to the right."""
    table = lib.Table(*head, title=title)
    for column in [] if right is None else table.columns[right:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    return table


@final
class Output:
    """The output of a command: one JSON value for --json, or else tables and sentences for readers.

    A part that is a function runs only for readers: it returns a part, or prints by itself.
    """

    def __init__(
        self,
        content: Mapping[str, Any] | list[Any],
        *parts: lib.RenderableType | Callable[[], lib.RenderableType | None],
        code: int = 0,
    ) -> None:
        self._content, self._parts, self._code = content, parts, code

    def tell(self, *, as_json: bool) -> None:
        """Print the output, and exit with its code."""
        if as_json:
            emit(self._content)
        for part in () if as_json else self._parts:
            shown = part() if callable(part) else part
            if shown is not None:
                show(shown)
        if self._code:
            raise typer.Exit(self._code)


def emit(content: Mapping[str, Any] | list[Any]) -> None:
    """Print one JSON value and nothing else."""
    write(json.dumps(content))


def write(line: str) -> None:
    """Print one line literally."""
    with answering():
        sys.stdout.write(line + "\n")


def show_next(command: str) -> None:
    """Print the next command on one line, so that it can be copied."""
    show("Next:")
    write(f"  {command}")


def remark(sentence: str) -> None:
    """Print a remark on standard error; above a progress bar, which takes what is written there."""
    sys.stderr.write("\n".join(map(visible, sentence.split("\n"))) + "\n")


class _Remarks(logging.Handler):
    """A log handler that prints the library's messages as remarks."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        remark(f"discreet: {record.getMessage()}")


def speak(*, verbose: bool) -> None:
    """Print the library's log on standard error: warnings, and each step if `verbose`."""
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    if not any(isinstance(handler, _Remarks) for handler in logger.handlers):
        logger.addHandler(_Remarks())


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Flush the output of the block. A full disk gives one sentence. A closed pipe isn't an error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _drop_output()
        raise UnreadError from error
    except OSError as error:
        _drop_output()
        raise OutputFailed(reason=str(error.strerror)) from error


def _drop_output() -> None:
    """Discard buffered output. Otherwise Python would report the error again at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def remark_on_delta(estimators: Sequence[lib.Estimator], facts: lib.PublicFacts) -> None:
    """Warn of a delta so large that publishing one user's data outright would satisfy the guarantee.

    Only a declared number of users is used, because counting them would be a query.
    """
    people = facts.n_users
    limit = lib.LARGE_DELTA if people is None else 1 / people
    largest = max((one.promise(facts).delta for one in estimators), default=0.0)
    if largest > limit:
        rule = f"{limit:g}" if people is None else f"1/{people:,} (one over the declared number of users)"
        remark(
            f"discreet: delta={largest:g} is above {rule}. With such a delta, a release may publish a user "
            "outright."
        )


# The option that declares each fact.
_DECLARES = {"catalog": "--items", "scale": "--scale", "interactions": "--scale", "layout": "--schema"}
_DECLARES["layouts of parties"] = "--schema of `discreet federation party`"


def remark_on_conditions(
    promise: lib.Guarantee, *, schema: Path | None = None, selects: bool = False, fits: bool = True
) -> None:
    """Warn of a guarantee with conditions, such as facts that come from the data.

    `selects` states that the verb can select them with noise, and `fits` that it can declare them. The layout
    of a given `schema` is declared there.
    """
    if promise.is_private and promise.conditions:
        declares = _DECLARES if schema is None else {**_DECLARES, "layout": f"`guessed` of {schema}"}
        known = (declares[one.fact] for one in promise.conditions if one.fact in declares)
        options = ", ".join(dict.fromkeys(known))
        selects = selects and options != declares["layout"]
        place = "" if fits else " in `discreet fit`"
        noisily = ", or select the catalog with noise (--private-catalog)" if selects else ""
        what, them = (
            ("It was", "it") if len(lib.condition_names(promise.conditions)) == 1 else ("They were", "them")
        )
        declare = f" {what} taken from the data without noise. Declare {them}{place} ({options}){noisily}."
        condition = lib.condition_text(promise.conditions)
        table = " Name a table instead, and select rows with --only."
        queried = any(one.fact is lib.Fact.QUERY for one in promise.conditions)
        advice = (declare if options else "") + (table if queried else "")
        remark(f"discreet: the guarantee applies only if {condition}.{advice}")
