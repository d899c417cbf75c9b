"""Declare the options of a continual release that several verbs share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.errors import OptionNeeds, OptionsConflict, TitlesGone, WrongForm
from discreet.cli.messages import usage_error
from discreet.cli.options.declared import AsJson, Force, KeptTitles, Learning
from discreet.cli.options.parsing import group

if TYPE_CHECKING:
    from discreet.data.vocabulary import Vocabulary
    from discreet.follow import FollowSettings
    from discreet.models.items import PublicColumns

_DAYS = {"": 1.0, "h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0}

HalfLife = Annotated[
    str | None,
    typer.Option(
        "--half-life",
        help="Half-life of an interaction's weight: 36h, 7d, 2w, 1m (30 days), 1y (365 days). "
        "Default: no fading.",
    ),
]
Year = Annotated[str, typer.Option("--year", help="How long all releases together last.")]
ComeOnce = Annotated[
    bool, typer.Option("--users-come-once", help="Let users spend all their weight at once.")
]


def days(option: str, text: str) -> float:
    """Return the days of a time such as 7d, 36h, or 2w.

    A bare number means days, a month is 30, a year 365.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([hdwmy]?)", text.strip())
    if found is None or float(found[1]) == 0:
        raise usage_error(WrongForm(option=option, form="36h, 7d, 2w, 1m (30 days), or 1y (365 days)"))
    return float(found[1]) * _DAYS[found[2]]


def year_settings(
    *,
    releases: int,
    epsilon: float,
    delta: float,
    half_life: str | None,
    year: str,
    come_once: bool,
    rated: bool,
) -> FollowSettings:
    """Return the settings of a year that these options describe."""
    from discreet.follow import FollowSettings
    from discreet.follow.weights import ONCE, Pace

    return FollowSettings(
        releases=releases,
        epsilon=epsilon,
        delta=delta,
        half_life=None if half_life is None else days("--half-life", half_life),
        days=days("--year", year),
        # Ratings of items don't fade, so no budget is kept for a later time of the year.
        pace=ONCE if come_once or rated else Pace(),
    )


def said_once(*, columns: str | None, titles: Path | None) -> dict[str, str]:
    """Return the given options that are kept for later releases."""
    said = {"columns": columns, "titles": None if titles is None else str(titles.absolute())}
    return {name: value for name, value in said.items() if value is not None}


def read_titles(path: Path | None, catalog: Vocabulary) -> PublicColumns:
    """Return the public columns of a table of items, or nothing without a table."""
    from discreet.models.items import read_columns, read_table

    return {} if path is None else read_columns(read_table(path), catalog)


def kept_titles(text: str) -> Path:
    """Return the table that an earlier command named. Raise if it no longer exists."""
    path = Path(text)
    if not path.exists():
        raise TitlesGone(path=path)
    return path


def models_of(kept: Mapping[str, str]) -> dict[str, str]:
    """Return the models that earlier releases wrote, by path, with their digests."""
    found: dict[str, str] = json.loads(kept.get("models", "{}"))
    # Years that began in earlier versions kept only the last model.
    return found | ({kept["out"]: kept.get("written", "")} if "out" in kept else {})


def digest(path: Path) -> str:
    """Return the digest of a file, which identifies the model written last. Empty without a file."""
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class YearTogether:
    """A continual release of several parties, in place of a model."""

    follow: Annotated[
        int | None,
        typer.Option(
            "--follow", help="Make this many releases in a year (52 is weekly) instead of fitting a model."
        ),
    ] = None
    half_life: HalfLife = None
    year: Year = "365d"
    come_once: ComeOnce = False

    def settings(self, learning: Learning, *, rated: bool) -> FollowSettings | None:
        """Return the settings of a continual release; None if a model is to be fitted."""
        if self.follow is None:
            if self.half_life is not None or self.come_once or self.year != "365d":
                raise OptionNeeds(
                    options=("--half-life", "--year", "--users-come-once"),
                    needs="--follow",
                    why="they describe a continual release",
                )
            return None
        if learning.settings or learning.purpose or learning.model != "user-factorization":
            raise OptionsConflict(
                options=("--follow", "--model", "--set", "--for"), why="a continual release has its own model"
            )
        return year_settings(
            releases=self.follow,
            epsilon=learning.epsilon,
            delta=1e-6 if learning.delta is None else learning.delta,
            half_life=self.half_life,
            year=self.year,
            come_once=self.come_once,
            rated=rated,
        )


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Which release is drawn, what it is made of, and where its model is written."""

    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")]
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", help="Declare items, including new ones: one ID per line, or a table of items."
        ),
    ] = None
    release: Annotated[
        int | None,
        typer.Option("--release", help="Number of this release. Missed releases before it are made empty."),
    ] = None
    kind: Annotated[str, typer.Option("--kind", help="`popularity`, `biases`, or `both`.")] = "both"
    with_model: Annotated[
        Path | None, typer.Option("--with", help="Use the embeddings of this user-factorization model.")
    ] = None
    titles: KeptTitles = None
    yes: Annotated[bool, typer.Option("--yes", help="Confirm that many missed releases are made empty.")] = (
        False
    )
    force: Force = False
    as_json: AsJson = False
