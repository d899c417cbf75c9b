"""Release lengths, order and levels of ratings of histories, for synthetic data, from a share of the budget.

The proof is in proofs/history_summary.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.data.facts import PublicFacts
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.privacy.session import Session, share
from discreet.statistics.history_summary import LENGTH_PART, LENGTH_STARTS, MOST_LEVELS, HistorySummary

#: The share of the budget that a fit with `for_synthesis` spends on histories; the model gets the rest.
HISTORY_SHARE = share(0.03)


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


def release_histories(session: Session, *, rated: bool) -> ReleasedHistories:
    """Release the summary of all users' histories, for all of the session."""
    question = history_question(session.facts, rated=rated)
    noisy, deviation = session.release(question, Fraction(1))
    return ReleasedHistories.cleaned(question.split(noisy), deviation / LENGTH_PART)
