"""Compare several estimators with each other and with simple baselines, on the same splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, Unpack, final

from discreet.core import ESTIMATORS, FrameKind, kind_of, to_frame
from discreet.core.checks import ParameterError
from discreet.data import (
    Choice,
    Duplicates,
    Interactions,
    SourceOptions,
    Split,
    SplitPlan,
    accept,
    item_words,
    parse_split,
    refuse_declared,
    refuse_unknown_names,
)
from discreet.evaluation.errors import NothingGiven
from discreet.evaluation.metrics import Metric, parse_metrics, refuse_without_table
from discreet.evaluation.protocol import evaluate
from discreet.evaluation.results import NUMBERS, Evaluation, KeptEvaluations, digest, key_of, scores_table
from discreet.evaluation.scoring import check_estimators, refuse_meaningless, usual_metrics, usual_split
from discreet.models import Estimator
from discreet.report import Charts, TableView


def compare(
    estimators: Iterable[Estimator],
    data: Interactions | object,
    *,
    split: str | SplitPlan | Split | None = None,
    metrics: str | Iterable[str | Metric] | None = None,
    repeat: int = 1,
    seed: int = 0,
    above: float | None = None,
    folder: str | Path | None = None,
    announce: Callable[[Estimator], None] | None = None,
    keep: str | Path | None = None,
    item_features: Any = None,
    columns: Choice | None = None,
    duplicates: Duplicates = "refuse",
    **declared: Unpack[SourceOptions],
) -> Comparison:
    """Return one evaluation per estimator, all on the same held-out ratings: a tuple with `to_frame`.

    Each estimator is scored by the metrics that apply to it, and rejected if none applies. Without `metrics`,
    `compare` uses the metrics that `evaluate` uses for the estimator. The first estimator of each kind of
    feedback also has the scores of the baselines. `compare` calls `announce` with each estimator before it
    fits the estimator. It writes each result to the file `keep` at once, and doesn't measure results again
    that it finds there. `item_features` is a public table by which metrics such as content-diversity@10
    compare items. `data` may be a path or a data frame; `columns`, `duplicates`, and further keywords are
    as in `fit`.
    """
    estimators = list(estimators)
    if not estimators:
        raise NothingGiven(name="estimators")
    check_estimators("compare", estimators)
    chosen = parse_metrics(usual_metrics(estimators) if metrics is None else metrics)
    competitors = [(estimator, _fitting(estimator, chosen)) for estimator in estimators]
    refuse_without_table(chosen, item_features)
    refuse_unknown_names(declared, compare, SourceOptions)
    kind = kind_of(data)
    if isinstance(data, Interactions):
        refuse_declared(declared, data)
    else:
        implicit = all(one.feedback == "implicit" for one in estimators)
        data = accept(data, implicit=implicit, columns=columns, duplicates=duplicates, **declared)
    split = usual_split(chosen, data) if split is None else split
    kept = None if keep is None else KeptEvaluations(keep)
    files = [] if kept is None else _contents(split, folder, item_features, data)
    measured: set[Metric] = set()
    found: list[Evaluation] = []
    for estimator, fitting in competitors:
        new = not measured.issuperset(fitting)
        measured.update(fitting)
        asked: dict[str, Any] = {
            "split": split,
            "repeat": repeat,
            "seed": seed,
            "above": above,
            "references": new,
        }
        asked |= {} if columns is None else {"columns": dict(columns)}
        model, names = repr(estimator), [*map(str, fitting)]
        key = "" if kept is None else key_of(data, model=model, metrics=names, files=files, **asked)
        known = None if kept is None else kept.get(key)
        if known is None:
            if announce is not None:
                announce(estimator)
            how: dict[str, Any] = {**asked, "folder": folder, "item_features": item_features}
            known = evaluate(estimator, data, metrics=fitting, **how)
            if kept is not None:
                kept.add(key, known)
        found.append(replace(known, frame_kind=kind))
    return Comparison(found)


@final
class Comparison(TableView, tuple[Evaluation, ...]):
    """One evaluation per estimator: what `compare` returns. As a table, variants of a model have own names.

    Guarantee
        Each evaluation has the guarantee of its fits. The scores are exact and NOT PRIVATE: they are for the
        data owner.

    Example:
        >>> from discreet import Biases, Popularity, compare
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> found = compare([Popularity(epsilon=1.0), Biases(epsilon=1.0)], films, metrics="hr@10")
        >>> [one.model for one in found], len(found.to_json())
        (['popularity', 'biases'], 2)

    Stability
        Stable.
    """

    __slots__ = ()

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each model and metric, and for each baseline."""
        parts = [one.columns(name) for one, name in zip(self, variant_names(self), strict=True)]
        if not parts:
            return {}
        counts = [len(one.metrics) for one in self]
        pairs = list(zip(parts, counts, strict=True))

        def ordered(name: str) -> list[Any]:
            """Return a column with baselines after all models."""
            models = [value for part, count in pairs for value in part[name][:count]]
            return models + [value for part, count in pairs for value in part[name][count:]]

        return {name: ordered(name) for name in parts[0]}

    def to_frame(self, kind: FrameKind | None = None) -> Any:
        """Return a data frame with a row for each model and metric, and for each baseline.

        It is of the kind that was given to `compare`, else of polars; `kind` names a different one.
        """
        given = self[0].frame_kind if self else "polars"
        return to_frame(self.columns(), kind or given, numbers=NUMBERS)

    def plot(self, metric: str | None = None) -> Charts:
        """Return a chart of each metric by epsilon, or of one, for a notebook: a line per model.

        Models with different privacy definitions have charts of their own.
        """
        from discreet.evaluation.report import charts_of

        return charts_of(self, metric)

    def __repr__(self) -> str:
        """Show one evaluation per line."""
        return "\n".join(["Comparison(", *(f"  {one!r}," for one in self), ")"])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the object of each evaluation, as `discreet compare --json` prints them."""
        return [one.to_json() for one in self]

    def to_page(self, path: str | Path, *, title: str = "Comparison", force: bool = False) -> None:
        """Write a page: what privacy costs, all scores, a chart for each metric, and all labels."""
        from discreet.evaluation.report import write_report

        write_report(self, path, title=title, force=force)

    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        return scores_table(self.columns(), "Comparison")


def _contents(
    split: str | SplitPlan | Split, folder: str | Path | None, item_features: Any, data: Interactions
) -> list[str]:
    """Return digests of the split's files or parts and of the table, which distinguish those of one name."""
    table = [] if item_features is None else [digest(item_words(item_features, data.catalog))]
    if isinstance(split, Split):
        return [key_of(split.train), key_of(split.test), *table]
    return [*(parse_split(split) if isinstance(split, str) else split).digests(folder), *table]


def _fitting(estimator: Estimator, metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Return the metrics that fit this estimator; raise if none does."""
    fitting: list[Metric] = []
    for metric in metrics:
        try:
            refuse_meaningless(estimator, (metric,))
        except ParameterError as error:
            refusal = error
        else:
            fitting.append(metric)
    if not fitting:
        raise refusal
    return tuple(fitting)


# These have columns and axes of their own.
_SHOWN_ELSEWHERE = ("epsilon", "delta")


def variant_names(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return a name for each evaluation: the model, with the settings in which its variants differ.

    `discreet compare --models` takes such a name.
    """
    return [
        ":".join([one.model, *(f"{key}={one.parameters[key]}" for key in _differing(one, evaluations))])
        for one in evaluations
    ]


def shown_names(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return a name for each evaluation as a reader knows it, for tables and pages.

    A model with its default settings has its own name. The name of a variant also has the settings in which
    it differs: `user-factorization (implicit)`. A number needs its setting's name.
    """
    usual = {model: _defaults(model) for model in dict.fromkeys(one.model for one in evaluations)}
    return [_shown(one, _differing(one, evaluations), usual[one.model]) for one in evaluations]


def _shown(one: Evaluation, differing: Sequence[str], usual: Mapping[str, Any]) -> str:
    unusual = [key for key in differing if key not in usual or usual[key] != one.parameters[key]]
    said = ", ".join(_word(one, key) for key in unusual)
    return f"{one.model} ({said})" if said else one.model


def _defaults(model: str) -> dict[str, Any]:
    """Return the settings of a registered model that have a default."""
    if model not in ESTIMATORS:
        return {}
    return {one.name: one.default for one in fields(ESTIMATORS[model]) if one.default is not MISSING}


def _word(one: Evaluation, key: str) -> str:
    value = one.parameters[key]
    # `implicit` and its like say what they are; "none" and "auto" do not.
    plain = isinstance(value, str) and value.isalpha() and value not in ("none", "auto")
    return value if plain else f"{key}={value}"


def _differing(one: Evaluation, evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the settings in which an evaluation differs from others of its model."""
    siblings = [other for other in evaluations if other.model == one.model]
    return [
        key
        for key, value in one.parameters.items()
        if key not in _SHOWN_ELSEWHERE and any(other.parameters.get(key) != value for other in siblings)
    ]
