"""Release lengths, order and levels of ratings of histories, for synthetic data, from a share of the budget.

The proof is in proofs/history_summary.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.privacy.accounting.gaussian import split_gaussian
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.statistics.data_source import DataSource
from discreet.statistics.history_summary import LENGTH_PART, LENGTH_STARTS, MOST_LEVELS, HistorySummary

#: The share of the budget that a fit with `for_synthesis` spends on histories; the model gets the rest.
HISTORY_SHARE = 0.03


class HistoryBudget(NamedTuple):
    """Hold the multipliers of the release of histories, and of all that the model releases."""

    histories: float
    model: float

    @classmethod
    def of(cls, multiplier: float) -> HistoryBudget:
        """Split the budget of one Gaussian release with this multiplier; 0 means no noise."""
        if not multiplier:
            return cls(0.0, 0.0)
        return cls(*split_gaussian(multiplier, (HISTORY_SHARE, 1 - HISTORY_SHARE)))


def history_question(facts: PublicFacts, *, rated: bool) -> HistorySummary:
    """Return the statistic; it depends on public facts alone. Without `rated` it does not look at ratings."""
    longest = min(facts.n_items, facts.max_per_user or facts.n_items)
    width = facts.high - facts.low if rated else 0.0
    levels = MOST_LEVELS
    if not width:
        # All ratings are at one level, whatever they are.
        levels = 1
    elif facts.step is not None:
        levels = min(round(width / facts.step) + 1, MOST_LEVELS)
    return HistorySummary(
        bins=int(np.searchsorted(LENGTH_STARTS, longest, side="right")),
        low=facts.low,
        width=width or 1.0,
        levels=levels,
    )


def release_histories(
    data: DataSource, multiplier: float, random: PrivacyRandom, *, rated: bool
) -> ReleasedHistories:
    """Release the summary of all users' histories; a user's contribution has length at most 1."""
    question = history_question(data.facts, rated=rated)
    noisy = Gaussian(sigma=multiplier, l2_sensitivity=1.0).release(data.total(question).steps(), random)
    return ReleasedHistories.cleaned(question.split(noisy), multiplier / LENGTH_PART)
