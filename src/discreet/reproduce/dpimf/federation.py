"""Algorithm 1 of DPIMF as printed: ten parties, local rounds with noise, averages. NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.core.randomness import experiment_generator
from discreet.papers.dpimf.estimators import Dpimf, PrintedFactorization
from discreet.papers.dpimf.printed_losses import Floats, Side
from discreet.reproduce.dpimf.protocol import HIGH_EPSILONS, SIDES, Bench, Curve, Place
from discreet.reproduce.running import Run

PARTIES, ROUNDS, LOCAL = 10, 100, 20
SHARED = {"all shared": True, "own catalogs": False}


class PrintedParty(NamedTuple):
    """A party's data, shared side first, and the global indices of its rows and columns."""

    shared_by_own: csr_matrix
    own_by_shared: csr_matrix
    shared: npt.NDArray[np.int64]
    own: npt.NDArray[np.int64]


def split_parties(
    clicks: csr_matrix, side: Side, parties: int, seed: int, *, everything: bool = False
) -> list[PrintedParty]:
    """Deal out users (items are shared) or items (users are shared) at random."""
    rows = clicks.T.tocsr() if side == "items" else clicks.tocsr()
    owner = experiment_generator(seed, "parties", side).permutation(rows.shape[1]) % parties
    found = []
    for party in range(parties):
        own = np.flatnonzero(owner == party)
        part = rows[:, own]
        shared = np.arange(rows.shape[0]) if everything else np.flatnonzero(np.diff(part.indptr))
        kept = part[shared].tocsr()
        found.append(PrintedParty(kept, kept.T.tocsr(), shared, own))
    return found


def overlap(parties: list[PrintedParty]) -> list[float]:
    """Return which share of the union a party has on average, and which share of it all have."""
    held = np.zeros(1 + max(int(party.shared.max()) for party in parties))
    for party in parties:
        held[party.shared] += 1
    union = np.count_nonzero(held)
    sizes = [party.shared.size for party in parties]
    return [float(np.mean(sizes) / union), float(np.count_nonzero(held == len(parties)) / union)]


def federate(
    clicks: csr_matrix,
    estimator: PrintedFactorization,
    seed: int,
    *,
    parties: int = PARTIES,
    everything: bool = True,
) -> tuple[Floats, Floats]:
    """Run all rounds and the fine-tuning; return user and item factors.

    With `everything`, all parties share all of one side, as in Section VI-A. Otherwise a party knows the
    items (or users) of its own data, and an average is over those who have it.
    """
    generator = experiment_generator(seed, "federation", "opt", str(estimator.epsilon), estimator.solve)
    members = split_parties(clicks, estimator.solve, parties, seed, everything=everything)
    n_shared, n_own = clicks.shape[::-1] if estimator.solve == "items" else clicks.shape
    shared = generator.uniform(size=(n_shared, estimator.factors))
    for _ in range(estimator.rounds):
        total, held = np.zeros_like(shared), np.zeros((n_shared, 1))
        for party in members:
            profiles = shared[party.shared]
            for _ in range(estimator.local):
                own_profiles = estimator.exact(party.own_by_shared, profiles)
                profiles = estimator.solved(party.shared_by_own, own_profiles, generator)
            total[party.shared] += profiles
            held[party.shared] += 1
        shared = np.where(held > 0, total / np.maximum(held, 1), shared)
    own = np.zeros((n_own, estimator.factors))
    for party in members:
        own[party.own] = estimator.exact(party.own_by_shared, shared[party.shared])
    return (own, shared) if estimator.solve == "items" else (shared, own)


def federations(place: Place, run: Run, gather: Callable[..., None]) -> None:
    """Run `opt` with ten parties: two rounds at every epsilon, all 100 rounds at epsilon 1 and 10."""
    local, rounds = run.pick(full=LOCAL, quick=LOCAL, toy=1), run.pick(full=2, quick=2, toy=1)
    high = run.pick(full=HIGH_EPSILONS, quick=(1.0, 10.0), toy=(1.0, 10.0))

    def scores(estimator: Dpimf, everything: bool, bench: Bench, seed: int) -> list[float]:
        return bench.score(*federate(bench.clicks, estimator, seed, everything=everything))

    def curve(estimator: Dpimf, everything: bool, bench: Bench, seed: int) -> dict[str, Curve]:
        each = (replace(estimator, epsilon=epsilon) for epsilon in high)
        return {"opt": [scores(one, everything, bench, seed) for one in each]}

    def shares(side: Side, bench: Bench, seed: int) -> list[float]:
        return overlap(split_parties(bench.clicks, side, PARTIES, seed))

    setting = place.setting
    for side in SIDES:
        gather(f"overlap {side}", partial(shares, side), full=1)
        estimator = Dpimf(
            solve=side,
            factors=setting.factors,
            regularization=setting.regularization,
            rounds=rounds,
            local=local,
        )
        for what, everything in SHARED.items():
            gather(f"two rounds {what} {side}", partial(curve, estimator, everything))
        for epsilon in (1.0, 10.0) if run.size == "full" else ():
            long = replace(estimator, rounds=ROUNDS, epsilon=epsilon)
            gather(f"federated {ROUNDS} rounds {side} {epsilon:g} opt", partial(scores, long, True), full=3)
