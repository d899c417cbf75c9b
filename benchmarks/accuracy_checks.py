"""Hold the results of accuracy.py against what the product promises its users, cell by cell.

A standard error is that of a share over the tested people, or that of the mean over seeds, whichever is
larger; errors of ratings are compared on the same splits, seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

OURS = "user-factorization"
FINITE = ("0.1", "0.5", "1", "2", "5", "10")
LIST_METRICS = ("hr@10", "ndcg@10")
LIST_BARS = ("implicit-als", "ease", "item-knn", "markov-chain")
# RMSE that nobody would notice.
SLIGHT = 0.001
# How near choices and ratings together must come to interactions alone at epsilon 5.
NEAR = 0.95

Failure = tuple[str, str]


class Found:
    """Look up what was measured of one data set."""

    def __init__(self, results: dict[str, Any], name: str) -> None:
        self.name, self.people = name, results["people"][name]
        self._runs = results["runs"][name]

    def runs(self, model: str, epsilon: str, metric: str) -> np.ndarray | None:
        """Return each seed's value, None where nothing was measured."""
        values = self._runs.get(model, {}).get(epsilon, {}).get(metric)
        return None if values is None else np.asarray(values)

    def mean(self, model: str, epsilon: str, metric: str) -> float | None:
        """Return the mean over seeds."""
        values = self.runs(model, epsilon, metric)
        return None if values is None else float(values.mean())

    def error(self, model: str, epsilon: str, metric: str) -> float:
        """Return the standard error of a list metric."""
        values = self.runs(model, epsilon, metric)
        assert values is not None
        mean, spread = float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else 0.0
        share = math.sqrt(max(mean * (1 - mean), 0.0) / self.people)
        return max(share, spread / math.sqrt(values.size))


def below_popularity(found: Found) -> Iterator[Failure]:
    """Lists are never below private popularity by more than a standard error."""
    yield from _beaten(found, LIST_METRICS, ("popularity",))


def dominated(found: Found) -> Iterator[Failure]:
    """No other user-level model is better: lists within a standard error, ratings seed by seed."""
    yield from _beaten(found, LIST_METRICS, ("implicit-objective",))
    for epsilon in FINITE:
        ours = found.runs(OURS, epsilon, "rmse")
        for other in ("biases", "covariance-svd", "frank-wolfe"):
            theirs = found.runs(other, epsilon, "rmse")
            if ours is None or theirs is None:
                continue
            worse = ours - theirs
            slack = max(worse.std(ddof=1) / math.sqrt(worse.size) if worse.size > 1 else 0.0, SLIGHT)
            if worse.mean() > slack:
                yield f"{epsilon} rmse", f"{ours.mean():.4f}, {other} {theirs.mean():.4f}"


def falling(found: Found) -> Iterator[Failure]:
    """More epsilon never gives worse lists."""
    for metric in LIST_METRICS:
        best, at = -math.inf, ""
        for epsilon in FINITE:
            mean = found.mean(OURS, epsilon, metric)
            if mean is None:
                continue
            if mean < best - found.error(OURS, epsilon, metric):
                yield f"{epsilon} {metric}", f"{mean:.4f} after {best:.4f} at {at}"
            if mean > best:
                best, at = mean, epsilon


def far_from_choices(found: Found) -> Iterator[Failure]:
    """At epsilon 5 lists from ratings come within 5% of lists from interactions alone."""
    for metric in LIST_METRICS:
        ours, theirs = found.mean(OURS, "5", metric), found.mean("choices-only", "5", metric)
        if ours is not None and theirs is not None and ours < NEAR * theirs:
            yield f"5 {metric}", f"{ours:.4f} of {theirs:.4f}: {ours / theirs:.3f}"


def liked_less(found: Found) -> Iterator[Failure]:
    """Hits are better liked than popularity's: the hit rate on liked items over that on all."""
    for epsilon in FINITE:
        ours, theirs = (_liking(found, model, epsilon) for model in (OURS, "popularity"))
        if ours is None or theirs is None:
            continue
        relative = found.error(OURS, epsilon, "hr@10") / max(found.mean(OURS, epsilon, "hr@10") or 0, 1e-9)
        if ours < theirs * (1 - relative):
            yield f"{epsilon} liked", f"{ours:.3f}, popularity {theirs:.3f}"


def over_the_bar(found: Found) -> Iterator[Failure]:
    """No private model is better than the best baseline without privacy."""
    for metric in LIST_METRICS:
        bars = [found.mean(bar, "inf", metric) for bar in LIST_BARS]
        best = max((value for value in bars if value is not None), default=math.inf)
        for model in (OURS, "choices-only", "popularity", "implicit-objective"):
            for epsilon in FINITE:
                mean = found.mean(model, epsilon, metric)
                if mean is not None and mean > best + found.error(model, epsilon, metric):
                    yield f"{epsilon} {metric}", f"{model} {mean:.4f}, best bar {best:.4f}"
    bar = found.runs("als", "inf", "rmse")
    for model in (OURS, "biases", "covariance-svd", "frank-wolfe"):
        for epsilon in FINITE if bar is not None else ():
            values = found.runs(model, epsilon, "rmse")
            if values is not None and (values - bar).mean() < -SLIGHT:
                yield f"{epsilon} rmse", f"{model} {values.mean():.4f}, als {bar.mean():.4f}"


CHECKS: tuple[Callable[[Found], Iterator[Failure]], ...] = (
    below_popularity,
    falling,
    far_from_choices,
    dominated,
    liked_less,
    over_the_bar,
)


def failures(results: dict[str, Any]) -> dict[str, list[tuple[str, str, str]]]:
    """Return what fails by check: data set, cell, numbers."""
    return {
        check.__name__: [
            (name, *failure) for name in results["runs"] for failure in check(Found(results, name))
        ]
        for check in CHECKS
    }


def _beaten(found: Found, metrics: tuple[str, ...], others: tuple[str, ...]) -> Iterator[Failure]:
    for metric in metrics:
        for epsilon in FINITE:
            for other in others:
                ours, theirs = found.mean(OURS, epsilon, metric), found.mean(other, epsilon, metric)
                if ours is None or theirs is None:
                    continue
                if ours < theirs - found.error(other, epsilon, metric):
                    yield f"{epsilon} {metric}", f"{ours:.4f}, {other} {theirs:.4f}"


def _liking(found: Found, model: str, epsilon: str) -> float | None:
    liked, every = (found.mean(model, epsilon, metric) for metric in ("hr@10:liked", "hr@10"))
    return None if liked is None or not every else liked / every
