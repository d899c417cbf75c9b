"""Fit and score an estimator on held-out ratings, several times."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Unpack, final

import numpy as np

from discreet.core import PrivacyRandom, Progress, experiment_generator, integer, kind_of, silent
from discreet.data import (
    Choice,
    Duplicates,
    Interactions,
    SourceOptions,
    Split,
    SplitPlan,
    parse_split,
    refuse_declared,
    refuse_unknown_names,
)
from discreet.evaluation.distributed_scores import hidings, refuse_for_sources, score_source
from discreet.evaluation.errors import MetricDoesNotFit
from discreet.evaluation.groups import Grouping, score_groups
from discreet.evaluation.metrics import Metric, parse_metrics, refuse_without_table
from discreet.evaluation.results import Evaluation, GroupRun, GroupScores, Score
from discreet.evaluation.scoring import (
    baselines,
    check_estimators,
    check_split,
    known_words,
    measure,
    refuse_meaningless,
    usual_metrics,
    usual_split,
)
from discreet.models import Estimator, FittedModel
from discreet.privacy import Guarantee, Ledger
from discreet.report import SCORES_NOT_COVERED
from discreet.statistics import DataSource, Hiding, KnownPart


def evaluate(
    estimator: Estimator,
    data: Interactions | DataSource | object,
    *,
    split: str | SplitPlan | Split | None = None,
    metrics: str | Iterable[str | Metric] | None = None,
    repeat: int = 1,
    seed: int | None = 0,
    ledger: Ledger | None = None,
    random: PrivacyRandom | None = None,
    progress: Progress | None = None,
    above: float | None = None,
    references: bool = False,
    folder: str | Path | None = None,
    item_features: Any = None,
    by: str | None = None,
    user_features: Any = None,
    columns: Choice | None = None,
    duplicates: Duplicates = "refuse",
    **declared: Unpack[SourceOptions],
) -> Evaluation:
    """Fit `estimator` on a part of `data` and score it on the rest, `repeat` times.

    `data`, `columns`, `duplicates`, and further keywords (`low=`, `skip_bad_lines=`...) are as in `fit`.
    `columns` also applies to the files of a given split. If ratings fade (`half_life`) and you don't declare
    `now`, ages are measured at the latest training rating.
    Without a `split`, lists are scored on the latest row of each user, and ratings on a random tenth.
    Each repetition draws new noise, new sampled items, and, if the split is random, a new split. With
    `kfold`, each repetition runs every fold. Without `metrics`, models of ratings are scored by rmse, and
    models that make lists by ndcg@10 and hr@10. With a `seed`, everything is repeatable, and the guarantee is
    marked simulated. `seed=None` uses noise from the operating system, and the splits of seed 0. `random`
    replaces the source of noise. Ratings above `above` count as liked, `references` adds simple baselines
    (NOT PRIVATE), and `folder` has the files of a given split. `item_features` is a public table by which
    metrics such as content-diversity@10 compare items. `by` also scores groups of held-out rows, with and
    without noise: "activity" of users, "popularity" of items, or a column of `user_features` or
    `item_features`. docs/evaluation.md describes the metrics, and docs/scale.md lists the metrics for folders
    of shards and clusters.

    Raises:
        ParameterError: A metric or split is unknown or does not fit the model; nothing was fitted or spent.
    """
    check_estimators("evaluate", [estimator])
    chosen = parse_metrics(usual_metrics([estimator]) if metrics is None else metrics)
    refuse_meaningless(estimator, chosen)
    refuse_without_table(chosen, item_features)
    integer("repeat", repeat, least=1)
    refuse_unknown_names(declared, evaluate, SourceOptions)
    kind = kind_of(data)
    if isinstance(data, Interactions):
        refuse_declared(declared, data)
    else:
        data = estimator.accepted(data, columns=columns, duplicates=duplicates, **declared)
    split = usual_split(chosen, data) if split is None else split
    plan = parse_split(split) if isinstance(split, str) else split
    bench = _Bench(
        estimator=estimator,
        metrics=chosen,
        seed=0 if seed is None else seed,
        noise=random or (PrivacyRandom.from_os() if seed is None else PrivacyRandom.simulate(seed)),
        ledger=ledger,
        progress=progress,
        above=above,
        references=references,
        item_features=item_features,
        grouping=None
        if by is None
        else Grouping(by=by, user_features=user_features, item_features=item_features),
    )
    if isinstance(data, Interactions):
        if item_features is not None:
            # Before anything is fitted or spent.
            known_words(item_features, data.catalog)
        if bench.grouping is not None:
            bench.grouping.of(data, data)
        splits = _splits(plan, data, repeat, bench.seed, {"folder": folder, "columns": columns})
        runs = [bench.run(number, parts) for number, parts in enumerate(splits)]
    else:
        refuse_for_sources(chosen, data.facts)
        rules = chain(*(hidings(plan, seed) for seed in _seeds(repeat, bench.seed)))
        runs = [bench.run_source(number, data, rule) for number, rule in enumerate(rules)]
    return replace(_gathered(estimator, data, runs), frame_kind=kind)


def _gathered(estimator: Estimator, data: Interactions | DataSource, runs: Sequence[_Run]) -> Evaluation:
    """Return what all runs say together."""
    promise = runs[0].guarantee
    return Evaluation(
        model=estimator.name,
        parameters=estimator.settings,
        data={"users": data.n_users, "items": data.n_items, "ratings": data.n_ratings},
        guarantee=replace(promise, notes=(*promise.notes, SCORES_NOT_COVERED)),
        metrics=Score.gather(run.scores for run in runs),
        seconds={
            "fit": float(np.mean([run.fit_seconds for run in runs])),
            "predict": float(np.mean([run.predict_seconds for run in runs])),
        },
        peak_mb=_peak_mb(),
        references={name: Score.gather(run.references[name] for run in runs) for name in runs[0].references},
        groups=GroupScores.gather([run.groups for run in runs]),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The result of one fit."""

    guarantee: Guarantee
    scores: dict[str, float]
    references: dict[str, dict[str, float]]
    fit_seconds: float
    predict_seconds: float
    groups: dict[str, GroupRun]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """The settings that all runs share."""

    estimator: Estimator
    metrics: tuple[Metric, ...]
    seed: int
    noise: PrivacyRandom
    ledger: Ledger | None
    progress: Progress | None
    above: float | None
    references: bool
    item_features: Any
    grouping: Grouping | None

    def run(self, number: int, parts: Split) -> _Run:
        """Fit on the training part and score on the held-out part."""
        train, test = parts.train, parts.test
        check_split(train, test)
        start = time.perf_counter()
        model = _as_of_training(self.estimator, train).fit(
            train, ledger=self.ledger, random=self.noise.spawn(f"evaluation {number}"), progress=self.progress
        )
        fitted = time.perf_counter()
        (self.progress or silent)("scoring", 0, 0)
        how: dict[str, Any] = {"seed": self.seed, "run": number, "item_features": self.item_features}
        scores = measure(model, train, test, self.metrics, above=self.above, **how)
        measured = time.perf_counter()
        threshold = self.above if model.above is None else model.above
        scored_baselines = (
            baselines(train, test, self.metrics, above=threshold, **how) if self.references else {}
        )
        return _Run(
            guarantee=model.guarantee,
            scores=scores,
            references=scored_baselines,
            fit_seconds=fitted - start,
            predict_seconds=measured - fitted,
            groups=self._grouped(model, train, test, how),
        )

    def _grouped(
        self, model: FittedModel, train: Interactions, test: Interactions, how: dict[str, Any]
    ) -> dict[str, GroupRun]:
        """Return the scores of each group, next to those of a fit without noise that nothing records."""
        if self.grouping is None:
            return {}
        plain = None
        if model.guarantee.epsilon < math.inf:
            exact = _as_of_training(self.estimator, train).clone(epsilon=math.inf)
            noiseless = self.noise.spawn(f"without noise {how['run']}")
            plain = exact.fit(train, random=noiseless, progress=self.progress)
        return score_groups(self.grouping, model, plain, train, test, self.metrics, above=self.above, **how)

    def run_source(self, number: int, data: DataSource, rule: Hiding) -> _Run:
        """Fit on the ratings that a rule leaves visible, and score on those it hides."""
        if self.references or self.grouping is not None:
            raise MetricDoesNotFit(
                metric="A comparison with baselines" if self.references else "A score by group",
                subject="shards",
                examples=("data in memory",),
            )
        start = time.perf_counter()
        model = self.estimator.fit(
            KnownPart(source=data, hiding=rule),
            ledger=self.ledger,
            random=self.noise.spawn(f"evaluation {number}"),
            progress=self.progress,
        )
        fitted = time.perf_counter()
        scores = score_source(model, data, rule, self.metrics, self.above)
        return _Run(
            guarantee=model.guarantee,
            scores=scores,
            references={},
            fit_seconds=fitted - start,
            predict_seconds=time.perf_counter() - fitted,
            groups={},
        )


def _as_of_training(estimator: Estimator, train: Interactions) -> Estimator:
    """Return an estimator whose ages count from the latest training rating, not from today.

    So a past file is scored as if it had been served at its own time. A `now` that was declared stays.
    """
    fades = getattr(estimator, "half_life", None) is not None and getattr(estimator, "now", None) is None
    if not fades or train.times is None or not train.n_ratings:
        return estimator
    try:
        latest = datetime.fromtimestamp(float(train.times.max()), UTC)
    except (ValueError, OverflowError, OSError):
        # The times aren't seconds since 1970.
        return estimator
    return estimator.clone(now=latest.isoformat())


def _splits(
    plan: SplitPlan | Split, data: Interactions, repeat: int, seed: int, where: dict[str, Any]
) -> Iterator[Split]:
    for fresh in _seeds(repeat, seed):
        if isinstance(plan, Split):
            yield plan
        else:
            yield from plan.splits(data, fresh, **where)


def _seeds(repeat: int, seed: int) -> Iterator[int]:
    for repetition in range(repeat):
        yield int(experiment_generator(seed, "repetition", repetition).integers(2**62))


def _peak_mb() -> float | None:
    """Return the peak memory of this process in MiB; None if the system has no list of processes."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return None if found is None else int(found[1]) / 2**10
