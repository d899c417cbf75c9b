"""Algorithm 1 as printed: ten parties, local rounds with noise, averages. NOT PRIVATE (see NOTES.md).

Parties share one side (items, or people) and hold disjoint parts of the other. Section VI-A lets them share
all of it; with `everything=False` a party knows what occurs in its own data, so catalogs overlap in part and
an average is taken over those who have the item. Each local iteration fits the party's own side without
noise, then the shared side with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.core.randomness import experiment_generator
from discreet.papers.dpimf.printed import Floats, Method, Setting, Side, alpha0_of, exact_rows, noisy_by

PARTIES, ROUNDS, LOCAL = 10, 100, 20
Indices = npt.NDArray[np.int64]


class PrintedParty(NamedTuple):
    """Hold a party's data, shared side first, and what its rows and columns are called by all."""

    shared_by_own: csr_matrix
    own_by_shared: csr_matrix
    shared: Indices
    own: Indices


@dataclass(frozen=True, kw_only=True)
class PrintedPlan:
    """Say how a federation runs: what is solved how, how often, by how many."""

    method: Method
    epsilon: float
    setting: Setting
    side: Side
    rounds: int = ROUNDS
    local: int = LOCAL
    parties: int = PARTIES
    everything: bool = True


def split(
    clicks: csr_matrix, side: Side, parties: int, seed: int, *, everything: bool = False
) -> list[PrintedParty]:
    """Deal out people (items are shared) or items (people are shared) at random."""
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


def overlap(parties: list[PrintedParty]) -> tuple[float, float]:
    """Return which share of the union a party has on average, and which share of it all have."""
    held = np.zeros(1 + max(int(party.shared.max()) for party in parties))
    for party in parties:
        held[party.shared] += 1
    union = np.count_nonzero(held)
    sizes = [party.shared.size for party in parties]
    return float(np.mean(sizes) / union), float(np.count_nonzero(held == len(parties)) / union)


def federate(clicks: csr_matrix, plan: PrintedPlan, seed: int) -> tuple[Floats, Floats]:
    """Run all rounds and the fine-tuning; return user and item factors."""
    generator = experiment_generator(seed, "federation", plan.method, str(plan.epsilon), plan.side)
    members = split(clicks, plan.side, plan.parties, seed, everything=plan.everything)
    n_shared, n_own = clicks.shape[::-1] if plan.side == "items" else clicks.shape
    shared = generator.uniform(size=(n_shared, plan.setting.factors))
    alpha0 = alpha0_of(plan.method, plan.setting)
    for _ in range(plan.rounds):
        total, held = np.zeros_like(shared), np.zeros((n_shared, 1))
        for party in members:
            total[party.shared] += _local(party, shared[party.shared], plan, generator)
            held[party.shared] += 1
        shared = np.where(held > 0, total / np.maximum(held, 1), shared)
    own = np.zeros((n_own, plan.setting.factors))
    for party in members:
        own[party.own] = exact_rows(party.own_by_shared, shared[party.shared], plan.setting, alpha0)
    return (own, shared) if plan.side == "items" else (shared, own)


def _local(party: PrintedParty, shared: Floats, plan: PrintedPlan, generator: np.random.Generator) -> Floats:
    """Alternate inside a party: its own side exactly, then the shared side with noise."""
    alpha0 = alpha0_of(plan.method, plan.setting)
    for _ in range(plan.local):
        own = exact_rows(party.own_by_shared, shared, plan.setting, alpha0)
        shared = noisy_by(plan.method, party.shared_by_own, own, plan.epsilon, plan.setting, generator)
    return shared
