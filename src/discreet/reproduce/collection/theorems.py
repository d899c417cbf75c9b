"""Theorems 1 and 2 by counting, and bounds in the place of Theorem 3 that are sharp enough to fail.

Cells are reported independently of each other, so the squared misfit |P(Theta - Z)|^2 is a sum of independent
terms whose mean and variance the channel gives exactly. Two bounds follow: the quantile of the normal
distribution with these moments, which should be exceeded just as often as it says, and Cantelli's
inequality for the worst truth there is, which holds for every truth that is rated truly.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from discreet.collect.device import collect_cells
from discreet.collect.estimate import rho_bound, rho_expected
from discreet.collect.hidden_items import cell_mechanism
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.reproduce.collection.world import World, make_world, worst_world

GAMMA = 0.05
PEOPLE, ITEMS = 60, 50


class Moments(NamedTuple):
    """Hold mean and variance of the squared misfit."""

    mean: float
    variance: float

    def usual(self) -> float:
        """Return what |P(Theta - Z)| exceeds with probability gamma, were its square normal."""
        return math.sqrt(self.mean + NormalDist().inv_cdf(1 - GAMMA) * math.sqrt(self.variance))

    def sure(self) -> float:
        """Return what it exceeds with probability at most gamma, by Cantelli's inequality."""
        return math.sqrt(self.mean + math.sqrt(self.variance * (1 / GAMMA - 1)))


def misfit_moments(mechanism: CellMechanism, world: World) -> Moments:
    """Return mean and variance of the squared misfit, cell by cell."""
    channel, outputs = mechanism.channel(), mechanism.outputs()
    rows, items, ratings = world.data.rows(), world.data.items, world.data.values
    told = np.abs(channel.inputs[None, :] - ratings[:, None]).argmin(axis=1)
    empty = np.ones(world.truth.shape, dtype=bool)
    empty[rows, items] = False
    answers = np.vstack(
        [channel.transition[told], np.broadcast_to(mechanism.pretended(), (empty.sum(), outputs.size))]
    )
    chance = np.append(np.full(told.size, mechanism.keep), np.full(empty.sum(), mechanism.fake))
    truth = np.append(world.truth[rows, items], world.truth[empty])
    squares = (outputs[None, :] - truth[:, None]) ** 2
    first = chance * np.einsum("ij,ij->i", answers, squares)
    second = chance * np.einsum("ij,ij->i", answers, squares**2)
    return Moments(float(first.sum()), float(np.sum(second - first**2)))


def theorem3(kind: str, epsilon: float, draws: int) -> dict[str, float]:
    """Return the printed bound, the sharp ones, and how often and by how much each is kept."""
    plain = make_world(kind, seed=1, people=PEOPLE, items=ITEMS)
    worst = worst_world(kind, seed=1, people=PEOPLE, items=ITEMS)
    mechanism = cell_mechanism(epsilon, plain.data.facts)
    size = {"people": PEOPLE, "items": ITEMS, "rated": plain.data.n_ratings, "intrinsic": plain.intrinsic}
    printed, expected = rho_bound(mechanism, gamma=GAMMA, **size), rho_expected(mechanism, **size)
    usual, sure = misfit_moments(mechanism, plain).usual(), misfit_moments(mechanism, worst).sure()
    found, strayed = misfits(plain, mechanism, draws), misfits(worst, mechanism, draws)
    size |= {"rated": worst.data.n_ratings, "intrinsic": 0.0}
    return {
        "epsilon": epsilon,
        "printed": printed,
        "expected": expected,
        "sharp": usual,
        "mean": float(found.mean()),
        "mean spread": float(found.std(ddof=1)),
        "largest": float(found.max()),
        "below printed": float(np.mean(found <= printed)),
        "below sharp": float(np.mean(found <= usual)),
        "worst sharp": sure,
        "worst printed": rho_bound(mechanism, gamma=GAMMA, **size),
        "worst mean": float(strayed.mean()),
        "worst mean spread": float(strayed.std(ddof=1)),
        "worst below": float(np.mean(strayed <= sure)),
        "worst loss": largest_loss(mechanism),
    }


def misfits(world: World, mechanism: CellMechanism, draws: int) -> np.ndarray:
    """Return |P(Theta - Z)| for many draws of the reports."""
    found = []
    for seed in range(draws):
        reports = collect_cells(world.data, mechanism, PrivacyRandom.simulate(seed)).reports
        truth = world.truth[reports.rows(), reports.items]
        found.append(float(np.linalg.norm(truth - reports.values)))
    return np.array(found)


def largest_loss(mechanism: CellMechanism) -> float:
    """Return the largest log-ratio of any report, silence included, between any two states of a cell."""
    rated = np.column_stack(
        [
            mechanism.keep * mechanism.channel().transition,
            np.full(len(mechanism.channel().inputs), 1 - mechanism.keep),
        ]
    )
    empty = np.append(mechanism.fake * mechanism.pretended(), 1 - mechanism.fake)
    likely = np.vstack([rated, empty])
    # Reports that no state makes with a probability worth the name are left to proofs/modified_laplace.md.
    seen = likely.min(axis=0) > 1e-12
    logs = np.log(likely[:, seen])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())
