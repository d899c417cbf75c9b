"""Declare the options of verbs that score models: what is measured, how often, and whether privately."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.options.declared import Paying
from discreet.cli.options.parsing import group, listed
from discreet.core.registry import METRIC_EXAMPLES, PRIVATE_METRIC_EXAMPLES

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.data.splits import SplitPlan
    from discreet.statistics.data_source import DataSource


@group("What is measured")
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What is held out, what is measured, and how often."""

    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            help="Held-out part: random:0.1, kfold:10, leave-one-out, time:0.1, time:DATE, given:TRAIN,TEST. "
            "Default: leave-one-out for lists, and random:0.1 for ratings.",
        ),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="Comma-separated, or repeated. Default: rmse if ratings are predicted, ndcg@10 and hr@10 "
            f"for lists. All: {', '.join(METRIC_EXAMPLES)}. Append :99 to rank among 99 sampled items, "
            ":liked to count liked items only, and :few or :many for users with few or many ratings.",
        ),
    ] = None
    repeat: Annotated[
        int, typer.Option("--repeat", help="The number of runs, each with a new split and new noise.")
    ] = 1
    seed: Annotated[
        int, typer.Option("--seed", help="The seed of the splits and of the (simulated) noise.")
    ] = 0
    item_features: Annotated[
        Path | None,
        typer.Option(
            "--item-features",
            help="A public table for the metrics of content: item IDs first, then genres and so on.",
        ),
    ] = None

    @property
    def metrics(self) -> list[str] | None:
        """Return the names of the metrics. None means that the models decide."""
        return listed(",".join(self.metric)) if self.metric else None

    @property
    def unused_privately(self) -> list[str]:
        """Return the given options that private scores don't use, which hold out one item per user."""
        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        return [f"--{name.replace('_', '-')}" for name in given if name != "metric"]

    def plan(self, shown: Iterable[str], data: Interactions | DataSource) -> SplitPlan:
        """Return the chosen split, or the split that fits these metrics and data."""
        from discreet.data.splits import parse_split
        from discreet.evaluation.metrics import Metric
        from discreet.evaluation.scoring import usual_split

        return parse_split(self.split or usual_split(map(Metric.parse, shown), data))

    def hints(self, shown: Iterable[str], *, timed: bool) -> list[str]:
        """Return remarks about these metrics under this split, for data with or without times."""
        from discreet.data.splits import parse_split
        from discreet.evaluation.metric_kinds import ListMetric
        from discreet.evaluation.metrics import Metric

        metrics = [Metric.parse(name) for name in shown]
        lists = any(isinstance(metric.definition, ListMetric) for metric in metrics)
        fits = self.split is None and all(metric.ranks for metric in metrics)
        if fits or not lists or parse_split(self.split or "random").kind not in ("random", "kfold"):
            return []
        return [f"Lists are scored on a random part of the histories. {_LATEST if timed else _ONE_OF_EACH}"]

    def files(self, folder: Path | None) -> list[Path]:
        """Return the possible files of a given split. Other splits have no files."""
        from discreet.data.splits import parse_split

        if self.split is None:
            return []
        places = [Path()] if folder is None else [Path(), folder]
        names = [name + end for name in parse_split(self.split).files if name for end in ("", ".gz")]
        return [place / name for place in places for name in names]


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
    """Whether scores are released with noise, and from which part of the budget."""

    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Fit and score under one guarantee: one item of each user is held out, and the scores "
            f"({', '.join(PRIVATE_METRIC_EXAMPLES)}) have noise and may be published.",
        ),
    ] = False
    share: Annotated[
        float, typer.Option("--share", help="With --private: the part of the budget spent on scores.")
    ] = 0.02
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the cost and the budget left after it.")
    ] = False

    def asked(self, paying: Paying) -> bool:
        """Return whether any option was given that only private scores use."""
        return self.private or self.dry_run or paying.asked
