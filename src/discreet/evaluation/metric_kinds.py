"""Define what a metric is: one object with its name, what it needs, its direction and its function.

There are four kinds. A `RatingMetric` compares predicted with held-out ratings. A `ListMetric` scores each
user's list by the ranks of the held-out items. An `EachListMetric` scores the items of each list, and a
`ShownMetric` all lists together, without held-out items. Built-in metrics are listed in
`discreet.core.registry`; other packages register theirs under the entry point `discreet.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, final

from discreet.core.arrays import Floats, Indices
from discreet.core.registry import METRIC_EXAMPLES, METRICS

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.evaluation.ranking_metrics import Ranks
    from discreet.evaluation.shown_metrics import ListContext


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """Common part of all metrics: a name of lowercase letters, digits, and hyphens, and a direction.

    `usual_depth` is the list length that is usually asked for. `private` states that private evaluation can
    use it (list metrics and rmse): each user's score depends on that user's row alone and lies between 0 and
    1, so that the noisy mean can be released (proofs/private_evaluation.md).
    """

    name: str
    lower_is_better: bool = False
    usual_depth: int | None = None
    private: bool = False

    @property
    def example(self) -> str:
        """Return the metric as users usually ask for it."""
        return self.name if self.usual_depth is None else f"{self.name}@{self.usual_depth}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RatingMetric(MetricKind):
    """Metric of ratings: `function(predicted, actual)` is one number.

    A `binary` metric also scores models that predict only liked or not; its function takes two more
    arguments, `above` and `cut` (see `rating_metrics.accuracy`). A metric that is a mean over ratings
    states it, and can then be computed from shards: `of_error` is the contribution of a rating, between 0 and
    1, given its absolute error in units of the scale's width (for a binary metric: 1 if predicted wrong, else
    0); `from_mean` turns the mean contribution and the width into the metric.
    """

    function: Callable[..., float]
    binary: bool = False
    of_error: Callable[[Floats], Floats] | None = None
    from_mean: Callable[[float, float], float] = lambda mean, width: mean


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetric(MetricKind):
    """Metric of lists: `function(ranks, k)` is a number between 0 and 1 for each user.

    `k` is None if the metric was asked for without a depth, which `needs_depth` forbids.
    """

    function: Callable[[Ranks, int], Floats] | Callable[[Ranks, int | None], Floats]
    needs_depth: bool = True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMetric(MetricKind):
    """Metric of all lists together: `function(lists, train)`, given in how many lists each item is shown."""

    function: Callable[[Indices, Interactions], float]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EachListMetric(MetricKind):
    """Metric of the items of each list: `function(lists, users, context)` is a number for each user.

    `lists` has a row of items for each of the `users`, filled up with -1; a user without a score gets NaN and
    is excluded from the mean. A metric that `needs_table` compares items by a public table.
    """

    function: Callable[[Indices, Indices, ListContext], Floats]
    needs_table: bool = False


#: Every kind of metric.
AnyMetric = RatingMetric | ListMetric | EachListMetric | ShownMetric


@cache
def metric_kind(name: str) -> AnyMetric | None:
    """Return the metric of this name, or None if there is none."""
    if name not in METRICS:
        return None
    found = METRICS[name]
    if not isinstance(found, AnyMetric) or found.name != name:
        raise METRICS.broken(
            name, "is not a RatingMetric, ListMetric, EachListMetric or ShownMetric of this name"
        )
    return found


def metric_examples() -> tuple[str, ...]:
    """Return all metrics as users usually ask for them, those of other packages last."""
    others = (metric_kind(name) for name in METRICS if name not in METRICS.built_in)
    return (*METRIC_EXAMPLES, *(kind.example for kind in others if kind is not None))


def summable_examples() -> tuple[str, ...]:
    """Return the metrics that are means over users or ratings, as shards and clusters need them."""
    examples = ((name, metric_kind(name.partition("@")[0])) for name in metric_examples())
    return tuple(name for name, kind in examples if is_summable(kind))


def is_summable(kind: MetricKind | None) -> bool:
    """Return whether a metric is a mean over users or over ratings."""
    return isinstance(kind, ListMetric) or (isinstance(kind, RatingMetric) and kind.of_error is not None)
