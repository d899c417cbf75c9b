"""Compute how many of their own usual steps users have missed since their latest interaction.

A user who returns after a pause doesn't continue their last session. So lists count the latest items of such
a user less, and popularity more. Only the request's time and the user's own history decide, so this costs no
budget.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats
from discreet.data.epochs import EPOCHS, epoch_seconds
from discreet.data.interactions import Interactions

_DAY = 86400.0
# A pause begins to count after this many usual gaps, which are one step. More steps than the second number
# count like it.
_GAPS_PER_STEP, _MOST_STEPS = 10.0, 30.0
# Weights between items count (1 + steps) to the minus this.
_DAMPING = 0.5


def missed_steps(histories: Interactions) -> Floats:
    """Return the missed steps of each user at `histories.now`; zero if it isn't stated.

    A usual gap is the time between the first and the latest interaction and one day, divided by the number of
    interactions. Users whose times are positions have missed nothing.
    """
    if "missed" not in histories.kept:
        histories.kept["missed"] = _missed(histories)
    missed: Floats = histories.kept["missed"]
    return missed


def _missed(histories: Interactions) -> Floats:
    missed = np.zeros(histories.n_users)
    if histories.now is None or histories.times is None or not histories.n_ratings:
        return missed
    if histories.times.max() < EPOCHS[0][1]:
        return missed
    lengths = np.diff(histories.indptr)
    some = np.flatnonzero(lengths)
    if some.size:
        starts, seconds = histories.indptr[:-1][some], epoch_seconds(histories.times)
        first, last = np.minimum.reduceat(seconds, starts), np.maximum.reduceat(seconds, starts)
        usual = (last - first + _DAY) / lengths[some]
        steps = (histories.now - last) / (_GAPS_PER_STEP * usual) - 1
        missed[some] = np.clip(np.nan_to_num(steps, nan=0.0), 0.0, _MOST_STEPS)
    return missed


def damped(blend: float, missed: Floats) -> Floats:
    """Return the share of a list's probability that follows weights between items, for each user."""
    share: Floats = blend * (1 + missed) ** -_DAMPING
    return share
