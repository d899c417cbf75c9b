"""Experiments of "One-bit matrix completion with differential privacy" (Li et al.).

    discreet papers reproduce one-bit [--quick] [--out FOLDER]

Figures 1, 4 and 5: the average relative error on synthetic matrices. Figures 2 and 3: how often the sign of a
held-out rating is right, on ML-100K and on restaurants. There the threshold is the mean of the training
ratings, as in the paper; NO guarantee covers it. Claims and results are in `papers/one_bit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from discreet.core import Floats, PrivacyRandom, experiment_generator
from discreet.core.checks import FileError
from discreet.data import Interactions, PublicFacts, Split, given, numbered, one_bit, random_split
from discreet.data.datasets import catalog
from discreet.models import Estimator, FittedModel
from discreet.papers.one_bit.estimators import OneBitGradient, OneBitInput, OneBitObjective
from discreet.papers.one_bit.printed import OneBitObjectivePrinted
from discreet.papers.one_bit.theory import LINKS, link_constants, printed_constants
from discreet.privacy import simulated_laplace
from discreet.reproduce import copies
from discreet.reproduce.figures import Panel, PlottedLine, draw, level, measured
from discreet.reproduce.running import Found, Run, ratio_of_means, slope
from discreet.solvers import project_dense

#: Values of each method: one row per draw, one column per epsilon.
Lines = dict[str, np.ndarray]

CLEAR, OUTPUT, MAJORITY = "clear", "output", "majority"
CLIPPED, PROJECTED, OBJECTIVE_PRINTED = "output-clipped", "output-projected", "objective-printed"
# The paper does not print the number of gradient steps. One step of a fixed length is ours, and best.
_KINDS: dict[str, tuple[type[Estimator], dict[str, Any]]] = {
    "input": (OneBitInput, {"leveling": 0.0}),
    "objective": (OneBitObjective, {"leveling": 0.0}),
    "gradient": (OneBitGradient, {"leveling": 0.0, "rounds": 1}),
    "gradient-printed": (OneBitGradient, {"leveling": 0.0, "rounds": 5, "step": "barzilai-borwein"}),
    OBJECTIVE_PRINTED: (OneBitObjectivePrinted, {}),
}
OTHERS = ("input", "objective", "gradient", "gradient-printed")
MAIN = (*OTHERS, OUTPUT, CLEAR)
LABELS = {
    "input": "input",
    "objective": "objective",
    "gradient": "gradient, K = 1 (ours)",
    "gradient-printed": "gradient, K = 5 (K is not printed)",
    OBJECTIVE_PRINTED: "objective, printed Delta (NOT PRIVATE)",
    OUTPUT: "output, as released (per cell)",
    CLIPPED: "output, clipped (per cell)",
    PROJECTED: "output, projected (per cell)",
    CLEAR: "clear, without privacy",
    MAJORITY: "majority",
}
# The paper does not print its bound on real data; scores are clipped to this before the noise.
_SCORE_BOUND = 0.2
# Flip rates of +1 and -1 that satisfy all four ratios at epsilon 2, with the smaller on either side.
_SKEWED_AT_2 = {"p1 < p2": (0.08, 0.41), "p1 > p2": (0.41, 0.08)}
_SHARE_EPSILONS = (0.5, 1.0, 5.0, 10.0)
_RATE_BOUND = 10.0


def measure(run: Run) -> Found:
    """Return the values of every claim, by its ID."""
    found: Found = _theorem_1()
    panels: dict[str, list[Panel]] = {number: [] for number in "123"}
    films, places = (copies.available(name, run.say) for name in ("movielens-100k", "restaurant-consumer"))
    for link in run.pick(full=LINKS, quick=LINKS, toy=LINKS[:1]):
        found |= run.part(_figure_1, run, link, panels["1"])
        real = link in run.pick(full=LINKS, quick=LINKS[:1], toy=LINKS)
        if films and real:
            found |= run.part(_accuracy, run, "2", "ML-100K, u1", movielens, link, panels["2"])
        if places and real:
            found |= run.part(_accuracy, run, "3", "restaurants", restaurants, link, panels["3"])
        found |= run.part(_shares, run, {"logistic": "5", "probit": "4"}[link], link)
    for number, own in panels.items():
        draw(run, f"figure-{number}", own)
    return found | (run.part(_rounds, run) if films else {}) | run.part(_rates, run)


def fit(data: Interactions, method: str, epsilon: float, seed: int, **settings: Any) -> FittedModel:
    """Fit a method with radius sqrt(d1 d2); a method without an estimator of its own is Clear."""
    kind, own = _KINDS.get(method, _KINDS["input"])
    level = epsilon if method in _KINDS else math.inf
    shared = {"radius": math.sqrt(data.n_users * data.n_items), **own, **settings}
    return kind(epsilon=level, **shared).fit(data, random=PrivacyRandom.simulate(seed))


def released(method: str, matrix: Floats, bound: float, epsilon: float, seed: int) -> Floats:
    """Add the printed noise to every entry and post-process it. This protects entries, NOT the matrix.

    The feasible set has entries within the bound and a nuclear norm of at most bound sqrt(d1 d2).
    """
    noisy = simulated_laplace(
        np.clip(matrix, -bound, bound), epsilon=epsilon, bound=2 * bound, random=PrivacyRandom.simulate(seed)
    )
    if method == OUTPUT:
        return noisy
    if method == PROJECTED:
        noisy = project_dense(noisy, bound * math.sqrt(matrix.size))
    return np.clip(noisy, -bound, bound)


class SquareMatrix(NamedTuple):
    """A synthetic matrix of ratings: its link, its side, its observed share, and steps of its solver."""

    link: str
    side: int
    iterations: int
    observed: float = 0.15

    @classmethod
    def of(cls, run: Run, link: str) -> SquareMatrix:
        """Return the matrix of a run's size."""
        return cls(link, run.pick(full=100, quick=100, toy=20), _iterations(run))


def errors(
    wanted: SquareMatrix, epsilons: Sequence[float], methods: Sequence[str], *, seed: int
) -> dict[str, list[float]]:
    """Return, for one draw, the relative error |X - M|^2 / |M|^2 of each method at each epsilon."""
    link, side, iterations, observed = wanted
    sample = one_bit(n_users=side, n_items=side, link=link, observed=observed, seed=seed)

    def completed(method: str, epsilon: float) -> Floats:
        settings = {"link": link, "bound": 1.0, "tolerance": 1e-4, "iterations": iterations}
        model = fit(sample.data, method, epsilon, seed, **settings)
        return np.asarray(model.scorer.left @ model.scorer.right.T)

    def error(matrix: Floats) -> float:
        return float(np.sum((matrix - sample.truth) ** 2) / np.sum(sample.truth**2))

    clear = lru_cache(lambda: completed(CLEAR, math.inf))
    found = {}
    for method in methods:
        if method in _KINDS:
            found[method] = [error(completed(method, epsilon)) for epsilon in epsilons]
        elif method == CLEAR:
            found[method] = [error(clear())] * len(epsilons)
        else:
            found[method] = [error(released(method, clear(), 1.0, epsilon, seed)) for epsilon in epsilons]
    return found


def movielens(seed: int) -> Split:
    """Return the published split u1; if its files are not at hand, or of a copy, a random split."""
    data = copies.load("movielens-100k")
    try:
        files = [catalog.split_file("movielens-100k", f"u1.{part}") for part in ("base", "test")]
    except FileError:
        files = []
    if copies.copy_of("movielens-100k") or not files:
        return random_split(data, 0.2, seed)
    return given(*files, name=data.name, facts=data.facts, catalog=data.catalog, people=data.users)


def restaurants(seed: int) -> Split:
    """Return a random 80/20 split of the restaurant ratings."""
    return random_split(copies.load("restaurant-consumer"), 0.2, seed)


def _threshold(split: Split) -> float:
    return float(split.train.values.mean(dtype=np.float64))


def _right(split: Split, scores: npt.NDArray[Any]) -> float:
    """Return how often a score above 0 goes with a rating above the threshold."""
    return float(np.mean((scores > 0) == (split.test.values > _threshold(split))))


def accuracies(
    load: Callable[[int], Split],
    epsilons: Sequence[float],
    link: str,
    methods: Sequence[str],
    *,
    seed: int,
    iterations: int,
) -> dict[str, list[float]]:
    """Return the accuracy of every method at each epsilon on the held-out ratings of a split."""
    split = load(seed)
    rows, items = split.test.rows(), split.test.items

    def fitted(method: str, epsilon: float) -> FittedModel:
        settings = {"link": link, "above": _threshold(split), "iterations": iterations}
        return fit(split.train, method, epsilon, seed, **settings)

    def scores(model: FittedModel) -> npt.NDArray[Any]:
        return model.predict(split.train, rows, items)

    clear = lru_cache(lambda: fitted(CLEAR, math.inf))

    def accuracy(method: str, epsilon: float) -> float:
        if method in _KINDS:
            return _right(split, scores(fitted(method, epsilon)))
        if method == CLEAR:
            return _right(split, scores(clear()))
        if method == OUTPUT:
            return _right(split, released(OUTPUT, scores(clear()), _SCORE_BOUND, epsilon, seed))
        if method == PROJECTED:
            scorer: Any = clear().scorer
            return _right(
                split, released(PROJECTED, scorer.left @ scorer.right.T, 1.0, epsilon, seed)[rows, items]
            )
        liked = float(np.mean(split.test.values > _threshold(split)))
        return max(liked, 1 - liked)

    return {method: [accuracy(method, epsilon) for epsilon in epsilons] for method in methods}


def _shared(split: Split) -> dict[str, float]:
    radius = math.sqrt(split.train.n_users * split.train.n_items)
    return {"radius": radius, "leveling": 0.0, "above": _threshold(split)}


def _score(split: Split, estimator: Estimator, seed: int) -> float:
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
    return _right(split, model.predict(split.train, split.test.rows(), split.test.items))


def by_rounds(split: Split, rounds: Sequence[int], seed: int) -> dict[str, list[float]]:
    """Return the accuracy at epsilon 4 after K noisy gradients, for both kinds of steps."""
    return {
        step: [
            _score(split, OneBitGradient(epsilon=4.0, rounds=k, step=step, **_shared(split)), seed)
            for k in rounds
        ]
        for step in ("fixed", "barzilai-borwein")
    }


def by_flip_rates(split: Split, seed: int, iterations: int) -> dict[str, float]:
    """Return the accuracy at epsilon 2 with equal flip rates and with differing ones."""
    pairs: dict[str, Mapping[str, float]] = {
        name: {"flip_positive": positive, "flip_negative": negative}
        for name, (positive, negative) in _SKEWED_AT_2.items()
    }
    return {
        name: _score(split, OneBitInput(epsilon=2.0, iterations=iterations, **rates, **_shared(split)), seed)
        for name, rates in {"equal": {}, **pairs}.items()
    }


def _gathered(runs: Sequence[dict[str, Any]]) -> Lines:
    return {method: np.array([one[method] for one in runs]) for method in runs[0]}


def _epsilons(run: Run) -> tuple[float, ...]:
    return run.pick(full=(1.0, 2.0, 4.0, 7.0, 10.0), quick=(1.0, 4.0, 10.0), toy=(1.0, 4.0))


def _iterations(run: Run) -> int:
    return run.pick(full=100, quick=30, toy=2)


def _panel(
    title: str,
    x: Sequence[float],
    lines: Lines,
    x_label: str,
    y_label: str,
    extra: Iterable[PlottedLine] = (),
) -> Panel:
    curves = [
        level(LABELS[method], x, float(values.mean()))
        if method in (CLEAR, MAJORITY) and x_label == "epsilon"
        else measured(LABELS[method], x, values)
        for method, values in lines.items()
    ]
    return Panel(
        title, x_label, y_label, [*curves, *extra], y_scale="log" if "error" in y_label else "linear"
    )


def _figure_1(run: Run, link: str, panels: list[Panel]) -> Found:
    epsilons, matrix = _epsilons(run), SquareMatrix.of(run, link)

    def lines(words: str, methods: Sequence[str], draws: int) -> Lines:
        name = f"figure 1, {link}{words}, draw"
        return _gathered(run.seeds(name, errors, matrix, epsilons, methods, full=draws))

    more = (CLIPPED, PROJECTED, OBJECTIVE_PRINTED)[: 3 if link == "probit" else 2]
    # As in the paper, 40 draws here and 10 for the other figures.
    found_lines = lines("", MAIN, 40) | run.part(lines, ", readings", more, 10)
    title = f"Synthetic, 100 x 100, 15% observed, {link}"
    panels.append(_panel(title, epsilons, found_lines, "epsilon", "average relative error"))
    found: Found = {}
    for method in (name for name in found_lines if name != CLEAR):
        values, clear = found_lines[method], found_lines[CLEAR]
        found[f"fig1-{link}-{method}-falls"] = (values[:, 0] - values[:, -1]).tolist()
        found[f"fig1-{link}-{method}-at-10"] = ratio_of_means(values[:, -1], clear[:, -1])
    at_4 = {method: values[:, epsilons.index(4.0)] for method, values in found_lines.items()}
    best = min(OTHERS, key=lambda method: at_4[method].mean())
    for method in at_4.keys() & {OUTPUT, CLIPPED, PROJECTED}:
        found[f"fig1-{link}-{method}-at-4"] = ratio_of_means(at_4[method], at_4[best])
    return found


def _accuracy(
    run: Run,
    number: str,
    data: str,
    load: Callable[[int], Split],
    link: str,
    panels: list[Panel],
) -> Found:
    epsilons = _epsilons(run)

    def lines(words: str, methods: Sequence[str], draws: int) -> Lines:
        name, options = f"figure {number}, {link}{words}, run", {"iterations": _iterations(run)}
        return _gathered(run.seeds(name, accuracies, load, epsilons, link, methods, full=draws, **options))

    more = (PROJECTED, OBJECTIVE_PRINTED)[: 2 if link == "probit" else 1]
    found_lines = lines("", (*MAIN, MAJORITY), 10) | run.part(lines, ", readings", more, 3)
    said = [PlottedLine("all four, at least", [4.0], [0.68], kind="printed")] if number == "2" else []
    panels.append(_panel(f"{data}, {link}", epsilons, found_lines, "epsilon", "accuracy", said))
    found: Found = {f"fig{number}-{link}-clear": found_lines[CLEAR][:, 0].tolist()}
    at_4 = epsilons.index(4.0)
    for method in (name for name in found_lines if name not in (CLEAR, MAJORITY)):
        key, values = f"fig{number}-{link}-{method}", found_lines[method]
        found[f"{key}-at-4"] = values[:, at_4].tolist()
        found[f"{key}-rises"] = (values[:, -1] - values[:, 0]).tolist()
        found[f"{key}-reaches-clear"] = (found_lines[CLEAR][: len(values), -1] - values[:, -1]).tolist()
    for method in found_lines.keys() & {OUTPUT, PROJECTED}:
        lead = _over_best(found_lines, method)
        found[f"fig{number}-{link}-{method}-best"] = lead.mean(axis=1).tolist()
        found[f"fig{number}-{link}-{method}-best-at-1"] = lead[:, 0].tolist()
    return found


def _over_best(lines: Lines, method: str) -> np.ndarray:
    """Return the lead of output over the best other, which each draw takes from the means of the others.

    The best of several in the same draw would be ahead by luck.
    """
    draws = len(lines[method])
    lead = np.empty_like(lines[method])
    for own in range(draws):
        rest = [other for other in range(draws) if other != own] or [own]
        means = np.array([lines[other][rest].mean(axis=0) for other in OTHERS])
        best = np.array([lines[other][own] for other in OTHERS])
        lead[own] = lines[method][own] - best[means.argmax(axis=0), np.arange(means.shape[1])]
    return lead


def _shares(run: Run, number: str, link: str) -> Found:
    """Run figures 4 and 5: errors over the observed share, at several epsilons."""
    shares = run.pick(full=(0.2, 0.5, 0.8), quick=(0.2, 0.8), toy=(0.2, 0.8))

    def cube(words: str, methods: Sequence[str]) -> Lines:
        """Return draws by epsilons by shares, for each method."""
        by_share = []
        for share in shares:
            name = f"figure {number}, {link}, {share:.0%} observed{words}, draw"
            matrix = SquareMatrix.of(run, link)._replace(observed=share)
            found = run.seeds(name, errors, matrix, _SHARE_EPSILONS, methods)
            by_share.append(_gathered(found))
        draws = min(len(lines[methods[0]]) for lines in by_share)
        return {name: np.stack([lines[name][:draws] for lines in by_share], axis=2) for name in methods}

    found = cube("", MAIN)
    if link == "probit":
        found |= run.part(cube, ", readings", [OBJECTIVE_PRINTED])
    panels = [
        _panel(
            f"Synthetic, {link}, epsilon {epsilon:g}",
            shares,
            {method: values[:, place] for method, values in found.items()},
            "observed share",
            "average relative error",
        )
        for place, epsilon in enumerate(_SHARE_EPSILONS)
    ]
    draw(run, f"figure-{number}", panels)
    return _share_claims(f"fig{number}", found)


def _share_claims(key: str, cube: Lines) -> Found:
    one, five, ten = (_SHARE_EPSILONS.index(epsilon) for epsilon in (1.0, 5.0, 10.0))
    found: Found = {}
    change = {
        method: cube[method][:, one].mean(axis=1) / cube[method][:, ten].mean(axis=1) - 1 for method in cube
    }
    for method in (name for name in cube if name != CLEAR):
        values = cube[method]
        found[f"{key}-{method}-falls"] = (values[:, :, 0] - values[:, :, -1]).mean(axis=1).tolist()
        # At the smallest share: the gain beyond epsilon 5, over the gain from 1 on.
        least = values[:, :, 0]
        found[f"{key}-{method}-levels-off"] = ratio_of_means(
            least[:, five] - least[:, ten], least[:, one] - least[:, ten]
        )
        found[f"{key}-{method}-drastic"] = (change[method] - change["input"][: len(values)]).tolist()
        gain = 1 - values[:, :, -1] / values[:, :, 0]
        found[f"{key}-{method}-flat-at-1"] = (gain[:, five] - gain[:, one]).tolist()
    return found


def _rounds(run: Run) -> Found:
    """Run the gradient method with K = 1, 2, 5 and 10 steps, and input with differing flip rates."""
    split = movielens(0)
    rounds = run.pick(full=(1, 2, 5, 10), quick=(1, 5), toy=(1, 2))
    lines = _gathered(run.seeds("K steps, run", by_rounds, split, rounds))
    curves = [measured(f"{step} steps", rounds, values) for step, values in lines.items()]
    draw(run, "gradient-steps", [Panel("ML-100K, u1, epsilon 4", "K", "accuracy", curves)])
    found: Found = {
        f"gradient-{step}-{k}": lines[step][:, place].tolist()
        for step in lines
        for place, k in enumerate(rounds)
    }
    rates = _gathered(run.seeds("flip rates, run", by_flip_rates, split, iterations=_iterations(run)))
    best = max(_SKEWED_AT_2, key=lambda rate: rates[rate].mean())
    return found | {"input-equal-rates-best": (rates["equal"] - rates[best]).tolist()}


def _theorem_1() -> Found:
    """Return every constant over its printed bound (at most 1 is printed), and the constants themselves.

    The printed condition lists two of four ratios; the flip rates of the counterexample satisfy both.
    """
    p1, p2 = 0.001, 0.4
    ratios = ((1 - p1) / p2, (1 - p2) / p1, p1 / (1 - p2), p2 / (1 - p1))
    found: Found = {"theorem1-condition": [math.log(max(ratios))]}
    for name in LINKS:
        for epsilon in (1.0, 2.0, 4.0):
            true, bound = link_constants(name, epsilon), printed_constants(name, epsilon)
            found[f"theorem1-L-{name}-{epsilon:g}"] = [true.steepness / bound.steepness]
            found[f"theorem1-beta-{name}-{epsilon:g}"] = [true.flatness / bound.flatness]
            found[f"theorem1-beta-{name}-{epsilon:g}-is"] = [true.flatness]
        # Appendix A: e^alpha for the logistic link, at most pi sigma^2 e^(alpha^2 / 2 sigma^2) for probit.
        found[f"theorem1-beta-h-{name}"] = [link_constants(name).flatness]
    return found


def _rates(run: Run) -> Found:
    side = run.pick(full=300, quick=300, toy=20)
    rates = run.seeds("rates of the theorems, draw", slopes, side=side)
    return {f"rate-{name}": [one[name] for one in rates] for name in rates[0]}


def rate_sample(side: int, rank: int, observed: float, seed: int) -> tuple[Interactions, Floats]:
    """Return ratings of a share of the cells of a matrix of this rank, with entries of mean square 1."""
    drawn = experiment_generator(seed, "rates", rank)
    left, right = (drawn.uniform(-1, 1, (side, rank)) for _ in range(2))
    truth = 3 * left @ right.T / math.sqrt(rank)
    cells = np.sort(drawn.permutation(side * side)[: round(observed * side * side)])
    rows, items = np.divmod(cells, side)
    ratings = np.where(drawn.random(cells.size) < expit(truth[rows, items]), 1, -1)
    facts = PublicFacts(n_items=side, low=-1, high=1, step=2, n_users=side)
    return numbered(np.bincount(rows, minlength=side), items, ratings, facts=facts, name="rates"), truth


def slopes(seed: int, side: int) -> dict[str, float]:
    """Return log-log slopes of the recovery error: in the number of ratings, the rank, and epsilon."""

    def error(kind: type[Estimator], epsilon: float, rank: int, observed: float) -> float:
        """Return the mean squared error with the true nuclear norm as radius, as the theorems assume."""
        data, truth = rate_sample(side, rank, observed, seed)
        radius = float(np.linalg.svd(truth, compute_uv=False).sum())
        model = kind(epsilon=epsilon, leveling=0.0, bound=_RATE_BOUND, radius=radius)
        scorer: Any = model.fit(data, random=PrivacyRandom.simulate(seed)).scorer
        return float(np.mean((scorer.left @ scorer.right.T - truth) ** 2))

    def excess(epsilon: float) -> float:
        """Return what the printed noise adds to the mean squared error."""
        random = PrivacyRandom.simulate(seed)
        return float(
            np.mean(simulated_laplace(np.zeros(160_000), epsilon=epsilon, bound=2.0, random=random) ** 2)
        )

    shares, ranks, epsilons = (0.1, 0.2, 0.4, 0.8), (1, 2, 4, 8), (0.25, 0.5, 1.0, 2.0)
    # The input theorem's constant is 1 / (1 - 2p), and 1 - 2p = tanh(epsilon / 2).
    kept = [math.tanh(epsilon / 2) for epsilon in epsilons]
    return {
        "n": slope(shares, [error(OneBitInput, math.inf, 1, share) for share in shares]),
        "rank": slope(ranks, [error(OneBitInput, math.inf, rank, 0.5) for rank in ranks]),
        "input": slope(kept, [error(OneBitInput, epsilon, 1, 1.0) for epsilon in epsilons]),
        "objective": slope(epsilons, [error(OneBitObjective, epsilon, 1, 1.0) for epsilon in epsilons]),
        "output": slope(epsilons, [excess(epsilon) for epsilon in epsilons]),
    }
