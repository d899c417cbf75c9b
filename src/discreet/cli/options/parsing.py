"""Parse option values, expand option groups that verbs share, and complete names in a shell."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import typer

from discreet.cli import lib
from discreet.cli.errors import OptionEmpty, WrongForm
from discreet.cli.messages import usage_error
from discreet.cli.output.printing import Output
from discreet.core import ESTIMATORS, WrongKind, shown, without_password


def parse_number(text: str) -> float:
    """Return a number. Only the word inf means infinity, which isn't private."""
    try:
        number = float(text)
    except ValueError:
        raise usage_error(WrongKind(name="value", kind="a number", found=shown(text))) from None
    if math.isinf(number) and text.strip().lower() != "inf":
        raise usage_error(WrongKind(name=text, kind="a 64-bit float or inf", found="a larger number"))
    return number


def command_line(*words: str, options: Mapping[str, object]) -> str:
    """Return a command for a shell, without passwords; options without a value are skipped."""
    for option, value in options.items():
        if value is not None and value is not False:
            several = value if isinstance(value, list) else [value]
            words += (option,) if value is True else tuple(x for one in several for x in (option, str(one)))
    # Pages and JSON keep this command, and the address of a database may have a password.
    return shlex.join(map(without_password, words))


def read_items(path: Path) -> lib.Vocabulary:
    """Return a catalog: one item ID per line, or the item column of a table."""
    return lib.read_declared(path)


def read_ids(path: Path, whose: str = "item") -> list[int] | list[str]:
    """Return the IDs of items, or of users, from a list or a table."""
    return lib.read_id_list(path, whose)


def parse_columns(text: str | None) -> dict[str, str | None] | None:
    """Return the columns of `user=NAME,item=NAME,rating=NAME`. A role with `none` has no column."""
    if text is None:
        return None
    # A column's name may contain a comma: only a comma before a role separates.
    pairs = [part.partition("=") for part in re.split(r",(?=\s*\w+\s*=)", text)]
    if any(not separator or not value for _, separator, value in pairs):
        raise usage_error(WrongForm(option="--columns", form="user=NAME,item=NAME,rating=NAME", given=text))
    named = {key.strip(): value.strip() for key, _, value in pairs}
    return {role: None if name.lower() == "none" else name for role, name in named.items()}


def parse_scale(text: str | None) -> tuple[float | None, float | None, float | None]:
    """Read `LOW,HIGH` or `LOW,HIGH,STEP`."""
    if text is None:
        return None, None, None
    try:
        parts = [float(part) for part in text.split(",")]
        low, high, step = (*parts, None) if len(parts) == 2 else parts
    except ValueError as error:
        raise usage_error(
            WrongForm(option="--scale", form="LOW,HIGH or LOW,HIGH,STEP", given=text)
        ) from error
    if parts[0] > parts[1]:
        form = "LOW,HIGH with LOW below HIGH, as in 1,5"
        raise usage_error(WrongForm(option="--scale", form=form, given=text))
    return low, high, step


def listed(text: str) -> list[str]:
    """Return the parts of a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(name: str, text: str) -> list[float]:
    """Return the numbers of a comma-separated list."""
    parts = listed(text)
    try:
        [float(part) for part in parts]
    except ValueError as error:
        raise WrongForm(option=f"--{name}", form="NUMBER,NUMBER,...", given=text) from error
    return [parse_number(part) for part in parts]


def checked_name(name: str | None) -> str | None:
    """Return the data's name. Raise for an empty name, which is probably an unset variable."""
    if name is not None and not name.strip():
        raise OptionEmpty(option="--name")
    return name


_Group = TypeVar("_Group", bound=type)

# The panel of the help for the options of each group. None is the panel of the verb's own options.
_GROUPS: dict[type, str | None] = {}


def group(panel: str | None = None) -> Callable[[_Group], _Group]:
    """Mark a dataclass as an option group: each field is an option, annotated like a verb's parameter."""

    def mark(kind: _Group) -> _Group:
        _GROUPS[kind] = panel
        return kind

    return mark


# The panel of the help for files that need more than names of columns.
UNUSUAL = "Unusual files"
# The option that lists all options of a command, and how many options its short help lists at most.
HELP_ALL, MANY = "--help-all", 15


def _show_all(ctx: typer.Context, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


_HelpAll = Annotated[
    bool, typer.Option(HELP_ALL, is_eager=True, callback=_show_all, help="Show all options and exit.")
]


#: The option of every command that returns an `Output`.
AS_JSON = typer.Option("--json", help="Print one JSON value and nothing else.")
_AsJson = Annotated[bool, AS_JSON]


def spread(verb: Callable[..., Output | None]) -> Callable[..., None]:
    """Return the verb as the command line calls it, with each group replaced by its fields.

    Parameters before `*` are arguments and the others are options, with the help of the docstring. A verb
    that returns an `Output` has the option --json.
    """
    hints = get_type_hints(verb, include_extras=True)
    taken = {name: kind for name, kind in hints.items() if isinstance(kind, type) and kind in _GROUPS}

    has_output = hints["return"] is Output

    def run(help_all: bool = False, **options: Any) -> None:
        as_json = has_output and options.pop("as_json")
        groups = {
            name: kind(**{field.name: options.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in taken.items()
        }
        output = verb(**options, **groups)
        if output is not None:
            output.tell(as_json=as_json)

    about, helps = read_help(verb.__doc__)
    parameters, by_name = list(_parameters(verb, hints, taken, helps)), inspect.Parameter.KEYWORD_ONLY
    if has_output:
        parameters.append(inspect.Parameter("as_json", by_name, default=False, annotation=_AsJson))
    if len(parameters) >= MANY:
        parameters.append(inspect.Parameter("help_all", by_name, default=False, annotation=_HelpAll))
    run.__name__, run.__doc__, run.__module__ = verb.__name__, about, verb.__module__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


class OptionHelp(NamedTuple):
    """The help of one option, and the panel that lists it, if its docstring names one."""

    text: str
    panel: str | None


def read_help(docstring: str | None) -> tuple[str, dict[str, OptionHelp]]:
    """Return what a docstring states about its verb or group, and the help of each option by its parameter.

    A section of a docstring is a panel of the help. The options of the section `Options` have no panel.
    """
    about, panel, name = [], None, ""
    found: dict[str, OptionHelp] = {}
    for line in inspect.cleandoc(docstring or "").splitlines():
        if re.fullmatch(r"[A-Z][a-z ]+:", line):
            panel, name = line[:-1], "?"
        elif not name:
            about.append(line)
        elif line.startswith(" " * 8):
            found[name] = OptionHelp(f"{found[name].text} {line.strip()}", found[name].panel)
        elif line:
            name, _, text = line.strip().partition(": ")
            found[name] = OptionHelp(text, None if panel == "Options" else panel)
    return "\n".join(about).strip(), found


def _parameters(
    verb: Callable[..., Output | None],
    hints: dict[str, Any],
    taken: dict[str, type],
    helps: Mapping[str, OptionHelp],
) -> Iterator[inspect.Parameter]:
    """Yield the parameters for the command line. All are keyword-only, so their order is free."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    for name, parameter in inspect.signature(verb).parameters.items():
        if name not in taken:
            annotation = _declared(name, hints[name], helps.get(name), argument=parameter.kind is not by_name)
            yield parameter.replace(kind=by_name, annotation=annotation)
            continue
        kind = taken[name]
        types = get_type_hints(kind, include_extras=True)
        texts = {
            name: text for one in reversed(kind.__mro__) for name, text in read_help(one.__doc__)[1].items()
        }
        # In the help, inherited options of a group are below its own options.
        for field in sorted(dataclasses.fields(kind), key=lambda one: one.name not in kind.__annotations__):
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            annotation = _declared(field.name, types[field.name], texts.get(field.name), panel=_GROUPS[kind])
            yield inspect.Parameter(field.name, by_name, default=default, annotation=annotation)


def _declared(
    name: str, hint: Any, text: OptionHelp | None, *, argument: bool = False, panel: str | None = None
) -> Any:
    """Return the annotation that typer reads. An option has the name of its parameter, or the stated one."""
    what, stated = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
    if stated is None and argument:
        option: Any = typer.Argument()
    elif stated is None or isinstance(stated, str):
        option = typer.Option(stated or f"--{name.replace('_', '-')}")
    else:
        option = copy.copy(stated)
    if text is not None:
        option.help = text.text
    option.rich_help_panel = option.rich_help_panel or (text and text.panel) or panel
    return Annotated[what, option]


def complete_model(incomplete: str) -> list[str]:
    """Return the models that begin like this."""
    return [name for name in ESTIMATORS if name.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """Return a comma-separated list with its last name completed."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in complete_model(last)]


def complete_dataset(incomplete: str) -> list[str]:
    """Return the datasets that begin like this."""
    return [name for name in lib.DATASETS if name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """Return the files and folders that begin like this, and the datasets."""
    start = Path(incomplete)
    folder = start if incomplete.endswith("/") else start.parent
    beside = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [f"{path}/" if path.is_dir() else str(path) for path in beside]
    return [*(path for path in found if path.startswith(incomplete)), *complete_dataset(incomplete)]
