"""Published claims under audit, all of epsilon 1, and our own guarantee in the place of each.

    discreet papers reproduce audit [--quick] [--out FOLDER]

Each claim is two worlds and what an attacker sees of them. Claims and results are in `papers/audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from discreet.audit.games.bounds import least_share
from discreet.audit.games.playing import Plan, play
from discreet.audit.games.scores import log_ratios
from discreet.audit.neighboring import SyntheticSpec, neighboring
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Player, RecordedAdditive, Recorder
from discreet.audit.white_box.structure import examine
from discreet.core import PrivacyRandom, experiment_generator
from discreet.model_settings import MODELS
from discreet.papers.one_bit.estimators import OneBitOutput
from discreet.privacy import gaussian_delta, gaussian_multiplier
from discreet.privacy.sampling import draws
from discreet.reproduce.figures import Panel, PlottedLine, draw
from discreet.reproduce.running import Run

CLAIMED, ERROR = 1.0, 0.01
INSTEAD = {
    "whole-matrix": "one-bit-output",
    "parallel-items": "implicit-objective",
    "frank-wolfe-noise": "frank-wolfe",
    "probit": "one-bit-objective",
    "labels": "user-factorization",
}
TITLES = {
    "whole-matrix": "one-bit output,\nwhole matrix",
    "parallel-items": "DPIMF,\n737 items",
    "frank-wolfe-noise": "Frank-Wolfe\nexperiments",
    "probit": "probit\nobjective",
    "labels": "DPALS\nlabels",
}
# Fine enough that discrete noise is as good as continuous.
STEPS = 2.0**20


@dataclass
class ReleasedPair:
    """One release whose inputs in both worlds are known."""

    first: RecordedAdditive
    second: RecordedAdditive
    fits: int = 0

    @classmethod
    def shifted(cls, apart: Any, *, gaussian: bool) -> ReleasedPair:
        """Return a release whose inputs are `apart`, in units of the noise's width."""
        moved = np.rint(np.atleast_1d(apart) * STEPS).astype(np.int64)
        nothing = np.zeros_like(moved)
        neighbors = (
            RecordedAdditive(gaussian=gaussian, width=STEPS, given=given, output=given)
            for given in (nothing, moved)
        )
        return cls(*neighbors)

    def play(self, count: int, seed: int) -> tuple[Any, Any]:
        """Return the scores of fresh games, and which world it was."""
        truth = experiment_generator(seed, "paper").random(count) < 0.5
        return log_ratios(self.first, self.second, truth, PrivacyRandom.simulate(seed)), truth

    def paid(self, delta: float) -> float:
        """Return the exact price."""
        return price([self.first], [self.second]).epsilon(delta)


def whole_matrix() -> ReleasedPair:
    """Return the release of every cell of a completed matrix with the noise that hides one cell."""
    estimator = OneBitOutput(epsilon=1.0)
    neighbors = next(neighboring(estimator, SyntheticSpec()))
    recorder = Recorder()
    scorer = estimator.rehearse(neighbors.base, PrivacyRandom.recorded(0, recorder))
    scorer.scores(neighbors.base, np.arange(neighbors.base.n_users))
    player = Player(recorder.calls)
    other = next(iter(neighbors.others.values()))
    scorer = estimator.rehearse(other, PrivacyRandom.recorded(0, player))
    scorer.scores(other, np.arange(other.n_users))
    return ReleasedPair(recorder.calls[-1], player.calls[-1])


def parallel_items(items: int = 737, factors: int = 10) -> ReleasedPair:
    """Return the release of every item's linear term with noise for one item.

    A user is in all items they chose. The noise is scaled to the longest profile; this user's is the median.
    """
    draw = experiment_generator(0, "profiles")
    profiles = np.abs(draw.standard_normal((1000, factors))) / math.sqrt(factors)
    norms = profiles.sum(axis=1)
    usual = profiles[np.argsort(norms)[norms.size // 2]]
    return ReleasedPair.shifted(np.tile(usual / norms.max(), items), gaussian=False)


def frank_wolfe_noise(delta: float = 1e-6, saving: float = 8.0) -> ReleasedPair:
    """Return a release with the experiments' deviation: an eighth of the stated one, for rows up to 2 L."""
    multiplier = math.sqrt(64 * math.log(1 / delta)) / saving / 4
    return ReleasedPair.shifted(1 / multiplier, gaussian=True)


def labels_beyond_one(delta: float = 1e-5, largest: float = 3.0) -> ReleasedPair:
    """Return two equal Gaussian releases; one assumes labels of at most 1, and centered ratings reach 3."""
    each = gaussian_multiplier(1.0, delta) * math.sqrt(2)
    return ReleasedPair.shifted(np.array([1 / each, largest / each]), gaussian=True)


def probit_ratings(cells: int = 121, epsilon: float = 1.0, ridge: float = 1.0) -> tuple[int, int]:
    """Return how many binary ratings are read off the grid of a tilted probit objective, and of how many.

    The tilt is on a grid. At the minimizer it must balance the slope, and only the true rating's slope
    leaves a tilt that is on it.
    """
    truth = np.where(experiment_generator(0, "verdicts").random(cells) < 0.5, 1.0, -1.0)
    step = 2.0**-12
    tilt = draws.discrete_laplace(1 / epsilon / step, cells, PrivacyRandom.simulate(3)) * step
    scores = np.zeros(cells)
    for _ in range(200):
        slope = _slope(truth, scores) + ridge * scores + tilt
        bend = ridge + _bend(truth, scores)
        scores -= slope / bend
    off = [
        np.abs(implied / step - np.rint(implied / step))
        for implied in (-_slope(np.full(cells, verdict), scores) - ridge * scores for verdict in (1.0, -1.0))
    ]
    return int(np.sum(np.where(off[0] < off[1], 1.0, -1.0) == truth)), cells


def _slope(verdicts: Any, scores: Any) -> Any:
    """Return the slope of -log Phi(verdict score)."""
    signed = verdicts * scores
    return -verdicts * np.exp(-(signed**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(signed))


def _bend(verdicts: Any, scores: Any) -> Any:
    ratio = -verdicts * _slope(verdicts, scores)
    return ratio * (ratio + verdicts * scores)


def measure(run: Run) -> dict[str, Sequence[float]]:
    """Return the values of every claim, by its ID."""
    say, games = run.say, run.pick(full=200_000, quick=20_000, toy=500)
    found: dict[str, Sequence[float]] = {}
    for name, attack, delta, most in (
        ("whole-matrix", whole_matrix(), 0.0, min(games, 20_000)),
        ("parallel-items", parallel_items(), 0.0, min(games, 2_000)),
        ("frank-wolfe-noise", frank_wolfe_noise(), 1e-6, games),
        ("labels", labels_beyond_one(), 1e-5, games),
    ):
        say(f"{name}: {most:,} games")
        curve = _gaussian(delta) if delta else None
        plan = Plan(lessons=max(most // 4, 500), games=most, error=ERROR, enough=math.inf)
        outcome = play(attack, plan, epsilon=CLAIMED, delta=delta, distance=curve, seed=1)
        found[f"{name}-exact"] = [attack.paid(delta)]
        found[f"{name}-refuted"] = [max(outcome.refuted, outcome.curve or 0.0) if outcome.broken else 0.0]
    right, cells = probit_ratings()
    say(f"probit: {right} of {cells} verdicts read")
    share = least_share(right, cells, ERROR)
    found["probit-read"] = [right / cells]
    found["probit-refuted"] = [math.log(share / (1 - share))]
    found["frank-wolfe-noise-delta"] = [gaussian_delta(math.sqrt(math.log(1e6)) / 4, CLAIMED)]
    for name, model in INSTEAD.items():
        inside = examine(MODELS[model](epsilon=CLAIMED), SyntheticSpec(people=8, items=6, per_person=3))
        found[f"{name}-ours"] = [inside.refuted]
    _figure(run, found)
    return found


def _gaussian(delta: float) -> Callable[[float], float]:
    def distance(epsilon: float) -> float:
        return gaussian_delta(gaussian_multiplier(epsilon, delta), 0.0) if epsilon > 0 else 0.0

    return distance


def _figure(run: Run, found: dict[str, Sequence[float]]) -> None:
    """Draw the refuted epsilons next to those of our own models."""
    places = [float(place) for place in range(len(TITLES))]
    lines = [
        PlottedLine(label, places, [found[f"{name}-{what}"][0] for name in TITLES], kind="points")
        for what, label in (("refuted", "as published"), ("ours", "ours in its place"))
    ]
    lines.append(PlottedLine("the claim", [places[0], places[-1]], [CLAIMED, CLAIMED], kind="level"))
    ticks = dict(zip(places, TITLES.values(), strict=True))
    draw(
        run,
        "claims-refuted",
        [Panel("Five claims of epsilon 1", "", "epsilon refuted, at 99%", lines, ticks=ticks)],
    )
