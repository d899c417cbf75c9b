"""Declare the options that several verbs share, with names and help, and their groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from discreet.cli.options.parsing import (
    checked_name,
    complete_data,
    complete_model,
    group,
    parse_columns,
    parse_number,
    parse_scale,
    read_ids,
    read_items,
)
from discreet.cli.output.printing import remark
from discreet.core.checks import ParameterError, integer, one_of

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.data.vocabulary import Vocabulary
    from discreet.models.estimator import Estimator
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger

Data = Annotated[
    str,
    typer.Argument(
        help="A ratings file (CSV, TSV, Parquet, JSON lines), a MovieLens folder, or the name of a dataset.",
        autocompletion=complete_data,
    ),
]
# The panel of the help for files that need more than names of columns.
UNUSUAL = "Unusual files"
ModelFile = Annotated[Path, typer.Argument(help="A model that `discreet fit` wrote.")]
HowMany = Annotated[int, typer.Option("-k", help="How many items to list.")]
Titles = Annotated[
    Path | None,
    typer.Option("--titles", help="Also show columns of this table: item ids first, then titles and so on."),
]
KeptTitles = Annotated[
    Path | None,
    typer.Option(
        "--titles",
        help="Store this public table in the model, for display: item ids first, then titles and so on.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of columns: user=who,item=sku and rating=stars,time=at. time=none leaves times out, "
        "time=at:day-first (or :month-first) says how 01/02/2025 is read; weight=NAME counts events by it.",
    ),
]
Delta = Annotated[
    float | None, typer.Option("--delta", help="The delta of the promise. Default: the model's.")
]
Purpose = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="What the budget is spent on: lists (ratings are ignored), ratings or both. Default: both.",
        metavar="lists|ratings|both",
    ),
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates",
        help="If a person and an item come together again: refuse, or use first, last (by time, else as "
        "listed), mean or count.",
    ),
]
AllowUnbudgeted = Annotated[
    bool,
    typer.Option("--allow-unbudgeted", help="Pay even if the ledger has budgets but none for this name."),
]
ForceFolder = Annotated[
    bool,
    typer.Option("--force", help="Replace what an earlier run wrote: its folder, table or collection."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an existing file, if it is of the kind this command writes.")
]


@group(UNUSUAL)
@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """How a text file is written, where its first lines do not show it."""

    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter", rich_help_panel=UNUSUAL, help="The character between fields. Default: detected."
        ),
    ] = None
    quote: Annotated[
        str | None,
        typer.Option(
            "--quote", rich_help_panel=UNUSUAL, help="The quote character, or none. Default: a double quote."
        ),
    ] = None
    escape: Annotated[
        str | None,
        typer.Option(
            "--escape", rich_help_panel=UNUSUAL, help="The escape character inside quotes, such as \\\\."
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            rich_help_panel=UNUSUAL,
            help="The text encoding: latin-1, cp1252, ... Default: UTF-8.",
        ),
    ] = None
    comment: Annotated[
        str | None,
        typer.Option(
            "--comment", rich_help_panel=UNUSUAL, help="Skip lines that begin with this, such as #."
        ),
    ] = None
    skip_bad_lines: Annotated[
        bool,
        typer.Option(
            "--skip-bad-lines",
            rich_help_panel=UNUSUAL,
            help="Skip lines with a wrong number of fields, or without an id, a number or a time, and report "
            "how many.",
        ),
    ] = False
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            rich_help_panel=UNUSUAL,
            help="A well-known layout: movielens, netflix, lightgcn, recbole or sasrec.",
        ),
    ] = None

    def written(self) -> dict[str, Any]:
        """Return these options, by the names that `read` knows."""
        return {field.name: getattr(self, field.name) for field in fields(TextFile)}


@group("The data")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(TextFile):
    """How to read DATA, and what is declared about it."""

    columns: Columns = None
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", help="Read DATA with this schema, which `discreet describe --out FILE` writes."
        ),
    ] = None
    implicit: Annotated[
        bool,
        typer.Option(
            "--implicit",
            help="Treat rows as implicit feedback: ratings are ignored, and a model for both kinds of data "
            "(user-factorization) learns from interactions.",
        ),
    ] = False
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale",
            help="Declare the rating scale: LOW,HIGH or LOW,HIGH,STEP. Default: taken from the data.",
        ),
    ] = None
    items: Annotated[
        Path | None,
        typer.Option(
            "--items",
            help="Declare the catalog: a file with one item id per line, or a table with an item column. "
            "Default: taken from the data.",
        ),
    ] = None
    drop_unknown: Annotated[
        bool, typer.Option("--drop-unknown", help="Drop ratings of items that --items does not list.")
    ] = False
    without: Annotated[
        Path | None,
        typer.Option(
            "--without", help="Leave these people out: a file with one user id per line, or a table."
        ),
    ] = None
    people: Annotated[
        int | None, typer.Option("--people", help="Declare the approximate number of people.")
    ] = None
    max_per_user: Annotated[
        int | None, typer.Option("--max-per-user", help="Keep at most this many ratings per person.")
    ] = None
    duplicates: Duplicates = "refuse"
    zeros: Annotated[
        str,
        typer.Option("--zeros", rich_help_panel=UNUSUAL, help="Whether ratings of 0 are ratings or missing."),
    ] = "ratings"

    def files(self) -> list[Path]:
        """Return the files to read besides DATA."""
        return [path for path in (self.items, self.without, self.schema) if path is not None]

    def check(self) -> None:
        """Refuse invalid options before any file is read."""
        one_of("--duplicates", self.duplicates, ("refuse", "first", "last", "mean", "count"))
        one_of("--zeros", self.zeros, ("ratings", "missing"))
        for option, count in (("--people", self.people), ("--max-per-user", self.max_per_user)):
            if count is not None:
                integer(option, count, least=1)

    def load(
        self,
        source: str,
        name: str | None = None,
        *,
        catalog: Vocabulary | None = None,
        scale: tuple[float | None, float | None, float | None] = (None, None, None),
    ) -> Interactions:
        """Return the data of a path or a dataset's name.

        A `catalog` replaces `--items`, and a `scale` is the default of `--scale`.
        """
        from discreet.data.inputs import open_data
        from discreet.distributed.shards import is_shard_folder

        if is_shard_folder(source):
            raise ParameterError(f"{source} is a folder of shards. Give the files it was made from.")
        self.check()
        low, high, step = scale if self.scale is None else parse_scale(self.scale)
        if catalog is None and self.items is not None:
            catalog = read_items(self.items)
        if self.drop_unknown and catalog is None and self.schema is None:
            raise ParameterError("--drop-unknown needs a declared catalog. Add --items.")
        data = open_data(
            source,
            columns=parse_columns(self.columns),
            implicit=self.implicit,
            name=name,
            low=low,
            high=high,
            step=step,
            max_per_user=self.max_per_user,
            n_users=self.people,
            catalog=catalog,
            schema=self.schema,
            # Options that were not given leave the rules of a schema as they are.
            duplicates=self.duplicates if self.schema is None or self.duplicates != "refuse" else None,  # type: ignore[arg-type]
            zeros=self.zeros if self.schema is None or self.zeros != "ratings" else None,  # type: ignore[arg-type]
            drop_unknown=self.drop_unknown or None,  # type: ignore[arg-type]
            **self.written(),
        )
        if self.without is None:
            return data
        return data.without_people(read_ids(self.without, "user"))


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """Which model to fit, at what cost, with which settings."""

    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            help="The privacy loss: smaller is more private; inf means no privacy.",
            parser=parse_number,
            metavar="FLOAT",
        ),
    ]
    model: Annotated[
        str,
        typer.Option(
            "--model", help="The model; `discreet models` lists all.", autocompletion=complete_model
        ),
    ] = "user-factorization"
    delta: Delta = None
    purpose: Purpose = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set an option of the model: key=value. May be repeated."),
    ] = None

    def estimator(self, *, implicit: bool) -> Estimator:
        """Return the estimator that these options and `--implicit` describe."""
        from discreet import recipes

        parsed = recipes.feedback_setting(self.model, implicit=implicit)
        parsed |= recipes.parse_settings(self.model, self.settings or [])
        if self.purpose is not None and "purpose" in parsed:
            raise ParameterError("--for and --set purpose=... say the same. Leave one of them out.")
        parsed |= recipes.purpose_setting(self.model, self.purpose)
        for name in ("epsilon", "delta"):
            if name in parsed:
                raise ParameterError(f"--set {name}=... is not allowed. Use --{name}.")
        parsed["epsilon"] = self.epsilon
        if self.delta is not None:
            parsed["delta"] = self.delta
        estimator = recipes.estimator(self.model, parsed)
        if implicit:
            refuse_without_ratings([estimator])
        return estimator


#: Said of a private release that was paid from no ledger.
UNRECORDED = "Nothing was recorded, but releases about the same people add up: pay from a --ledger FILE."


@group("The budget")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Paying:
    """From which ledger a release is paid, and under which name; common to all verbs that spend."""

    ledger: Annotated[Path | None, typer.Option("--ledger", help="Pay from this ledger file.")] = None
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="The data's name in the ledger. Default: the file's name, or its folder's if the file has a "
            "common name such as ratings.csv.",
        ),
    ] = None
    allow_unbudgeted: AllowUnbudgeted = False

    @property
    def asked(self) -> bool:
        """Return whether any of these options was given."""
        return self.ledger is not None or self.name is not None or self.allow_unbudgeted

    def check(self) -> None:
        """Refuse an empty name before anything is read."""
        checked_name(self.name)

    def files(self) -> list[Path]:
        """Return the files to read besides DATA."""
        return [] if self.ledger is None else [self.ledger]

    def book(self, name: str) -> Ledger | None:
        """Open the ledger that pays for data of this name, if one was given; warn of a missing budget."""
        from discreet.privacy.ledger.book import Ledger

        if self.ledger is None:
            return None
        book = Ledger.open(self.ledger, allow_unbudgeted=self.allow_unbudgeted)
        limited = book.budgeted()
        if self.allow_unbudgeted and limited and name not in limited:
            remark(
                f"discreet: paying as {name!r}, which has no budget. Names with a budget: "
                f"{', '.join(map(repr, limited))}. Choose one with --name."
            )
        return book

    def paid(self, name: str) -> str:
        """Return a sentence about where a release was paid; empty without a ledger."""
        return "" if self.ledger is None else f"Paid as {name!r} in {self.ledger}."

    def recorded(self, name: str, promise: Guarantee) -> str:
        """Return where a release was paid, or that nothing was recorded of one that promises something."""
        return self.paid(name) or UNRECORDED * promise.is_private


def refuse_without_ratings(estimators: Sequence[Estimator]) -> None:
    """Refuse models that need ratings, which `--implicit` ignores."""
    for estimator in estimators:
        if estimator.feedback == "explicit":
            raise ParameterError(
                f"{estimator.name} learns from ratings, which --implicit ignores. "
                "`discreet models` lists those that learn from implicit feedback."
            )
