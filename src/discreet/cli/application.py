"""Run the verb that the arguments name, and turn its outcome into an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from discreet.cli import lib
from discreet.cli.errors import ArgumentsMissing, WrongArguments
from discreet.cli.messages import UsageError, message_for_terminal
from discreet.cli.options.parsing import HELP_ALL, MANY, UNUSUAL, spread
from discreet.cli.output.printing import UnreadError, remark, speak, write
from discreet.cli.verbs import (
    ELSEWHERE,
    HIDDEN,
    MORE,
    OLD,
    OLD_PARTS,
    PARTS,
    ROAD,
    names,
    overview,
    part_overview,
    place,
)
from discreet.core import suggestion
from discreet.core.checks import DiscreetError

# The exit code that shells use for a program that wrote into a closed pipe, and that of wrong arguments.
_UNREAD, _USAGE = 141, 2
# The error of the command line library for all wrong arguments; its module differs by release.
_UsageError: Any = typer.BadParameter.__base__


class _StoppedError(Exception):
    """A Ctrl-C that passes through typer, which would end the program silently."""


# Options that the short help of a command lists first, as far as there is room.
_EVERYDAY = (
    "--help --help-all --epsilon --out --model --models --epsilons --json --columns --schema --implicit "
    "--ledger --force --private --only --split --metric --for --dry-run --items --scale --history --user "
    "--parties"
)


class _Verb(TyperCommand):
    """One command: its errors are printed in the words of its options."""

    # The present name, if the command was called by the name of an earlier version.
    renamed: tuple[str, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left of the arguments; a pattern that the shell expanded gets a hint."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "MissingParameter":
                raise ArgumentsMissing(
                    command=ctx.command_path, arguments=self.missing(ctx, given)
                ) from error
            if "unexpected extra argument" in str(error) and sum(map(os.path.isfile, given)) > 1:
                ctx.fail(
                    f"{error} To read several files, give their folder, or quote the pattern: 'sales-*.csv'."
                )
            raise

    def missing(self, ctx: Any, given: list[str]) -> tuple[str, ...]:
        """Return the names of all required options and arguments that were not given."""
        found, _, _ = self.make_parser(ctx).parse_args(args=[*given])
        return tuple(
            one.opts[0] if one.param_type_name == "option" else one.name
            for one in self.get_params(ctx)
            if one.required and one.value_is_missing(one.consume_value(ctx, found)[0])
        )

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; a flag has no value to describe."""
        found: list[Any] = super().get_params(ctx)
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the everyday options, or with `--help-all` all of them."""
        hidden = [] if ctx.meta.get(HELP_ALL) else self._rare(ctx)
        for one in hidden:
            one.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for one in hidden:
                one.hidden = False
        if hidden:
            write(f" `{ctx.command_path} {HELP_ALL}` lists {len(hidden)} more options.\n")

    def _rare(self, ctx: Any) -> list[Any]:
        """Return the options that a short help skips: the ones used least often."""
        options = [one for one in self.get_params(ctx) if one.param_type_name == "option" and not one.hidden]
        place = {name: place for place, name in enumerate(_EVERYDAY.split())}

        def use(option: Any) -> tuple[bool, int, bool]:
            first = min(place.get(name, len(place)) for name in option.opts)
            return not option.required, first, option.rich_help_panel == UNUSUAL

        return sorted(options, key=use)[MANY:] if len(options) > MANY else []

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            found = super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _StoppedError(*error.args) from error
        except DiscreetError as error:
            complain(error, {name[2:] for one in self.params for name in one.opts if name.startswith("--")})
            raise typer.Exit(1) from error
        # With --json, standard output is one value and nothing else.
        if self.renamed and not ctx.params.get("as_json"):
            new = " ".join(("discreet", *self.renamed))
            remark(f"discreet: `{ctx.command_path}` is now `{new}`. The old name works in this version.")
        return found


class _Named(TyperGroup):
    """Commands by their names; a misspelled name gets a suggestion."""

    #: The option that lists the commands.
    listing = "--help"

    def known(self) -> list[str]:
        """Return the names that a misspelled one is compared with."""
        raise NotImplementedError

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            listed = f" `{ctx.command_path} {self.listing}` lists the commands."
            close = suggestion(args[0], self.known())
            if args[0] in ELSEWHERE:
                close = f" Use `{' '.join(('discreet', *ELSEWHERE[args[0]]))}`."
            ctx.fail(f"Unknown command {args[0]!r}.{close or listed}")
        return super().resolve_command(ctx, args)


class _Parts(_Named):
    """The parts of a group; the module of a part is imported when the part runs or shows its own help."""

    def __init__(self, name: str, parts: Mapping[str, tuple[str, ...]], *, old: bool = False) -> None:
        super().__init__(name=name, no_args_is_help=True)
        self.parts, self._old = parts, old

    def known(self) -> list[str]:
        """Return the names in the order of the help."""
        return list(self.parts)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return these names, which a shell completes."""
        return self.known()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one part."""
        if cmd_name == "":
            return command(("budget",), renamed=("budget", "show"))
        words = self.parts.get(cmd_name) or HIDDEN.get((str(self.name), cmd_name))
        return None if words is None else command(words, renamed=words if self._old else ())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments; `discreet budget FILE` of earlier versions still works."""
        if self.name == "budget" and args and args[0] not in (*self.parts, "--help"):
            args = ["", *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of parts."""
        if self._old:
            super().format_help(ctx, formatter)
        else:
            formatter.write(part_overview(str(self.name)))


@contextlib.contextmanager
def _in_sentences() -> Iterator[None]:
    """Print wrong arguments as all other errors are printed: one sentence with a code."""
    try:
        yield
    except ArgumentsMissing as error:
        complain(error)
        raise typer.Exit(_USAGE) from error
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        called = error.ctx.command_path if error.ctx else "discreet"
        stated = error.format_message()
        stated += "" if stated.endswith((".", "?")) else "."
        own = error.named() if isinstance(error, UsageError) else None
        complain(own or WrongArguments(command=called, reason=stated))
        raise typer.Exit(_USAGE) from error


class _Verbs(_Named):
    """All commands; the module of a command is imported when the command runs or shows its own help."""

    listing = HELP_ALL

    def make_context(self, *given: Any, **options: Any) -> Any:
        """Return the context of a call, or end it with a sentence about its options."""
        with _in_sentences():
            return super().make_context(*given, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, or end with a sentence about its arguments."""
        with _in_sentences():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help, which a shell completes."""
        return [*ROAD, *MORE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, a group, or the command of an old name."""
        if cmd_name in PARTS:
            return _Parts(cmd_name, {part: (cmd_name, part) for part in PARTS[cmd_name]})
        if cmd_name in OLD_PARTS:
            return _Parts(cmd_name, OLD_PARTS[cmd_name], old=True)
        if cmd_name in OLD:
            return command(OLD[cmd_name], renamed=OLD[cmd_name])
        return command((cmd_name,)) if cmd_name in (*ROAD, *MORE) else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        formatter.write(overview(everything=bool(ctx.meta.get(HELP_ALL))))

    def known(self) -> list[str]:
        """Return the names that a misspelled one is compared with."""
        return names()


@cache
def command(words: tuple[str, ...], *, renamed: tuple[str, ...] = ()) -> Any:
    """Return the command of these words, such as `("model", "label")`."""
    module, function = place(words)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    verb = getattr(importlib.import_module(f"discreet.cli.{module}"), function)
    alone.command(words[-1], cls=_Verb)(spread(verb))
    found: Any = typer.main.get_command(alone)
    # Lines of a paragraph are joined, so that the terminal's width alone decides where they end.
    found.help = re.sub(r"(?<=\S)\n(?=\S)", " ", found.help or "")
    found.renamed = renamed
    return found


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


def _show_all(asked: bool) -> None:
    if asked:
        write(overview(everything=True))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    everything: Annotated[
        bool, typer.Option(HELP_ALL, callback=_show_all, is_eager=True, help="Show all commands.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Report each step on standard error.")
    ] = False,
) -> None:
    speak(verbose=verbose)


def run() -> None:
    """Run the verb that the arguments name; an expected error prints one sentence and exits with 1."""
    try:
        app(prog_name="discreet")
    except DiscreetError as error:
        complain(error)
        sys.exit(1)
    except UnreadError:
        sys.exit(_UNREAD)
    except _StoppedError as error:
        raise KeyboardInterrupt(*error.args) from error


def complain(error: DiscreetError, options: Collection[str] | None = None) -> None:
    """Print the message of an error on standard error."""
    sentence = lib.Text.assemble(("discreet:", "bold red"), " ", message_for_terminal(error, options))
    lib.Console(stderr=True, soft_wrap=True, highlight=False).print(sentence)
