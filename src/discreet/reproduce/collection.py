"""Experiments for "Two differentially private rating collection mechanisms" (Zheng); it prints no numbers.

    discreet papers reproduce collection [--quick] [--out FOLDER]

Measured here: Theorems 1 and 2 by counting, Theorem 3's bound next to sharper ones that can fail, the
constant of statement (5), and the error of recovered ratings over epsilon. Claims and results are in
`papers/collection`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from discreet.collect.device import collect_cells
from discreet.collect.estimate import rho_bound, rho_expected
from discreet.collect.hidden_items import cell_mechanism
from discreet.core import PrivacyRandom, Rows, experiment_generator
from discreet.data import Interactions, PublicFacts, Vocabulary, random_split
from discreet.papers.collection.nuclear import LocalNuclear, LocalNuclearPlain
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.reproduce import copies
from discreet.reproduce.figures import Panel, PlottedLine, draw, measured
from discreet.reproduce.running import DrawnValues, Found, Run
from discreet.solvers import recover

Cells = tuple[np.ndarray, np.ndarray, np.ndarray]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
KINDS = ("stars", "numbers")
#: Two sizes of a matrix with the same shape: a constant must not grow from one to the other.
SIZES = ((60, 50), (240, 200))
#: Real data: epsilons, and about how far ratings are from predictable values.
REAL = {
    "restaurant-consumer": ((1.0, 2.0, 4.0, 6.0, 8.0), 0.6),
    "movielens-100k": ((0.5, 2.0, 4.0, 6.0, 8.0), 0.9),
}
_TITLES = {"restaurant-consumer": "Restaurants", "movielens-100k": "MovieLens 100K"}
GAMMA, USERS, ITEMS = 0.05, 60, 50
_BOUNDS = {
    "printed": "Theorem 3, 95%",
    "worst sharp": "any truth, rated truly, 95% (ours)",
    "sharp": "this truth, 95% (ours)",
    "mean": "measured mean",
    "worst mean": "measured mean, worst truth",
}


def measure(run: Run) -> Found:
    """Return the values of every claim, by its ID."""
    found: Found = {}
    for kind in KINDS:
        found |= run.part(_theorem_claims, kind, run) | run.part(_statement_five, kind, run)
    panels: list[Panel] = []
    for kind in KINDS:
        found |= run.part(_synthetic, kind, run, panels)
    for name in run.pick(full=tuple(REAL), quick=("restaurant-consumer",), toy=tuple(REAL)):
        if copies.available(name, run.say):
            found |= run.part(_real, name, run, panels)
    draw(run, "recovery", panels)
    return found


# Worlds: ratings of which the whole truth is known, of rank 2 exactly, on the scale without clipping.

_RATED = 0.3
# The parts of an item's quality and a user's preference: together the ends of the scale and no further.
_QUALITY, _PREFERENCE = 0.4, 0.6


@dataclass(frozen=True)
class World:
    """The truth, the ratings, and how far ratings are from it (root mean square)."""

    truth: np.ndarray
    data: Interactions
    intrinsic: float

    def everywhere(self) -> Cells:
        """Return all cells with their true ratings."""
        rows, items = np.indices(self.truth.shape)
        return rows.ravel(), items.ravel(), self.truth.ravel()


def make_world(kind: str, *, seed: int, users: int, items: int) -> World:
    """Return stars from 1 to 5, or numbers in [-1, 1]; 30% of the cells are rated.

    A user's vector is (1, t), an item's (middle + quality, s), with |t|, |s| in [1/2, 1]: their products
    are a matrix of rank 2 inside the scale. Only ratings, the truth with noise, are rounded and clipped.
    """
    rng = experiment_generator(seed, "world", kind)
    quality = _QUALITY * rng.uniform(-1, 1, items)
    place = quality[None, :] + _PREFERENCE * np.outer(_leaning(rng, users), _leaning(rng, items))
    truth = 3 + 2 * place if kind == "stars" else place
    rated = rng.random((users, items)) < _RATED
    noise = 0.2 if kind == "stars" else 0.1
    return _world(kind, truth, rated, truth + rng.normal(scale=noise, size=truth.shape))


def worst_world(kind: str, *, seed: int, users: int, items: int) -> World:
    """Return the world with the largest misfit of reports: all truth at one end of the scale."""
    rng = experiment_generator(seed, "worst world", kind)
    truth = np.full((users, items), 1.0)
    return _world(kind, truth, rng.random((users, items)) < _RATED, truth)


def _leaning(rng: Generator, size: int) -> np.ndarray:
    return rng.choice([-1.0, 1.0], size) * rng.uniform(0.5, 1, size)


def _world(kind: str, truth: np.ndarray, rated: np.ndarray, noisy: np.ndarray) -> World:
    stars = kind == "stars"
    low, high = (1.0, 5.0) if stars else (-1.0, 1.0)
    rows, columns = np.nonzero(rated)
    told = noisy[rows, columns]
    ratings = np.clip(np.rint(told) if stars else told, low, high)
    users, items = truth.shape
    data = Interactions.from_arrays(
        rows,
        columns,
        ratings,
        facts=PublicFacts(n_items=items, low=low, high=high, step=1.0 if stars else None),
        people=Vocabulary.of(range(users)),
        catalog=Vocabulary.of(range(items)),
        name="world",
    )
    return World(truth, data, float(np.sqrt(np.mean((truth[rows, columns] - ratings) ** 2))))


# Theorems 1 to 3. Cells are reported independently of each other, so the squared misfit |P(Theta - Z)|^2 is a
# sum of independent terms whose mean and variance the channel gives exactly. Two bounds follow: the quantile
# of the normal distribution with these moments, which should be exceeded exactly as often as it states, and
# Cantelli's inequality for the worst truth there is, which holds for every truth that is rated truly.


class Moments(NamedTuple):
    """Mean and variance of the squared misfit."""

    mean: float
    variance: float

    def usual(self) -> float:
        """Return the number that |P(Theta - Z)| exceeds with probability gamma if its square is normal."""
        return math.sqrt(self.mean + NormalDist().inv_cdf(1 - GAMMA) * math.sqrt(self.variance))

    def sure(self) -> float:
        """Return a number that it exceeds with probability at most gamma, by Cantelli's inequality."""
        return math.sqrt(self.mean + math.sqrt(self.variance * (1 / GAMMA - 1)))


def misfit_moments(mechanism: CellMechanism, world: World) -> Moments:
    """Return mean and variance of the squared misfit, cell by cell."""
    channel, outputs = mechanism.channel(), mechanism.outputs()
    rows, items, ratings = world.data.rows(), world.data.items, world.data.values
    told = np.abs(channel.inputs[None, :] - ratings[:, None]).argmin(axis=1)
    empty = np.ones(world.truth.shape, dtype=bool)
    empty[rows, items] = False
    answers = np.vstack(
        [channel.transition[told], np.broadcast_to(mechanism.pretended(), (empty.sum(), outputs.size))]
    )
    chance = np.append(np.full(told.size, mechanism.keep), np.full(empty.sum(), mechanism.fake))
    truth = np.append(world.truth[rows, items], world.truth[empty])
    squares = (outputs[None, :] - truth[:, None]) ** 2
    first = chance * np.einsum("ij,ij->i", answers, squares)
    second = chance * np.einsum("ij,ij->i", answers, squares**2)
    return Moments(float(first.sum()), float(np.sum(second - first**2)))


def theorem3(kind: str, epsilon: float, draws: int) -> dict[str, float]:
    """Return the printed bound, the sharp ones, and how often and by how much each is kept."""
    plain = make_world(kind, seed=1, users=USERS, items=ITEMS)
    worst = worst_world(kind, seed=1, users=USERS, items=ITEMS)
    mechanism = cell_mechanism(epsilon, plain.data.facts)
    size = {"people": USERS, "items": ITEMS, "rated": plain.data.n_ratings, "intrinsic": plain.intrinsic}
    printed, expected = rho_bound(mechanism, gamma=GAMMA, **size), rho_expected(mechanism, **size)
    usual, sure = misfit_moments(mechanism, plain).usual(), misfit_moments(mechanism, worst).sure()
    found, strayed = misfits(plain, mechanism, draws), misfits(worst, mechanism, draws)
    size |= {"rated": worst.data.n_ratings, "intrinsic": 0.0}
    return {
        "epsilon": epsilon,
        "printed": printed,
        "expected": expected,
        "sharp": usual,
        "mean": float(found.mean()),
        "mean spread": float(found.std(ddof=1)),
        "largest": float(found.max()),
        "below printed": float(np.mean(found <= printed)),
        "below sharp": float(np.mean(found <= usual)),
        "worst sharp": sure,
        "worst printed": rho_bound(mechanism, gamma=GAMMA, **size),
        "worst mean": float(strayed.mean()),
        "worst mean spread": float(strayed.std(ddof=1)),
        "worst below": float(np.mean(strayed <= sure)),
        "worst loss": largest_loss(mechanism),
    }


def misfits(world: World, mechanism: CellMechanism, draws: int) -> np.ndarray:
    """Return |P(Theta - Z)| for many draws of the reports."""
    found = []
    for seed in range(draws):
        reports = collect_cells(world.data, mechanism, PrivacyRandom.simulate(seed)).reports
        truth = world.truth[reports.rows(), reports.items]
        found.append(float(np.linalg.norm(truth - reports.values)))
    return np.array(found)


def largest_loss(mechanism: CellMechanism) -> float:
    """Return the largest log-ratio of any report, silence included, between any two states of a cell."""
    rated = np.column_stack(
        [
            mechanism.keep * mechanism.channel().transition,
            np.full(len(mechanism.channel().inputs), 1 - mechanism.keep),
        ]
    )
    empty = np.append(mechanism.fake * mechanism.pretended(), 1 - mechanism.fake)
    likely = np.vstack([rated, empty])
    # Reports that no state makes with a noticeable probability are left to proofs/modified_laplace.md.
    seen = likely.min(axis=0) > 1e-12
    logs = np.log(likely[:, seen])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def _theorem_claims(kind: str, run: Run) -> Found:
    """Count the largest loss of a report, and draw reports to see which bounds on rho hold how tightly."""
    # A share of 0.95 that may differ by 0.02 is decided by some thousand draws.
    draws = run.pick(full=1600, quick=200, toy=4)
    rows = [
        run.step(f"theorem 3 {kind} {epsilon:g}, {draws} draws", theorem3, kind, epsilon, draws)
        for epsilon in EPSILONS
    ]
    lines = [
        PlottedLine(
            label, EPSILONS, [row[name] for row in rows], kind="printed" if name == "printed" else "ours"
        )
        for name, label in _BOUNDS.items()
    ]
    draw(run, f"rho-{kind}", [Panel(f"Theorem 3, {kind}", "epsilon per cell", "rho", lines, y_scale="log")])
    world = make_world(kind, seed=1, users=USERS, items=ITEMS)
    values: Found = {
        f"loss-{kind}": [row["worst loss"] / row["epsilon"] for row in rows],
        f"printed-over-worst-{kind}": [row["worst printed"] / row["worst sharp"] for row in rows],
        f"rank-{kind}": [float(np.linalg.matrix_rank(world.truth))],
    }
    for name, key in (
        ("coverage", "below printed"),
        ("sharp-coverage", "below sharp"),
        ("worst-coverage", "worst below"),
    ):
        values[f"{name}-{kind}"] = _share([row[key] for row in rows], draws)
    for name, top, below in (
        ("looseness", "printed", "mean"),
        ("sharp-looseness", "sharp", "mean"),
        ("worst-looseness", "worst sharp", "worst mean"),
    ):
        ratios = [row[top] / row[below] for row in rows]
        # The error of a mean of ratios whose divisors are means of draws.
        errors = [
            ratio * row[f"{below} spread"] / row[below] for ratio, row in zip(ratios, rows, strict=True)
        ]
        error = math.hypot(*errors) / math.sqrt(draws) / len(rows)
        values[f"{name}-{kind}"] = DrawnValues(ratios, draws * len(rows), error)
    return values


def _share(shares: Sequence[float], draws: int) -> DrawnValues:
    """Return shares of draws with the binomial error of their mean."""
    variance = sum(share * (1 - share) for share in shares) / draws
    return DrawnValues(shares, draws * len(shares), math.sqrt(variance) / len(shares))


def _statement_five(kind: str, run: Run) -> Found:
    """Find C0 in |Theta_hat - Theta| <= C0 rho / sqrt(p), and how it grows with the matrix."""
    sizes = run.pick(full=SIZES, quick=SIZES, toy=((24, 20), (48, 40)))

    def both(seed: int) -> list[list[float]]:
        return [
            run.step(f"statement (5) {kind} {users} {seed}", _constants, kind, users, items, seed)
            for users, items in sizes
        ]

    found = run.draws(run.pick(full=10, quick=3, toy=1), both)
    return {
        f"constant-{kind}": [max(max(row) for pair in found for row in pair)],
        f"constant-growth-{kind}": [max(large) / max(small) for small, large in found],
    }


def _constants(kind: str, users: int, items: int, seed: int) -> list[float]:
    """Return |error| sqrt(p) / rho at epsilon 2, 4 and 8, with the measured rho."""
    world, found = make_world(kind, seed=seed, users=users, items=items), []
    for epsilon in (2.0, 4.0, 8.0):
        mechanism = cell_mechanism(epsilon, world.data.facts)
        reports = collect_cells(world.data, mechanism, PrivacyRandom.simulate(seed)).reports
        rho = float(np.linalg.norm(world.truth[reports.rows(), reports.items] - reports.values))
        answer = recover(Rows(reports.indptr, reports.items, reports.values.astype(np.float32)), items, rho)
        error = float(np.linalg.norm(answer.left @ answer.right.T - world.truth))
        found.append(error * (reports.n_ratings / world.truth.size) ** 0.5 / rho)
    return found


# Recovery of ratings from one collection, in four ways, scored on the same cells.


class Errors(NamedTuple):
    """Root mean squared errors: corrected and plain recovery, debiased item means, debiased overall mean."""

    corrected: float
    plain: float
    items: float
    mean: float


_WAYS = {
    "corrected": "corrected (ours)",
    "plain": "plain, as printed",
    "items": "debiased item means",
    "mean": "debiased mean",
}


def recovery_errors(data: Interactions, test: Cells, epsilon: float, seed: int, intrinsic: float) -> Errors:
    """Collect once, and learn from the same reports in every way; users are those of the collection.

    The plain recovery gets `intrinsic`, how far ratings are from the truth in its own unit.
    """
    corrected, plain = LocalNuclear(epsilon=epsilon), LocalNuclearPlain(epsilon=epsilon, intrinsic=intrinsic)
    mechanism = corrected.mechanism(data.facts)
    collected = collect_cells(data, mechanism, PrivacyRandom.simulate(seed))
    ours = corrected.fit_reports(collected)
    device: Any = ours.scorer.device
    rows, items, truth = test
    guesses = (
        ours.predict(data, rows, items),
        plain.fit_reports(collected).predict(data, rows, items),
        np.clip(device.mean + device.item_bias[items], device.low, device.high),
        np.full(truth.size, np.clip(device.mean, device.low, device.high)),
    )
    return Errors(*(float(np.sqrt(np.mean((guess - truth) ** 2))) for guess in guesses))


def _recovery(kind: str, users: int, items: int, epsilon: float, *, seed: int) -> Errors:
    world = make_world(kind, seed=seed, users=users, items=items)
    return recovery_errors(world.data, world.everywhere(), epsilon, seed, world.intrinsic)


def _held_out(name: str, intrinsic: float, epsilon: float, *, seed: int) -> Errors:
    split = random_split(copies.load(name), 0.1, seed)
    test = split.test.rows(), split.test.items, split.test.values
    return recovery_errors(split.train, test, epsilon, seed, intrinsic)


def _synthetic(kind: str, run: Run, panels: list[Panel]) -> Found:
    sizes = run.pick(full=(300, 200), quick=(300, 200), toy=(60, 40))
    work, title = partial(_recovery, kind, *sizes), f"Low rank, {kind}"
    compared = Compared(f"synthetic-{kind}", f"recovery {kind}", title, EPSILONS)
    return _compared(compared, work, run, panels)


def _real(name: str, run: Run, panels: list[Panel]) -> Found:
    epsilons, intrinsic = REAL[name]
    compared = Compared(name, name, _TITLES[name], epsilons)
    return _compared(compared, partial(_held_out, name, intrinsic), run, panels)


class Compared(NamedTuple):
    """Data on which the ways are compared: its names in claims, steps and figures, and its epsilons."""

    key: str
    step: str
    title: str
    epsilons: Sequence[float]


def _compared(data: Compared, work: Callable[..., Errors], run: Run, panels: list[Panel]) -> Found:
    """Return by how much the corrected recovery is below the others (negative is better); add a panel."""
    key, step, title, epsilons = data
    epsilons = run.pick(full=epsilons, quick=epsilons, toy=(4.0,))
    values: Found = {}
    by_epsilon = []
    for epsilon in epsilons:
        errors = [Errors(*one) for one in run.seeds(f"{step} {epsilon:g}", work, epsilon, quick=3)]
        for what in ("plain", "items", "mean"):
            values[f"{key}-{epsilon:g}-below-{what}"] = [one.corrected - getattr(one, what) for one in errors]
        values[f"{key}-{epsilon:g}-corrected"] = [one.corrected for one in errors]
        by_epsilon.append(errors)
    # Draws by methods by epsilons.
    table = np.array(list(zip(*by_epsilon, strict=False))).transpose(0, 2, 1)
    lines = [measured(_WAYS[name], epsilons, table[:, place]) for place, name in enumerate(Errors._fields)]
    panels.append(Panel(title, "epsilon per cell", "RMSE", lines))
    return values
