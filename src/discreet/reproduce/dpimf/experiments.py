"""The experiments, each small enough to be one step of a run; every answer is plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.evaluation.scoring import measure as score
from discreet.models.baselines.implicit_als import ImplicitAls
from discreet.models.popularity import Popularity
from discreet.papers.dpimf.neighbors import ItemNeighbors
from discreet.papers.dpimf.objective import ImplicitObjective
from discreet.papers.dpimf.printed import (
    LOSS_OF,
    METHODS,
    VARIANTS,
    Method,
    Setting,
    Side,
    alpha0_of,
    noise_scales,
    solve_side,
    train,
)
from discreet.papers.dpimf.theory import corollary_holds, gamma
from discreet.privacy.experiments import largest_weights, sampling_loss, sampling_scale
from discreet.reproduce.dpimf.bounds import excess, redesign_share, row_loss, theory_of
from discreet.reproduce.dpimf.federation import PrintedPlan, federate, overlap, split
from discreet.reproduce.dpimf.protocol import Bench
from discreet.reproduce.dpimf.sampling import figure6

#: HR@10 and NDCG@10, one pair for each epsilon.
Curve = list[list[float]]
SAMPLED = ["hr@10:99", "ndcg@10:99"]
LOSS_EPSILONS = (0.1, 0.3, 1.0)
# The largest weight of the importance sample whose losses are measured.
_MOST_WEIGHT = 1024.0


def curves(
    room: Bench,
    setting: Setting,
    side: Side,
    epsilons: Sequence[float],
    seed: int,
    methods: Sequence[Method] = METHODS,
) -> dict[str, Curve]:
    """Train without noise, solve one side once with noise, by every method and at every epsilon."""
    trained = {alpha0: train(room.clicks, setting, alpha0, seed) for alpha0 in (1.0, setting.alpha0)}
    return {
        method: [
            list(
                room.score(
                    *solve_side(trained[alpha0_of(method, setting)], method, epsilon, setting, seed, side)
                )
            )
            for epsilon in epsilons
        ]
        for method in methods
    }


def neighbors(room: Bench, epsilons: Sequence[float], seed: int) -> dict[str, Curve]:
    """Run the two methods that flip bits on the device; theirs is an epsilon a cell."""
    found: dict[str, Curve] = {}
    for name, likeness in (("DPLCF", "jaccard"), ("LDPICF", "cosine")):
        for epsilon in epsilons:
            near = ItemNeighbors(epsilon=epsilon, likeness=likeness).fit(
                room.split.train, random=PrivacyRandom.simulate(seed)
            )
            scores = score(near, room.split.train, room.split.test, SAMPLED, seed=seed)
            found.setdefault(name, []).append([scores[name] for name in SAMPLED])
    return found


def beside(room: Bench, setting: Setting, epsilons: Sequence[float], seed: int) -> dict[str, Curve]:
    """Score what stands beside the tables: no noise, lists of popular items with and without noise."""
    model = train(room.clicks, setting, 1.0, seed)
    all_users, private = np.ones((len(model.users), 1)), []
    for epsilon in epsilons:
        chosen = Popularity(epsilon=epsilon, delta=1e-5).fit(
            room.split.train, random=PrivacyRandom.simulate(seed)
        )
        votes = chosen.scorer.arrays()["popularity"]
        private.append(list(room.score(all_users, votes[:, None])))
    part = train(room.clicks, setting, setting.alpha0, seed)
    first = train(room.clicks, setting, setting.alpha0, seed, original=True)
    return {
        "no noise": [list(room.score(model.users, model.items))],
        "no noise, complementary loss": [list(room.score(part.users, part.items))],
        "no noise, original loss": [list(room.score(first.users, first.items))],
        "popularity": [list(room.popularity())],
        "private popularity": private,
    }


def federated(room: Bench, plan: PrintedPlan, seed: int) -> list[float]:
    """Run Algorithm 1 and return HR@10 and NDCG@10."""
    return list(room.score(*federate(room.clicks, plan, seed)))


def federated_curves(
    room: Bench, plan: PrintedPlan, methods: Sequence[Method], epsilons: Sequence[float], seed: int
) -> dict[str, Curve]:
    """Run Algorithm 1 for a few rounds by several methods, at every epsilon."""
    return {
        method: [federated(room, replace(plan, method=method, epsilon=epsilon), seed) for epsilon in epsilons]
        for method in methods
    }


def overlaps(room: Bench, side: Side, parties: int, seed: int) -> list[float]:
    """Return which share of the union a party has, and which share all parties have."""
    return list(overlap(split(room.clicks, side, parties, seed)))


def theory(room: Bench, setting: Setting, seed: int) -> dict[str, list[float]]:
    """Measure excess losses beside Theorem 5's bounds, Theorem 4, Algorithm 3, and a row's loss."""
    found: dict[str, list[float]] = {"corollary": []}
    for variant in VARIANTS:
        model = train(room.clicks, setting, alpha0_of(variant, setting), seed)
        numbers = theory_of(model, setting)
        found[f"excess {variant}"] = [excess(model, variant, e, setting, seed) for e in LOSS_EPSILONS]
        found[f"bound {variant}"] = [gamma(LOSS_OF[variant], e, numbers) for e in LOSS_EPSILONS]
        found["corollary"].append(float(corollary_holds(numbers)))
        if variant == "com":
            found["theorem 4"] = [redesign_share(model, setting)]
    norms = 2 * np.abs(model.users).sum(axis=1)
    scale = sampling_scale(epsilon=1.0, largest_norm=float(norms.max()))
    weights = largest_weights(norms, epsilon=1.0, scale=scale, max_weight=_MOST_WEIGHT)
    active = weights < _MOST_WEIGHT
    loss = sampling_loss(norms, weights, epsilon=1.0, scale=scale)
    found["slack"] = [float(np.abs(loss[active] - 1.0).max())]
    found["amplified"] = [amplification_error(norms / scale, weights)]
    lost = row_loss(room.clicks, model.users, 1.0)
    found["row loss"] = [float(np.median(lost)), float(lost.max())]
    return found


def amplification_error(sizes: np.ndarray, weights: np.ndarray) -> float:
    """Return how far Theorem 2 is from the largest log-ratio of the densities themselves, over all people.

    With and without a person a coordinate's density is Laplace, or one mixed with the same moved by w size;
    the ratio is largest beyond the moved center, and 0 beyond the other side bounds the way back.
    """
    moved = weights * sizes
    points = np.linspace(-4.0, 4.0 + float(moved.max()), 4001)[None, :]
    ratio = (1 - 1 / weights)[:, None] + np.exp(np.abs(points) - np.abs(points - moved[:, None])) / weights[
        :, None
    ]
    measured = np.abs(np.log(ratio)).max(axis=1)
    return float(np.abs(measured - np.log1p(np.expm1(moved) / weights)).max())


def noise_on_matrix(room: Bench, setting: Setting, seed: int) -> dict[str, float]:
    """Return the Laplace scale of the noise on the matrix at epsilon 0.1, which Figure 5 (a) and (e) show."""
    users = train(room.clicks, setting, setting.alpha0, seed).users
    return {variant: noise_scales(users, variant, 0.1, setting)[1] for variant in VARIANTS[:3]}


def drawn_weights(
    room: Bench, setting: Setting, people: int, sizes: Sequence[int], seed: int
) -> dict[str, dict[str, float]]:
    """Compare three ways to draw people, as Figure 6 does, on the factors of some of them."""
    users = train(room.clicks[:people], setting, 1.0, seed).users
    return {str(size): figure6(users, min(size, len(users) // 3)) for size in sizes}


def ceiling(room: Bench, seed: int) -> dict[str, float]:
    """Measure what models without any privacy reach, and the printed one when it sees the held-out items."""
    best = 0.0
    for factors, alpha, ridge in ((8, 10.0, 1.0), (32, 10.0, 1.0), (64, 40.0, 20.0)):
        model = ImplicitAls(factors=factors, alpha=alpha, regularization=ridge, seed=seed)
        scores = score(model.fit(room.split.train), room.split.train, room.split.test, SAMPLED[:1], seed=seed)
        best = max(best, scores[SAMPLED[0]])
    seen = train(room.leaked, Setting(factors=8, regularization=0.001, epochs=10), 1.0, seed)
    return {"best": best, "leaked": room.score(seen.users, seen.items)[0]}


def private(room: Bench, epsilon: float | str, seed: int) -> dict[str, dict[str, float]]:
    """Measure `implicit-objective` beside the private popularity list, sampled and on the full catalog."""
    budget = math.inf if epsilon == "inf" else float(epsilon)
    found = {}
    for estimator in (ImplicitObjective, Popularity):
        model = estimator(epsilon=budget, delta=1e-5).fit(
            room.split.train, random=PrivacyRandom.simulate(seed)
        )
        metrics = [*SAMPLED, "hr@10"]
        found[estimator.name] = dict(score(model, room.split.train, room.split.test, metrics, seed=seed))
    return found
