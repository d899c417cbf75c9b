"""Learn who chooses what: directions in which choices go together, and where an item's crowd stands on them.

Everything a person tells is a function of which items they chose, in which order, and of earlier releases,
scaled to length 1.
The proofs are in proofs/user_factorization.md and proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.choice_pairs import ChoicePairs
from discreet.contributions.choices import ChoicePlaces
from discreet.contributions.crowd import Crowd
from discreet.models.user_factorization.features import feature_prior
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.randomness import PrivacyRandom
from discreet.solvers.shrinkage import shrink_coordinates
from discreet.solvers.spectrum import clearest_part, edge_of_noise
from discreet.solvers.tally import Tally

# Taste can show where people are this many times the edge of the noise in the pairs.
_PEOPLE_PER_EDGE = 12.0
# How many items take part in the pairs, for each square root of people per noise.
_ITEMS_PER_ROOT = 5.0
_FEWEST_ITEMS, _MOST_ITEMS = 32, 1500
_MOST_FACTORS = 48
# An eigenvalue counts from the edge of the noise on: the places shrink a direction too many.
_ABOVE_EDGE = 1.0
# Items known better count less: powers of the noisy votes in the pairs and in the places.
_PAIR_POWER, _PLACE_POWER = -0.5, -0.15
# Two choices go together the more, the fewer steps in time are between them; a part counts at any distance,
# for how people rate has to do with all they ever chose.
_PAIRS_NEAR, _PAIRS_APART = 0.9, 0.2
# Where an item's crowd stands is told by what its people chose at about that time: each step in time fades.
_PLACES_NEAR = 0.88
# The part of a person's vector that counts, against a place of unit length along each direction.
_COUNT_PART = 0.4


class Directions(NamedTuple):
    """Hold what stands out of the pairs: item coordinates, and how far people spread along each.

    `guess` is where it says that the items' crowds stand, up to one factor a direction.
    """

    vectors: Floats
    squares: Floats
    guess: Floats

    @property
    def kept(self) -> int:
        """Return how many directions there are."""
        return int(self.vectors.shape[1])


class Crowds(NamedTuple):
    """Hold where those who chose an item stand, and the votes with all that was counted on the way."""

    vectors: Floats
    tally: Tally


def may_show(people: float, n_items: int, multiplier: float) -> bool:
    """Tell whether pairs of choices with this noise can show more than how popular items are."""
    size = _items_taking_part(people, n_items, multiplier)
    return people >= _PEOPLE_PER_EDGE * edge_of_noise(size, multiplier, 0.0)


def _items_taking_part(people: float, n_items: int, multiplier: float) -> int:
    wanted = _ITEMS_PER_ROOT * math.sqrt(people / multiplier) if multiplier else _MOST_ITEMS
    return min(max(int(min(wanted, _MOST_ITEMS)), _FEWEST_ITEMS), n_items)


def choice_directions(
    data: Crowd, tally: Tally, people: float, multiplier: float, random: PrivacyRandom
) -> Directions:
    """Release which items are chosen together, and keep what stands out of the noise."""
    size = _items_taking_part(people, data.n_items, multiplier)
    top = np.sort(np.argsort(-tally.votes, kind="stable")[:size])
    weight = tally.raised[top] ** _PAIR_POWER
    told = data.total(
        ChoicePairs(n_items=data.n_items, top=top, weight=weight, near=_PAIRS_NEAR, apart=_PAIRS_APART)
    )
    pairs = Gaussian(sigma=multiplier, l2_sensitivity=1.0).release_symmetric(told.steps(), random)
    # The first direction is popularity itself, which the votes know already.
    part, found = clearest_part(
        pairs,
        np.argsort(-tally.votes[top], kind="stable"),
        multiplier,
        people,
        fewest=_FEWEST_ITEMS,
        most=_MOST_FACTORS + 1,
        above_edge=_ABOVE_EDGE,
        beyond=1,
    )
    top, weight, size = top[part], weight[part], part.size
    strengths, basis = found.strengths[1:], found.vectors[:, 1:]
    spread = np.sqrt(strengths / people + 1 / size)
    vectors = np.zeros((data.n_items, strengths.size))
    vectors[top] = basis * weight[:, None] / spread
    squares = np.zeros(data.n_items)
    squares[top] = weight**2
    guess = np.zeros_like(vectors)
    variance = np.full(size, multiplier**2 / 2 + people / size**2)
    guess[top] = shrink_coordinates(basis * strengths, tally.raised[top] * weight, variance) / spread
    return Directions(vectors, squares, guess)


def choice_crowds(
    data: Crowd,
    tally: Tally,
    found: Directions,
    people: float,
    multiplier: float,
    table: Floats,
    random: PrivacyRandom,
) -> Crowds:
    """Release where those who chose an item stand, as seen without that choice, and shrink by the noise.

    What else they chose counts the less, the more steps in time it is away. Items are shrunk toward where the
    public `table` suggests, if it has columns.
    """
    pull = tally.raised**_PLACE_POWER
    part = _COUNT_PART * math.sqrt(found.kept)
    places = ChoicePlaces(
        vectors=found.vectors,
        squares=found.squares,
        longest=math.sqrt(found.kept + 2),
        pull=pull,
        count_part=part,
        near=_PLACES_NEAR,
    )
    noise = Gaussian(sigma=multiplier, l2_sensitivity=1.0)
    sums, counted = places.split(noise.release(data.total(places).steps(), random))
    counted = counted / part
    tally = tally.with_more(counted, multiplier / part, pull)
    counts = tally.expected(counted, pull)
    middle = sums.sum(axis=0) / max(float(counted.sum()), multiplier / part, 1e-9)
    variance = multiplier**2 + _chance(counts, pull, people, found.kept + part**2)
    told = sums - counts[:, None] * middle
    expected = found.guess * _slopes(found.guess, told, counts, variance)
    vectors = expected + shrink_coordinates(told - counts[:, None] * expected, counts, variance)
    if table.shape[1]:
        expected = expected + feature_prior(table, vectors - expected, counts**2 / variance)
        vectors = expected + shrink_coordinates(told - counts[:, None] * expected, counts, variance)
    return Crowds(vectors, tally)


def _slopes(guess: Floats, told: Floats, counts: Floats, variance: Floats) -> Floats:
    """Return, direction by direction, how far the places follow what the pairs guessed."""
    weight = (counts / variance)[:, None]
    agreed = (weight * guess * told).sum(axis=0)
    slopes: Floats = agreed / np.maximum((weight * counts[:, None] * guess**2).sum(axis=0), 1e-300)
    return np.maximum(slopes, 0.0)


def _chance(counts: Floats, pull: Floats, people: float, length: float) -> Floats:
    """Return what chance puts into few choices: places vary by 1, one choice weighs about this much."""
    return counts * pull * people / (length * max(float(counts @ (1 / pull)), 1.0))
