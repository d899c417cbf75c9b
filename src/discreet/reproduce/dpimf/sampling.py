"""Figure 6 of DPIMF: three ways to sample m users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.papers.dpimf.printed_losses import Floats, train
from discreet.privacy.experiments import largest_weights
from discreet.reproduce import copies
from discreet.reproduce.dpimf.protocol import FILMS, bench_on
from discreet.reproduce.figures import Panel, PlottedLine, draw
from discreet.reproduce.papers import printed_numbers
from discreet.reproduce.running import Found, Run

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
        return train(bench_on("movielens-1m", seed).clicks[:2000], setting, 1.0, seed).users

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
