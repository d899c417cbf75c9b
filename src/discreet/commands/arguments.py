"""Read what the command line is given: the options' names and help, and text turned into values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from discreet.checks import FileError, ParameterError, integer, one_of
from discreet.commands.printing import remark

if TYPE_CHECKING:
    from discreet.data.facts import PublicFacts
    from discreet.data.interactions import Interactions
    from discreet.data.vocabulary import Vocabulary
    from discreet.models.estimator import Estimator


# Without a declared number of people: few data sets worth a model have less than a thousand.
_LARGE_DELTA = 1e-3


def parse_number(text: str) -> float:
    """Read a number; only the word inf may mean infinity, which promises nothing."""
    number = float(text)
    if math.isinf(number) and text.strip().lower() != "inf":
        raise typer.BadParameter(f"{text} is too large for a number. Say inf for a run without privacy.")
    return number


Data = Annotated[
    str, typer.Argument(help="A ratings file (CSV, TSV, Parquet), a MovieLens folder, or a dataset's name.")
]
ModelName = Annotated[str, typer.Option("--model", help="Which model; `discreet models` lists them.")]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon",
        help="How much may be revealed; inf means no privacy.",
        parser=parse_number,
        metavar="FLOAT",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", help="What may be revealed on top; default: the model's."),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the model, key=value; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Column names: user=..,item=..,rating=..[,time=..]")
]
Scale = Annotated[
    str | None,
    typer.Option("--scale", help="Declare the rating scale: LOW,HIGH or LOW,HIGH,STEP (else it is read)."),
]
Items = Annotated[
    Path | None,
    typer.Option("--items", help="Declare the catalog: a file with one item id a line (else read)."),
]
People = Annotated[int | None, typer.Option("--people", help="Declare about how many people there are.")]
DuplicatesText = Annotated[
    str, typer.Option("--duplicates", help="If a person rated an item twice: refuse, last or mean.")
]
Implicit = Annotated[
    bool,
    typer.Option(
        "--implicit",
        help="Every row says that something was chosen; ratings are not read, and a model that learns from "
        "either (user-factorization) learns from choices.",
    ),
]
MaxPerUser = Annotated[
    int | None, typer.Option("--max-per-user", help="Keep at most this many ratings a person.")
]
SplitText = Annotated[
    str, typer.Option("--split", help="random:0.1, kfold:10, leave-one-out or given:TRAIN,TEST")
]
MetricText = Annotated[
    str,
    typer.Option(
        "--metric",
        help="Comma-separated: rmse, mae, accuracy, are, hr@10, ndcg@10, recall@20, precision@10, mrr, "
        "coverage@10; hr@10:99 ranks among 99 sampled items.",
    ),
]
Repeat = Annotated[int, typer.Option("--repeat", help="How many runs, each with a new split and new noise.")]
Seed = Annotated[int, typer.Option("--seed", help="Repeats the splits and the (then simulated) noise.")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an existing file, if it is one that this command wrote.")
]


class DataOptions(NamedTuple):
    """Hold the options that say how DATA is read and what is declared about it."""

    columns: str | None = None
    scale: str | None = None
    max_per_user: int | None = None
    items: Path | None = None
    people: int | None = None
    duplicates: str = "refuse"
    implicit: bool = False

    def load(self, source: str, name: str | None = None) -> Interactions:
        """Return the data behind a path or a dataset's name."""
        from discreet.data.opening import open_data

        low, high, step = parse_scale(self.scale)
        one_of("--duplicates", self.duplicates, ("refuse", "last", "mean"))
        for option, count in (("--people", self.people), ("--max-per-user", self.max_per_user)):
            if count is not None:
                integer(option, count, least=1)
        return open_data(
            source,
            columns=parse_columns(self.columns),
            implicit=self.implicit,
            name=name,
            low=low,
            high=high,
            step=step,
            max_per_user=self.max_per_user,
            n_users=self.people,
            catalog=None if self.items is None else read_items(self.items),
            duplicates=self.duplicates,  # type: ignore[arg-type]
        )


def make_estimator(
    model: str, epsilon: float, delta: float | None, settings: list[str] | None, *, implicit: bool
) -> Estimator:
    """Return the estimator that `--model`, `--epsilon`, `--delta`, `--set` and `--implicit` describe."""
    from discreet import recipes

    parsed = recipes.feedback_setting(model, implicit=implicit)
    parsed |= recipes.parse_settings(model, settings or [])
    for name in ("epsilon", "delta"):
        if name in parsed:
            raise ParameterError(f"--set {name}=... is not allowed; say --{name}.")
    parsed["epsilon"] = epsilon
    if delta is not None:
        parsed["delta"] = delta
    estimator = recipes.estimator(model, parsed)
    if implicit:
        refuse_without_ratings([estimator])
    return estimator


def refuse_without_ratings(estimators: Sequence[Estimator]) -> None:
    """Refuse models that learn from ratings where `--implicit` leaves these out."""
    for estimator in estimators:
        if estimator.feedback == "explicit":
            raise ParameterError(
                f"{estimator.name} learns from ratings, which --implicit leaves out. "
                "`discreet models` lists those that learn from choices."
            )


def read_items(path: Path) -> Vocabulary:
    """Read a catalog: one item id a line."""
    from discreet.data.vocabulary import Vocabulary

    try:
        # Some editors put a mark before the first id, which is no part of it.
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read as a text file with one item id a line.") from error
    ids = [line.strip() for line in lines if line.strip()]
    numbers_only = all(text.isdecimal() and str(int(text)) == text for text in ids)
    return Vocabulary.of([int(text) for text in ids] if numbers_only else ids)


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Read `user=NAME,item=NAME,rating=NAME`."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not separator or not value for _, separator, value in pairs):
        raise typer.BadParameter("--columns must have the form user=NAME,item=NAME,rating=NAME.")
    return {key.strip(): value.strip() for key, _, value in pairs}


def parse_scale(text: str | None) -> tuple[float | None, float | None, float | None]:
    """Read `LOW,HIGH` or `LOW,HIGH,STEP`."""
    if text is None:
        return None, None, None
    try:
        parts = [float(part) for part in text.split(",")]
        low, high, step = (*parts, None) if len(parts) == 2 else parts
    except ValueError as error:
        raise typer.BadParameter("--scale must have the form LOW,HIGH or LOW,HIGH,STEP.") from error
    if parts[0] > parts[1]:
        raise typer.BadParameter("--scale names the lowest rating first, as in 1,5.")
    return low, high, step


def listed(text: str) -> list[str]:
    """Read a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(name: str, text: str) -> list[float]:
    """Read a comma-separated list of numbers."""
    try:
        return [parse_number(part) for part in listed(text)]
    except ValueError as error:
        raise ParameterError(f"{name}={text!r} must be a comma-separated list of numbers.") from error


def checked_name(name: str | None) -> str | None:
    """Return the data's name; an empty one is a variable that was not set, and would pay for other data."""
    if name is not None and not name.strip():
        raise ParameterError("--name is empty. Give the data's name, or leave the option out.")
    return name


def files_of_split(text: str, folder: Path | None) -> list[Path]:
    """Return where the files of a given split may lie; other splits have none."""
    from discreet.data.splits import parse_split

    places = [Path()] if folder is None else [Path(), folder]
    names = [name + end for name in parse_split(text).files if name for end in ("", ".gz")]
    return [place / name for place in places for name in names]


def remark_on_delta(estimators: Sequence[Estimator], facts: PublicFacts) -> None:
    """Warn of a delta under which publishing one person outright would keep the promise.

    The number of people is the declared one or unknown: counting them would be a query.
    """
    people = facts.n_users
    limit = _LARGE_DELTA if people is None else 1 / people
    largest = max((one.promise(facts).delta for one in estimators), default=0.0)
    if largest > limit:
        rule = f"{limit:g}" if people is None else f"1/{people:,} (one over the declared number of people)"
        remark(f"discreet: delta={largest:g} is above {rule}; such a promise may publish a person outright.")
