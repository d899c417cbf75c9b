"""Hold what an evaluation found: each metric's mean and spread, beside what it cost and promised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self, final

import numpy as np

from discreet.privacy.guarantee import Guarantee


@final
@dataclass(frozen=True, slots=True)
class Score:
    """Hold one metric's value in each run."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean over the runs."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Return the sample standard deviation over the runs, 0 of a single one."""
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Hold what an evaluation found; `references` are simple predictors beside it, NOT PRIVATE."""

    model: str
    parameters: dict[str, Any]
    data: dict[str, int]
    guarantee: Guarantee
    metrics: dict[str, Score]
    seconds: dict[str, float]
    peak_mb: float | None
    references: dict[str, dict[str, Score]] = field(default_factory=dict)

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
        return found


def _plain(value: Any) -> Any:
    """Return a setting as JSON can hold it; infinity is the text "inf"."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)
