"""Declare the options that several verbs share, with names and help, and their groups."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple, final

import typer

from discreet.cli import lib
from discreet.cli.errors import (
    FixedByShards,
    OptionNeeds,
    OptionsConflict,
    SetByOption,
    ShardsGiven,
    ShardsNeeded,
    UnsupportedByModel,
)
from discreet.cli.options.parsing import (
    AS_JSON,
    UNUSUAL,
    checked_name,
    complete_data,
    complete_model,
    group,
    listed,
    parse_columns,
    parse_number,
    parse_scale,
    read_ids,
    read_items,
)
from discreet.cli.output.printing import remark
from discreet.core import (
    METRIC_EXAMPLES,
    PRIVATE_METRIC_EXAMPLES,
    folder_aside,
    integer,
    one_of,
    refuse_output,
    shown_while,
)

Data = Annotated[
    str,
    typer.Argument(
        help="Ratings: a file (CSV, TSV, Parquet, JSON lines, .xlsx), a folder or 'pattern-*.csv', a table "
        "(shop.db::TABLE, postgresql://...::TABLE), or the name of a dataset.",
        autocompletion=complete_data,
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A model that `discreet fit` wrote.")]
_EPSILON = typer.Option("--epsilon", parser=parse_number, metavar="FLOAT")
Epsilon = Annotated[float, _EPSILON]
AnyEpsilon = Annotated[float | None, _EPSILON]
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
AsJson = Annotated[bool, AS_JSON]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Column names, for example user=who,item=sku,rating=stars,time=at. time=none ignores times. "
        "time=at:day-first reads 01/02/2025 as 1 February. weight=NAME weights repeated events by that "
        "column.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="Read DATA with this schema, which `discreet describe --out FILE` writes."),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Additive term of the guarantee. Keep it far below 1/users. Default: the model's, and at most a "
        "tenth of 1/--people.",
    ),
]
Purpose = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="What to spend the budget on: lists (ignores rating values), ratings, or both. Default: both.",
        metavar="lists|ratings|both",
    ),
]
Question = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="What to ask about: recommendations (lists), or predicted ratings. Default: both.",
        metavar="lists|ratings",
    ),
]
Duplicates = Annotated[
    str | None,
    typer.Option(
        "--duplicates",
        help="How to handle repeated user-item pairs: `refuse`, `first`, `last` (by time, or else by row), "
        "`mean`, or `count`. Default: the schema's rule; else `last` with --implicit, `refuse` without it.",
    ),
]
AllowUnbudgeted = Annotated[
    bool,
    typer.Option("--allow-unbudgeted", help="Spend even if the ledger has budgets but none for this name."),
]
ForceFolder = Annotated[
    bool, typer.Option("--force", help="Replace the folder, table, or collection that an earlier run wrote.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an existing file of the kind that this command writes.")
]


@group(UNUSUAL)
@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    r"""How a text file is written, if its first lines don't show it.

    Unusual files:
        delimiter: The character between fields. Default: detected.
        quote: The quote character, or none. Default: a double quote.
        escape: The escape character inside quotes, such as \.
        encoding: The text encoding: latin-1, cp1252, and so on. Default: UTF-8.
        comment: Skip lines that begin with this text, such as #.
        skip_rows: Skip this number of rows above the header, such as a title. Default: detected.
        skip_bad_lines: Skip lines with the wrong number of fields or an invalid ID, number, or time, and
            report how many.
        layout: A well-known layout: movielens, netflix, lightgcn, recbole, or sasrec.

    The data:
        only: Use only rows in which this column has this value: event=buy. Repeatable: two values of one
            column mean either, two columns mean both.
        weights: What a row weighs, by its value in a column: event=view:1,cart:3,buy:5. Other rows are
            skipped. Weights of the same user and item add up.
    """

    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    encoding: str | None = None
    comment: str | None = None
    skip_rows: int | None = None
    skip_bad_lines: bool = False
    layout: str | None = None
    only: Annotated[list[str] | None, "--only"] = None
    weights: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, in the order of their declaration."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {
            "--" + field.name.replace("_", "-"): value for field, value in values if value != field.default
        }

    def written(self) -> dict[str, Any]:
        """Return these options, by the names that `read` knows."""
        return {field.name: getattr(self, field.name) for field in fields(TextFile)}


@group("The data")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(TextFile):
    """How to read DATA, and what is declared about it.

    Options:
        implicit: Ignore ratings, and learn only from which items users interacted with.
        scale: Public rating scale: LOW,HIGH or LOW,HIGH,STEP. Default: the scale in
            the data; the guarantee then applies only if this scale is public.
        items: Public catalog: a file with one item ID per line, or a table with an item column. Default:
            the items in the data; the guarantee then applies only if they are public.
        drop_unknown: Skip ratings of items that --items doesn't list.
        without: Skip these users: a file with one user ID per line, or a table.
        people: Public approximate number of users.
        max_per_user: Use at most this many ratings per user.

    Unusual files:
        zeros: Whether 0 is a rating (`ratings`) or means "not rated" (`missing`).
    """

    columns: Columns = None
    schema: SchemaFile = None
    implicit: bool = False
    scale: str | None = None
    items: Path | None = None
    drop_unknown: bool = False
    without: Path | None = None
    people: int | None = None
    max_per_user: int | None = None
    duplicates: Duplicates = None
    zeros: str = "ratings"

    def __post_init__(self) -> None:
        """Read a schema without ratings, or weights without a scale, as implicit feedback."""
        schema = None if self.schema is None else lib.Schema.read(self.schema)
        if (self.weights or (schema and schema.weights)) and self.scale is None:
            object.__setattr__(self, "implicit", self.implicit or schema is None or schema.low is None)
        elif schema is not None and not self.implicit:
            valued = {"rating", "weight"} & set(schema.roles) or "count" in (
                schema.duplicates,
                self.duplicates,
            )
            object.__setattr__(self, "implicit", bool(schema.item) and not valued)

    def files(self, data: str) -> list[Path]:
        """Return the files to read: those of DATA, unless it is a folder of shards, and of these options."""
        own = [] if lib.is_shard_folder(data) else lib.files_of(data, self.layout)
        return [*own, *(path for path in (self.items, self.without, self.schema) if path is not None)]

    def check(self) -> None:
        """Raise for invalid options before any file is read."""
        if self.duplicates is not None:
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
        catalog: lib.Vocabulary | None = None,
        scale: tuple[float | None, float | None, float | None] = (None, None, None),
        remembered: lib.Schema | None = None,
    ) -> lib.Interactions:
        """Return the data of a path or a dataset's name.

        A `catalog` replaces `--items`, and a `scale` is the default of `--scale`. Without `--schema`, files
        of the form that a model remembers are read with its schema.
        """
        if lib.is_shard_folder(source):
            raise ShardsGiven(folder=str(source))
        self.check()
        low, high, step = scale if self.scale is None else parse_scale(self.scale)
        if catalog is None and self.items is not None:
            catalog = read_items(self.items)
        if self.drop_unknown and catalog is None and self.schema is None and remembered is None:
            raise OptionNeeds(
                options=("--drop-unknown",), needs="--items FILE", why="without a catalog every item is known"
            )
        with shown_while(reading_label(source)):
            schema = self.schema or _fitting(source, remembered, self)
            data = lib.open_data(
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
                duplicates=rule_for_duplicates(  # type: ignore[arg-type]
                    self.duplicates, schema, implicit=self.implicit, weights=self.weights
                ),
                zeros=self.zeros if schema is None or self.zeros != "ratings" else None,  # type: ignore[arg-type]
                drop_unknown=self.drop_unknown or None,  # type: ignore[arg-type]
                **self.written(),
            )
        if self.without is None:
            return data
        gone = list(dict.fromkeys(read_ids(self.without, "user")))
        known = int((data.users.index_of(gone) >= 0).sum())
        remark(
            f"discreet: {known:,} of the {len(gone):,} user IDs in {self.without.name} are in the data. This "
            "count isn't released."
        )
        return data.without_people(gone)


def reading_label(source: str) -> str:
    """Return what is shown while data is read; the address of a database may contain a password."""
    place = source.partition("::")[0]
    # A path, as an option may be, has one slash where an address has two.
    is_database = re.match(r"postgres(ql)?:/", place) or "://" in place
    return "reading the database" if is_database else f"reading {Path(place).name or place}"


def rule_for_duplicates(
    given: str | None, schema: object | None, *, implicit: bool, weights: object = None
) -> str | None:
    """Return the rule for repeated pairs, or None for the schema's own rule."""
    if given is None and weights:
        return "count"
    if given is not None or schema is not None:
        return given
    # Users click and buy again, and a model of interactions only uses whether a pair occurs.
    return "last" if implicit else "refuse"


def _fitting(source: str, remembered: lib.Schema | None, text: TextFile) -> lib.Schema | None:
    """Return the schema that a model remembers, if the file has its form and no other layout is named."""
    if remembered is None or text.layout is not None or not lib.fits_schema(source, remembered):
        return None
    return remembered


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """Which model to fit, at what cost, with which settings.

    Options:
        epsilon: Privacy loss. Smaller is more private; 1 is a strong guarantee. inf trains without privacy.
        model: Model to train. `discreet models` lists them.
        settings: Set an option of the model: key=value. Repeatable.
    """

    epsilon: Epsilon
    model: Annotated[str, typer.Option("--model", autocompletion=complete_model)] = "user-factorization"
    delta: Delta = None
    purpose: Purpose = None
    settings: Annotated[list[str] | None, "--set"] = None

    def estimator(self, *, implicit: bool, reading: Reading | None = None) -> lib.Estimator:
        """Return the estimator that these options and `--implicit` describe."""
        parsed = lib.model_settings.feedback_setting(self.model, implicit=implicit)
        parsed |= lib.model_settings.parse_settings(self.model, self.settings or [])
        if self.purpose is not None and "purpose" in parsed:
            raise OptionsConflict(options=("--for", "--set purpose"), why="both set the purpose")
        parsed |= lib.model_settings.purpose_setting(self.model, self.purpose)
        for name in ("epsilon", "delta"):
            if name in parsed:
                raise SetByOption(name=name)
        parsed["epsilon"] = self.epsilon
        usual = lib.model_settings.defaults(self.model).get("delta")
        if self.delta is not None:
            parsed["delta"] = self.delta
        elif usual and reading is not None and (reading.people or 0) > 0:
            # Declared, not counted: counting the users would be a query.
            parsed["delta"] = min(usual, 0.1 / (reading.people or 1))
        estimator = lib.model_settings.estimator(self.model, parsed)
        if implicit:
            refuse_without_ratings([estimator], reading)
        return estimator


#: Remark about a private release without a ledger.
UNRECORDED = (
    "The cost wasn't recorded, and releases about the same users add up. Pass --ledger FILE to record it."
)


class Finished(NamedTuple):
    """A model that a killed run of the same command wrote, and the name of its data in the ledger."""

    model: lib.FittedModel
    name: str


@group("The budget")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Paying:
    """The ledger that records a release, and the name; common to all verbs that spend.

    Options:
        ledger: Record the cost in this ledger. Without a ledger, nothing adds up or limits your spending.
        name: The data's name in the ledger. Default: the file's name, or its folder's name if the file has a
            common name such as ratings.csv.
    """

    ledger: Path | None = None
    name: str | None = None
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

    def book(self, name: str, release: lib.PaidRelease | None = None) -> lib.Ledger | None:
        """Open the ledger for data of this name, if a ledger was given. Warn of a missing budget."""
        if self.ledger is None:
            return None
        book = lib.Ledger.open(self.ledger, allow_unbudgeted=self.allow_unbudgeted, release=release)
        limited = book.budgeted()
        if self.allow_unbudgeted and limited and name not in limited:
            remark(
                f"discreet: the cost is recorded for {name!r}, which has no budget. Names with a budget: "
                f"{', '.join(map(repr, limited))}. Choose one with --name."
            )
        if self.name is None and not limited:
            _remark_on_new_account(book, name, self.ledger)
        _remark_on_unfinished(book, name, release)
        return book

    @contextlib.contextmanager
    def releasing(
        self, out: Path | None, *command: object, made: str = "model", dry_run: bool = False
    ) -> Iterator[lib.PaidRelease | None]:
        """Yield the path for a release that is recorded here. Without a ledger nothing can be spent twice.

        A dry run gets the release that the command would continue, if any, and can't spend.
        On Ctrl-C, report what the ledger has recorded for this command, and how to continue.
        """
        if out is None or self.ledger is None:
            try:
                yield None
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(
                    f"No {made} was written, and nothing was spent in a ledger."
                ) from stop
            return
        # The record stays on the disk if the process is killed, and a command may contain a password.
        words = repr((*command, str(self.ledger.absolute()), self.name))
        known = {"command": sha256(words.encode()).hexdigest()}
        with lib.foreseen(out, known) if dry_run else lib.releasing(out, known) as release:
            if release is None or dry_run:
                yield release
                return
            try:
                yield release
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(_what_was_paid(self.ledger, release, made)) from stop

    def finished(self, release: lib.PaidRelease | None, out: Path) -> Finished | None:
        """Return the model that an earlier run of the same command wrote before it was killed, if any."""
        name = self.continued(release, out)
        return None if name is None else Finished(lib.load(out), name)

    def continued(self, release: lib.PaidRelease | None, out: Path) -> str | None:
        """Publish what a killed run of the same command drew, and return the name of its data."""
        if release is None or not release.has_begun or self.ledger is None:
            return None
        name = release.finish(lib.Ledger.open(self.ledger))
        if name is not None:
            remark(
                f"discreet: an earlier run of this command drew {out} and was killed before it ended. "
                "No budget was spent again."
            )
        elif release.is_gone:
            remark(
                f"discreet: an earlier run of this command wrote {out} and was killed before it ended. The "
                "file was moved, changed, or deleted since, so this run draws new noise and spends again."
            )
        return name

    def paid(self, name: str) -> str:
        """Return a sentence about where a release was recorded; empty without a ledger."""
        return "" if self.ledger is None else f"Recorded for {name!r} in {self.ledger}."

    def recorded(self, name: str, promise: lib.Guarantee) -> str:
        """Return where a release was recorded, or that a private release was not recorded."""
        return self.paid(name) or UNRECORDED * promise.is_private


def _remark_on_new_account(book: lib.Ledger, name: str, ledger: Path) -> None:
    """Remark that the name comes from the file, and that the ledger has other names."""
    others = book.datasets()
    if others and name not in others:
        remark(
            f"discreet: {name!r}, the file's name, is a new account in {ledger}, which has: "
            f"{', '.join(map(repr, others))}. Costs about the same users add up in one account: if the data "
            "are about the same users, choose one of these with --name."
        )


def published(model: lib.FittedModel, out: Path, release: lib.PaidRelease | None, *, force: bool) -> None:
    """Write a model to its file. If its cost is recorded, the ledger lets only one process do this."""
    if release is None:
        model.save(out, force=force)
        return
    # The fit may have taken long.
    lib.refuse_model(out, force=force)
    model.save(release.draft, force=True)
    release.publish()


def _remark_on_unfinished(book: lib.Ledger, name: str, release: lib.PaidRelease | None) -> None:
    """Remark that other spending on these data is unfinished, before this command spends once more."""
    if release is not None and release.held(book):
        return
    unfinished = [one for one in book.entries(name) if one.state == "open"]
    if unfinished:
        last = unfinished[-1]
        more = f", and {len(unfinished) - 1} older" if len(unfinished) > 1 else ""
        remark(
            f"discreet: a release about {name!r} isn't finished: ledger entry {last.id}, begun "
            f"{last.time:%Y-%m-%d %H:%M} UTC, {last.what}, epsilon={last.guarantee.epsilon:g}{more}. Its "
            "budget is spent. To finish it, repeat its command exactly, with the same --out: that spends "
            "nothing more. A command that differs spends again."
        )


def _what_was_paid(ledger: Path, release: lib.PaidRelease, made: str) -> str:
    """Return what a ledger has recorded for a stopped command, and how to continue."""
    # A release that has begun has a ledger.
    entries = release.held(lib.Ledger.open(ledger)) if release.has_begun else []
    written = f"the {made} was written" if release.has_written else f"no {made} was written"
    if not entries:
        return f"Nothing was spent in {ledger}, and {written}."
    said = " and ".join(
        f"epsilon={entry.guarantee.epsilon:g}, delta={entry.guarantee.delta:g} for {entry.dataset!r}"
        for entry in entries
    )
    first = "An earlier start of this command" if release.continues else "This command"
    return (
        f"{first} spent {said} in {ledger}, and {written}. To continue, run the same command again. It "
        "spends nothing more, unless you move or delete what was written."
    )


def refuse_without_ratings(estimators: Sequence[lib.Estimator], reading: Reading | None = None) -> None:
    """Raise for models that need ratings, which `--implicit` ignores."""
    for estimator in estimators:
        if estimator.feedback == "explicit":
            if reading is not None and reading.weights:
                why = "sums of weights are ratings on a scale"
                raise OptionNeeds(
                    options=("--weights",), needs=f"--scale LOW,HIGH for {estimator.name}", why=why
                )
            raise UnsupportedByModel(
                model=estimator.name, option="--implicit", why="it learns from rating values"
            )


@group("What is measured")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What is held out, what is measured, and how often.

    Options:
        split: Held-out part: random:0.1, kfold:10, leave-one-out, time:0.1, time:DATE, given:TRAIN,TEST.
            Default: leave-one-out for lists, and random:0.1 for ratings. With given, both files
            must be in DATA's folder and have DATA's layout. The rows of DATA itself aren't used.
        repeat: The number of runs, each with a new split and new noise.
        seed: The seed of the splits and of the (simulated) noise.
        item_features: A public table for the content metrics: item IDs first, then genres and so on.
    """

    split: str | None = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="Comma-separated, or repeated. Default: rmse if ratings are predicted, ndcg@10 and hr@10 "
            f"for lists. All: {', '.join(METRIC_EXAMPLES)}. Append :99 to rank among 99 sampled items, "
            ":liked to count liked items only, and :few or :many for users with few or many ratings.",
        ),
    ] = None
    repeat: int = 1
    seed: int = 0
    item_features: Path | None = None

    @property
    def metrics(self) -> list[str] | None:
        """Return the names of the metrics. None means that the models decide."""
        return listed(",".join(self.metric)) if self.metric else None

    @property
    def unused_privately(self) -> list[str]:
        """Return the given options that private scores don't use, which hold out one item per user."""
        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        return [f"--{name.replace('_', '-')}" for name in given if name != "metric"]

    def plan(self, shown: Iterable[str], data: lib.Interactions | lib.DataSource) -> lib.SplitPlan:
        """Return the chosen split, or the split that fits these metrics and data."""
        return lib.parse_split(self.split or lib.usual_split(map(lib.Metric.parse, shown), data))

    def hints(self, shown: Iterable[str], *, timed: bool) -> list[str]:
        """Return remarks about these metrics under this split, for data with or without times."""
        metrics = [lib.Metric.parse(name) for name in shown]
        lists = any(isinstance(metric.definition, lib.ListMetric) for metric in metrics)
        fits = self.split is None and all(metric.ranks for metric in metrics)
        if fits or not lists or lib.parse_split(self.split or "random").kind not in ("random", "kfold"):
            return []
        return [f"Lists are scored on a random part of the histories. {_LATEST if timed else _ONE_OF_EACH}"]

    def refuse_report(self, out: Path, data: str, reading: Reading, *, force: bool) -> None:
        """Raise, before anything is measured, for a page that would overwrite something else."""
        read = [*reading.files(data), *self.files(lib.folder_of(data, reading.layout))]
        refuse_output(
            out,
            force=force,
            kind=lib.REPORT_KIND,
            is_ours=partial(lib.is_page, kind=lib.REPORT_KIND),
            inputs=read,
        )

    def files(self, folder: Path | None) -> list[Path]:
        """Return the possible files of a given split. Other splits have no files."""
        if self.split is None:
            return []
        places = [Path()] if folder is None else [Path(), folder]
        names = [name + end for name in lib.parse_split(self.split).files if name for end in ("", ".gz")]
        return [place / name for place in places for name in names]


@group("What is measured")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ByGroup:
    """Which groups are scored apart.

    Options:
        by: Also score groups, with and without noise: activity (of users), popularity (of items), or a column
            of --user-features or --item-features.
        user_features: With --by: a table with user IDs in its first column.
    """

    by: str | None = None
    user_features: Path | None = None


# The split that fits lists, for data with and without times.
_LATEST = (
    "These data have times. To test what users choose next, as in use, pass --split leave-one-out (the "
    "latest row of each user) or --split time (the latest tenth)."
)
_ONE_OF_EACH = (
    "--split leave-one-out hides one row of each user, as is usual for lists. With times (--columns "
    "time=NAME) it hides the latest row, as in use."
)


@group("Private scores")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Privately:
    """Whether scores are released with noise, and from which part of the budget.

    Options:
        share: With --private: the part of the budget spent on scores.
        dry_run: Only show the cost and the budget left after it.
    """

    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Fit and score under one guarantee, which costs --epsilon: hide one item of each user, and "
            f"add noise to the scores ({', '.join(PRIVATE_METRIC_EXAMPLES)}), so that you may publish them.",
        ),
    ] = False
    share: float = 0.02
    dry_run: bool = False

    def asked(self, paying: Paying) -> bool:
        """Return whether any option was given that only private scores use."""
        return self.private or self.dry_run or paying.asked


On = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Engine that adds up the data: dask:// or spark:// with `local` or HOST:PORT, or duckdb:PATH.",
        rich_help_panel="More",
    ),
]
# Options that still apply to a folder of shards. All others were fixed when it was made.
_LATER = ("--people", "--max-per-user", "--implicit")


@contextmanager
def opened(
    source: str, reading: Reading, name: str | None, on: str | None, show: Callable[[str, int, int], None]
) -> Iterator[lib.DataSource]:
    """Yield the data source of a path or a dataset's name. Sums over shards report progress to `show`."""

    def reported(shards: lib.ShardFolder) -> lib.ShardFolder:
        return replace(shards, report=lambda done, total: show("shards", done, total))

    if on is not None and on.startswith("spark:"):
        with lib.spark_session(on) as spark:
            if lib.is_shard_folder(source):
                yield lib.on_spark(reported(shards_of(source, reading, name)), spark)
            else:
                with grouped(source, reading, name, on, show, spark=spark) as shards:
                    yield lib.on_spark(reported(shards), spark)
    elif on is not None and on.startswith("duckdb:"):
        with grouped(source, reading, name, on, show) as shards:
            yield reported(shards)
    elif not lib.is_shard_folder(source):
        if on is not None:
            raise ShardsNeeded()
        yield reading.load(source, name)
    elif on is None:
        yield reported(shards_of(source, reading, name))
    else:
        with lib.connected(on) as client:
            remark(f"discreet: the cluster's dashboard is at {client.dashboard_link}")
            yield lib.on_cluster(reported(shards_of(source, reading, name)), client)


@contextmanager
def grouped(
    table: str,
    reading: Reading,
    name: str | None,
    on: str,
    show: Callable[[str, int, int], None],
    *,
    spark: Any = None,
    **stated: Any,
) -> Iterator[lib.ShardFolder]:
    """Yield the rows of a table as shards in a folder that is removed afterward.

    A fit reads all rows several times, so the rows of each user are grouped once. What is `stated` about them
    replaces what the options declare.
    """
    reader, declared = plan_of(reading)
    with folder_aside(Path(tempfile.gettempdir()) / "discreet-grouped") as folder:
        files, query = exported(table, on, folder, spark=spark)
        called = checked_name(name) or _name_of(table, on)
        lib.make_shards(
            files, folder / "shards", reader=reader, name=called, progress=show, **declared | stated
        )
        for file in files:
            if file.is_relative_to(folder):
                file.unlink()
        shards = lib.open_shards(folder / "shards")
        if query:
            lib.warn_of(query)
            shards = replace(shards, facts=replace(shards.facts, reading=(*shards.facts.reading, lib.QUERY)))
        yield shards


def holds_tables(on: str | None) -> bool:
    """Return whether an engine has tables of its own, which DATA names."""
    return on is not None and on.startswith(("spark:", lib.duckdb_export.SCHEME))


def exported(table: str, on: str, folder: Path, *, spark: Any = None) -> tuple[list[Path], str]:
    """Return Parquet files with the rows of a table in an engine, and the query that made them, if any.

    Files that exist already are used.
    """
    if on.startswith(lib.duckdb_export.SCHEME):
        return [folder / "rows.parquet"], lib.duckdb_export.export_table(on, table, folder / "rows.parquet")
    if not Path(table).exists():
        query = lib.spark.export_table(spark, table, folder / "rows")
        return lib.tables_at(folder / "rows"), query
    return lib.tables_at(table), ""


def plan_of(reading: Reading) -> tuple[lib.PieceReader, dict[str, Any]]:
    """Return the reader of files in pieces, and the declared facts, according to the options."""
    reading.check()
    if reading.drop_unknown and reading.items is None:
        raise OptionNeeds(
            options=("--drop-unknown",), needs="--items FILE", why="without a catalog every item is known"
        )
    catalog = None if reading.items is None else read_items(reading.items)
    low, high, step = parse_scale(reading.scale)
    given = {
        "low": low,
        "high": high,
        "step": step,
        "max_per_user": reading.max_per_user,
        "n_users": reading.people,
        "catalog": catalog,
        "drop_unknown": reading.drop_unknown or None,
        "duplicates": rule_for_duplicates(
            reading.duplicates, reading.schema, implicit=reading.implicit, weights=reading.weights
        ),
    }
    return _reader(reading), {name: one for name, one in given.items() if one is not None}


def _name_of(table: str, on: str) -> str:
    """Return the name of a file or a database, whose tables are about the same users, or of a Spark table."""
    if on.startswith(lib.duckdb_export.SCHEME):
        return Path(on.removeprefix(lib.duckdb_export.SCHEME)).stem or table
    last = Path(table).name if Path(table).exists() else table
    return last if " " not in last else "query"


def shards_of(folder: str, reading: Reading, name: str | None) -> lib.ShardFolder:
    """Return an open folder of shards with the current options. Raise for options fixed when it was made."""
    for option in reading.given():
        if option not in _LATER:
            raise FixedByShards(option=option, folder=str(folder))
    shards = lib.open_shards(folder)
    facts = shards.facts
    if reading.implicit and facts.low != facts.high:
        raise FixedByShards(option="--implicit", folder=str(folder))
    if reading.people is not None:
        facts = replace(facts, n_users=integer("--people", reading.people, least=1))
    if reading.max_per_user is not None:
        facts = facts.with_cap(integer("--max-per-user", reading.max_per_user, least=1))
    return replace(shards, facts=facts, called=name)


def _reader(reading: Reading) -> lib.PieceReader:
    """Return the reader of a piece of a file, according to the options."""
    gone = None if reading.without is None else read_ids(reading.without, "user")
    wishes = lib.Wishes.taken_from(
        reading.written(), parse_columns(reading.columns), implicit=reading.implicit
    )
    return lib.PieceReader(
        wishes=wishes,
        schema=None if reading.schema is None else lib.overridden(reading.schema, wishes),
        zeros=reading.zeros if reading.schema is None or reading.zeros != "ratings" else None,
        without=None if gone is None else lib.as_texts(gone),
    )
