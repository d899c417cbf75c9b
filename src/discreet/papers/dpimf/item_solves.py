"""Read noisy votes and moments, decide what to ask next, and solve every item's problem.

The coordinator's part: everything here is post-processing of released numbers. `noise` is always the
standard deviation of the noise on one entry of the sum that a function reads; 0 means there is none.
Constants were chosen on a validation part of one public dataset and are public.

An item's factors minimize a squared loss over all users, in the ball that contains all profiles. The
matrix of the problem is the shared Gram matrix of profiles, plus the item's own Gram matrix for losses that
weight observed entries differently. The ridge follows from the known noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from discreet.core import Floats, Indices
from discreet.privacy import Noisy
from discreet.solvers import edge_of_noise, minimize_in_ball, outstanding
from discreet.statistics import PEOPLE_PART, ProfileQuestion, Profiles, gram_bound

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
    return Profiles(
        vectors=np.zeros((n_items, 0)), squares=np.zeros(n_items), center=nothing, scale=nothing, clip=1.0
    )


def starting_items(favor: Favor, noise: float) -> tuple[Indices, Floats]:
    """Return the items of the second moment, and the weight of every item in it."""
    size = _ITEMS_PER_ROOT * math.sqrt(favor.people / noise) if noise else math.inf
    count = int(min(max(size, _LEAST_ITEMS), favor.votes.size, MOST_ITEMS))
    return np.argsort(-favor.votes, kind="stable")[:count], favor.counts**_START_POWER


def starting_profiles(
    moment: Floats, items: Indices, item_weights: Floats, favor: Favor, noise: float, most: int
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
    return Profiles(
        vectors=vectors,
        squares=squares,
        center=np.zeros(strengths.size),
        scale=1 / spread,
        clip=clip_length(strengths.size),
    )


def question(favor: Favor, factors: int, pairs: Indices, norm: str) -> ProfileQuestion:
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


# Items.

# Prior variance of an item's mean profile, where profiles have variance 1.
_PRIOR_VARIANCE = 0.3
_LEAST_VARIANCE = 1e-4
_SHRINK_STEPS = 30
_CONVERGED = 1e-3
_ITEMS_PER_BLOCK = 4096


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFactors:
    """The solved items: `bias + factors . (profile - origin)` is a user's score."""

    bias: Floats
    factors: Floats
    origin: Floats
    places: Floats = field(repr=False)
    favor: Favor


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss weights of all entries and, on top, of observed ones.

    The matrix of an item's problem is `chosen_weight * (Gram of its users) + shared_weight * (Gram of all)`.
    """

    shared_weight: float
    chosen_weight: float


def solve_items(
    terms: Noisy,
    gram: Noisy,
    *,
    asked: ProfileQuestion,
    profiles: Profiles,
    favor: Favor,
    loss: Loss,
) -> ItemFactors:
    """Solve every item's problem from noisy sums, inside the ball that contains all profiles.

    An item's factors minimize the squared error, over all users, of predicting its interactions from
    profiles, in units where the item's share of users is 1. The ridge follows from the known noise and the
    estimated spread of the items' mean profiles.
    """
    factors, (released, term_noise) = profiles.factors, terms
    released_counts = released[:, 0] / asked.count_part
    counts = np.maximum(released_counts, max(term_noise / asked.count_part, 0.1))
    sums = released[:, 1 : 1 + factors]
    mass = max(float(released_counts.sum()), float(counts.max()))
    origin = np.clip(sums.sum(axis=0) / mass, -profiles.lens.clip, profiles.lens.clip)
    sums = sums - counts[:, None] * origin
    covariance = _covariance(*gram, profiles, asked.norm)
    weight = _typical_weight(counts, asked, factors, favor.people)
    chance = weight if asked.norm == "l2" else 0.0
    variance = np.maximum(term_noise**2 + chance * asked.item_weights * counts, 1e-9)
    ridge = ItemRidge(strength=variance / counts, spreads=_spreads(sums, counts, variance))
    if loss.chosen_weight:
        share = loss.chosen_weight * counts / (favor.people * weight * asked.item_weights)
        own = share[:, None, None] * _own_grams(released, asked)
        matrices = (counts * loss.shared_weight)[:, None, None] * covariance + own
        solved = minimize_in_ball(matrices + ridge.matrices(), sums, profiles.lens.clip)
    else:
        solved = _solve_shared(covariance, counts * loss.shared_weight, ridge, sums, profiles.lens.clip)
    favored = _combined(favor, released_counts, term_noise / asked.count_part, asked.item_weights)
    places = solved @ covariance
    bias = favored.logarithms() - 0.5 * np.sum(solved * places, axis=1)
    return ItemFactors(bias=bias, factors=solved, origin=origin, places=places, favor=favored)


def _typical_weight(counts: Floats, asked: ProfileQuestion, factors: int, people: float) -> float:
    """Return about how much one user's contribution weighs (in l2; in l1 the noise hides the difference).

    A user's squared weights times (factors + part^2) add up to 1, so the weight follows from the counts.
    """
    return people / ((factors + asked.count_part**2) * max(float(counts @ asked.item_weights), 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRidge:
    """The ridge of every item: `strength` of the item over `spreads` of the coordinates."""

    strength: Floats
    spreads: Floats

    def matrices(self) -> Floats:
        """Return one diagonal matrix per item."""
        diagonal: Floats = (self.strength[:, None] / self.spreads)[:, :, None] * np.eye(self.spreads.size)
        return diagonal


def _solve_shared(
    covariance: Floats, counts: Floats, ridge: ItemRidge, sums: Floats, radius: float
) -> Floats:
    """Solve items that share one matrix: one eigenbasis makes all problems diagonal, whatever their ridge.

    The few items whose solution lies outside the ball are solved again inside it.
    """
    if not sums.shape[1]:
        return sums
    root = np.sqrt(ridge.spreads)
    values, basis = np.linalg.eigh(root[:, None] * covariance * root)
    turn = root[:, None] * basis
    divisor = counts[:, None] * np.maximum(values, 0.0) + ridge.strength[:, None]
    solved: Floats = ((sums @ turn) / divisor) @ turn.T
    outside = np.flatnonzero(np.linalg.norm(solved, axis=1) > radius)
    for start in range(0, outside.size, _ITEMS_PER_BLOCK):
        few = outside[start : start + _ITEMS_PER_BLOCK]
        own = ItemRidge(strength=ridge.strength[few], spreads=ridge.spreads).matrices()
        solved[few] = minimize_in_ball(counts[few][:, None, None] * covariance + own, sums[few], radius)
    return solved


def _covariance(shared: Floats, noise: float, profiles: Profiles, norm: str) -> Floats:
    """Return the covariance of profiles, shrunk toward the identity according to its noise."""
    if profiles.factors == 0:
        return np.zeros((0, 0))
    bound = gram_bound(profiles, "l1" if norm == "l1" else "l2")
    scaled, error = shared * bound, noise * bound
    people = max(float(scaled[0, 0]), 1.0)
    mean = scaled[0, 1:] / people
    covariance = scaled[1:, 1:] / people - np.outer(mean, mean)
    values, basis = np.linalg.eigh((covariance + covariance.T) / 2)
    trust = 1 / (1 + profiles.factors * (error / people) ** 2)
    bounded = np.clip(values, 0.1, profiles.lens.clip**2)
    own: Floats = (basis * bounded) @ basis.T
    shrunk: Floats = trust * own + (1 - trust) * np.eye(profiles.factors)
    return shrunk


def _spreads(sums: Floats, counts: Floats, variance: Floats) -> Floats:
    """Estimate the variance of items' mean profiles in each coordinate: sums ~ counts * mean + noise."""
    spreads = np.full(sums.shape[1], _PRIOR_VARIANCE)
    precision = (counts**2 / variance)[:, None]
    for _ in range(_SHRINK_STEPS):
        left = 1 / (precision + 1 / spreads)
        means = left * (counts / variance)[:, None] * sums
        weight = 1 - left / spreads
        total = np.maximum(weight.sum(axis=0), 1e-9)
        before = spreads
        spreads = np.maximum((weight * (means**2 + left)).sum(axis=0) / total, _LEAST_VARIANCE)
        if np.all(np.abs(spreads - before) <= _CONVERGED * before):
            break
    return spreads


def _own_grams(released: Floats, asked: ProfileQuestion) -> Floats:
    """Return each item's own Gram matrix from the released products."""
    factors = released.shape[1] - 1 - len(asked.pairs)
    grams = np.zeros((len(released), factors, factors))
    products = released[:, 1 + factors :] / asked.pair_part
    rows, columns = asked.pairs[:, 0], asked.pairs[:, 1]
    grams[:, rows, columns] = products
    if len(asked.pairs) < factors**2:
        grams[:, columns, rows] = products
    symmetric: Floats = (grams + np.swapaxes(grams, 1, 2)) / 2
    return symmetric


def _combined(favor: Favor, counts: Floats, noise: float, item_weights: Floats) -> Favor:
    """Combine the votes and the later counts by inverse variance."""
    ratio = max(float(counts.sum()), 1.0) / max(float(favor.votes @ item_weights), 1.0)
    later = counts / (ratio * item_weights)
    if favor.noise == 0 or noise == 0:
        return favor
    first, second = favor.noise**-2, (ratio * item_weights / noise) ** 2
    combined = (favor.votes * first + later * second) / (first + second)
    floor = 0.5 / np.sqrt(first + second)
    return Favor(votes=combined, noise=float(np.min(floor)), people=favor.people)


def recounted(favor: Favor, released: Floats, noise: float) -> ItemFactors:
    """Return items without factors, from a second release of votes."""
    again = read_votes(released, noise)
    first, second = favor.noise**-2, again.noise**-2
    votes = (favor.votes * first + again.votes * second) / (first + second)
    both = Favor(votes=votes, noise=(first + second) ** -0.5, people=again.people)
    nothing = np.zeros((votes.size, 0))
    return ItemFactors(
        bias=both.logarithms(), factors=nothing, origin=np.zeros(0), places=nothing, favor=both
    )


def refined_profiles(items: ItemFactors) -> Profiles:
    """Return profiles from all items: a user's most likely profile given their items' mean profiles."""
    share = items.favor.counts / items.favor.counts.sum()
    centered = items.places - share @ items.places
    spread = share @ centered**2
    factors = spread.size
    return Profiles(
        vectors=centered,
        squares=np.ones(share.size),
        center=np.zeros(factors),
        scale=np.ones(factors),
        clip=clip_length(factors),
        growth=spread,
    )
