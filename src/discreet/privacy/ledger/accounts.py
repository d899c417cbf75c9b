"""Assign weights to releases. The weights add up, even if releases are chosen after seeing earlier ones.

An account defines the weight of a release and the total weight that an (epsilon, delta) allows. The weight of
a release is fixed before its noise is drawn, so the rest never depends on its output. Therefore adding
weights stays valid for adaptive choices (proofs/ledger.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from scipy.special import ndtri_exp

from discreet.privacy.accounting.events import Leaf, event_from_json, tally
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier, least
from discreet.privacy.accounting.loss_bounds import pure_loss, renyi_delta, renyi_epsilon
from discreet.privacy.accounting.rounding import times_up
from discreet.privacy.errors import BudgetNeedsDelta, NotCounted
from discreet.privacy.guarantee import Guarantee

# More than the rounding of a handful of operations, and negligible.
_UP, _DOWN = 1 + 2.0**-40, 1 - 2.0**-40
# A plan leaves a margin for all later rounding to the safe side.
_MARGIN = 1 - 2.0**-36


class Account(StrEnum):
    """How a budget adds up releases."""

    #: Epsilons and deltas are added.
    ADDING = "adding"
    #: Squares of mu are added, as for Gaussian differential privacy; pure releases convert.
    GAUSSIAN = "gaussian"
    #: Rhos are added, as for zero-concentrated differential privacy.
    CONCENTRATED = "concentrated"


Events = Iterable[Mapping[str, Any]]


def weight(account: Account, promise: Guarantee, events: Events) -> float:
    """Return the weight of a release with these recorded events, rounded up.

    Raises:
        PrivacyError: The account has no weight for this release.
    """
    leaves = tally([event_from_json(record) for record in events])
    whole = _pure_weight(account, promise.epsilon) if promise.delta == 0 else math.inf
    parts = sum(times * _leaf_weight(account, leaf) for leaf, times in leaves.items()) if leaves else math.inf
    lightest = min(whole, parts * _UP)
    if math.isinf(lightest):
        raise NotCounted(account=account.value)
    return lightest


def capacity(account: Account, limit: Guarantee) -> float:
    """Return the largest total weight that is still within the limit, rounded down."""
    if limit.delta == 0:
        raise BudgetNeedsDelta(account=account.value)
    if account is Account.GAUSSIAN:
        return gaussian_multiplier(limit.epsilon, limit.delta) ** -2 * _DOWN
    scarce = least(
        lambda inverse: renyi_delta(_concentrated(1 / inverse), limit.epsilon) <= limit.delta,
        guess=1 / limit.epsilon,
        precision=1e-12,
    )
    return _DOWN / scarce


def epsilon_of(account: Account, total: float, delta: float) -> float:
    """Return the epsilon at `delta` of everything with this total weight, rounded up."""
    if total == 0:
        return 0.0
    if account is Account.GAUSSIAN:
        return gaussian_epsilon(total**-0.5 * _DOWN, delta)
    return renyi_epsilon(_concentrated(total * _UP), delta)


def gaussian_shift(epsilon: float) -> float:
    """Return a mu such that every pure `epsilon` release is mu-GDP: 2 Phi^-1(e^epsilon / (1 + e^epsilon)).

    Example:
        >>> round(gaussian_shift(1.0), 4)
        1.232
    """
    unlikely = -epsilon - math.log1p(math.exp(-epsilon))
    return -2 * float(ndtri_exp(unlikely)) * _UP


def _concentrated(rho: float) -> dict[Leaf, int]:
    return {Leaf("ZCDpEvent", (rho, 0.0)): 1}


def _pure_weight(account: Account, epsilon: float) -> float:
    if math.isinf(epsilon):
        return math.inf
    if account is Account.GAUSSIAN:
        return gaussian_shift(epsilon) ** 2 * _UP
    # Half the square for every pure loss; and a divergence never exceeds the loss itself.
    return min(epsilon * epsilon / 2, epsilon) * _UP


def _leaf_weight(account: Account, leaf: Leaf) -> float:
    if leaf.kind == "GaussianDpEvent":
        squared = leaf.values[0] ** -2
        return squared if account is Account.GAUSSIAN else squared / 2
    if leaf.kind == "ZCDpEvent" and leaf.values[0] > 0:
        rho, extra = leaf.values
        return rho if account is Account.CONCENTRATED and extra == 0 else math.inf
    return _pure_weight(account, pure_loss(leaf))


def allowed_each(account: Account, limit: Guarantee, releases: int, delta: float) -> float:
    """Return the largest epsilon at `delta` that each of this many equal Gaussian releases may have.

    In an adding account, each gets its share of epsilon. Its share of delta must be at least `delta`.
    """
    if account is Account.ADDING:
        return limit.epsilon / releases if times_up(delta, releases) <= limit.delta * _UP else 0.0
    share = capacity(account, limit) / releases * _MARGIN
    mu_squared = share if account is Account.GAUSSIAN else 2 * share
    return gaussian_epsilon(mu_squared**-0.5, delta)
