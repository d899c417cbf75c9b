"""Find out how much of the budget votes need before anything else may be bought, and which items need more.

A list starts from how popular items are. If noise hides which items are on top, no co-occurrence makes up for
it, and the list is worse than private popularity. So the first noisy release of votes shows how good a top
list would be at each share of the budget. A prior is fitted to the noisy votes, and votes are drawn from
their posterior. The answers are functions of released numbers and public settings, so they cost nothing
(proofs/user_factorization_implicit.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from discreet.core import Floats, Indices, experiment_generator
from discreet.privacy import Session
from discreet.solvers import VoteEstimate
from discreet.statistics import ItemVotes, VotesAmong

# Shares that are compared, after the one that votes get anyway. The last one is a budget that is all spent on
# votes.
_MORE_SHARES = (0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.98)
# A list that is worth this part of another one is as good, as for lists next to private popularity.
_AS_GOOD = 0.98
# Length of the list that is judged, and draws of all votes over which it is averaged.
_TOP, _DRAWS = 20, 8
# Numbers of votes that the prior can have, and steps that fit it.
_LEVELS, _STEPS = 48, 40
# Noisy votes this part of the noise apart count as equal; there are at most so many different ones.
_RESOLUTION, _MOST_CELLS = 0.25, 8192


def share_for_votes(
    votes: Floats, noise: float, multiplier: float, least: float, *, pairs: float, counted: float = 1.0
) -> float | None:
    """Return the share of the budget that votes need first, or None if pairs must not be bought at all.

    `votes` have this `noise`; `multiplier` is the noise of a release of the whole budget, of which votes got
    the share `least`. Of what is left, co-occurrences get the part `pairs`, and the part `counted` of the
    rest shows votes again. The share is the least one with which the top list is as good as one from the
    whole budget even if co-occurrences show nothing. If co-occurrences would get less than this share, noise
    hides them even more than popularity, and all of the budget goes into votes.
    """
    if not multiplier or votes.size <= _TOP:
        return least
    shares = np.array([least, *_MORE_SHARES])
    worth = _worth_of_lists(votes, noise, multiplier, shares)
    at_last = np.interp(shares + (1 - shares) * (1 - pairs) * counted, shares, worth)
    enough = float(shares[np.argmax(at_last >= _AS_GOOD * worth[-1])])
    return enough if enough <= pairs * (1 - enough) else None


def last_votes(session: Session, tally: VoteEstimate, people: float) -> VoteEstimate:
    """Release votes for all that is left of the budget, and merge them with what is known.

    If noise would hide the top of the whole catalog, users vote only for the items that may be on top. Each
    of their votes is then larger, and the noise is the same. All other items keep what is expected of them.
    """
    n_items, noise = session.n_items, session.multiplier_of(session.left)
    posterior = _Posterior.of(tally.votes, float(tally.error[0])) if noise else None
    chosen = None if posterior is None else _contenders(tally, posterior, noise, people)
    if posterior is None or chosen is None:
        return tally.with_again(*session.release(ItemVotes(n_items=n_items, norm="l2"), session.left))
    mean, variance = posterior.moments()
    gain = _gain(mean, chosen, people)
    votes, noise = session.release(VotesAmong(n_items=n_items, top=chosen), session.left)
    rest = VoteEstimate(votes=mean, variance=variance)
    return tally.with_some(chosen, votes / gain, noise / gain, rest)


def _contenders(tally: VoteEstimate, posterior: _Posterior, noise: float, people: float) -> Indices | None:
    """Return the items that users should vote for, ascending; None: all of them.

    Compared are the upper half of the items, the upper quarter, and so on. A part is chosen only if the top
    list of votes for all items is not as good.
    """
    votes, first = tally.votes, float(tally.error[0])
    order, mean = np.argsort(-votes, kind="stable"), posterior.moments()[0]
    sizes = [votes.size]
    while sizes[-1] // 2 > _TOP:
        sizes.append(sizes[-1] // 2)
    random, worth = experiment_generator(0, "contenders"), np.zeros(len(sizes))
    noises = [noise / _gain(mean, order[:size], people) for size in sizes]
    for true in posterior.draws(random):
        error = random.standard_normal(votes.size)
        for place, (size, more) in enumerate(zip(sizes, noises, strict=True)):
            part = order[:size]
            merged = votes[part] / first**2 + true[part] / more**2 + error[part] / more
            worth[place] += true[part[_top(merged)]].sum()
    best = int(np.argmax(worth))
    return np.sort(order[: sizes[best]]) if worth[0] < _AS_GOOD * worth[best] else None


def _gain(votes: Floats, chosen: Indices, people: float) -> float:
    """Return how much larger a vote is if users vote for the `chosen` items only.

    A user with n items has votes of n^(-1/2). Of the n items, about the part of the votes for chosen items is
    left, and never less than one.
    """
    every = float(votes.sum())
    length = max((every / people) ** 2, 1.0)
    return math.sqrt(length / max(length * float(votes[chosen].sum()) / max(every, 1e-300), 1.0))


def _top(votes: Floats) -> Indices:
    return np.argpartition(-votes, _TOP)[:_TOP] if votes.size > _TOP else np.arange(votes.size)


def _worth_of_lists(votes: Floats, noise: float, multiplier: float, shares: Floats) -> Floats:
    """Return the expected votes of the top list at each share, on one set of posterior draws."""
    random = experiment_generator(0, "votes first")
    known = 1 / noise**2
    worth = np.zeros(len(shares))
    for true in _Posterior.of(votes, noise).draws(random):
        error = random.standard_normal(votes.size)
        for place, share in enumerate(shares):
            # What the whole share knows is what the first release knows, and one more.
            more = max(share / multiplier**2 - known, 0.0)
            merged = votes * known + true * more + error * np.sqrt(more)
            worth[place] += true[_top(merged)].sum()
    return worth


class _Posterior(NamedTuple):
    """Chances of `levels` of the true votes for each of a few noisy values, and each item's value."""

    levels: Floats
    chances: Floats
    cells: Indices

    @classmethod
    def of(cls, votes: Floats, noise: float) -> Self:
        """Return the posterior of noisy votes under the prior that maximizes their likelihood."""
        values, cells = _cells(votes, noise)
        levels = np.append(0.0, np.geomspace(0.02, 1.05 * max(float(votes.max()), 1.0), _LEVELS))
        squares = (values[:, None] - levels) ** 2 / (2 * noise**2)
        likelihood = np.exp(squares.min(axis=1, keepdims=True) - squares)
        counts, prior = np.bincount(cells, minlength=values.size), np.full(levels.size, 1 / levels.size)
        for _ in range(_STEPS):
            prior = prior * (likelihood.T @ (counts / np.maximum(likelihood @ prior, 1e-300))) / votes.size
        return cls(levels, likelihood * prior, cells)

    def draws(self, random: np.random.Generator) -> list[Floats]:
        """Return draws of all true votes."""
        size, summed = self.levels.size, np.cumsum(self.chances, axis=1)
        summed /= np.maximum(summed[:, -1:], 1e-300)
        # One sorted table for all cells: cell c has its chances between c and c + 1.
        table = (np.arange(len(summed))[:, None] + summed).ravel()
        places = [np.searchsorted(table, self.cells + random.random(self.cells.size)) for _ in range(_DRAWS)]
        return [self.levels[np.clip(place - self.cells * size, 0, size - 1)] for place in places]

    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and the variance of each item's votes."""
        chances = self.chances / np.maximum(self.chances.sum(axis=1, keepdims=True), 1e-300)
        mean = chances @ self.levels
        variance = np.maximum(chances @ self.levels**2 - mean**2, 1e-9)
        return mean[self.cells], variance[self.cells]


def _cells(votes: Floats, noise: float) -> tuple[Floats, Indices]:
    """Return votes rounded to a part of their noise, each value once, and the place of each item's value."""
    span = float(votes.max() - votes.min())
    width = max(_RESOLUTION * noise, span / _MOST_CELLS)
    steps, cells = np.unique(np.round(votes / width), return_inverse=True)
    return steps * width, cells
