"""Run the verb that the arguments name, and turn its outcome into an exit code."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.cli.options.parsing import spread
from discreet.cli.output.printing import UnreadError, speak, write
from discreet.core.checks import DiscreetError, suggestion

# The help of `discreet`, in its order. A verb is the function of its name in the module of its name or in
# `_HOMES`.
PANELS = {
    "Start": {
        "demo": "See the main job on embedded data, in a minute.",
        "describe": "Describe how a file is written, as a schema.",
        "choose": "Answer a few questions, and get a command.",
        "plan": "Plan releases: what each may cost, and what to expect.",
        "models": "List all models.",
        "datasets": "List known datasets, or download one.",
    },
    "Learn": {
        "fit": "Fit a model and write it, with its privacy label.",
        "refit": "Fit the next release on new data.",
        "follow": "Keep a model fresh all year at one budget.",
        "add-items": "Add new items to a model from public features.",
        "shard": "Split data that are larger than memory.",
    },
    "Use a model": {
        "recommend": "List what to show to one person, or to many.",
        "similar": "List items similar to one.",
        "explain": "Say why an item is in somebody's list.",
        "serve": "Answer over HTTP: a model, or a collection.",
        "export": "Write vectors for a vector store, or ONNX.",
        "bundle": "Write a folder that recommends on the device.",
        "synthesize": "Make synthetic users from a release.",
    },
    "Check": {
        "label": "Show what a model promises.",
        "budget": "Show what a ledger has spent, or set a budget.",
        "evaluate": "Fit and score a model on held-out data, beside baselines.",
        "score": "Score a model file on data it has not seen.",
        "compare": "Score several models and epsilons, with a page.",
        "audit": "Try to refute a model's promise.",
        "dossier": "Write the documents that a privacy officer signs.",
        "sign": "Sign a model file.",
        "verify": "Check a model's signature.",
        "theory": "Print the bounds of a paper for your sizes.",
        "reproduce": "Run the experiments of papers.",
    },
    "Collect and federate": {
        "campaign": "Set up a collection from devices that add noise.",
        "collect": "Learn from what was collected.",
        "federation": "Learn one model with several data holders.",
        "party": "Take part in a federation.",
        "keeper": "Keep the mask keys of a federation.",
    },
}
VERBS = tuple(verb for verbs in PANELS.values() for verb in verbs)
# Verbs with subcommands: each is the function of that name in the module of the verb.
SEVERAL = {
    "federation": ("init", "simulate", "run", "declare"),
    "party": ("serve",),
    "keeper": ("serve",),
    "campaign": ("new", "show", "check", "close"),
    "collect": ("fit", "backup", "invite"),
    "follow": ("start", "add", "release", "show", "erase", "replay"),
}
# Other names for parts of a verb, which help does not list.
HIDDEN = {"follow": {"init": "start", "status": "show"}}

# Verbs in the module of another verb.
_HOMES = {"similar": "recommend", "explain": "recommend", "verify": "sign", "datasets": "models"}

# The exit code that shells use for a program that wrote into a closed pipe.
_UNREAD = 141


class _StoppedError(Exception):
    """Carry a Ctrl-C past typer, which would end the program silently."""


def _stoppable(verb: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(verb)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            verb(*arguments, **options)
        except KeyboardInterrupt as error:
            raise _StoppedError(*error.args) from error

    return run


class _Verbs(TyperGroup):
    """Hold the verbs; a verb's module is imported when it is run or listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one verb, with its line in the help."""
        for panel, verbs in PANELS.items():
            if cmd_name in verbs:
                command = verb_command(cmd_name)
                command.rich_help_panel, command.short_help = panel, verbs[cmd_name]
                return command
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the first argument names; suggest the right one for a misspelled name."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            close = suggestion(args[0], VERBS)
            ctx.fail(f"There is no command {args[0]!r}.{close or ' `discreet --help` lists them.'}")
        return super().resolve_command(ctx, args)


def verb_command(name: str) -> Any:
    """Return the command of a verb."""
    function = name.replace("-", "_")
    alone = typer.Typer(
        name=name, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    if name in SEVERAL:
        module = importlib.import_module(f"discreet.cli.{function}")
        what = (module.__doc__ or "").splitlines()[0].partition(": ")[2].capitalize()
        alone.callback(no_args_is_help=True, help=what)(lambda: None)
        for part in SEVERAL[name]:
            _add(alone, part, f"discreet.cli.{function}")
        for other, part in HIDDEN.get(name, {}).items():
            _add(alone, part, f"discreet.cli.{function}", hidden_name=other)
    else:
        _add(alone, name, f"discreet.cli.{_HOMES.get(name, function)}")
    return typer.main.get_command(alone)


def _add(verbs: typer.Typer, name: str, module: str, *, hidden_name: str = "") -> None:
    verb = getattr(importlib.import_module(module), name.replace("-", "_"))
    verbs.command(hidden_name or name, hidden=bool(hidden_name))(_stoppable(spread(verb)))


app = typer.Typer(
    name="discreet",
    cls=_Verbs,
    help="Recommender systems with a proven differential-privacy guarantee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        write(f"discreet {version('discreet')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Report each step on standard error.")
    ] = False,
) -> None:
    speak(verbose=verbose)


def run() -> None:
    """Run the verb that the arguments name; an expected error prints one sentence and exits with 1."""
    try:
        app()
    except DiscreetError as error:
        _complain(error)
        sys.exit(1)
    except UnreadError:
        sys.exit(_UNREAD)
    except _StoppedError as error:
        raise KeyboardInterrupt(*error.args) from error


def _complain(error: DiscreetError) -> None:
    from rich.console import Console
    from rich.text import Text

    sentence = Text.assemble(("discreet:", "bold red"), " ", str(error))
    Console(stderr=True, soft_wrap=True, highlight=False).print(sentence)
