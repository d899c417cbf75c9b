"""Messages as the command line words them: arguments are options, and some advice is a command."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import typer

from discreet.core import Dialect, WrongKind, message
from discreet.core.errors import DiscreetError

# Options whose names differ from the arguments in Python.
_OPTIONS = {
    "catalog": "items",
    "low": "scale",
    "high": "scale",
    "step": "scale",
    "n_users": "people",
    "exclude": "without",
    "purpose": "for",
}

# Templates that replace the default one on the command line, by code.
TEMPLATES: Mapping[str, str] = {
    "scale-from-data": (
        "The scale was read from the data, so the guarantee would depend on it. Declare it with --scale."
    ),
    "roles-missing": (
        "Can't find the {roles:any} column. The columns are {columns:all}. Name it: --columns {shell}."
        "{shell_hint}"
    ),
    "header-unclear": (
        "The first line of {file} has no common column name: {columns:all}. Pass --columns {names}. If the "
        "line isn't a header, use column_1 and so on."
    ),
    "no-preference": (
        "All ratings are equal, so they contain no preference. Learn from interactions: pass "
        "{arg:implicit=True}."
    ),
    "scale-too-small": (
        "The scale from {low} to {high} has too few values for this model. Declare a wider scale, or pass "
        "{arg:implicit=True}."
    ),
    "bad-key": "{path} isn't an Ed25519 key without a password. Pass such a key, or make one with --new-key.",
}


class CommandLine(Dialect):
    """The command line, with the options of the command that runs; others are settings or plain names."""

    def __init__(self, options: Collection[str] | None = None) -> None:
        super().__init__(TEMPLATES)
        self._options = options

    def argument(self, name: str, value: str) -> str:
        """Return an option with its value, such as `--duplicates last`."""
        if name.startswith("-"):
            return name
        option = _OPTIONS.get(name, name).replace("_", "-")
        if self._options is not None and option not in self._options:
            return f"--set {name}={value}" if value and "set" in self._options else name
        if value in ("", "True"):
            return f"--{option}"
        return f"--no-{option}" if value == "False" else f"--{option} {_INFINITY.get(value, value)}"


_INFINITY = {"math.inf": "inf", f"{math.inf}": "inf"}


def message_for_terminal(error: DiscreetError, options: Collection[str] | None = None) -> str:
    """Return the message of an error, and the code that `discreet errors CODE` explains."""
    told = message(error, CommandLine(options))
    return told if error.args else f"{told} [{error.code}]"


class UsageError(typer.BadParameter):
    """An error of ours as typer's own, for values that typer parses; the exit code is 2."""

    def __init__(self, error: DiscreetError) -> None:
        super().__init__(message_for_terminal(error))
        self._error = error

    def named(self) -> DiscreetError:
        """Return our error, with the name of the option whose value it is about."""
        option = self.param.opts[0] if self.param is not None else None
        known = isinstance(self._error, WrongKind) and option is not None
        return WrongKind(**{**self._error.facts(), "name": option}) if known else self._error


def usage_error(error: DiscreetError) -> UsageError:
    """Return an error of ours for typer."""
    return UsageError(error)
