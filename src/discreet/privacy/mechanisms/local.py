"""Make the mechanisms of devices by name, and compute the loss of the tables that campaigns publish.

Nothing outside `privacy` constructs a mechanism. Campaigns, devices, and local models request one here, by
the name that campaign files use. The cost of a mechanism is its own `epsilon`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.privacy.errors import WrongMechanism
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ClampedLaplace
from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
from discreet.privacy.mechanisms.channel import WORDS, CountTable, largest_ratio, log_up
from discreet.privacy.mechanisms.clamped_noise import ClampedNoise
from discreet.privacy.mechanisms.randomized_response import SignFlip

Words = npt.NDArray[np.uint64]

#: Mechanisms for the value of a rating, by name.
RATING_MECHANISMS: Mapping[str, type[BoundedLaplace | ClampedLaplace]] = {
    "bounded-laplace": BoundedLaplace,
    "clamped-laplace": ClampedLaplace,
}
#: Mechanisms that also hide which items were rated, by name.
CELL_MECHANISMS: Mapping[str, type[HiddenStars | HiddenNumbers]] = {
    "hidden-stars": HiddenStars,
    "hidden-numbers": HiddenNumbers,
}
_NAMES: Mapping[str, type[Any]] = {**RATING_MECHANISMS, **CELL_MECHANISMS, "sign-flip": SignFlip}


def rating_mechanism(
    name: str, *, epsilon: float, low: float, high: float, points: int
) -> BoundedLaplace | ClampedLaplace:
    """Return the mechanism with which devices perturb the value of a rating on a scale."""
    return RATING_MECHANISMS[name](epsilon=epsilon, low=low, high=high, points=points)


def hidden_stars(*, epsilon: float, low: float, high: float, step: float) -> HiddenStars:
    """Return randomized response over the levels of a scale and "not rated"."""
    return HiddenStars(epsilon=epsilon, low=low, high=high, step=step)


def hidden_numbers(*, epsilon: float, low: float, high: float) -> HiddenNumbers:
    """Return modified Laplace noise on a continuous scale, with "not rated" as one more report."""
    return HiddenNumbers(epsilon=epsilon, low=low, high=high)


def sign_flip(
    epsilon: float, *, flip_positive: float | None = None, flip_negative: float | None = None
) -> SignFlip:
    """Return the mechanism that flips a bit, +1 or -1, with known probabilities."""
    return SignFlip(epsilon=epsilon, flip_positive=flip_positive, flip_negative=flip_negative)


def mechanism_name(mechanism: object) -> str | None:
    """Return the name of a device mechanism, or None for anything else."""
    return next((name for name, kind in _NAMES.items() if isinstance(mechanism, kind)), None)


def mechanism_from(record: Mapping[str, Any], known: Mapping[str, type[Any]]) -> Any:
    """Return the mechanism of a campaign file: its name, which must be `known`, and all its settings.

    Raises:
        ParameterError: The name is unknown, or a setting is missing, unknown, or out of range.
    """
    if record.get("name") not in known:
        raise WrongMechanism(known=tuple(sorted(known)))
    kind = known[record["name"]]
    settings = {key: value for key, value in record.items() if key != "name"}
    if set(settings) != {field.name for field in fields(kind)}:
        raise WrongMechanism(known=tuple(sorted(known)))
    return kind(**settings)


def table_loss(starts: Words) -> float:
    """Return the largest log-ratio between rows of a table, exact and rounded up."""
    return CountTable(starts=starts).largest_log_ratio()


def stars_loss(starts: Words, *, outcomes: int, pretends: Fraction) -> float:
    """Return the largest log-ratio between ratings and no rating, exact and rounded up.

    Outcome 0 of a row is "not rated", and `outcomes` others follow. `pretends` is the probability that an
    unrated item is reported.
    """
    empty = [1 - pretends, *[pretends / outcomes] * outcomes]
    columns = [
        [*(Fraction(count, WORDS) for count in column), chance]
        for column, chance in zip(CountTable(starts=starts).counts().T.tolist(), empty, strict=True)
    ]
    return log_up(max(max(column) / min(column) for column in columns))


def numbers_loss(noise: Words, *, half: int, reach: int, coin: int, pretends: Fraction) -> float:
    """Return the largest log-ratio of noisy numbers, "not rated" included, exact and rounded up.

    A rated item is not reported for the first `coin` of all words.
    """
    table = CountTable(starts=noise)
    most, middle, least = ClampedNoise(half=half, reach=reach, table=table).extremes()
    silent, reported = Fraction(coin, WORDS), Fraction(WORDS - coin, WORDS)
    return log_up(
        max(
            largest_ratio(most, least),
            reported / pretends * largest_ratio(most, middle),
            pretends / reported * largest_ratio(middle, least),
            (1 - pretends) / silent,
            silent / (1 - pretends),
        )
    )
