"""Bounds on the sums of a release: what users and noise can give, and nothing else.

A release that is kept is part of every later model. So a sum that can't be is rejected before it is kept: one
below zero where users only add, one larger than the users there can be, or values without counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.federated.wire import Refusal, Refused
from discreet.follow.entries import MOST_USERS
from discreet.follow.settings import COUNT_PART, LEVEL_COUNT, LEVEL_VALUE, PART_BITS, RELEASE_BITS, USUAL
from discreet.follow.weights import WEIGHT_BITS

# Noise beyond so many deviations doesn't happen: 1e-57 for one number.
_TAILS = 16.0
# "About" so many users are at most so many times as many.
_ABOUT = 4.0
# Parts of a contribution are cut to whole numbers, one unit each.
_CUT = 2.0 ** -(WEIGHT_BITS + PART_BITS)


def most_users(declared: int | None, parties: int) -> float:
    """Return the most users that can be in sums over so many parties."""
    return parties * float(MOST_USERS) if declared is None else _ABOUT * declared


def check_release(arrays: Mapping[str, npt.NDArray[Any]], noise: float, users: float) -> None:
    """Raise `Refused` unless at most `users` users and noise of this deviation can give a release."""
    numbers = {name: np.ldexp(array.astype(np.float64), -RELEASE_BITS) for name, array in arrays.items()}
    far = _TAILS * noise
    whole = np.concatenate(list(numbers.values()))
    too_far = np.abs(whole).max(initial=0.0) > users + far
    too_long = np.linalg.norm(whole) > users + noise * math.sqrt(whole.size) + far
    if too_far or too_long or numbers["counts"].min(initial=0.0) < -far:
        raise Refused(Refusal.OUT_OF_RANGE)
    if "values" in numbers:
        ends = ((-1 - USUAL) / COUNT_PART, (1 - USUAL) / COUNT_PART)
        _check_ratio(numbers["counts"], numbers["values"], ends, noise, users)
        means = LEVEL_VALUE / LEVEL_COUNT
        counted, valued = numbers["level"][:1], numbers["level"][1:]
        _check_ratio(counted, valued, (-means, means), noise, users)


def _check_ratio(
    counts: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    ends: tuple[float, float],
    noise: float,
    users: float,
) -> None:
    """Raise `Refused` if values are not between two multiples of their counts, or counts are below zero."""
    steepest = max(map(abs, ends))
    slack = _TAILS * noise * (1 + steepest) + _CUT * users * (1 + steepest)
    most = np.maximum(counts, 0.0)
    below, above = values < ends[0] * most - slack, values > ends[1] * most + slack
    if below.any() or above.any() or counts.min(initial=0.0) < -_TAILS * noise:
        raise Refused(Refusal.OUT_OF_RANGE)
