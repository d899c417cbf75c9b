"""Results of an evaluation: mean and spread of each metric, run time and guarantee."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np

from discreet.core import CannotWrite, FrameKind, to_frame
from discreet.core.checks import DiscreetError
from discreet.data import Interactions
from discreet.evaluation.errors import NotAComparison
from discreet.evaluation.metrics import Metric
from discreet.evaluation.scoring import PREFIX
from discreet.privacy import Guarantee
from discreet.report import Charts, TableView

if TYPE_CHECKING:
    import scipy.sparse as sp


@final
@dataclass(frozen=True, slots=True)
class Score:
    """One metric's value in each run.

    Compare models by `mean`; `std` shows which differences may be luck. Runs of `compare` share their splits,
    so the values of two models form pairs.

    Example:
        >>> score = Score((0.2, 0.4))
        >>> round(score.mean, 3), round(score.std, 3)
        (0.3, 0.141)

    Stability
        Stable.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean over the runs."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Return the sample standard deviation over the runs; 0 for a single run."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    @classmethod
    def gather(cls, runs: Iterable[Mapping[str, float]]) -> dict[str, Self]:
        """Return each metric's values over the runs, by the metric's name."""
        values: dict[str, list[float]] = {}
        for run in runs:
            for name, value in run.items():
                values.setdefault(name, []).append(value)
        return {name: cls(tuple(found)) for name, found in values.items()}

    def to_json(self) -> dict[str, Any]:
        """Return mean, spread, number of runs, and each run's value."""
        return {"mean": self.mean, "std": self.std, "runs": len(self.values), "values": list(self.values)}


class GroupRun(NamedTuple):
    """What one run shows about a group."""

    held_out: int
    metrics: dict[str, float]
    without_noise: dict[str, float]


class GroupScores(NamedTuple):
    """The scores of one group, and those of the same model without noise on the same rows."""

    held_out: int
    metrics: dict[str, Score]
    without_noise: dict[str, Score]

    def lost(self, metric: str) -> float | None:
        """Return the part of the accuracy without noise that noise costs; of an error, the part it adds."""
        if metric not in self.without_noise or not self.without_noise[metric].mean:
            return None
        change = self.metrics[metric].mean / self.without_noise[metric].mean - 1
        return change if Metric.parse(metric).lower_is_better else -change

    def to_json(self) -> dict[str, Any]:
        """Return the number of held-out rows and both scores."""
        return {
            "held_out": self.held_out,
            "metrics": {name: score.to_json() for name, score in self.metrics.items()},
            "without_noise": {name: score.to_json() for name, score in self.without_noise.items()},
        }

    @classmethod
    def gather(cls, runs: Sequence[Mapping[str, GroupRun]]) -> dict[str, Self]:
        """Return what all runs show together, in the order of the groups."""
        names = dict.fromkeys(name for run in runs for name in run)
        found = {name: [run[name] for run in runs if name in run] for name in names}
        return {
            name: cls(
                round(np.mean([one.held_out for one in own])),
                Score.gather(one.metrics for one in own),
                Score.gather(one.without_noise for one in own),
            )
            for name, own in found.items()
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(TableView):
    """The results of an evaluation: what `evaluate` returns, and what `compare` returns for each estimator.

    `metrics` has each score over the runs, `references` the scores of simple baselines, and `groups` the
    scores of each group, if groups were asked for. `to_frame`, `plot` and `to_json` show all of it, and a
    notebook shows a table. `frame_kind` is the kind of frame that was given, which `to_frame` returns.

    Guarantee
        `guarantee` is that of the fits. The scores are exact and NOT PRIVATE: they are for the data owner.
        `evaluate_privately` releases scores.

    Example:
        >>> from discreet import Popularity, evaluate
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> found = evaluate(Popularity(epsilon=1.0), films, metrics="hr@10", references=True)
        >>> found.model, 0 < found.metrics["hr@10"].mean <= 1
        ('popularity', True)
        >>> found.to_frame()["kind"].to_list()
        ['model', 'baseline', 'baseline']

    Stability
        Stable.
    """

    model: str
    parameters: dict[str, Any]
    data: dict[str, int]
    guarantee: Guarantee
    metrics: dict[str, Score]
    seconds: dict[str, float]
    peak_mb: float | None
    references: dict[str, dict[str, Score]] = field(default_factory=dict)
    groups: dict[str, GroupScores] = field(default_factory=dict)
    frame_kind: FrameKind = field(default="polars", compare=False)

    def columns(self, name: str | None = None) -> dict[str, list[Any]]:
        """Return a row for each metric, of the model and then of its baselines, under the model's name."""
        promise = self.guarantee
        cost = (promise.epsilon, promise.delta, promise.unit.value)
        measured: list[tuple[Any, ...]] = [(name or self.model, "model", *cost, self.metrics)]
        measured += [
            (other.removeprefix(PREFIX), "baseline", math.inf, 0.0, None, scores)
            for other, scores in self.references.items()
        ]
        rows = [
            (
                *about,
                metric,
                score.mean,
                score.std if len(score.values) > 1 else None,
                len(score.values),
            )
            for *about, scores in measured
            for metric, score in scores.items()
        ]
        return {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}

    def to_frame(self, kind: FrameKind | None = None) -> Any:
        """Return a data frame with a row for each metric, of the model and of its baselines.

        It is of the kind that was evaluated on, else of polars; `kind` names a different one.
        """
        return to_frame(self.columns(), kind or self.frame_kind, numbers=NUMBERS)

    def plot(self, metric: str | None = None) -> Charts:
        """Return a chart of each metric, or of one, for a notebook: the model, baselines, and groups."""
        from discreet.evaluation.report import charts_of

        return charts_of([self], metric)

    def __repr__(self) -> str:
        """Name the model, its cost and its scores."""
        scores = ", ".join(f"{name}={_spread(score)}" for name, score in self.metrics.items())
        return f"Evaluation({self.model}, epsilon={self.guarantee.epsilon:g}: {scores})"

    def to_page(self, path: str | Path, *, title: str = "", force: bool = False) -> None:
        """Write a page with the scores, a chart for each metric, and the label; see `write_report`."""
        from discreet.evaluation.report import write_report

        write_report([self], path, title=title or f"Evaluation of {self.model}", force=force)

    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        return scores_table(self.columns(), "Evaluation")

    def to_json(self) -> dict[str, Any]:
        """Return the object that `discreet evaluate --json` prints."""
        found: dict[str, Any] = {
            "model": self.model,
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
            "data": dict(self.data),
            "guarantee": self.guarantee.to_json(),
            "metrics": {name: score.to_json() for name, score in self.metrics.items()},
            "seconds": dict(self.seconds),
            "peak_mb": self.peak_mb,
        }
        if self.references:
            found["references"] = {
                name: {metric: score.to_json() for metric, score in scores.items()}
                for name, scores in self.references.items()
            }
        if self.groups:
            found["groups"] = {name: group.to_json() for name, group in self.groups.items()}
        return found


_COLUMNS = ("model", "kind", "epsilon", "delta", "unit", "metric", "mean", "std", "runs")
#: Columns of numbers, also where no spread is known.
NUMBERS = ("epsilon", "delta", "mean", "std")


def _spread(score: Score) -> str:
    return f"{score.mean:.4g}" + (f" ± {score.std:.2g}" if len(score.values) > 1 else "")


def spread_text(score: Score | None) -> str:
    """Return mean and spread, or a dash without a score."""
    if score is None:
        return "–"
    return f"{score.mean:.4f}" + (f" ± {score.std:.4f}" if len(score.values) > 1 else "")


#: The columns of `group_rows`.
GROUP_HEADER = ("group", "rows", "metric", "score", "without noise", "lost")


def group_rows(one: Evaluation) -> list[tuple[str, ...]]:
    """Return a row of texts for each group and metric: its score, the one without noise, and what is lost."""
    rows: list[tuple[str, ...]] = []
    for name, group in one.groups.items():
        for metric, score in group.metrics.items():
            lost = group.lost(metric)
            plain = spread_text(group.without_noise.get(metric))
            cost = "–" if lost is None else f"{100 * lost:.1f}%"
            rows.append((name, f"{group.held_out:,}", metric, spread_text(score), plain, cost))
    return rows


def scores_table(
    columns: Mapping[str, list[Any]], caption: str
) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
    """Return scores as a table for notebooks and terminals; baselines have no guarantee."""
    kinds = ["baseline, NOT PRIVATE" if kind == "baseline" else kind for kind in columns.get("kind", [])]
    shown = {**columns, "kind": kinds} if columns else {}
    return list(shown), zip(*shown.values(), strict=True), caption


def _plain(value: Any) -> Any:
    """Return a setting as a JSON value; infinity becomes the text "inf"."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


_FORMAT = "discreet-comparison"
_VERSION = 1


@final
class KeptEvaluations:
    """Evaluations in a file with one JSON object per line."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._found = _read(self._path) if self._path.exists() else {}

    def get(self, key: str) -> Evaluation | None:
        """Return the evaluation stored under this key, or None."""
        return self._found.get(key)

    def add(self, key: str, evaluation: Evaluation) -> None:
        """Store an evaluation at once."""
        record = {"format": _FORMAT, "version": _VERSION, "key": key, "found": evaluation.to_json()}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise CannotWrite(path=self._path, why=error.strerror) from error
        self._found[key] = evaluation


def key_of(data: Interactions, **asked: Any) -> str:
    """Return a digest of the data and of all settings: equal keys have equal results."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (data.indptr, data.items, data.values, data.times, data.listed):
        digest.update(b"none" if array is None else array.tobytes())
    digest.update(json.dumps(asked, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def digest(words: sp.csr_matrix) -> str:
    """Return a digest of the words of items."""
    found = hashlib.blake2b(digest_size=16)
    for array in (words.indptr, words.indices, words.data):
        found.update(array.tobytes())
    return found.hexdigest()


def _read(path: Path) -> dict[str, Evaluation]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise NotAComparison(path=path) from error
    found: dict[str, Evaluation] = {}
    for line in lines:
        # A line that was being written when the program stopped has no newline.
        if not line.endswith("\n"):
            continue
        try:
            record = json.loads(line)
            if record["format"] != _FORMAT or record["version"] != _VERSION:
                raise ValueError
            found[str(record["key"])] = _evaluation(record["found"])
        except (ValueError, KeyError, TypeError, AttributeError, DiscreetError) as error:
            raise NotAComparison(path=path) from error
    return found


def _evaluation(record: dict[str, Any]) -> Evaluation:
    return Evaluation(
        model=str(record["model"]),
        parameters={
            name: math.inf if value == "inf" else value for name, value in record["parameters"].items()
        },
        data={name: int(count) for name, count in record["data"].items()},
        guarantee=Guarantee.from_json(record["guarantee"]),
        metrics=_scores(record["metrics"]),
        seconds={name: float(value) for name, value in record["seconds"].items()},
        peak_mb=record["peak_mb"],
        references={name: _scores(scores) for name, scores in record.get("references", {}).items()},
        groups={
            name: GroupScores(int(one["held_out"]), _scores(one["metrics"]), _scores(one["without_noise"]))
            for name, one in record.get("groups", {}).items()
        },
    )


def _scores(record: dict[str, Any]) -> dict[str, Score]:
    return {name: Score(tuple(map(float, score["values"]))) for name, score in record.items()}
