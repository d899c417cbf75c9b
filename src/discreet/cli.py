"""The command line: one verb, one library call.

People get rich output, programs get one JSON value with `--json`. The exit code is 0, 1 (it failed, one
clear sentence on standard error), 2 (the arguments could not be understood) or 130 (stopped by Ctrl-C).
"""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from discreet.checks import DiscreetError
from discreet.commands import keeping, learning, measuring

app = typer.Typer(
    name="discreet",
    help="Recommendations that keep a secret: learned with a proven differential-privacy promise.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for verb in (
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
    app.command()(verb)


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"discreet {installed_version('discreet')}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a problem the user can mend is one sentence and exit code 1."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        app()
    except DiscreetError as error:
        console.print(f"[bold red]discreet:[/] {escape(str(error))}")
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("discreet: stopped. What a ledger had written by then is paid.")
        sys.exit(130)
