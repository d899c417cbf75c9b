"""Run the experiments of "One-bit matrix completion with differential privacy" again.

`measure` returns the values behind `claims.toml`; a full run writes the five figures and their numbers to
`results/`, a quick one keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from discreet.reproduce import Run

from .figures import Figures
from .rates import slopes
from .real import curves, movielens, restaurants
from .synthetic import errors

LINKS = ("logistic", "probit")
PRIVATE = ("input", "objective", "gradient", "output")
Say = Callable[[str], None]
Item = TypeVar("Item")
Found = dict[str, Sequence[float]]


def measure(run: Run) -> Found:
    """Return the values of every claim, by its id."""
    quick, say, figures = run.size != "full", run.say, Figures(run.folder)
    found: Found = {}
    found |= _figure_1(run.pick(full=40, quick=2, toy=1), figures, say)
    found |= _figure_2(
        run.pick(full=10, quick=2, toy=1), (1.0, 4.0) if quick else (1.0, 2.0, 4.0, 7.0, 10.0), figures, say
    )
    found |= _figure_3(run.pick(full=10, quick=3, toy=1), figures, say)
    found |= _figures_4_and_5(1 if quick else 10, (0.2, 0.8) if quick else (0.2, 0.4, 0.6, 0.8), figures, say)
    say("rates of the theorems")
    for name, values in slopes(
        run.pick(full=5, quick=1, toy=1), run.pick(full=400, quick=400, toy=30)
    ).items():
        found[f"rate-{name}"] = values
    return found


def _figure_1(draws: int, figures: Figures, say: Say) -> Found:
    epsilons = (1.0, 2.0, 4.0, 7.0, 10.0) if draws > 5 else (1.0, 4.0, 10.0)
    found: Found = {}
    for link in LINKS:
        say(f"figure 1, {link}: {draws} draws")
        lines = errors(link, epsilons, _told(range(draws), say))
        figures.keep(f"figure-1-{link}", epsilons, lines, "epsilon", "average relative error")
        for method in PRIVATE:
            found[f"fig1-{link}-{method}-falls"] = [
                first - last for first, last in zip(lines[method][0], lines[method][-1], strict=True)
            ]
        found[f"fig1-{link}-output-at-4"] = _ratio(lines["output"][epsilons.index(4.0)], lines["clear"][0])
        for method in ("input", "objective", "gradient"):
            found[f"fig1-{link}-{method}-at-10"] = _ratio(lines[method][-1], lines["clear"][-1])
    return found


def _figure_2(runs: int, epsilons: Sequence[float], figures: Figures, say: Say) -> Found:
    split = movielens()
    if split is None:
        return {}
    say(f"figure 2: {runs} runs")
    lines = curves(_told([split] * runs, say), epsilons)
    figures.keep("figure-2", epsilons, lines, "epsilon", "accuracy on ML-100K, u1")
    found: Found = {f"fig2-{method}-at-4": lines[method][epsilons.index(4.0)] for method in PRIVATE}
    found["fig2-clear"] = lines["clear"][0][:1]
    return found


def _figure_3(runs: int, figures: Figures, say: Say) -> Found:
    splits = [restaurants(seed) for seed in range(runs)]
    known = [split for split in splits if split is not None]
    if not known:
        return {}
    say(f"figure 3: {runs} runs")
    epsilons = (1.0, 4.0, 10.0)
    lines = curves(_told(known, say), epsilons)
    figures.keep("figure-3", epsilons, lines, "epsilon", "accuracy on restaurants")
    return {
        f"fig3-{method}-rises": [
            last - first for first, last in zip(lines[method][0], lines[method][-1], strict=True)
        ]
        for method in PRIVATE
    }


def _figures_4_and_5(draws: int, shares: Sequence[float], figures: Figures, say: Say) -> Found:
    found: Found = {}
    for figure, link in ((5, "logistic"), (4, "probit")):
        say(f"figure {figure}: {draws} draws")
        by_share = [errors(link, (4.0,), range(draws), observed=share) for share in shares]
        lines = {method: [each[method][0] for each in by_share] for method in ("clear", *PRIVATE)}
        figures.keep(
            f"figure-{figure}", shares, lines, "observed share at epsilon = 4", "average relative error"
        )
        for method in PRIVATE:
            found[f"fig{figure}-{method}-falls"] = [
                first - last for first, last in zip(lines[method][0], lines[method][-1], strict=True)
            ]
    return found


def _told(items: Sequence[Item], say: Say) -> Iterator[Item]:
    """Hand the items on and say, a few times, how far it has come."""
    for done, item in enumerate(items):
        if done and done % max(1, len(items) // 4) == 0:
            say(f"  {done} of {len(items)} done")
        yield item


def _ratio(values: Sequence[float], beside: Sequence[float]) -> list[float]:
    return [float(np.mean(values) / np.mean(beside))]
