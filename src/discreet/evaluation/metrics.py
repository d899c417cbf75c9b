"""Define the metrics, select what they count, and score predicted ratings.

A name says what is measured and against which candidates. `rmse`, `mae`, `accuracy` and `are` compare
ratings. `hr@10` ranks the whole catalog; `hr@10:99` ranks a user's held-out items among 99 sampled ones. The
two protocols give numbers that must never be compared, so the name carries the difference everywhere.
`:liked` counts only held-out ratings that are liked; `:few` and `:many` only users who rated few or many
items.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, Self, cast, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, Singles
from discreet.core.checks import DataError, DiscreetError, ParameterError, finite_array, suggestion
from discreet.data.interactions import Interactions

RATING_METRICS = ("rmse", "mae", "accuracy", "are")
# Metrics of the lists that are shown; they do not depend on the held-out ratings.
SHOWN_METRICS = ("coverage", "novelty")
RANKING_METRICS = ("hr", "ndcg", "recall", "capped-recall", "precision", "mrr", *SHOWN_METRICS)
KNOWN = (
    "rmse, mae, accuracy, are, hr@10, ndcg@10, recall@20, capped-recall@20, precision@10, mrr, coverage@10, "
    "novelty@10"
)

_FORM = re.compile(r"([a-z-]+)(?:@([1-9][0-9]{0,8}))?(?::([1-9][0-9]{0,8}))?(:liked)?(?::(few|many))?")
_FORMS_TEXT = (
    f"The metrics are {KNOWN}; append :99 to rank among 99 sampled items instead of the whole catalog, "
    ":liked to count liked items only, :few or :many for people with few or many ratings, in this order."
)


def _unknown(text: str) -> str:
    close = suggestion(text.partition("@")[0], (*RATING_METRICS, *RANKING_METRICS))
    return f"metric={text!r} is not known.{close} {_FORMS_TEXT}"


@final
@dataclass(frozen=True, slots=True)
class Metric:
    """Describe a metric: its kind, its depth `k`, and the number of sampled items (None: whole catalog).

    `liked` counts liked held-out ratings only; `people` only the quarter of users with the fewest or the most
    ratings.

    Example:
        >>> Metric.parse("hr@10:99").sampled
        99
        >>> str(Metric("hr", 10, liked=True, people="few"))
        'hr@10:liked:few'
    """

    kind: str
    k: int | None = None
    sampled: int | None = None
    liked: bool = False
    people: Literal["few", "many"] | None = None

    def __post_init__(self) -> None:
        if self.kind in RATING_METRICS:
            # Errors of liked ratings alone would reward models that predict high ones.
            ok = self.k is None and self.sampled is None and not self.liked
        else:
            ok = self.kind in RANKING_METRICS and (self.k is not None or self.kind == "mrr")
            # Coverage and novelty need the whole catalog and do not use held-out ratings.
            ok = ok and not (self.kind in SHOWN_METRICS and (self.sampled is not None or self.liked))
        if not ok:
            raise ParameterError(_unknown(str(self)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name such as `rmse`, `hr@10` or `hr@10:99`."""
        found = _FORM.fullmatch(text.strip().lower())
        if found is None:
            raise ParameterError(_unknown(text))
        kind, k, sampled, liked, people = found.groups()
        return cls(
            kind,
            int(k) if k else None,
            int(sampled) if sampled else None,
            liked=liked is not None,
            people=cast(Literal["few", "many"] | None, people),
        )

    @property
    def ranks(self) -> bool:
        """Return whether the metric scores ranked lists rather than predicted ratings."""
        return self.kind in RANKING_METRICS

    @property
    def lower_is_better(self) -> bool:
        """Return whether a smaller number is better."""
        return self.kind in ("rmse", "mae", "are")

    def __str__(self) -> str:
        depth = "" if self.k is None else f"@{self.k}"
        sampled = "" if self.sampled is None else f":{self.sampled}"
        people = "" if self.people is None else f":{self.people}"
        return self.kind + depth + sampled + (":liked" if self.liked else "") + people


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
        raise ParameterError(f"metrics must name at least one metric. {_FORMS_TEXT}")
    return chosen


def root_mean_squared_error(predicted: npt.ArrayLike, actual: npt.ArrayLike) -> float:
    """Return the square root of the mean squared difference."""
    predicted, actual = _pair(predicted, actual)
    return float(np.sqrt(np.mean(np.square(predicted - actual))))


def mean_absolute_error(predicted: npt.ArrayLike, actual: npt.ArrayLike) -> float:
    """Return the mean absolute difference."""
    predicted, actual = _pair(predicted, actual)
    return float(np.mean(np.abs(predicted - actual)))


def average_relative_error(predicted: npt.ArrayLike, actual: npt.ArrayLike) -> float:
    """Return the squared Frobenius norm of the difference over that of the truth."""
    predicted, actual = _pair(predicted, actual)
    size = float(np.sum(np.square(actual)))
    if size == 0:
        raise DataError("The true values are all 0, so an error relative to them has no meaning.")
    return float(np.sum(np.square(predicted - actual))) / size


def accuracy(
    predicted: npt.ArrayLike, actual: npt.ArrayLike, *, above: float, cut: float | None = None
) -> float:
    """Return the share of ratings whose binary rating is predicted right: liked is `actual > above`.

    A rating is predicted to be liked when `predicted > above`; for signed scores pass `cut=0.0`.
    """
    predicted, actual = _pair(predicted, actual)
    return float(np.mean((predicted > (above if cut is None else cut)) == (actual > above)))


def _pair(predicted: npt.ArrayLike, actual: npt.ArrayLike) -> tuple[Floats, Floats]:
    guesses, truths = finite_array("The predictions", predicted), finite_array("The ratings", actual)
    if guesses.shape != truths.shape:
        raise ParameterError(
            f"predicted has shape {guesses.shape}, actual has {truths.shape}; they must be equal."
        )
    if guesses.size == 0:
        raise DataError("There are no held-out ratings to score.")
    return guesses, truths


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
    """Mark the held-out ratings that count, in the order of `test`; refuse a metric that counts none."""
    sizes = np.diff(test.indptr)[people]
    counted = np.repeat(counted_people(metric, train, people), sizes)
    if metric.liked:
        if test.facts.low == test.facts.high:
            raise ParameterError(
                f"metric={str(metric)!r} needs ratings, but these data are implicit feedback. "
                "Leave out the :liked."
            )
        counted &= test.values > liked
        if not counted.any():
            raise DataError(f"None of the held-out ratings that {metric} counts is above {liked:g}.")
    return counted


class Predictor(Protocol):
    """What can be scored: a fitted model, or anything that predicts like one."""

    @property
    def above(self) -> float | None:
        """Return the rating above which a verdict is +1, or None for predictors of ratings."""

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return a prediction for each cell."""

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return what lists are ordered by, for every item for each of these people."""


def refuse_broken(numbers: npt.NDArray[np.floating]) -> None:
    """Refuse predictions with NaN or infinity among them."""
    # The extremes are finite only if all are, and finding them needs no temporary.
    if not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
        broken = int(np.count_nonzero(~np.isfinite(numbers)))
        raise DiscreetError(
            f"The model predicted NaN or infinity in {broken} of {numbers.size} cells; it has no score."
        )
