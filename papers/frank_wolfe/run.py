"""The poster's experiments on the data at hand, with the user mean and the biases in every plot.

    discreet reproduce frank-wolfe [--quick] [--json]

Curves and their numbers go to results/. ML-10M and Netflix are not at hand; ML-1M stands in for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from discreet.data.splits import Split
from discreet.models.low_rank.frank_wolfe import FrankWolfe
from discreet.reproduce import Run

from . import data as datasets
from . import methods as methods
from .figures import plot

ALL = (
    "frank-wolfe",
    "covariance-svd",
    "projected-gradient",
    "biases",
    methods.MEAN,
    methods.CLEAR,
    methods.HONEST,
    methods.THEIRS,
)
FULL_SIZE = 500_000
FOR_FULL_SIZE = ("biases", methods.MEAN)
Curves = dict[str, list[list[float]]]


def measure(run: Run) -> dict[str, Sequence[float]]:
    """Return the runs of every claim."""
    quick, say = run.size != "full", run.say
    found: dict[str, Sequence[float]] = {}
    costs = " ".join(f"{methods.their_epsilon(epsilon):.1f}" for epsilon in methods.EPSILONS)
    say(f"the noise of their experiments costs, at the epsilons {methods.EPSILONS}, really {costs}")
    films = gather("ml-1m-top-400", datasets.movielens, 1 if quick else 5, run)
    if films:
        found |= _films(films)
    jokes = gather("jester", datasets.jester, 1 if quick else 3, run)
    if jokes:
        for number, epsilon in enumerate(methods.EPSILONS):
            found[f"jester-{epsilon:g}"] = [run[number] for run in jokes["frank-wolfe"]]
        found["jester-clear"] = [run[0] for run in jokes[methods.CLEAR]]
    small = gather(
        "rank-one-20000",
        lambda seed: datasets.synthetic(20_000, seed),
        1 if quick else 2,
        run,
    )
    found["small-falls"] = [run[0] - run[-1] for run in small["frank-wolfe"]]
    if not quick:
        found |= _full_size(run)
    return found


def gather(name: str, load: Callable[[int], Split | None], runs: int, run: Run) -> Curves:
    """Score every method on `runs` splits; keep the numbers and a plot of their means."""
    lines: Curves = {}
    for seed in range(runs):
        split = load(seed)
        if split is None:
            run.say(f"{name} is not on this machine")
            return {}
        run.say(f"{name}, run {seed}")
        for method, values in methods.curves(split, seed, ALL, methods.EPSILONS, run.say).items():
            lines.setdefault(method, []).append(values)
    write(name, lines, run)
    return lines


def write(name: str, lines: Curves, run: Run) -> None:
    """Write the numbers and their plot."""
    content = {"epsilons": methods.EPSILONS, "rmse": lines}
    run.write(f"{name}.json", content)
    if run.folder:
        plot(name, methods.EPSILONS, lines, run.folder)


def _films(lines: Curves) -> dict[str, Sequence[float]]:
    """Return by how much Frank-Wolfe is better than the user mean and than the biases."""
    ours = np.array(lines["frank-wolfe"])
    over_mean = np.array(lines[methods.MEAN]) - ours
    over_biases = np.array(lines["biases"]) - ours
    found: dict[str, Sequence[float]] = {"films-clear": [run[0] for run in lines[methods.CLEAR]]}
    for number, epsilon in enumerate(methods.EPSILONS):
        found[f"films-mean-{epsilon:g}"] = over_mean[:, number].tolist()
        found[f"films-biases-{epsilon:g}"] = over_biases[:, number].tolist()
    return found


def _full_size(run: Run) -> dict[str, Sequence[float]]:
    """Run the poster's own size once: at half a million people one run is like another."""
    run.say(f"rank one, {FULL_SIZE:,} people")
    split = datasets.synthetic(FULL_SIZE, 0)
    lines = methods.curves(split, 0, FOR_FULL_SIZE, methods.EPSILONS, run.say)
    # One direction is all there is to find; a second round mends what noise and shrinkage left of the first.
    lines["frank-wolfe"] = [
        methods.score(FrankWolfe(epsilon=epsilon, rounds=2), split, 0) for epsilon in methods.EPSILONS
    ]
    run.say(f"  frank-wolfe, 2 rounds: {' '.join(f'{value:.4f}' for value in lines['frank-wolfe'])}")
    write(f"rank-one-{FULL_SIZE}", {name: [values] for name, values in lines.items()}, run)
    ours = lines["frank-wolfe"]
    found = {f"rank-one-{epsilon:g}": [value] for epsilon, value in zip(methods.EPSILONS, ours, strict=True)}
    found["rank-one-falls"] = [first - second for first, second in pairwise(ours)]
    return found
