"""Tables III, IV, VII, VIII, the figures' shapes and Theorem 5 again, each beside lists of popular items.

The printed procedure is NOT PRIVATE (see printed.py and NOTES.md). The last part measures this package's own
`implicit-objective`, which is private for whole histories, under the same protocol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.evaluation.scoring import measure as score
from discreet.models.bars.implicit_als import ImplicitAls
from discreet.models.implicit_objective.estimator import ImplicitObjective
from discreet.models.neighbors import ItemNeighbors
from discreet.models.popularity import Popularity
from discreet.privacy.mechanisms.subsampling import ImportanceSampling
from discreet.randomness import PrivacyRandom
from discreet.reproduce import Run

from . import tables
from .bounds import Problem, bound, corollary_holds, excess
from .plots import draw
from .printed import (
    VARIANTS,
    Setting,
    Trained,
    Variant,
    dpmf_solve,
    noise_scales,
    noisy_solve,
    sampled_solve,
    train,
)
from .protocol import Bench, bench

Values = dict[str, list[float]]

ML100K = Setting(factors=8, regularization=0.015, epochs=10, alpha0=0.95, budget=(1 / 3, 1 / 3, 1 / 3))
AMAZON = Setting(factors=8, regularization=0.01, epochs=3, alpha0=0.95, budget=(1 / 3, 1 / 3, 1 / 3))


def measure(run: Run) -> dict[str, Sequence[float]]:
    """Return the values of every claim's runs."""
    quick, say = run.size != "full", run.say
    values: Values = {}
    kept: dict[str, Any] = {}
    for seed in range(run.pick(full=6, quick=2, toy=1)):
        room = bench("movielens-100k", seed)
        if room is not None:
            say(f"ML-100K, run {seed}")
            _tables(room, ML100K, "ml100k", (tables.HR_ML100K, tables.NDCG_ML100K), seed, values, kept)
            _theory(room, seed, values, kept)
            _noise(room, seed, values)
            if not quick and seed < 2:
                _others(room, seed, values, kept)
    for seed in range(0 if quick else 3):
        shop = bench("amazon-instant-video", seed)
        if shop is not None:
            say(f"Amazon, run {seed}")
            _tables(shop, AMAZON, "amazon", (tables.HR_AMAZON, tables.NDCG_AMAZON), seed, values, kept)
            _ceiling(shop, seed, values)
        large = bench("movielens-1m", seed)
        if large is not None:
            say(f"the private model on ML-1M, run {seed}")
            _private(large, seed, values, kept)
    run.write("numbers.json", {"values": values, "rows": kept})
    if run.folder and not quick:
        draw(kept, values, run.folder)
    return values


def _add(values: Values, name: str, value: float) -> None:
    values.setdefault(name, []).append(float(value))


def _tables(
    room: Bench,
    setting: Setting,
    label: str,
    printed: tuple[dict[str, Any], dict[str, Any]],
    seed: int,
    values: Values,
    kept: dict[str, Any],
) -> None:
    """Run the four variants over the ten epsilons and hold them against the tables."""
    shared = train(room.clicks, setting, 1.0, seed)
    partly = train(room.clicks, setting, setting.alpha0, seed)
    found = {}
    for variant in VARIANTS:
        model = shared if variant == "opt" else partly
        found[variant] = np.array([_one(room, model, variant, e, setting, seed) for e in tables.EPSILONS])
        for column, name in enumerate(("hr", "ndcg")):
            gap = np.abs(found[variant][:, column] - printed[column][variant]).mean()
            _add(values, f"{label}-{name}-{variant}", gap)
    for worse, better in (("str", "com"), ("com", "sym"), ("sym", "opt")):
        _add(values, f"{label}-{better}-over-{worse}", (found[better] - found[worse])[:, 0].mean())
    popular = room.popularity()
    _add(values, f"{label}-popularity", popular[0])
    beaten = [e for e, hr in zip(tables.EPSILONS, found["opt"][:, 0], strict=True) if hr < popular[0]]
    _add(values, f"{label}-loses-to-popularity-up-to", max(beaten, default=0.0))
    _add(values, f"{label}-opt-mean", found["opt"][:, 0].mean())
    _beside(room, shared, setting, label, seed, values, kept)
    for variant in VARIANTS:
        kept.setdefault(f"{label} {variant}", []).append(found[variant][:, 0].tolist())


def _one(
    room: Bench, model: Trained, variant: Variant, epsilon: float, setting: Setting, seed: int
) -> tuple[float, float]:
    return room.score(model.users, noisy_solve(model, variant, epsilon, setting, seed))


def _beside(
    room: Bench, model: Trained, setting: Setting, label: str, seed: int, values: Values, kept: dict[str, Any]
) -> None:
    """Measure what stands beside the tables: sampling, user profiles, DPMF, no noise, private popularity."""
    rows: dict[str, list[float]] = {"opt-IS": [], "users": [], "dpmf": [], "private popularity": []}
    for epsilon in tables.EPSILONS:
        rows["opt-IS"].append(room.score(model.users, sampled_solve(model, epsilon, setting, seed))[0])
        noisy_users = noisy_solve(model, "opt", epsilon, setting, seed, side="users")
        rows["users"].append(room.score(noisy_users, model.items)[0])
        rows["dpmf"].append(room.score(model.users, dpmf_solve(model, epsilon, setting, seed))[0])
        list_of_all = Popularity(epsilon=epsilon, delta=1e-5).fit(
            room.split.train, random=PrivacyRandom.simulate(seed)
        )
        votes = list_of_all.scorer.arrays()["popularity"]
        rows["private popularity"].append(room.score(np.ones((len(model.users), 1)), votes[:, None])[0])
    for name, row in rows.items():
        kept.setdefault(f"{label} {name}", []).append(row)
    _add(values, f"{label}-no-noise", room.score(model.users, model.items)[0])
    _add(values, f"{label}-users-mean", float(np.mean(rows["users"])))
    _add(values, f"{label}-sampling-mean", float(np.mean(rows["opt-IS"])))


def _theory(room: Bench, seed: int, values: Values, kept: dict[str, Any]) -> None:
    """Measure excess losses beside Theorem 5's bounds, and Algorithm 3's weights beside their constraint."""
    setting = ML100K
    shares: list[float] = []
    for variant in VARIANTS:
        alpha0 = 1.0 if variant == "opt" else setting.alpha0
        model = train(room.clicks, setting, alpha0, seed)
        problem = Problem(
            largest=float(np.abs(model.users).max()),
            factors=setting.factors,
            regularization=setting.regularization,
            alpha0=alpha0,
            first_part=setting.budget[0],
            second_part=setting.budget[1],
        )
        measured = [excess(model, variant, e, setting, seed) for e in (0.1, 0.3, 1.0)]
        limits = [bound(variant, e, problem) for e in (0.1, 0.3, 1.0)]
        kept.setdefault(f"excess {variant}", []).append(measured)
        kept.setdefault(f"bound {variant}", []).append(limits)
        shares += [m / b for m, b in zip(measured, limits, strict=True)]
        _add(values, "corollary1", float(corollary_holds(problem)))
    _add(values, "theorem5-largest-share", max(shares))
    norms = 2 * np.abs(model.users).sum(axis=1)
    sampling = ImportanceSampling.calibrated(epsilon=1.0, largest_norm=float(norms.max()))
    weights = sampling.weights(norms)
    active = weights < sampling.max_weight
    _add(values, "algorithm3-slack", float(np.abs(sampling.loss(norms, weights)[active] - 1.0).max()))
    # Figure 6: the weights go along with 1 / |p_u|, which the least variance asks for.
    rank = np.corrcoef(np.argsort(np.argsort(weights)), np.argsort(np.argsort(-norms)))[0, 1]
    _add(values, "figure6-agreement", rank)


def _noise(room: Bench, seed: int, values: Values) -> None:
    """Compare the noise on the matrix for the three variants that have any, as Figure 5 (a) does."""
    setting = Setting(factors=8, regularization=ML100K.regularization, epochs=10)
    users = train(room.clicks, setting, setting.alpha0, seed).users
    str_, com, sym = (noise_scales(users, variant, 0.1, setting)[1] for variant in ("str", "com", "sym"))
    _add(values, "figure5-com-over-str", com / str_)
    _add(values, "figure5-sym-over-com", sym / com)


def _others(room: Bench, seed: int, values: Values, kept: dict[str, Any]) -> None:
    """Run the competitors of Figures 7 and 8 at epsilon 1, 3, 5 and 10; theirs is an epsilon a cell."""
    model, row = train(room.clicks, ML100K, 1.0, seed), {}
    parts = (room.split.train, room.split.test)
    for epsilon in (1.0, 3.0, 5.0, 10.0):
        row[f"opt {epsilon:g}"] = _one(room, model, "opt", epsilon, ML100K, seed)[0]
        users = noisy_solve(model, "opt", epsilon, ML100K, seed, side="users")
        row[f"users {epsilon:g}"] = room.score(users, model.items)[0]
        row[f"dpmf {epsilon:g}"] = room.score(model.users, dpmf_solve(model, epsilon, ML100K, seed))[0]
        for name, likeness in (("DPLCF", "jaccard"), ("LDPICF", "cosine")):
            near = ItemNeighbors(epsilon=epsilon, likeness=likeness).fit(
                parts[0], random=PrivacyRandom.simulate(seed)
            )
            row[f"{name} {epsilon:g}"] = score(near, *parts, ["hr@10:99"], seed=seed)["hr@10:99"]
    kept.setdefault("figure 7", []).append(row)
    _add(values, "figure7-opt-rises", row["opt 10"] - row["opt 1"])
    _add(values, "figure7-opt-over-ldpicf", row["opt 3"] - row["LDPICF 3"])
    _add(values, "figure7-opt-over-dplcf", row["opt 3"] - row["DPLCF 3"])
    _add(values, "figure8-users-rise", row["users 10"] - row["users 1"])


def _ceiling(room: Bench, seed: int, values: Values) -> None:
    """Measure what models without any privacy reach, and the printed one when it sees the held-out items."""
    best = 0.0
    for factors, alpha, ridge in ((8, 10.0, 1.0), (32, 10.0, 1.0), (64, 40.0, 20.0)):
        model = ImplicitAls(factors=factors, alpha=alpha, regularization=ridge, seed=seed).fit(
            room.split.train
        )
        best = max(best, score(model, room.split.train, room.split.test, ["hr@10:99"], seed=seed)["hr@10:99"])
    _add(values, "amazon-best-without-privacy", best)
    seen = train(room.leaked, Setting(factors=8, regularization=0.001, epochs=10), 1.0, seed)
    _add(values, "amazon-held-out-in-training", room.score(seen.users, seen.items)[0])


def _private(room: Bench, seed: int, values: Values, kept: dict[str, Any]) -> None:
    """Measure `implicit-objective` beside the private popularity list, sampled and on the full catalog."""
    train_part, test_part = room.split.train, room.split.test
    metrics = ["hr@10:99", "ndcg@10:99", "hr@10"]
    for epsilon in (1.0, 2.0, 5.0, 10.0, math.inf):
        rows = []
        for estimator in (ImplicitObjective, Popularity):
            model = estimator(epsilon=epsilon, delta=1e-5).fit(
                train_part, random=PrivacyRandom.simulate(seed)
            )
            rows.append(score(model, train_part, test_part, metrics, seed=seed))
            kept.setdefault(f"ml1m {estimator.name} {epsilon:g}", []).append(rows[-1])
        name = f"private-{epsilon:g}"
        _add(values, name, rows[0]["hr@10:99"] - rows[1]["hr@10:99"])
        _add(values, f"{name}-full", rows[0]["hr@10"] - rows[1]["hr@10"])
        _add(values, f"{name}-hr", rows[0]["hr@10:99"])
