"""Say which people and which held-out ratings a metric counts: liked ones, those of a quarter of people."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.arrays import Indices
from discreet.checks import DataError, ParameterError
from discreet.data.interactions import Interactions
from discreet.evaluation.metrics import Metric

Flags = npt.NDArray[np.bool_]

# The quarter with the fewest ratings to learn from, and the quarter with the most.
_QUARTER = 0.25


def counted_people(metric: Metric, train: Interactions, people: Indices) -> Flags:
    """Tell which of the tested people count; all who have as many ratings as the last of a quarter do."""
    if metric.people is None:
        return np.ones(people.size, dtype=np.bool_)
    lengths = np.diff(train.indptr)[people]
    if metric.people == "few":
        few: Flags = lengths <= np.quantile(lengths, _QUARTER)
        return few
    many: Flags = lengths >= np.quantile(lengths, 1 - _QUARTER)
    return many


def counted_cells(
    metric: Metric, train: Interactions, test: Interactions, people: Indices, liked: float
) -> Flags:
    """Tell which held-out ratings count, in the order of `test`; some must."""
    sizes = np.diff(test.indptr)[people]
    counted = np.repeat(counted_people(metric, train, people), sizes)
    if metric.liked:
        if test.facts.low == test.facts.high:
            raise ParameterError(f"metric={str(metric)!r} needs ratings, and these data have only choices.")
        counted &= test.values > liked
        if not counted.any():
            raise DataError(f"None of the held-out ratings that {metric} counts is above {liked:g}.")
    return counted
