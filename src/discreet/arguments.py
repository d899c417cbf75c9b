"""Read what the command line is given: the options' names and help, and text turned into values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.checks import FileError, ParameterError

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.models.base import Estimator

Data = Annotated[
    str, typer.Argument(help="A ratings file (CSV, TSV, Parquet), a MovieLens folder, or a dataset's name.")
]
ModelName = Annotated[str, typer.Option("--model", help="Which model; `discreet models` lists them.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="How much may be revealed; inf means no privacy.")]
Delta = Annotated[
    float | None, typer.Option("--delta", help="Probability that the promise fails; default: the model's.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the model, key=value; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Column names: user=..,item=..,rating=..[,time=..]")
]
Scale = Annotated[
    str | None, typer.Option("--scale", help="Declare the rating scale: LOW,HIGH (else read from the file).")
]
MaxPerUser = Annotated[
    int | None, typer.Option("--max-per-user", help="Keep at most this many ratings a person.")
]
SplitText = Annotated[
    str, typer.Option("--split", help="random:0.1, kfold:10, leave-one-out or given:TRAIN,TEST")
]
MetricText = Annotated[
    str, typer.Option("--metric", help="Comma-separated: rmse, mae, accuracy, hr@10, ndcg@10, hr@10:99, ...")
]
Repeat = Annotated[int, typer.Option("--repeat", help="How many runs, each with a new split and new noise.")]
Seed = Annotated[int, typer.Option("--seed", help="Repeats the splits and the (then simulated) noise.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]


def make_estimator(model: str, epsilon: float, delta: float | None, settings: list[str] | None) -> Estimator:
    """Return the estimator that `--model`, `--epsilon`, `--delta` and `--set` describe."""
    from discreet import recipes

    parsed = recipes.parse_settings(model, settings or [])
    parsed["epsilon"] = epsilon
    if delta is not None:
        parsed["delta"] = delta
    return recipes.estimator(model, parsed)


def load_data(
    source: str,
    columns: str | None = None,
    scale: str | None = None,
    max_per_user: int | None = None,
    name: str | None = None,
) -> Interactions:
    """Return the data that DATA and its options describe."""
    from discreet.data.sources import open_data

    return open_data(
        source,
        columns=parse_columns(columns),
        scale=parse_scale(scale),
        max_per_user=max_per_user,
        name=name,
    )


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Read `user=NAME,item=NAME,rating=NAME`."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not separator or not value for _, separator, value in pairs):
        raise typer.BadParameter("--columns must have the form user=NAME,item=NAME,rating=NAME.")
    return {key.strip(): value.strip() for key, _, value in pairs}


def parse_scale(text: str | None) -> tuple[float, float] | None:
    """Read `LOW,HIGH`."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError as error:
        raise typer.BadParameter("--scale must have the form LOW,HIGH.") from error
    return low, high


def listed(text: str) -> list[str]:
    """Read a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(name: str, text: str) -> list[float]:
    """Read a comma-separated list of numbers."""
    try:
        return [float(part) for part in listed(text)]
    except ValueError as error:
        raise ParameterError(f"{name}={text!r} must be a comma-separated list of numbers.") from error


def refuse_unwritable(path: Path, *, force: bool) -> None:
    """Refuse an output that could not be written before anything is paid for."""
    if path.exists() and not force:
        raise FileError(f"{path} exists already. Pass --force to replace it.")
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist, or it is a folder itself.")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path} cannot be written: its folder does not allow it.")
