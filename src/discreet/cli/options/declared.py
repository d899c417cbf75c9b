"""Declare the options that several verbs share, with names and help, and their groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, final

import typer

from discreet.cli.errors import OptionNeeds, OptionsConflict, SetByOption, ShardsGiven, UnsupportedByModel
from discreet.cli.options.parsing import (
    UNUSUAL,
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
from discreet.core.checks import integer, one_of

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.data.schema import Schema
    from discreet.data.vocabulary import Vocabulary
    from discreet.models.estimator import Estimator
    from discreet.models.fitted import FittedModel
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger
    from discreet.privacy.ledger.release import PaidRelease

Data = Annotated[
    str,
    typer.Argument(
        help="Ratings: a file (CSV, TSV, Parquet, JSON lines, .xlsx), a folder or 'pattern-*.csv', a table "
        "(shop.db::TABLE, postgresql://...::TABLE), or the name of a dataset.",
        autocompletion=complete_data,
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A model that `discreet fit` wrote.")]
HowMany = Annotated[int, typer.Option("-k", help="How many items to list.")]
Titles = Annotated[
    Path | None,
    typer.Option("--titles", help="Also show columns of this table: item IDs first, then titles and so on."),
]
KeptTitles = Annotated[
    Path | None,
    typer.Option(
        "--titles",
        help="Store this public table in the model, for display: item IDs first, then titles and so on.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of columns: user=who,item=sku and rating=stars,time=at. time=none ignores times, "
        "time=at:day-first (or :month-first) sets how 01/02/2025 is read, and weight=NAME counts events by "
        "it.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="Read DATA with this schema, which `discreet describe --out FILE` writes."),
]
Delta = Annotated[
    float | None, typer.Option("--delta", help="The delta of the guarantee. Default: the model's.")
]
Purpose = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="What the budget is spent on: lists (ratings are ignored), ratings, or both. Default: both.",
        metavar="lists|ratings|both",
    ),
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates",
        help="How to handle repeated user-item pairs: `refuse`, `first`, `last` (by time, or else by row), "
        "`mean`, or `count`.",
    ),
]
AllowUnbudgeted = Annotated[
    bool,
    typer.Option("--allow-unbudgeted", help="Spend even if the ledger has budgets but none for this name."),
]
ForceFolder = Annotated[
    bool,
    typer.Option("--force", help="Replace the folder, table, or collection that an earlier run wrote."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an existing file, if it is of the kind this command writes.")
]


@group(UNUSUAL)
@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """How a text file is written, if its first lines don't show it."""

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
            help="The text encoding: latin-1, cp1252, and so on. Default: UTF-8.",
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
            help="Skip lines with a wrong number of fields, or without an ID, a number, or a time, and "
            "report "
            "how many.",
        ),
    ] = False
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            rich_help_panel=UNUSUAL,
            help="A well-known layout: movielens, netflix, lightgcn, recbole, or sasrec.",
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
    schema: SchemaFile = None
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
            help="Declare the catalog: a file with one item ID per line, or a table with an item column. "
            "Default: taken from the data.",
        ),
    ] = None
    drop_unknown: Annotated[
        bool, typer.Option("--drop-unknown", help="Skip ratings of items that --items doesn't list.")
    ] = False
    without: Annotated[
        Path | None,
        typer.Option("--without", help="Skip these users: a file with one user ID per line, or a table."),
    ] = None
    people: Annotated[
        int | None, typer.Option("--people", help="Declare the approximate number of users.")
    ] = None
    max_per_user: Annotated[
        int | None, typer.Option("--max-per-user", help="Keep at most this many ratings per user.")
    ] = None
    duplicates: Duplicates = "refuse"
    zeros: Annotated[
        str,
        typer.Option("--zeros", rich_help_panel=UNUSUAL, help="Whether ratings of 0 are ratings or missing."),
    ] = "ratings"

    def files(self) -> list[Path]:
        """Return the files to read other than DATA."""
        return [path for path in (self.items, self.without, self.schema) if path is not None]

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, in the order of their declaration."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {
            "--" + field.name.replace("_", "-"): value for field, value in values if value != field.default
        }

    def check(self) -> None:
        """Raise for invalid options before any file is read."""
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
        remembered: Schema | None = None,
    ) -> Interactions:
        """Return the data of a path or a dataset's name.

        A `catalog` replaces `--items`, and a `scale` is the default of `--scale`. Without `--schema`, files
        of the form that a model remembers are read with its schema.
        """
        from discreet.data.inputs import open_data
        from discreet.sources.shards import is_shard_folder

        if is_shard_folder(source):
            raise ShardsGiven(folder=str(source))
        self.check()
        schema = self.schema or _fitting(source, remembered, self)
        low, high, step = scale if self.scale is None else parse_scale(self.scale)
        if catalog is None and self.items is not None:
            catalog = read_items(self.items)
        if self.drop_unknown and catalog is None and schema is None:
            raise OptionNeeds(
                options=("--drop-unknown",), needs="--items FILE", why="without a catalog every item is known"
            )
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
            schema=schema,
            # Options that were not given don't change the rules of a schema.
            duplicates=self.duplicates if schema is None or self.duplicates != "refuse" else None,  # type: ignore[arg-type]
            zeros=self.zeros if schema is None or self.zeros != "ratings" else None,  # type: ignore[arg-type]
            drop_unknown=self.drop_unknown or None,  # type: ignore[arg-type]
            **self.written(),
        )
        if self.without is None:
            return data
        return data.without_people(read_ids(self.without, "user"))


def _fitting(source: str, remembered: Schema | None, text: TextFile) -> Schema | None:
    """Return the schema that a model remembers, if the file has its form and no other layout is named."""
    from discreet.data.reading.tables import fits

    if remembered is None or text.layout is not None or not fits(source, remembered):
        return None
    return remembered


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
            raise OptionsConflict(options=("--for", "--set purpose"), why="both set the purpose")
        parsed |= recipes.purpose_setting(self.model, self.purpose)
        for name in ("epsilon", "delta"):
            if name in parsed:
                raise SetByOption(name=name)
        parsed["epsilon"] = self.epsilon
        if self.delta is not None:
            parsed["delta"] = self.delta
        estimator = recipes.estimator(self.model, parsed)
        if implicit:
            refuse_without_ratings([estimator])
        return estimator


#: Remark about a private release without a ledger.
UNRECORDED = (
    "The cost wasn't recorded, and releases about the same users add up. Pass --ledger FILE to record it."
)


class Finished(NamedTuple):
    """A model that a killed run of the same command wrote, and the name of its data in the ledger."""

    model: FittedModel
    name: str


@group("The budget")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Paying:
    """The ledger that records a release, and the name; common to all verbs that spend."""

    ledger: Annotated[Path | None, typer.Option("--ledger", help="Record the cost in this ledger file.")] = (
        None
    )
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="The data's name in the ledger. Default: the file's name, or its folder's name if the file "
            "has a "
            "common name such as ratings.csv.",
        ),
    ] = None
    allow_unbudgeted: AllowUnbudgeted = False

    @property
    def asked(self) -> bool:
        """Return whether any of these options was given."""
        return self.ledger is not None or self.name is not None or self.allow_unbudgeted

    def check(self) -> None:
        """Raise for an empty name before anything is read."""
        checked_name(self.name)

    def files(self) -> list[Path]:
        """Return the files to read other than DATA."""
        return [] if self.ledger is None else [self.ledger]

    def book(self, name: str, release: PaidRelease | None = None) -> Ledger | None:
        """Open the ledger for data of this name, if a ledger was given. Warn of a missing budget."""
        from discreet.privacy.ledger.book import Ledger

        if self.ledger is None:
            return None
        book = Ledger.open(self.ledger, allow_unbudgeted=self.allow_unbudgeted, release=release)
        limited = book.budgeted()
        if self.allow_unbudgeted and limited and name not in limited:
            remark(
                f"discreet: the cost is recorded for {name!r}, which has no budget. Names with a budget: "
                f"{', '.join(map(repr, limited))}. Choose one with --name."
            )
        return book

    @contextlib.contextmanager
    def releasing(self, out: Path | None, *command: object) -> Iterator[PaidRelease | None]:
        """Yield the path for a release that is recorded here. Without a ledger nothing can be spent twice."""
        from discreet.privacy.ledger.release import releasing

        if out is None or self.ledger is None:
            yield None
            return
        with releasing(out, {"command": repr((*command, str(self.ledger.absolute()), self.name))}) as release:
            yield release

    def finished(self, release: PaidRelease | None, out: Path) -> Finished | None:
        """Return the model that an earlier run of the same command wrote before it was killed, if any."""
        from discreet.models.storage import load
        from discreet.privacy.ledger.book import Ledger

        if release is None or not release.is_published or self.ledger is None:
            return None
        model, name = load(out), release.finish(Ledger.open(self.ledger))
        remark(
            f"discreet: an earlier run of this command wrote {out} and was killed before it ended. "
            "No budget was spent again."
        )
        return Finished(model, name)

    def paid(self, name: str) -> str:
        """Return a sentence about where a release was recorded; empty without a ledger."""
        return "" if self.ledger is None else f"Recorded for {name!r} in {self.ledger}."

    def recorded(self, name: str, promise: Guarantee) -> str:
        """Return where a release was recorded, or that a private release was not recorded."""
        return self.paid(name) or UNRECORDED * promise.is_private


def refuse_without_ratings(estimators: Sequence[Estimator]) -> None:
    """Raise for models that need ratings, which `--implicit` ignores."""
    for estimator in estimators:
        if estimator.feedback == "explicit":
            raise UnsupportedByModel(
                model=estimator.name, option="--implicit", why="it learns from rating values"
            )
