"""The log of a session: its accounts, its releases in exact numbers, and the cost of those releases."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, final

from discreet.privacy.accounting.gaussian import gaussian_delta
from discreet.privacy.accounting.rounding import round_down
from discreet.privacy.certificate import Release
from discreet.privacy.errors import Overspent as Overspent

# A delta that is computed once more agrees with the calibrated one to about 1e-9 (proofs/accounting.md).
_CLOSE = Fraction(1_000_001, 1_000_000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEntry:
    """One release, in exact numbers: everything that its privacy cost depends on.

    `bound` is the sensitivity of the statistic in its norm and `scale` the noise: the standard deviation of
    a Gaussian, the scale of a Laplace, None without noise. `exponent` and `steps` give the scale once more as
    the sampler uses it: `steps` units of 2^`exponent`, at least as much noise as `scale` with the rounding
    to that grid included. A perturbation that devices add, and a selection, state their `epsilon` and
    `delta` instead. `share` is the part of the account that the release costs. `release` is the entry of a
    certificate, made from the mechanism that draws the noise (proofs/certificate.md).
    """

    statistic: str
    part: str
    mechanism: str
    norm: str
    bound: Fraction
    scale: Fraction | None
    size: int
    account: int
    share: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    exponent: int | None = None
    steps: Fraction | None = None
    release: Release | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all fields. Fractions are texts such as "3/4", so that no digit is lost."""
        found: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            found[name] = str(value) if isinstance(value, Fraction) else value
        return found


@dataclass(slots=True)
class SpendingAccount:
    """A budget that releases of one kind share, in exact numbers."""

    number: int
    kind: Literal["approximate", "gaussian", "pure", "none"]
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    multiplier: float = 0.0
    # The part of an approximate account that isn't assigned yet.
    left_epsilon: Fraction = Fraction(0)
    left_delta: Fraction = Fraction(0)


@dataclass(slots=True)
class ReleaseLog:
    """Shared state of all sessions of a fit: accounts, entries, what is expected, the process, and a lock."""

    accounts: list[SpendingAccount] = field(default_factory=list)
    entries: list[ReleaseEntry] = field(default_factory=list)
    expected: list[Release] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    process: int = field(default_factory=os.getpid)

    def open(self, **fields: Any) -> SpendingAccount:
        """Return a new account."""
        account = SpendingAccount(number=len(self.accounts), **fields)
        self.accounts.append(account)
        return account

    def approximate(self, epsilon: Fraction, delta: Fraction) -> SpendingAccount:
        """Return a new account with an epsilon and a delta that aren't divided yet."""
        return self.open(
            kind="approximate", epsilon=epsilon, delta=delta, left_epsilon=epsilon, left_delta=delta
        )


def spent(account: SpendingAccount, entries: Sequence[ReleaseEntry]) -> tuple[Fraction, Fraction]:
    """Return the (epsilon, delta) of one account's releases, from their noise and bounds alone."""
    own = [entry for entry in entries if entry.account == account.number]
    if not own:
        return Fraction(0), Fraction(0)
    infinite = Fraction(10**9), Fraction(1)
    if account.kind == "gaussian":
        if any(entry.mechanism != "gaussian" or entry.scale is None for entry in own):
            return infinite
        precision = sum(((one.bound / one.scale) ** 2 for one in own if one.scale), Fraction(0))
        calibrated = gaussian_delta(account.multiplier, round_down(account.epsilon))
        if precision * Fraction(account.multiplier) ** 2 > 1 or calibrated > account.delta * _CLOSE:
            return infinite
        return account.epsilon, account.delta
    if account.kind == "pure":
        cost = Fraction(0)
        for one in own:
            if one.epsilon is not None:
                cost += one.epsilon
            elif one.mechanism == "laplace" and one.scale:
                cost += one.bound / one.scale
            else:
                return infinite
        return cost, Fraction(0)
    return account.epsilon, account.delta
