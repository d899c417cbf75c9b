"""Find out how much of the budget votes need before anything else may be bought.

A list starts from how popular items are. If noise hides which items are on top, no co-occurrence makes up for
it, and the list is worse than private popularity. So the first noisy release of votes shows how good a top
list would be at each share of the budget. A prior is fitted to the noisy votes, and votes are drawn from
their posterior. The answer is a function of released numbers and public settings, so it costs nothing
(proofs/user_factorization_implicit.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.core.randomness import experiment_generator
from discreet.models.user_factorization.settings import FactorizationSettings

# Shares that are compared, after the one that votes get anyway. The last one is a budget that is all spent on
# votes.
_MORE_SHARES = (0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.98)
# Length of the list that is judged, and draws of all votes over which it is averaged.
_TOP, _DRAWS = 20, 8
# Numbers of votes that the prior can have, and steps that fit it.
_LEVELS, _STEPS = 48, 40
# Noisy votes this part of the noise apart count as equal; there are at most so many different ones.
_RESOLUTION, _MOST_CELLS = 0.25, 8192


def share_for_votes(
    votes: Floats, noise: float, multiplier: float, settings: FactorizationSettings, *, pairs: float
) -> float | None:
    """Return the share of the budget that votes need, or None if pairs must not be bought at all.

    `votes` have this `noise`; `multiplier` is the noise of a release of the whole budget. The share is the
    least one whose top list is worth `settings.votes_worth` of what the whole budget would give. Of the rest,
    co-occurrences get the part `pairs`. If that is less than votes need, noise hides pairs even more than
    popularity, and all of the budget goes into votes.
    """
    if not multiplier or votes.size <= _TOP:
        return settings.first_share
    shares = (settings.first_share, *_MORE_SHARES)
    worth = _worth_of_lists(votes, noise, multiplier, shares)
    enough = shares[int(np.argmax(worth >= settings.votes_worth * worth[-1]))]
    return enough if enough <= pairs * (1 - enough) else None


def _worth_of_lists(votes: Floats, noise: float, multiplier: float, shares: Sequence[float]) -> Floats:
    """Return the expected votes of the top list at each share, on one set of posterior draws."""
    random = experiment_generator(0, "votes first")
    drawn = _posterior_draws(votes, noise, random)
    known = 1 / noise**2
    worth = np.zeros(len(shares))
    for true in drawn:
        error = random.standard_normal(votes.size)
        for place, share in enumerate(shares):
            # What the whole share knows is what the first release knows, and one more.
            more = max(share / multiplier**2 - known, 0.0)
            merged = votes * known + true * more + error * np.sqrt(more)
            top = np.argpartition(-merged, _TOP)[:_TOP]
            worth[place] += true[top].sum()
    return worth


def _posterior_draws(votes: Floats, noise: float, random: np.random.Generator) -> list[Floats]:
    """Return draws of the true votes, given noisy ones and a prior that maximizes their likelihood."""
    values, cells = _cells(votes, noise)
    levels = np.append(0.0, np.geomspace(0.02, 1.05 * max(float(votes.max()), 1.0), _LEVELS))
    squares = (values[:, None] - levels) ** 2 / (2 * noise**2)
    likelihood = np.exp(squares.min(axis=1, keepdims=True) - squares)
    counts, prior = np.bincount(cells, minlength=values.size), np.full(levels.size, 1 / levels.size)
    for _ in range(_STEPS):
        prior = prior * (likelihood.T @ (counts / np.maximum(likelihood @ prior, 1e-300))) / votes.size
    chances: Any = np.cumsum(likelihood * prior, axis=1)
    chances /= np.maximum(chances[:, -1:], 1e-300)
    # One sorted table for all cells: cell c has its chances between c and c + 1.
    table = (np.arange(values.size)[:, None] + chances).ravel()
    places = [np.searchsorted(table, cells + random.random(votes.size)) for _ in range(_DRAWS)]
    return [levels[np.clip(place - cells * levels.size, 0, levels.size - 1)] for place in places]


def _cells(votes: Floats, noise: float) -> tuple[Floats, Indices]:
    """Return votes rounded to a part of their noise, each value once, and the place of each item's value."""
    span = float(votes.max() - votes.min())
    width = max(_RESOLUTION * noise, span / _MOST_CELLS)
    steps, cells = np.unique(np.round(votes / width), return_inverse=True)
    return steps * width, cells
