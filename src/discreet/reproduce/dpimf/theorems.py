"""Theorems 2 to 5 and Algorithm 3 of DPIMF, measured; and Figure 6, three ways to sample m users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from discreet.papers.dpimf import printed_losses as losses
from discreet.papers.dpimf.printed_losses import VARIANTS, Floats, Setting, Trained, Variant
from discreet.papers.dpimf.theory import DpimfSettings, corollary_holds, gamma, redesign_bound
from discreet.privacy import largest_weights, sampling_loss, sampling_scale
from discreet.reproduce import copies
from discreet.reproduce.dpimf.experiments import FILMS, LOSS_EPSILONS, Bench, bench_on, solve_side
from discreet.reproduce.figures import Panel, PlottedLine, draw
from discreet.reproduce.papers import printed_numbers
from discreet.reproduce.running import Found, Run

# The largest weight of the importance sample whose losses are measured.
_MOST_WEIGHT = 1024.0


def theory(setting: Setting, bench: Bench, seed: int) -> dict[str, list[float]]:
    """Measure excess losses next to Theorem 5's bounds, Theorem 4, Algorithm 3, and a row's loss."""
    found: dict[str, list[float]] = {"corollary": []}
    for variant in VARIANTS:
        model = losses.train(bench.clicks, setting, losses.alpha0_of(variant, setting), seed)
        numbers = DpimfSettings(
            factors=setting.factors,
            regularization=setting.regularization,
            alpha0=model.alpha0,
            largest=float(np.abs(model.users).max()),
            beta1=setting.budget[0],
            beta2=setting.budget[1],
        )
        found[f"excess {variant}"] = [_excess(model, variant, e, setting, seed) for e in LOSS_EPSILONS]
        found[f"bound {variant}"] = [gamma(losses.LOSS_OF[variant], e, numbers) for e in LOSS_EPSILONS]
        found["corollary"].append(float(corollary_holds(numbers)))
        if variant == "com":
            found["theorem 4"] = [_redesign_share(model, setting, numbers)]
    norms = 2 * np.abs(model.users).sum(axis=1)
    scale = sampling_scale(epsilon=1.0, largest_norm=float(norms.max()))
    weights = largest_weights(norms, epsilon=1.0, scale=scale, max_weight=_MOST_WEIGHT)
    loss = sampling_loss(norms, weights, epsilon=1.0, scale=scale)
    found["slack"] = [float(np.abs(loss[weights < _MOST_WEIGHT] - 1.0).max())]
    found["amplified"] = [amplification_error(norms / scale, weights)]
    lost = row_loss(bench.clicks, model.users, 1.0)
    found["row loss"] = [float(np.median(lost)), float(lost.max())]
    return found


def _excess(model: Trained, variant: Variant, epsilon: float, setting: Setting, seed: int) -> float:
    """Return the mean over items of L(noisy solution) - L(best), for the loss without noise."""
    # Without noise all four minimize this loss; the strawman's own counts chosen cells twice.
    parts = losses.coefficients(
        model.clicks.T.tocsr(), model.users, setting.regularization, model.alpha0, strawman=variant == "str"
    )
    best = np.linalg.solve(parts[0], parts[1][:, :, None])[:, :, 0]
    noisy = solve_side(model, variant, epsilon, setting, seed, "items")[1]
    return float(np.mean(_loss(*parts, noisy) - _loss(*parts, best)))


def _redesign_share(model: Trained, setting: Setting, numbers: DpimfSettings) -> float:
    """Return the largest measured L(q*) - L_O(q') of an item over Theorem 4's bound on it."""
    turned = model.clicks.T.tocsr()
    counts = np.diff(turned.indptr)
    values = []
    for strawman in (False, True):
        parts = losses.coefficients(
            turned, model.users, setting.regularization, model.alpha0, strawman=strawman
        )
        values.append(_loss(*parts, np.linalg.solve(parts[0], parts[1][:, :, None])[:, :, 0]))
    limit = redesign_bound(1.0, numbers) * counts
    return float(np.max((values[0] - values[1])[counts > 0] / limit[counts > 0]))


def _loss(quadratic: Floats, linear: Floats, points: Floats) -> Floats:
    through = np.einsum("rij,rj->ri", quadratic, points)
    return np.asarray(np.sum(points * through - 2 * points * linear, axis=1))


def row_loss(clicks: csr_matrix, users: Floats, epsilon: float) -> Floats:
    """Return each user's loss in one solve of all items, if the user factors were public.

    An item's noise has scale 2 max |p|_1 / epsilon and a user in it moves the linear term by 2 |p_u|_1.
    The items' noises are independent and the user is in all items they chose, so losses add up.
    """
    norms = np.abs(users).sum(axis=1)
    return np.asarray(epsilon * np.diff(clicks.indptr) * norms / norms.max())


def amplification_error(sizes: np.ndarray, weights: np.ndarray) -> float:
    """Return how far Theorem 2 is from the largest log-ratio of the densities themselves, over all users.

    With and without a user a coordinate's density is Laplace, or a mixture of it and itself moved by w size.
    The ratio is largest beyond the moved center, and 0 beyond the other side bounds the way back.
    """
    moved = weights * sizes
    points = np.linspace(-4.0, 4.0 + float(moved.max()), 4001)[None, :]
    shifted = np.exp(np.abs(points) - np.abs(points - moved[:, None]))
    ratio = (1 - 1 / weights)[:, None] + shifted / weights[:, None]
    largest = np.abs(np.log(ratio)).max(axis=1)
    return float(np.abs(largest - np.log1p(np.expm1(moved) / weights)).max())


# Figure 6.

_BISECTIONS = 60


def sampling_weights(users: Floats, sample: float, epsilon: float = 1.0) -> dict[str, Floats]:
    """Return the weights 1 / probability of every user for an expected sample of this size."""
    return {
        "importance": _by_importance(_norms(users), sample, epsilon)[0],
        "uniform": np.full(len(users), len(users) / sample),
        "least variance": _least_variance(np.linalg.norm(users, axis=1), sample),
    }


def weight_costs(users: Floats, sample: int) -> dict[str, float]:
    """Return variances of the weighted sum over the least one, and the noise over that of uniform weights."""
    weights = sampling_weights(users, sample)
    squares = np.sum(users**2, axis=1)
    variance = {name: float(squares @ (weight - 1)) for name, weight in weights.items()}
    norms, plain = _norms(users), len(users) / sample
    uniform_scale = plain * norms.max() / np.log1p(plain * np.expm1(1.0))
    return {
        "importance": variance["importance"] / variance["least variance"],
        "uniform": variance["uniform"] / variance["least variance"],
        "noise": _by_importance(norms, sample, 1.0)[1] / uniform_scale,
    }


def largest_difference(users: Floats, sample: int, epsilon: float) -> float:
    """Return the largest relative difference between importance weights and those of least variance."""
    weights = sampling_weights(users, sample, epsilon)
    return float(np.max(np.abs(weights["importance"] / weights["least variance"] - 1)))


def _norms(users: Floats) -> Floats:
    return np.asarray(2 * np.abs(users).sum(axis=1))


def _by_importance(norms: Floats, sample: float, epsilon: float) -> tuple[Floats, float]:
    """Find the scale of the noise at which Algorithm 3 samples this many; return weights and scale."""
    low, high = float(norms.max()) / epsilon * (1 + 1e-6), float(norms.max()) * 1e6
    for _ in range(_BISECTIONS):
        scale = np.sqrt(low * high)
        weights = largest_weights(norms, epsilon=epsilon, scale=scale, max_weight=2.0**32)
        low, high = (scale, high) if np.sum(1 / weights) > sample else (low, scale)
    return weights, float(scale)


def _least_variance(lengths: Floats, sample: float) -> Floats:
    """Return weights inverse to lengths, at least 1."""
    low, high = 0.0, 1 / float(lengths[lengths > 0].min())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if np.minimum(middle * lengths, 1).sum() > sample else (middle, high)
    return 1 / np.clip(high * lengths, 1e-12, 1)


def figure6(run: Run) -> Found:
    """Sample 20 and 100 of 2,000 users of ML-1M (the paper: of ML-10M), 20 factors as printed."""
    if not copies.available("movielens-1m", run.say):
        return {}
    setting = replace(FILMS.setting, factors=20, epochs=5)

    def users(seed: int) -> Floats:
        return losses.train(bench_on("movielens-1m", seed).clicks[:2000], setting, 1.0, seed).users

    def compared(*, seed: int) -> dict[str, Any]:
        own = users(seed)
        sizes = {size: min(int(size), len(own) // 3) for size in ("20", "100")}
        found = {size: weight_costs(own, sample) for size, sample in sizes.items()}
        for size, sample in sizes.items():
            for epsilon in (1.0, 10.0, 32.0):
                found[size][f"largest {epsilon:g}"] = largest_difference(own, sample, epsilon)
        return found

    draws = run.seeds("figure 6 readings", compared, full=3)
    if run.folder:
        draw(run, "figure-6", [_figure6_panel(users(0), sample) for sample in (20, 100)])
    values: Found = {}
    for size in ("20", "100"):
        for what in ("importance", "uniform", "noise"):
            values[f"figure6-{what}-{size}"] = [one[size][what] for one in draws]
        for epsilon in ("1", "10", "32"):
            values[f"figure6-largest-{size}-{epsilon}"] = [one[size][f"largest {epsilon}"] for one in draws]
    return values


def _figure6_panel(users: Floats, sample: int) -> Panel:
    """Return weights over norms, both in units of a usual user, for 60 users and for the printed ones."""
    weights, norms = sampling_weights(users, sample), np.abs(users).sum(axis=1)
    shown = np.argsort(norms)[:: max(1, len(norms) // 60)]
    x = (norms[shown] / norms.mean()).round(4).tolist()
    uniform = len(users) / sample
    lines = [
        PlottedLine(name, x, (values[shown] / uniform).round(4).tolist(), kind="points")
        for name, values in weights.items()
    ]
    kept = printed_numbers("dpimf")["figure 6"]
    places = (np.array(kept["norms"]) / np.mean(kept["norms"])).round(4).tolist()
    for name in ("importance", "least variance"):
        heights = (np.array(kept[name]) / kept["uniform"]).round(4).tolist()
        lines.append(PlottedLine(name, places, heights, kind="printed"))
    title = f"Sample of {sample} of {len(users):,}, epsilon' 1"
    return Panel(title, "|p| over its mean", "weight over the uniform one", lines, y_scale="log")
