"""Bounds on sums over users: what users and noise can give, and nothing else."""

from __future__ import annotations

import math

import numpy as np

from discreet.core.arrays import Floats
from discreet.federated.wire import Refusal, Refused

# More users than there are humans, for runs that declare no number of users.
_MOST_USERS = 2.0**33
# "About" so many users are at most so many times as many.
_ABOUT = 4.0
#: Noise beyond so many standard deviations doesn't happen.
TAILS = 64.0


def check_sum(
    numbers: Floats, *, users: int | None, noise: float, bound: float = 1.0, nonnegative: bool = False
) -> None:
    """Raise `Refused` unless about `users` users, of norm `bound` each, and noise can give a sum.

    Parameters:
        users: The declared number of users; None if no number was declared.
        noise: The standard deviation of the noise on each number.
        nonnegative: Whether users only add to the numbers.
    """
    most = (_MOST_USERS if users is None else _ABOUT * users) * bound
    too_far = np.abs(numbers).max(initial=0.0) > most + TAILS * noise
    too_long = np.linalg.norm(numbers) > most + noise * (math.sqrt(numbers.size) + TAILS)
    below = nonnegative and numbers.min(initial=0.0) < -TAILS * noise
    if too_far or too_long or below:
        raise Refused(Refusal.OUT_OF_RANGE)


def check_range(numbers: Floats, largest: float) -> None:
    """Raise `Refused` if a number is farther from zero than `largest`."""
    if np.abs(numbers).max(initial=0.0) > largest:
        raise Refused(Refusal.OUT_OF_RANGE)
