"""Set who adds how much noise: each party enough for its own users, or all parties together enough for all.

Two classes, two guarantees; docs/federated.md has the table of who may be hostile. With `OwnNoise` a party's
users are protected from everyone who sees its answers, whatever the others do. With `SharedNoise` each
party adds a share and no one may see an answer alone, which is what the masks and the keeper in `keeper.py`
are for. Both are proved in proofs/federated.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, integer, require
from discreet.privacy import Assumption, Fact, Kind, ShareUnits, gaussian_epsilon, gaussian_multiplier
from discreet.statistics import PRODUCT_BITS

Numbers = npt.NDArray[Any]
#: Every statistic is a whole number of fixed-point units 2^-STEP_BITS (proofs/exact_sums.md).
STEP_BITS = PRODUCT_BITS


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNoise:
    """Every party adds all the noise that its own guarantee needs.

    Use it if parties trust no one, or guarantee different things. The sum has as many times the noise as
    there are parties.

    Guarantee
        A party guarantees its users the same against everyone, whatever the other members do.

    Example:
        >>> from discreet.federated import SummedStatistics
        >>> SummedStatistics(epsilon=1.0).noise == OwnNoise()
        True

    Stability
        Stable.
    """

    masked: ClassVar[bool] = False
    number_type: ClassVar[str] = "<f8"

    @property
    def least_parties(self) -> int:
        """Return the fewest answers that a round needs."""
        return 1

    def assumes(self, epsilon: float, delta: float) -> tuple[Assumption, ...]:
        """Return what the guarantee assumes in addition to the public facts.

        Without a keeper no one but the party and its ledger surely remembers what was drawn.
        """
        return (Assumption.of(Kind.BACKUP, Fact.PARTY_AND_LEDGER),)

    def read(self, total: Numbers) -> Floats:
        """Return the sum of answers as numbers."""
        return np.asarray(total, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNoise:
    """Every party adds a share of the noise; only sums over enough parties are ever seen.

    Use it if a keeper of masks can run: the model then has about the accuracy of one owner of all data.

    Guarantee
        Each party's guarantee assumes that at most `missing` parties are absent or reveal their noise, and
        that the keeper and the coordinator don't work together. The label states what is left otherwise.

    Parameters:
        parties: The number of parties.
        missing: How many of them, together, may be absent or reveal their noise. The others add enough. A
            coordinator can exclude parties: the label states what is left if it works with one of them.

    Example:
        >>> SharedNoise(parties=4, missing=1).least_parties
        3

    Stability
        Stable.
    """

    masked: ClassVar[bool] = True
    number_type: ClassVar[str] = "<u8"

    parties: int
    missing: int = 2

    def __post_init__(self) -> None:
        integer("parties", self.parties, least=2, most=2**20)
        integer("missing", self.missing, least=0)
        require(
            self.missing <= self.parties - 2,
            "missing",
            self.missing,
            must=f"be at most {self.parties - 2}, so that two parties are left to hide behind each other",
        )

    @property
    def least_parties(self) -> int:
        """Return the fewest answers that a round needs."""
        return self.parties - self.missing

    def assumes(self, epsilon: float, delta: float) -> tuple[Assumption, ...]:
        """Return what the guarantee assumes, and the guarantee that is left if that is false."""
        return _assumed(self, epsilon, delta)

    @property
    def units(self) -> ShareUnits:
        """Return how the noise of a sum is shared."""
        return ShareUnits(self.least_parties, STEP_BITS)

    def read(self, total: Numbers) -> Floats:
        """Return the unmasked sum of answers as numbers; the upper half of the ring is negative."""
        signed = np.asarray(total, dtype=np.uint64).view(np.int64)
        return np.ldexp(signed.astype(np.float64), -STEP_BITS)


@lru_cache(maxsize=64)
def _assumed(noise: SharedNoise, epsilon: float, delta: float) -> tuple[Assumption, ...]:
    trusted, known = noise.least_parties, []
    if math.isfinite(epsilon):

        def left(shares: int) -> float | None:
            """Return the epsilon that so many shares of the noise guarantee, rounded up; None if none."""
            part = gaussian_multiplier(epsilon, delta) * math.sqrt(shares / trusted)
            found = 100 * gaussian_epsilon(part, delta)
            return math.ceil(found) / 100 if math.isfinite(found) else None

        # A coordinator chooses the parties that it skips: those that it works with are never among them.
        coordinator = noise.missing > 0
        known = [
            Assumption.of(Kind.PARTY, Fact.KNOWN_SHARE, epsilon=left(trusted - 1), coordinator=coordinator),
            Assumption.of(Kind.PARTY, Fact.ONE_SHARE, epsilon=left(1)),
        ]
    return (
        Assumption.of(Kind.PARTY, Fact.COLLUSION),
        Assumption.of(Kind.PARTY, Fact.NOISE_SHARES, parties=trusted),
        *known,
        Assumption.of(Kind.BACKUP, Fact.MEMBERS),
    )


def symmetric_from(triangle: Floats) -> Floats:
    """Return the symmetric matrix with this upper triangle."""
    size = (math.isqrt(8 * triangle.size + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return matrix + np.triu(matrix, 1).T


def total_deviation(deviations: Sequence[float]) -> float:
    """Return the standard deviation of a sum of independent noises."""
    return math.sqrt(math.fsum(value**2 for value in deviations))
