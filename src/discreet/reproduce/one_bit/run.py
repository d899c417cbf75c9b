"""Run the experiments of "One-bit matrix completion with differential privacy" again.

discreet reproduce one-bit [--quick] [--out FOLDER]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.data.splits import Split
from discreet.reproduce import DrawnValues, Run, ratio_of_means
from discreet.reproduce.one_bit.constants import theorem_1_claims
from discreet.reproduce.one_bit.figures import keep, table
from discreet.reproduce.one_bit.methods import CLEAR, OUTPUT, PRIVATE
from discreet.reproduce.one_bit.rates import slopes
from discreet.reproduce.one_bit.real import accuracies, by_flip_rates, by_rounds, movielens, restaurants
from discreet.reproduce.one_bit.synthetic import errors

LINKS = ("logistic", "probit")
OTHERS = ("input", "objective", "gradient", "gradient-printed")
ROUNDS = (1, 2, 5, 10)
Found = dict[str, Sequence[float] | DrawnValues]
# A method's values: one line a draw, one column an epsilon.
Lines = dict[str, np.ndarray]


def measure(run: Run) -> Found:
    """Return the values of every claim, by its id."""
    found: Found = _theorem_1()
    for link in run.pick(full=LINKS, quick=LINKS, toy=LINKS[:1]):
        found |= run.part(_figure_1, run, link)
        found |= run.part(_accuracy, run, "2", "ML-100K, u1", movielens, link)
        found |= run.part(_accuracy, run, "3", "restaurants", restaurants, link)
        found |= run.part(_shares, run, {"logistic": "5", "probit": "4"}[link], link)
    return found | run.part(_rounds, run) | run.part(_rates, run)


def _rates(run: Run) -> Found:
    side = run.pick(full=300, quick=300, toy=20)
    rates = run.draws(
        _draws(run), lambda seed: run.step(f"rates of the theorems, draw {seed}", slopes, seed, side)
    )
    return {f"rate-{name}": [one[name] for one in rates] for name in rates[0]}


def _theorem_1() -> Found:
    """Return what the rates of the counterexample reveal, and the constants of both links as they are."""
    p1, p2 = 0.001, 0.4
    ratios = ((1 - p1) / p2, (1 - p2) / p1, p1 / (1 - p2), p2 / (1 - p1))
    return {"theorem1-condition": [math.log(max(ratios))]} | theorem_1_claims()


def _gathered(runs: Sequence[dict[str, Any]]) -> Lines:
    return {method: np.array([one[method] for one in runs]) for method in runs[0]}


def _epsilons(run: Run) -> tuple[float, ...]:
    return run.pick(full=(1.0, 2.0, 4.0, 7.0, 10.0), quick=(1.0, 4.0, 10.0), toy=(1.0, 4.0))


def _draws(run: Run, most: int = 10) -> int:
    """Return how many draws are made: those of the paper, 40 for figure 1 and 10 for the others."""
    return run.pick(full=most, quick=1, toy=1)


def _iterations(run: Run) -> int:
    return run.pick(full=100, quick=100, toy=2)


def _figure_1(run: Run, link: str) -> Found:
    epsilons, side = _epsilons(run), run.pick(full=100, quick=100, toy=20)
    lines = _gathered(
        run.draws(
            _draws(run, 40),
            lambda seed: run.step(
                f"figure 1, {link}, draw {seed}",
                errors,
                link,
                epsilons,
                seed,
                side=side,
                iterations=_iterations(run),
            ),
        )
    )
    keep(run, f"figure-1-{link}", epsilons, lines, "epsilon", "average relative error")
    found: Found = {}
    for method in PRIVATE:
        found[f"fig1-{link}-{method}-falls"] = (lines[method][:, 0] - lines[method][:, -1]).tolist()
        found[f"fig1-{link}-{method}-at-10"] = _ratio(lines[method][:, -1], lines[CLEAR][:, -1])
    at_4 = {method: lines[method][:, epsilons.index(4.0)] for method in (*OTHERS, OUTPUT)}
    best = min(OTHERS, key=lambda method: at_4[method].mean())
    found[f"fig1-{link}-output-at-4"] = _ratio(at_4[OUTPUT], at_4[best])
    return found


def _accuracy(run: Run, number: str, data: str, load: Callable[[int], Split | None], link: str) -> Found:
    if load(0) is None:
        run.say(f"the data of figure {number} is not on this machine")
        return {}
    epsilons = _epsilons(run)
    lines = _gathered(
        run.draws(
            _draws(run),
            lambda seed: run.step(
                f"figure {number}, {link}, run {seed}",
                lambda: accuracies(load(seed), epsilons, link, seed, _iterations(run)),
            ),
        )
    )
    keep(run, f"figure-{number}-{link}", epsilons, lines, "epsilon", f"accuracy on {data}")
    found: Found = {f"fig{number}-{link}-clear": lines[CLEAR][:, 0].tolist()}
    at_4 = epsilons.index(4.0)
    for method in PRIVATE:
        key = f"fig{number}-{link}-{method}"
        found[f"{key}-at-4"] = lines[method][:, at_4].tolist()
        found[f"{key}-rises"] = (lines[method][:, -1] - lines[method][:, 0]).tolist()
        found[f"{key}-reaches-clear"] = (lines[CLEAR][:, -1] - lines[method][:, -1]).tolist()
    lead = _over_best(lines)
    found[f"fig{number}-{link}-output-best"] = lead.mean(axis=1).tolist()
    found[f"fig{number}-{link}-output-best-at-1"] = lead[:, 0].tolist()
    return found


def _over_best(lines: Lines) -> np.ndarray:
    """Return the lead of output over the best other, which each draw takes from the means of the others.

    The best of several in the same draw would be ahead by luck.
    """
    draws = len(lines[OUTPUT])
    lead = np.empty_like(lines[OUTPUT])
    for draw in range(draws):
        rest = [other for other in range(draws) if other != draw] or [draw]
        means = np.array([lines[method][rest].mean(axis=0) for method in OTHERS])
        best = np.array([lines[method][draw] for method in OTHERS])
        chosen = best[means.argmax(axis=0), np.arange(means.shape[1])]
        lead[draw] = lines[OUTPUT][draw] - chosen
    return lead


def _shares(run: Run, number: str, link: str) -> Found:
    """Run figures 4 and 5: errors over the observed share, at several epsilons."""
    side = run.pick(full=100, quick=100, toy=20)
    shares = run.pick(full=(0.2, 0.5, 0.8), quick=(0.2, 0.8), toy=(0.2, 0.8))
    epsilons = (0.5, 1.0, 5.0, 10.0)
    by_share = [
        _gathered(
            run.draws(
                _draws(run),
                lambda seed, share=share: run.step(
                    f"figure {number}, {link}, {share:.0%} observed, draw {seed}",
                    errors,
                    link,
                    epsilons,
                    seed,
                    observed=share,
                    side=side,
                    iterations=_iterations(run),
                ),
            )
        )
        for share in shares
    ]
    draws = min(len(lines[CLEAR]) for lines in by_share)
    # Draws by epsilons by shares.
    cube = {method: np.stack([lines[method][:draws] for lines in by_share], axis=2) for method in by_share[0]}
    for place, epsilon in enumerate(epsilons):
        lines = {method: values[:, place] for method, values in cube.items()}
        name = f"figure-{number}-epsilon-{epsilon:g}"
        keep(run, name, shares, lines, f"observed share, epsilon {epsilon:g}", "average relative error")
    return _share_claims(f"fig{number}", cube, epsilons)


def _share_claims(key: str, cube: Lines, epsilons: Sequence[float]) -> Found:
    one, five, ten = (epsilons.index(epsilon) for epsilon in (1.0, 5.0, 10.0))
    found: Found = {}
    for method in PRIVATE:
        found[f"{key}-{method}-falls"] = (
            (cube[method][:, :, 0] - cube[method][:, :, -1]).mean(axis=1).tolist()
        )
    for method in ("input", OUTPUT):
        # At the smallest share: what is gained beyond epsilon 5, of what is gained from 1 on.
        least = cube[method][:, :, 0]
        found[f"{key}-{method}-levels-off"] = _ratio(
            least[:, five] - least[:, ten], least[:, one] - least[:, ten]
        )
    change = {
        m: cube[m][:, one].mean(axis=1) / cube[m][:, ten].mean(axis=1) - 1 for m in ("objective", "input")
    }
    found[f"{key}-objective-drastic"] = (change["objective"] - change["input"]).tolist()
    for method in ("objective", OUTPUT):
        gain = 1 - cube[method][:, :, -1] / cube[method][:, :, 0]
        found[f"{key}-{method}-flat-at-1"] = (gain[:, five] - gain[:, one]).tolist()
    return found


def _rounds(run: Run) -> Found:
    """Run the gradient method with K = 1, 2, 5 and 10 steps, and input with differing flip rates."""
    split = movielens(0)
    if split is None:
        return {}
    rounds = run.pick(full=ROUNDS, quick=ROUNDS, toy=(1, 2))
    lines = _gathered(
        run.draws(_draws(run), lambda seed: run.step(f"K steps, run {seed}", by_rounds, split, rounds, seed))
    )
    table(run, "gradient-steps", rounds, lines, "K", "accuracy on ML-100K, u1, at epsilon 4")
    found: Found = {
        f"gradient-{step}-{k}": lines[step][:, place].tolist()
        for step in lines
        for place, k in enumerate(rounds)
    }
    rates = _gathered(
        run.draws(
            _draws(run),
            lambda seed: run.step(f"flip rates, run {seed}", by_flip_rates, split, seed, _iterations(run)),
        )
    )
    best = max(("p1 < p2", "p1 > p2"), key=lambda rate: rates[rate].mean())
    return found | {"input-equal-rates-best": (rates["equal"] - rates[best]).tolist()}


def _ratio(values: np.ndarray, beside: np.ndarray) -> DrawnValues:
    return ratio_of_means(values.tolist(), beside.tolist())
