"""Read noisy votes and the noisy second moment, and decide what to ask next: the coordinator's part.

Everything here is post-processing. `noise` is always the standard deviation of the noise on one entry of the
sum that a function reads; 0 means there is none. Constants were chosen on a validation part of one public
dataset and are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.solvers.spectrum import edge_of_noise, outstanding
from discreet.statistics.profiles import PEOPLE_PART, ProfileQuestion, Profiles

# A matrix of about this times sqrt(users / noise) popular items has eigenvalues above the noise.
_ITEMS_PER_ROOT = 5.0
_LEAST_ITEMS, MOST_ITEMS = 32, 1500
# An eigenvalue counts when it exceeds what noise alone reaches by this factor.
_ABOVE_NOISE = 1.05
MOST_FACTORS = 48
# A typical first eigenvalue beyond popularity, as a share of users, and a typical number of items per user.
# These guesses only decide how the budget is spent.
_TYPICAL_EIGENVALUE, _TYPICAL_ITEMS = 0.03, 50
# Popular items need less weight: powers of the noisy count, in the second moment and in the item problems.
_START_POWER, _ITEM_POWER = -0.5, -0.25


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Favor:
    """The released weighted number of users of each item, and the number of users."""

    votes: Floats
    noise: float
    people: float

    @property
    def floor(self) -> float:
        """Return the level that noise alone may reach."""
        return max(self.noise, 0.1)

    @property
    def counts(self) -> Floats:
        """Return the votes, none below the floor."""
        return np.maximum(self.votes, self.floor)

    def logarithms(self) -> Floats:
        """Return the votes' logarithms, continued linearly below the floor so that no two items tie."""
        below = np.minimum(self.votes - self.floor, 0.0) / self.floor
        logarithms: Floats = np.log(self.counts) + below
        return logarithms


def read_votes(votes: Floats, noise: float) -> Favor:
    """Read the noisy votes."""
    people = max(float(votes[-1]) / PEOPLE_PART, 2 * noise / PEOPLE_PART, 1.0)
    return Favor(votes=votes[:-1], noise=noise, people=people)


def shows_factors(favor: Favor, noise: float, norm: str) -> bool:
    """Return whether a second moment with this noise is likely to show more than popularity."""
    size = starting_items(favor, noise)[0].size
    typical = _TYPICAL_EIGENVALUE * favor.people / (1 if norm == "l2" else _TYPICAL_ITEMS)
    return typical > edge_of_noise(size, noise, 0.0)


def no_profiles(n_items: int) -> Profiles:
    """Return profiles without coordinates."""
    nothing = np.zeros(0)
    return Profiles.of(np.zeros((n_items, 0)), np.zeros(n_items), center=nothing, scale=nothing, clip=1.0)


def starting_items(favor: Favor, noise: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the items of the second moment, and the weight of every item in it."""
    size = _ITEMS_PER_ROOT * math.sqrt(favor.people / noise) if noise else math.inf
    count = int(min(max(size, _LEAST_ITEMS), favor.votes.size, MOST_ITEMS))
    return np.argsort(-favor.votes, kind="stable")[:count], favor.counts**_START_POWER


def starting_profiles(
    moment: Floats, items: npt.NDArray[np.int64], item_weights: Floats, favor: Favor, noise: float, most: int
) -> Profiles:
    """Return profiles from the noisy second moment: its eigenvectors above the noise.

    The first one reflects popularity and is ignored. Noise alone has eigenvalues up to `edge`, and it pushes
    true eigenvalues upward.
    """
    found = outstanding(moment, noise, 0.0, most=most + 1, above_edge=_ABOVE_NOISE)
    strengths, basis = found.strengths[1:], found.vectors[:, 1:]
    spread = np.sqrt(strengths / favor.people + 1 / items.size)
    vectors, squares = np.zeros((favor.votes.size, strengths.size)), np.zeros(favor.votes.size)
    # The sign of an eigenvector is arbitrary; a public rule makes repeated fits comparable.
    vectors[items] = basis * _signs(basis) * item_weights[items][:, None]
    squares[items] = item_weights[items] ** 2
    return Profiles.of(
        vectors, squares, center=np.zeros(strengths.size), scale=1 / spread, clip=clip_length(strengths.size)
    )


def question(favor: Favor, factors: int, pairs: npt.NDArray[np.int64], norm: str) -> ProfileQuestion:
    """Return what users contribute for each item; popular items get less weight."""
    return ProfileQuestion(
        item_weights=favor.counts**_ITEM_POWER / np.max(favor.counts**_ITEM_POWER),
        count_part=0.4 * math.sqrt(factors) if factors else 1.0,
        pairs=pairs,
        pair_part=0.3,
        norm="l1" if norm == "l1" else "l2",
    )


def clip_length(factors: int) -> float:
    """Return the largest length of a profile."""
    return math.sqrt(factors + 2.0)


def _signs(basis: Floats) -> Floats:
    largest = np.argmax(np.abs(basis), axis=0)
    signs: Floats = np.where(basis[largest, np.arange(basis.shape[1])] < 0, -1.0, 1.0)
    return signs
