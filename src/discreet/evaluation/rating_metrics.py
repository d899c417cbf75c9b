"""Score predicted ratings: the errors, and the share of ratings predicted right as liked or not."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, finite_array
from discreet.evaluation.errors import NothingHeldOut, ShapesDiffer, ZeroTruth
from discreet.evaluation.metrics import RatingMetric


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
        raise ZeroTruth()
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
        raise ShapesDiffer(name="predicted", shape=guesses.shape, other="actual", other_shape=truths.shape)
    if guesses.size == 0:
        raise NothingHeldOut()
    return guesses, truths


RMSE = RatingMetric(
    name="rmse",
    lower_is_better=True,
    private=True,
    function=root_mean_squared_error,
    of_error=np.square,
    from_mean=lambda mean, width: width * math.sqrt(mean),
)
MAE = RatingMetric(
    name="mae",
    lower_is_better=True,
    function=mean_absolute_error,
    of_error=np.positive,
    from_mean=lambda mean, width: width * mean,
)
ACCURACY = RatingMetric(name="accuracy", binary=True, function=accuracy, of_error=lambda wrong: 1 - wrong)
ARE = RatingMetric(name="are", lower_is_better=True, function=average_relative_error)
