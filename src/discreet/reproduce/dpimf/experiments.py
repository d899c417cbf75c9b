"""Experiments on one dataset, each small enough to be one step of a run; every answer is plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.splits import leave_one_out
from discreet.evaluation.scoring import measure as score_model
from discreet.models.baselines.als import ImplicitAls
from discreet.models.popularity import Popularity
from discreet.papers.dpimf.estimators import sides_of
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.papers.dpimf.neighbors import ItemNeighbors
from discreet.papers.dpimf.printed_losses import (
    VARIANTS,
    Floats,
    NoiseSource,
    Setting,
    Side,
    Trained,
    alpha0_of,
    dpmf_rows,
    inverse_weights,
    lowered_rows,
    noise_scales,
    noisy_rows,
    sampled_rows,
    train,
)
from discreet.reproduce import copies
from discreet.reproduce.dpimf.protocol import (
    EPSILONS,
    INVERSE,
    LOWERED,
    SAMPLED,
    Bench,
    Curve,
    Work,
    bench_of,
    bench_on,
)
from discreet.reproduce.running import Found, Run

_MEAN_WEIGHT = 16.0


def curves_of(setting: Setting, side: Side, methods: Sequence[str]) -> Work:
    """Return a function that trains without noise and solves one side once with noise, at every epsilon."""

    def curves(bench: Bench, seed: int) -> dict[str, Curve]:
        kept = lru_cache(lambda alpha0: train(bench.clicks, setting, alpha0, seed))

        def scores(method: str, epsilon: float) -> list[float]:
            model = kept(alpha0_of(method, setting))
            return bench.score(*solve_side(model, method, epsilon, setting, seed, side))

        return {method: [scores(method, epsilon) for epsilon in EPSILONS] for method in methods}

    return curves


def solve_side(
    model: Trained, method: str, epsilon: float, setting: Setting, seed: int, side: Side
) -> tuple[Floats, Floats]:
    """Return user and item factors, one of them solved once more with the noise of a method."""
    noise = experiment_generator(seed, "printed noise", method, str(epsilon), side)
    solved = _noisy(method, *sides_of(model, side), epsilon, setting, noise)
    return (model.users, solved) if side == "items" else (solved, model.items)


def _noisy(
    method: str, rows: csr_matrix, others: Floats, epsilon: float, setting: Setting, noise: NoiseSource
) -> Floats:
    if method == "opt-IS":
        return sampled_rows(rows, others, epsilon, setting, noise)
    if method == "dpmf":
        return dpmf_rows(rows, others, epsilon, setting, noise)
    if method in (*LOWERED, *INVERSE):
        uniform = method in LOWERED
        weights = np.full(len(others), LOWERED[method]) if uniform else inverse_weights(others, _MEAN_WEIGHT)
        at = weights.mean() if method == "inverse-mean" else weights.min()
        return lowered_rows(rows, others, epsilon, weights, float(at), setting, noise)
    return noisy_rows(rows, others, next(one for one in VARIANTS if one == method), epsilon, setting, noise)


def neighbors(epsilons: Sequence[float], bench: Bench, seed: int) -> dict[str, Curve]:
    """Run the two methods that flip bits on the device; their epsilon is per cell."""
    found: dict[str, Curve] = {}
    for name, likeness in (("DPLCF", "jaccard"), ("LDPICF", "cosine")):
        for epsilon in epsilons:
            near = ItemNeighbors(epsilon=epsilon, likeness=likeness).fit(
                bench.split.train, random=PrivacyRandom.simulate(seed)
            )
            scores = score_model(near, bench.split.train, bench.split.test, SAMPLED, seed=seed)
            found.setdefault(name, []).append([scores[metric] for metric in SAMPLED])
    return found


def ground_truth(factors: int, run: Run, bench: Bench, seed: int) -> dict[str, Any]:
    """Return the scores of implicit ALS on equation (1), and its settings.

    alpha0 and lambda are chosen on a validation part: each user's last training interaction.
    """
    grid = [(alpha0, ridge) for alpha0 in (0.01, 0.03, 0.1) for ridge in (0.01, 0.05, 0.2)]
    inner = bench_of(leave_one_out(bench.split.train), seed)

    def scores(at: Bench, alpha0: float, ridge: float) -> list[float]:
        setting = Setting(factors=factors, regularization=ridge, epochs=10)
        model = train(at.clicks, setting, alpha0, seed, original=True)
        return at.score(model.users, model.items)

    best = max(run.pick(full=grid, quick=grid[4:5], toy=grid[:1]), key=lambda one: scores(inner, *one)[0])
    return {"scores": scores(bench, *best), "alpha0": best[0], "lambda": best[1]}


def without_noise(setting: Setting, epsilons: Sequence[float], bench: Bench, seed: int) -> dict[str, Curve]:
    """Return the scores of models without noise, and of lists of popular items with and without noise."""
    model = train(bench.clicks, setting, 1.0, seed)
    private = []
    for epsilon in epsilons:
        chosen = Popularity(epsilon=epsilon, delta=1e-5).fit(
            bench.split.train, random=PrivacyRandom.simulate(seed)
        )
        votes = chosen.scorer.arrays()["popularity"]
        private.append(bench.score(np.ones((len(model.users), 1)), votes[:, None]))
    part = train(bench.clicks, setting, setting.alpha0, seed)
    first = train(bench.clicks, setting, setting.alpha0, seed, original=True)
    return {
        "no noise": [bench.score(model.users, model.items)],
        "no noise, complementary loss": [bench.score(part.users, part.items)],
        "no noise, original loss": [bench.score(first.users, first.items)],
        "popularity": [bench.popularity()],
        "private popularity": private,
    }


def best_without_privacy(bench: Bench, seed: int) -> dict[str, float]:
    """Return the best HR@10 of larger models without privacy."""
    scores = []
    for factors, alpha, ridge in ((8, 10.0, 1.0), (32, 10.0, 1.0), (64, 40.0, 20.0)):
        model = ImplicitAls(factors=factors, alpha=alpha, regularization=ridge, seed=seed).fit(
            bench.split.train
        )
        scores.append(score_model(model, bench.split.train, bench.split.test, SAMPLED[:1], seed=seed))
    return {"best": max(one[SAMPLED[0]] for one in scores)}


def noise_on_matrix(setting: Setting, bench: Bench, seed: int) -> dict[str, float]:
    """Return the Laplace scale of the noise on the matrix at epsilon 0.1, which Figure 5 (a) and (e) show."""
    users = train(bench.clicks, setting, setting.alpha0, seed).users
    return {variant: noise_scales(users, variant, 0.1, setting)[1] for variant in VARIANTS[:3]}


def private_model(run: Run) -> Found:
    """Measure this package's own model on ML-1M, next to the private list of popular items."""
    if run.size != "full" or not copies.available("movielens-1m", run.say):
        return {}
    values: Found = {}
    for epsilon in ("1", "2", "5", "10"):
        draws = run.seeds(f"ml1m private {epsilon}", _private_scores, float(epsilon), full=3)
        for name, metric in ((f"private-{epsilon}", "hr@10:99"), (f"private-{epsilon}-full", "hr@10")):
            values[name] = [draw["implicit-objective"][metric] - draw["popularity"][metric] for draw in draws]
    return values


def _private_scores(epsilon: float, *, seed: int) -> dict[str, dict[str, float]]:
    found, bench = {}, bench_on("movielens-1m", seed)
    for estimator in (ImplicitObjective, Popularity):
        model = estimator(epsilon=epsilon, delta=1e-5).fit(
            bench.split.train, random=PrivacyRandom.simulate(seed)
        )
        scores = score_model(model, bench.split.train, bench.split.test, [*SAMPLED, "hr@10"], seed=seed)
        found[estimator.name] = dict(scores)
    return found
