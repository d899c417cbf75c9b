"""The poster's experiments on the data at hand, with the user mean and the biases in every plot.

    discreet reproduce frank-wolfe [--quick] [--out FOLDER] [--data netflix=FOLDER]

ML-10M is not at hand; ML-1M stands beside it. Netflix runs where somebody has a copy and names it.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets.synthetic import rank_one
from discreet.data.splits import Split
from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe
from discreet.reproduce import Run
from discreet.reproduce.frank_wolfe import data as datasets
from discreet.reproduce.frank_wolfe import methods
from discreet.reproduce.frank_wolfe.figures import plot, plot_rates
from discreet.reproduce.frank_wolfe.methods import (
    BIASES,
    CLEAR,
    HONEST,
    MCSHERRY,
    MEAN,
    OJA,
    ONE,
    PGD,
    PGD_PLAIN,
    PLAN,
    SCALED_K,
    SVD,
    SVD_PLAIN,
    TEN,
    THEIRS,
    TWO,
)
from discreet.reproduce.frank_wolfe.rates import emp_curves, gen_curves, over_rounds, slope

FULL_SIZE = 500_000
# A fit takes half a minute of a processor there.
FULL_SIZE_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
#: Read off the figures of the longer paper, within 0.003; the poster prints no numbers.
PRINTED = {
    "ml-10m-top-400": (0.938, 0.922, 0.92, 0.913, 0.909),
    "netflix-top-400": (0.989, 0.964, 0.963, 0.949, 0.944),
    "jester": (1.121, 1.13, 1.114, 1.1, 1.09),
    f"rank-one-{FULL_SIZE}": (0.104, 0.063, 0.051, 0.042, 0.035),
}
EMP_EXPONENTS = {"n": -0.4, "epsilon": -0.4, "d": 0.5}
GEN_EXPONENTS = {"n": -0.5, "epsilon": -0.5, "m": -7 / 12}
Found = dict[str, Sequence[float]]
Curves = dict[str, list[list[float]]]


def measure(run: Run) -> Found:
    """Return the runs of every claim."""
    costs = " ".join(f"{methods.their_epsilon(epsilon):.1f}" for epsilon in methods.EPSILONS)
    run.say(f"the noise of their experiments costs, at the epsilons {methods.EPSILONS}, really {costs}")
    found: Found = run.part(_rates, run) | run.part(_memory, run)
    if "ml-10m" in run.data or datasets.at_hand("movielens-1m", run.say):
        found |= run.part(_on_films, run)
    if datasets.at_hand("jester", run.say):
        found |= run.part(_on_jokes, run)
    found |= run.part(_on_small, run)
    if run.size == "full":
        found |= run.part(_full_size, run)
    return found | (run.part(_on_netflix, run) if "netflix" in run.data else _reported_netflix(run))


def _on_films(run: Run) -> Found:
    runs = run.pick(full=10, quick=1, toy=1)
    name = "ml-10m-top-400" if "ml-10m" in run.data else "ml-1m-top-400"
    films = gather(name, datasets.movielens, runs, methods.ONE_FRAME, run)
    return _films(films) | _orders("films", films)


def _on_jokes(run: Run) -> Found:
    names = (*methods.ONE_FRAME, SCALED_K)
    jokes = gather("jester", datasets.jester, run.pick(full=10, quick=1, toy=1), names, run)
    return (
        _jokes(jokes) | _orders("jester", jokes) | _per_epsilon("jester-their-k", np.array(jokes[SCALED_K]))
    )


def _on_small(run: Run) -> Found:
    people = run.pick(full=20_000, quick=20_000, toy=90)
    small = gather(
        "rank-one-20000",
        lambda seed: datasets.synthetic(people, seed),
        run.pick(full=10, quick=1, toy=1),
        methods.ONE_FRAME,
        run,
    )
    found = _orders("small", small)
    found["small-falls"] = [line[0] - line[-1] for line in small[ONE]]
    found["small-printed-falls"] = [line[0] - line[-1] for line in small[HONEST]]
    found["small-oja"] = _lead(small, HONEST, OJA).mean(axis=1).tolist()
    return found


def _on_netflix(run: Run) -> Found:
    """Run the poster's Netflix experiment on somebody's own copy: T = 5 and 10, honest noise."""
    folder = run.data["netflix"]
    lines = gather(
        "netflix-top-400",
        lambda seed: datasets.netflix(folder, seed),
        run.pick(full=3, quick=1, toy=1),
        run.pick(full=methods.NETFLIX, quick=(HONEST, MEAN), toy=(HONEST, MEAN)),
        run,
    )
    found = _per_epsilon("netflix", np.array(lines[HONEST]))
    return found | (_per_epsilon("netflix-ten", np.array(lines[TEN])) if TEN in lines else {})


def _reported_netflix(run: Run) -> Found:
    """Return what was measured on a copy that may not be passed on; netflix.json says by whom and how."""
    if run.size != "full":
        return {}
    kept = json.loads((Path(__file__).parent / "netflix.json").read_text(encoding="utf8"))
    if run.folder:
        printed = PRINTED["netflix-top-400"]
        lines = {"as printed, honest noise, reported from a private copy": [kept["rounds 5"]]}
        plot("netflix-top-400", kept["epsilons"], lines, printed, run.folder)
    found: Found = {
        f"netflix-{epsilon:g}": [error]
        for epsilon, error in zip(kept["epsilons"], kept["rounds 5"], strict=True)
    }
    return found | {"netflix-ten-5": [kept["rounds 10 at epsilon 5"]]}


def gather(
    name: str,
    load: Callable[[int], Split],
    runs: int,
    names: Sequence[str],
    run: Run,
    epsilons: Sequence[float] = methods.EPSILONS,
) -> Curves:
    """Score the methods on `runs` splits, one step a method and split; keep the numbers and a plot."""
    kept = lru_cache(maxsize=1)(load)
    epsilons = run.pick(full=epsilons, quick=(0.1, 5.0), toy=(0.1, 5.0))

    def line(method: str, seed: int) -> list[float]:
        step = f"{name}, {method}, split {seed}"
        found: list[float] = run.step(step, methods.curve, lambda: kept(seed), method, epsilons, seed)
        return found

    lines: Curves = {
        method: run.draws(runs, lambda seed, method=method: line(method, seed)) for method in names
    }
    run.write(f"{name}.json", {"epsilons": epsilons, "rmse": lines})
    if run.folder:
        printed = [PRINTED[name][methods.EPSILONS.index(e)] for e in epsilons] if name in PRINTED else None
        plot(name, epsilons, lines, printed, run.folder)
    return lines


def _per_epsilon(key: str, runs: np.ndarray) -> Found:
    """Return a claim for each epsilon that was run: all five, or the ends of a toy."""
    epsilons = methods.EPSILONS if runs.shape[1] == len(methods.EPSILONS) else (0.1, 5.0)
    return {f"{key}-{epsilon:g}": runs[:, place].tolist() for place, epsilon in enumerate(epsilons)}


def _lead(lines: Curves, better: str, worse: str) -> np.ndarray:
    """Return by how much one method's errors lie below another's, over the splits that both have."""
    splits = min(len(lines[better]), len(lines[worse]))
    return np.array(lines[worse][:splits]) - np.array(lines[better][:splits])


def _films(lines: Curves) -> Found:
    """Return gains over the user mean and the biases, with at least one round."""
    return {
        **_per_epsilon("films-printed", _lead(lines, HONEST, MEAN)),
        **_per_epsilon("films-mean", _lead(lines, ONE, MEAN)),
        **_per_epsilon("films-round", _lead(lines, ONE, BIASES)),
        "films-clear": [line[0] for line in lines[CLEAR]],
        "films-theirs": [line[-1] for line in _lead(lines, THEIRS, MEAN)],
    }


def _jokes(lines: Curves) -> Found:
    return {
        **_per_epsilon("jester-printed", np.array(lines[HONEST])),
        **_per_epsilon("jester-theirs", np.array(lines[THEIRS])),
        **_per_epsilon("jester", np.array(lines[ONE])),
        "jester-clear": [line[0] for line in lines[CLEAR]],
        "jester-oja": _lead(lines, HONEST, OJA).mean(axis=1).tolist(),
    }


def _orders(data: str, lines: Curves) -> Found:
    """Return how much better methods are than others on average over epsilon; the plan, where it is worst.

    `round`: all three with item biases; `plain`: none with them; `printed`: only the others have them.
    """
    found: Found = {f"{data}-plan": _lead(lines, PLAN, ONE).min(axis=1).tolist()}
    pairs = (
        ("printed", HONEST, (SVD, PGD)),
        ("round", ONE, (SVD, PGD)),
        ("plain", HONEST, (SVD_PLAIN, PGD_PLAIN)),
    )
    for mine, ours, others in pairs:
        for other, name in zip(("svd", "pgd"), others, strict=True):
            found[f"order-{data}-{mine}-{other}"] = _lead(lines, ours, name).mean(axis=1).tolist()
    found[f"order-{data}-mcsherry"] = _lead(lines, HONEST, MCSHERRY).mean(axis=1).tolist()
    return found


def _full_size(run: Run) -> Found:
    """Run the poster's own size."""
    lines = gather(
        f"rank-one-{FULL_SIZE}",
        lambda seed: datasets.synthetic(FULL_SIZE, seed),
        3,
        methods.FOR_FULL_SIZE,
        run,
        FULL_SIZE_EPSILONS,
    )
    found: Found = {}
    for key, method in (("rank-one-printed", HONEST), ("rank-one-theirs", THEIRS), ("rank-one", TWO)):
        for place, epsilon in enumerate(FULL_SIZE_EPSILONS):
            found[f"{key}-{epsilon:g}"] = [line[place] for line in lines[method]]
    return found


def _rates(run: Run) -> Found:
    """Return slopes of both errors, a draw each, and how E_emp falls with T."""
    scale, draws = run.pick(full=8000, quick=500, toy=20), run.pick(full=10, quick=1, toy=1)
    found: Found = {}
    for name, curves, exponents in (("emp", emp_curves, EMP_EXPONENTS), ("gen", gen_curves, GEN_EXPONENTS)):
        seeds = run.draws(
            draws,
            lambda seed, name=name, curves=curves: run.step(f"E_{name}, draw {seed}", curves, seed, scale),
        )
        for over in exponents:
            found[f"{name}-{over}"] = [slope(*one[over]) for one in seeds]
        if run.folder:
            shown = {over: (seeds[0][over][0], [one[over][1] for one in seeds]) for over in exponents}
            plot_rates(f"E_{name}", shown, exponents, run.folder)
    falls = run.draws(draws, lambda seed: run.step(f"E_emp over T, draw {seed}", over_rounds, seed, scale))
    for key, radius in (
        ("at-the-norm", "k is the nuclear norm"),
        ("beyond", "k is 1.58 times the nuclear norm"),
    ):
        found[f"emp-rounds-{key}"] = [one[radius][-1] / one[radius][0] for one in falls]
    return found


def _memory(run: Run) -> Found:
    """Compare what the matrix and Oja's algorithm hold for a catalog of many items."""
    items = run.pick(full=3000, quick=1500, toy=300)
    peaks = run.step(f"memory at {items} items", _peaks, items)
    return {"oja-memory": [peaks["oja"] / peaks["covariance"]]}


def _peaks(items: int) -> dict[str, int]:
    data = rank_one(n_users=300, n_items=items, per_user=10, seed=0).data
    peaks = {}
    for solver in ("covariance", "oja"):
        tracemalloc.start()
        PrintedFrankWolfe(epsilon=5.0, rounds=1, solver=solver).fit(data, random=PrivacyRandom.simulate(0))
        peaks[solver] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peaks
