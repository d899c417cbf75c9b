"""Learn from choices alone: how often each item is chosen, and by people of which taste.

Everything a person tells is a function of their own row and of earlier releases, scaled to length 1. The
proof is in proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.choices import ChoicePlaces
from discreet.contributions.crowd import Crowd
from discreet.contributions.item_sums import ItemVotes
from discreet.contributions.people import PeopleCount
from discreet.contributions.row_moment import ChoiceMoment
from discreet.models.progress import Progress
from discreet.models.scorers.choices import ClickScorer
from discreet.privacy.accounting.gaussian import split_gaussian
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.mechanisms.fixed_point import WholeSteps
from discreet.randomness import PrivacyRandom
from discreet.solvers.shrinkage import shrink_coordinates
from discreet.solvers.spectrum import outstanding

# How the budget is shared: number of people, votes, second moment, places of those who chose an item.
_SHARES = (0.01, 0.10, 0.40, 0.49)
# Taste pays only with this many people for each unit of noise, and this many noises in an item's votes.
_PEOPLE_PER_NOISE = 400.0
_VOTES_PER_NOISE = 2.25
# How many items take part in the second moment, for each square root of people per noise.
_ITEMS_PER_ROOT = 5.0
_FEWEST_ITEMS, _MOST_ITEMS = 32, 1500
_MOST_FACTORS = 48
# An eigenvalue counts from this much above the edge of the noise.
_ABOVE_EDGE = 1.05
# Items known better count less: powers of the noisy votes in the second moment and in the places.
_MOMENT_POWER, _PLACE_POWER = -0.5, -0.25
# The part of a person's vector that counts, against a place of unit length along each direction.
_COUNT_PART = 0.4
_LEAST_VOTES = 0.1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Votes:
    """Hold the noisy number of people and votes of each item; a person's votes together have length 1."""

    people: float
    raw: Floats
    noise: float
    decisions: dict[str, Any] = field(default_factory=dict)

    @property
    def raised(self) -> Floats:
        """Return the votes, none below its own noise."""
        return np.maximum(self.raw, max(self.noise, _LEAST_VOTES))


class _Directions(NamedTuple):
    """Hold what stands out of the second moment: item coordinates, and how far people spread along each."""

    vectors: Floats
    squares: Floats


def learn_clicks(data: Crowd, multiplier: float, random: PrivacyRandom, progress: Progress) -> ClickScorer:
    """Release votes and, where it pays, taste; together one Gaussian release with this multiplier."""
    count, vote, moment, places = split_gaussian(multiplier, _SHARES) if multiplier else [0.0] * 4
    votes = _release_votes(data, (count, vote), multiplier, random)
    progress("user-factorization", 1, 3)
    if not votes.decisions["taste pays"]:
        rest = split_gaussian(multiplier, (*_SHARES[:2], sum(_SHARES[2:])))[-1]
        return _popular(data, votes, rest, random)
    found = _directions(data, votes, moment, random)
    progress("user-factorization", 2, 3)
    votes.decisions["directions kept"] = found.vectors.shape[1]
    if not found.vectors.shape[1]:
        return _popular(data, votes, places, random)
    learned = _classes(data, votes, found, places, random)
    progress("user-factorization", 3, 3)
    return learned


def _release_votes(
    data: Crowd, multipliers: tuple[float, float], total: float, random: PrivacyRandom
) -> _Votes:
    """Release the number of people and every item's votes, and decide whether taste will pay."""
    present = data.total(PeopleCount()).steps()
    people = max(float(_noisy(present, multipliers[0], random)[0]), 1.0)
    raw = _noisy(_count_votes(data), multipliers[1], random)
    people_per_noise = people / total if total else math.inf
    votes_per_noise = float(raw.sum()) / (raw.size * total) if total else math.inf
    pays = people_per_noise >= _PEOPLE_PER_NOISE and votes_per_noise >= _VOTES_PER_NOISE
    decisions = {
        "people per noise": round(people_per_noise, 1) if total else "inf",
        "people per noise needed": _PEOPLE_PER_NOISE,
        "votes an item per noise": round(votes_per_noise, 2) if total else "inf",
        "votes an item per noise needed": _VOTES_PER_NOISE,
        "taste pays": bool(pays),
    }
    return _Votes(people=people, raw=raw, noise=multipliers[1], decisions=decisions)


def _count_votes(crowd: Crowd) -> WholeSteps:
    return crowd.total(ItemVotes(n_items=crowd.n_items, norm="l2")).steps()


def _noisy(sums: WholeSteps, multiplier: float, random: PrivacyRandom) -> Floats:
    return Gaussian(sigma=multiplier, l2_sensitivity=1.0).release(sums, random)


def _popular(data: Crowd, votes: _Votes, multiplier: float, random: PrivacyRandom) -> ClickScorer:
    """Spend what is left on the votes once more: popularity is all that the budget supports."""
    again = _noisy(_count_votes(data), multiplier, random)
    popularity, noise = _weighed((votes.raw, votes.noise), (again, multiplier))
    return ClickScorer.of(_positive(popularity, noise), np.zeros((data.n_items, 0)), votes.decisions)


def _weighed(*measured: tuple[Floats, float | Floats]) -> tuple[Floats, Floats]:
    """Return the mean of noisy measurements by precision, and its noise."""
    precisions = [np.maximum(noise, 1e-9) ** -2.0 * np.ones_like(value) for value, noise in measured]
    total = np.sum(precisions, axis=0)
    mean = np.sum([value * p for (value, _), p in zip(measured, precisions, strict=True)], axis=0) / total
    return mean, total**-0.5


def _positive(votes: Floats, noise: Floats) -> Floats:
    """Return votes above zero in the same order: clipping would make ties."""
    width = np.maximum(noise, _LEAST_VOTES)
    raised: Floats = width * np.logaddexp(0, votes / width)
    # Far below zero the soft floor is smaller than the smallest number.
    return np.maximum(raised, 1e-300)


def _directions(data: Crowd, votes: _Votes, multiplier: float, random: PrivacyRandom) -> _Directions:
    """Release which items are chosen together, and keep what stands out of the noise."""
    wanted = _ITEMS_PER_ROOT * math.sqrt(votes.people / multiplier) if multiplier else _MOST_ITEMS
    size = min(max(int(min(wanted, _MOST_ITEMS)), _FEWEST_ITEMS), data.n_items)
    votes.decisions["items in the second moment"] = size
    # In ascending order, so that a person's choices stay sorted.
    top = np.sort(np.argsort(-votes.raw, kind="stable")[:size])
    weight = votes.raised[top] ** _MOMENT_POWER
    together = data.total(ChoiceMoment(n_items=data.n_items, top=top, weight=weight))
    moment = Gaussian(sigma=multiplier, l2_sensitivity=1.0).release_symmetric(together.steps(), random)
    found = outstanding(moment, multiplier, votes.people, most=_MOST_FACTORS + 1, above_edge=_ABOVE_EDGE)
    # The first direction is popularity itself, which the votes know already.
    strengths, basis = found.strengths[1:], found.vectors[:, 1:]
    spread = np.sqrt(strengths / votes.people + 1 / size)
    vectors = np.zeros((data.n_items, strengths.size))
    vectors[top] = basis * weight[:, None] / spread
    squares = np.zeros(data.n_items)
    squares[top] = weight**2
    return _Directions(vectors, squares)


def _classes(
    data: Crowd, votes: _Votes, found: _Directions, multiplier: float, random: PrivacyRandom
) -> ClickScorer:
    """Release where those who chose an item stand, as seen without that choice, and shrink by the noise."""
    factors = found.vectors.shape[1]
    pull = votes.raised**_PLACE_POWER
    count_part = _COUNT_PART * math.sqrt(factors)
    places = ChoicePlaces(
        vectors=found.vectors,
        squares=found.squares,
        longest=math.sqrt(factors + 2),
        pull=pull,
        count_part=count_part,
    )
    sums, told = places.split(_noisy(data.total(places).steps(), multiplier, random))
    raw = told / count_part
    noise = multiplier / count_part
    counts = np.maximum(raw, max(noise, _LEAST_VOTES / count_part))
    sums = sums - counts[:, None] * (sums.sum(axis=0) / max(float(raw.sum()), noise, 1e-9))
    variance = multiplier**2 + _chance(counts, pull, votes.people, factors + count_part**2)
    vectors = shrink_coordinates(sums, counts, variance)
    per_vote = max(float(raw.sum()), 1e-9) / max(float(votes.raw @ pull), 1e-9) * pull
    popularity, error = _weighed((votes.raw, votes.noise), (raw / per_vote, noise / per_vote))
    return ClickScorer.of(_positive(popularity, error), vectors, votes.decisions)


def _chance(counts: Floats, pull: Floats, people: float, length: float) -> Floats:
    """Return what chance puts into few choices: places vary by 1, one choice weighs about this much."""
    return counts * pull * people / (length * max(float(counts @ (1 / pull)), 1.0))
