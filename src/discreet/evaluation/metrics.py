"""Read the names of metrics, and select what they count.

A name states what is measured and against which candidates. `rmse`, `mae`, `accuracy` and `are` compare
ratings. `hr@10` ranks the whole catalog; `hr@10:99` ranks a user's held-out items among 99 sampled ones. The
two protocols give numbers that must never be compared, so the name carries the difference everywhere.
`:liked` counts only held-out ratings that are liked; `:few` and `:many` only users who rated few or many
items.

There are four kinds. A `RatingMetric` compares predicted with held-out ratings. A `ListMetric` scores each
user's list by the ranks of the held-out items. An `EachListMetric` scores the items of each list, and a
`ShownMetric` all lists together, without held-out items. Built-in metrics are listed in
`discreet.core.registry`; other packages register theirs under the entry point `discreet.metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, Protocol, Self, cast, final

import numpy as np
import numpy.typing as npt

from discreet.core import METRIC_EXAMPLES, METRICS, Floats, Indices, Singles
from discreet.core.checks import most_similar
from discreet.data import Interactions
from discreet.evaluation.errors import (
    MetricDoesNotFit,
    ModelBroken,
    NothingGiven,
    NothingHeldOut,
    TableNeeded,
    UnknownMetric,
)

if TYPE_CHECKING:
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
    """Metric of ratings: `function(predicted, actual)` is one number. Use it for errors of predicted ratings.

    A `binary` metric also scores models that predict only liked or not; its function takes two more
    arguments, `above` and `cut` (see `rating_metrics.accuracy`). A metric that is a mean over ratings
    states it, and can then be computed from shards: `of_error` is the contribution of a rating, between 0 and
    1, given its absolute error in units of the scale's width (for a binary metric: 1 if predicted wrong, else
    0); `from_mean` turns the mean contribution and the width into the metric.

    Example:
        >>> import numpy as np
        >>> worst = RatingMetric(name="worst", lower_is_better=True,
        ...         function=lambda predicted, actual: float(np.abs(predicted - actual).max()))
        >>> worst.function(np.array([3.0, 4.0]), np.array([3.5, 2.0]))
        2.0

    Stability
        Stable.
    """

    function: Callable[..., float]
    binary: bool = False
    of_error: Callable[[Floats], Floats] | None = None
    from_mean: Callable[[float, float], float] = lambda mean, width: mean


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetric(MetricKind):
    """Metric of lists: `function(ranks, k)` is a number between 0 and 1 for each user.

    Use it for a score by the places of held-out items in a list, such as a hit rate. Packages register their
    own under the entry point `discreet.metrics`; `MetricContract` checks them.
    `k` is None if the metric was asked for without a depth, which `needs_depth` forbids.

    Example:
        >>> import numpy as np
        >>> from discreet.evaluation.ranking_metrics import Ranks
        >>> first = ListMetric(name="first", function=lambda ranks, k: (ranks.better < 1).astype(float))
        >>> ranks = Ranks(starts=np.array([0, 1]), better=np.array([0, 7]), tied=np.array([1, 1]))
        >>> first.function(ranks, 10).tolist()
        [1.0, 0.0]

    Stability
        Stable.
    """

    function: Callable[[Ranks, int], Floats] | Callable[[Ranks, int | None], Floats]
    needs_depth: bool = True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMetric(MetricKind):
    """Metric of all lists together: `function(lists, train)`, given in how many lists each item is shown.

    Use it for what only all lists show, such as the share of the catalog that any list has. Held-out items
    don't count.

    Example:
        >>> import numpy as np
        >>> unseen = ShownMetric(name="unseen", function=lambda lists, train: int(np.sum(lists == 0)))
        >>> unseen.function(np.array([2, 0, 1]), None)
        1

    Stability
        Stable.
    """

    function: Callable[[Indices, Interactions], float]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EachListMetric(MetricKind):
    """Metric of the items of each list: `function(lists, users, context)` is a number for each user.

    Use it for how the items of a list go together, or fit a history, without held-out items.
    `lists` has a row of items for each of the `users`, filled up with -1; a user without a score gets NaN and
    is excluded from the mean. A metric that `needs_table` compares items by a public table.

    Example:
        >>> import numpy as np
        >>> even = EachListMetric(name="even",
        ...         function=lambda lists, users, context: np.mean(lists % 2 == 0, axis=1))
        >>> even.function(np.array([[2, 4], [1, 2]]), np.array([0, 1]), None).tolist()
        [1.0, 0.5]

    Stability
        Stable.
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


_FORM = re.compile(
    r"([a-z][a-z0-9-]*)(?:@([1-9][0-9]{0,8}))?(?::([1-9][0-9]{0,8}))?(:liked)?(?::(few|many))?"
)


def _unknown(text: str) -> UnknownMetric:
    name = text.partition("@")[0].strip().lower()
    # Suggested as it is written, with its @: what is suggested must be known.
    written = {one.partition("@")[0]: one for one in metric_examples()}
    close = name if name in written else most_similar(name, METRICS) or ""
    meant = written.get(close, close)
    known = tuple(metric_examples())
    return UnknownMetric(metric=text, known=known, close=meant if meant and meant != text else None)


@final
@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its kind, its depth `k`, and the number of sampled items (None: whole catalog).

    `liked` counts liked held-out ratings only; `people` only the quarter of users with the fewest or the most
    ratings.

    Example:
        >>> Metric.parse("hr@10:99").sampled
        99
        >>> str(Metric("hr", 10, liked=True, people="few"))
        'hr@10:liked:few'

    Stability
        Stable.
    """

    kind: str
    k: int | None = None
    sampled: int | None = None
    liked: bool = False
    people: Literal["few", "many"] | None = None

    def __post_init__(self) -> None:
        kind = metric_kind(self.kind)
        if isinstance(kind, RatingMetric):
            # Errors of liked ratings alone would reward models that predict high ones.
            ok = self.k is None and self.sampled is None and not self.liked
        elif isinstance(kind, ListMetric):
            ok = self.k is not None or not kind.needs_depth
        else:
            # Metrics of shown lists need the whole catalog and do not use held-out ratings.
            ok = kind is not None and self.k is not None and self.sampled is None and not self.liked
        if not ok:
            raise _unknown(str(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name such as `rmse`, `hr@10` or `hr@10:99`."""
        found = _FORM.fullmatch(text.strip().lower())
        if found is None:
            raise _unknown(text)
        kind, k, sampled, liked, people = found.groups()
        return cls(
            kind,
            int(k) if k else None,
            int(sampled) if sampled else None,
            liked=liked is not None,
            people=cast("Literal['few', 'many'] | None", people),
        )

    @property
    def definition(self) -> AnyMetric:
        """Return what the registry states about this metric."""
        kind = metric_kind(self.kind)
        assert kind is not None
        return kind

    @property
    def ranks(self) -> bool:
        """Return whether the metric scores ranked lists rather than predicted ratings."""
        return not isinstance(self.definition, RatingMetric)

    @property
    def lower_is_better(self) -> bool:
        """Return whether a smaller number is better."""
        return self.definition.lower_is_better

    def __str__(self) -> str:
        depth = "" if self.k is None else f"@{self.k}"
        sampled = "" if self.sampled is None else f":{self.sampled}"
        people = "" if self.people is None else f":{self.people}"
        return self.kind + depth + sampled + (":liked" if self.liked else "") + people


def refuse_without_table(metrics: Iterable[Metric], item_features: object) -> None:
    """Raise for metrics that compare items by a public table if none is given, before anything is spent."""
    for metric in metrics:
        kind = metric.definition
        if item_features is None and isinstance(kind, EachListMetric) and kind.needs_table:
            raise TableNeeded(metric=str(metric))


def parse_metrics(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Return the metrics named by a comma-separated text or a list, each once, in the order given."""
    names = (
        metrics.split(",")
        if isinstance(metrics, str)
        else [metrics]
        if isinstance(metrics, Metric)
        else metrics
    )
    chosen = tuple(dict.fromkeys(m if isinstance(m, Metric) else Metric.parse(m) for m in names))
    if not chosen:
        raise NothingGiven(name="metrics")
    return chosen


Flags = npt.NDArray[np.bool_]

# The quarter with the fewest ratings to learn from, and the quarter with the most.
_QUARTER = 0.25


def counted_people(metric: Metric, train: Interactions, people: Indices) -> Flags:
    """Mark the tested users who count; ties at the border of the quarter all count."""
    if metric.people is None:
        return np.ones(people.size, dtype=np.bool_)
    lengths = np.diff(train.indptr)[people]
    if metric.people == "few":
        few: Flags = lengths <= np.quantile(lengths, _QUARTER)
        return few
    many: Flags = lengths >= np.quantile(lengths, 1 - _QUARTER)
    return many


def counted_ratings(
    metric: Metric, train: Interactions, test: Interactions, people: Indices, liked: float
) -> Flags:
    """Mark the held-out ratings that count, in the order of `test`; raise if the metric counts none."""
    sizes = np.diff(test.indptr)[people]
    counted = np.repeat(counted_people(metric, train, people), sizes)
    if metric.liked:
        if test.facts.low == test.facts.high:
            raise MetricDoesNotFit(
                metric=str(metric), subject="implicit feedback", examples=("the metric without :liked",)
            )
        counted &= test.values > liked
        if not counted.any():
            raise NothingHeldOut(metric=str(metric))
    return counted


class Predictor(Protocol):
    """What can be scored: a fitted model, or anything that predicts like one."""

    @property
    def above(self) -> float | None:
        """Return the rating above which a rating counts as +1, or None for predictors of ratings."""

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return a prediction for each cell."""

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return what lists are ordered by, for every item for each of these users."""


def refuse_broken(numbers: npt.NDArray[np.floating]) -> None:
    """Raise for predictions with NaN or infinity among them."""
    # The extremes are finite only if all are, and finding them needs no temporary.
    if not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
        broken = int(np.count_nonzero(~np.isfinite(numbers)))
        raise ModelBroken(problem=f"NaN or infinity in {broken} of {numbers.size} entries")
