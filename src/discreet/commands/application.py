"""Put the verbs together and turn whatever ends one into an exit code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from discreet.checks import DiscreetError
from discreet.commands import keeping, learning, measuring
from discreet.commands.printing import UnreadError, write

# What a shell reports for a program that wrote into a closed pipe.
_UNREAD = 141


class _StoppedError(Exception):
    """Carry a Ctrl-C past typer, which would end the program without a word."""


def _stoppable(verb: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(verb)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            verb(*arguments, **options)
        except KeyboardInterrupt as error:
            raise _StoppedError from error

    return run


app = typer.Typer(
    name="discreet",
    help="Recommendations that keep a secret: learned with a proven differential-privacy promise.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for _verb in (
    keeping.demo,
    keeping.models,
    keeping.datasets,
    learning.fit,
    learning.recommend,
    learning.label,
    measuring.evaluate,
    measuring.compare,
    measuring.reproduce,
    keeping.budget,
):
    app.command()(_stoppable(_verb))


def _show_version(asked: bool) -> None:
    if asked:
        write(f"discreet {installed_version('discreet')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the verb that the arguments name; a problem the user can mend is one sentence and exit code 1."""
    try:
        app()
    except DiscreetError as error:
        sentence = Text.assemble(("discreet:", "bold red"), " ", str(error))
        Console(stderr=True, soft_wrap=True, highlight=False).print(sentence)
        sys.exit(1)
    except UnreadError:
        sys.exit(_UNREAD)
    except _StoppedError as error:
        raise KeyboardInterrupt from error
