"""Find out whether the order of interactions informs; where it does not, learn as from data without times.

Times may be those of an import, or drawn at random. Weights by order would then only add chance. So after the
co-occurrences three numbers are released: how well they predict each user's own order, without that user's
part in them. The proofs are in proofs/user_factorization.md and proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.privacy.session import Session
from discreet.solvers.empirical_bayes import VoteEstimate
from discreet.statistics.co_occurrence import CoOccurrence
from discreet.statistics.order_evidence import OrderEvidence

# Standard deviations that make a finding sure.
_SURE = 2.0

Informs = Literal["yes", "no", "cannot tell", "not asked"]


def order_informs(
    session: Session,
    share: Fraction,
    asked: CoOccurrence,
    pairs: Floats,
    tally: VoteEstimate,
    least_order: float,
) -> Informs:
    """Release how well co-occurrences predict the order of interactions, and return whether it informs.

    `pairs` is the released sum of `asked`. Order informs if the mean correlation is surely positive. It does
    not if that is surely below `least_order`. The deviation is that of the noise and, from the released sum
    of squares, of sampling.
    """
    # Entries have about the variance that popularity expects; dividing by its root makes them comparable.
    scale = 1 / np.sqrt(tally.raised[asked.top] * asked.weight)
    evidence = OrderEvidence(asked=asked, pairs=pairs, scale=scale / scale.max())
    (total, half_squares, halves), sigma = session.release(evidence, share)
    unsure = _SURE * math.sqrt(max(2 * half_squares, 0.0) + sigma**2)
    if total + unsure < least_order * 2 * halves:
        return "no"
    return "yes" if total > unsure else "cannot tell"
