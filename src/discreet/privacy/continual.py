"""Continual releases: a period is spent at once. Each release is drawn once, stored, and replayed.

Release t publishes, for each list of numbers, the sum over s <= t of C[t, s] x_s plus fresh noise. x_s are
exact sums of what entered at release s, and C is a fixed matrix of whole numbers. One user's entries of the
whole period have a bounded sum of squares, and each number that a user adds enters once. So a user moves all
releases together by at most that length times the longest column of C. `Stream` computes this length from the
plan itself, in whole numbers (proofs/follow.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

from discreet.core import PrivacyRandom
from discreet.privacy import errors
from discreet.privacy.accounting.rounding import root_above
from discreet.privacy.certificate import continual_release
from discreet.privacy.mechanisms.additive import Release, fixed_point_noise
from discreet.privacy.sampling.draws import add_discrete_gaussian

Whole = npt.NDArray[np.int64]
# The sampler adds noise to numbers that are strictly within 2^62.
_TOO_FAR = 1 << 62
# Sums of squares of this many smaller numbers are exact in 64 bits.
_LARGEST_WEIGHT, _MOST_RELEASES = 1 << 20, 1 << 20
# More numbers than a period can draw: two lists of 2^31 items in each of 1,100 releases, and the means.
_MOST_NUMBERS = 1 << 43


class ContinualPlan(Protocol):
    """How the sums of a period are released. All of it is public before the period begins."""

    @property
    def name(self) -> str:
        """Return what is released."""

    @property
    def bits(self) -> int:
        """Return b: released numbers are whole multiples of 2^-b, and noise is calibrated to length 1."""

    @property
    def shares(self) -> int:
        """Return how many parties' noise hides a release together. It is 1 if a release hides itself."""

    @property
    def matrices(self) -> Sequence[Whole]:
        """Return C in whole numbers for each kind of list. C has one row and one column per release."""

    @property
    def entries(self) -> int:
        """Return the largest sum of squares of all whole numbers that one user enters in the period."""

    def exact(self, sums: Sequence[Any], /) -> Sequence[Whole]:
        """Return the lists of the latest release before noise, from the sums of all releases so far."""


class ContinualState(Protocol):
    """State that outlives the process: exact sums, and the releases that were drawn from them."""

    @property
    def made(self) -> int:
        """Return how many releases were drawn and stored."""

    def sums(self) -> Sequence[Any]:
        """Return the exact sums of the entries, one element per release. The last isn't released yet."""

    def store(self, number: int, drawn: Sequence[Whole], *, simulated: bool) -> None:
        """Store a release. Raise if the release of this number is stored already."""


@final
class Stream:
    """All releases of one period. The session that made the stream has spent its budget for all of them.

    A release is stored in the same transaction that drew it, and nothing of it leaves before. A repeated
    request gets the stored numbers. If the state shows that all releases were made, nothing more is drawn.
    """

    __slots__ = ("_plan", "_random", "_state", "width")

    def __init__(
        self, plan: ContinualPlan, state: ContinualState, *, multiplier: float, random: PrivacyRandom
    ) -> None:
        refuse_long(plan)
        self._plan, self._state, self._random = plan, state, random
        self.width = continual_width(multiplier, bits=plan.bits, shares=plan.shares)

    def release(self) -> Sequence[Whole]:
        """Draw and store the next release, and return its lists.

        Raises:
            Overspent: All releases of the period were made. Nothing was drawn.
        """
        number, most = self._state.made, len(self._plan.matrices[0])
        if number >= most:
            raise errors.PeriodOver(releases=most)
        sums = self._state.sums()
        if len(sums) != number + 1:
            raise errors.SumsMissing(release=number + 1, found=len(sums))
        drawn = [np.array(one, dtype=np.int64) for one in self._plan.exact(sums)]
        for one in drawn:
            if one.size and int(np.abs(one).max()) >= _TOO_FAR:
                raise errors.SumTooLarge(exponent=62)
            add_discrete_gaussian(one, self.width, self._random)
        self._state.store(number, drawn, simulated=self._random.simulated)
        return drawn


def refuse_long(plan: ContinualPlan) -> None:
    """Raise unless one user moves all releases of a plan by at most 2^bits of its units, in whole numbers."""
    longest = 0
    for matrix in plan.matrices:
        if len(matrix) > _MOST_RELEASES or int(np.abs(matrix).max(initial=0)) >= _LARGEST_WEIGHT:
            raise errors.WeightsTooLarge(plan=plan.name)
        if np.triu(matrix, 1).any():
            raise errors.SumsOfTheFuture(plan=plan.name)
        longest = max(longest, int((matrix.astype(np.int64) ** 2).sum(axis=0).max(initial=0)))
    if not longest or longest * plan.entries > 4**plan.bits:
        raise errors.PlanMovesTooFar(plan=plan.name)


def continual_width(multiplier: float, *, bits: int, shares: int = 1) -> float:
    """Return the noise that each of `shares` parties adds, in units of 2^-bits, for sensitivity 1 in all.

    Discrete noise of variance s^2 + 4 hides as much as continuous noise of variance s^2 (proofs/gaussian.md).
    """
    exact = Fraction(multiplier) * (1 + Fraction(1, 2**40)) * 2**bits
    return fixed_point_noise(root_above(exact**2 / shares + 4))


def certified(plan: ContinualPlan, width: float) -> Release:
    """Return all releases of a period together, as a certificate lists them."""
    matrices = [
        [column[place:].tolist() for place, column in enumerate(matrix.T)] for matrix in plan.matrices
    ]
    return continual_release(
        plan.name, matrices, entries=plan.entries, width=width, coordinates=_MOST_NUMBERS
    )
