"""Learn from choices alone: how often each item is chosen, and by people of which taste.

The proof is in proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.crowd import Crowd
from discreet.contributions.item_sums import ItemVotes
from discreet.contributions.people import PeopleCount
from discreet.contributions.statistic import Statistic
from discreet.models.progress import Progress
from discreet.models.scorers.choices import ClickScorer
from discreet.models.user_factorization.budget_split import Purse, people_per_noise
from discreet.models.user_factorization.crowds import (
    choice_crowds,
    choice_directions,
    may_show,
)
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.randomness import PrivacyRandom
from discreet.solvers.tally import Tally

# How the budget is shared: number of people, votes, and second moment; the rest is spent on where the crowds
# of items stand, or on votes once more.
_PEOPLE, _VOTES, _MOMENT = 0.01, 0.10, 0.35


def learn_choices(
    data: Crowd, table: Floats | None, multiplier: float, random: PrivacyRandom, progress: Progress
) -> ClickScorer:
    """Release votes and, where it pays, taste; together one Gaussian release with this multiplier."""
    public = np.zeros((data.n_items, 0)) if table is None else table
    purse = Purse(multiplier)
    people = max(float(_noisy(data, PeopleCount(), purse.take(_PEOPLE), random)[0]), 1.0)
    votes, noise = ItemVotes(n_items=data.n_items, norm="l2"), purse.take(_VOTES)
    tally = Tally.of(_noisy(data, votes, noise, random), noise)
    progress("user-factorization", 1, 3)
    vectors = np.zeros((data.n_items, 0))
    ratio = people_per_noise(people, multiplier)
    pays = may_show(people, data.n_items, multiplier / np.sqrt(_MOMENT))
    decisions: dict[str, Any] = {
        "people per noise": round(ratio, 1) if multiplier else "inf",
        "a second moment can show taste": pays,
    }
    found = choice_directions(data, tally, people, purse.take(_MOMENT), random) if pays else None
    progress("user-factorization", 2, 3)
    decisions["directions kept"] = found.kept if found else 0
    if found and found.kept:
        vectors, tally = choice_crowds(data, tally, found, people, purse.take_rest(), public, random)
    else:
        noise = purse.take_rest()
        tally = tally.with_more(_noisy(data, votes, noise, random), noise, np.ones(data.n_items))
    progress("user-factorization", 3, 3)
    return ClickScorer.of(tally.likely, vectors, decisions)


def _noisy(crowd: Crowd, told: Statistic, multiplier: float, random: PrivacyRandom) -> Floats:
    return Gaussian(sigma=multiplier, l2_sensitivity=1.0).release(crowd.total(told).steps(), random)
