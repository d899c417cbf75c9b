"""The published claims, each as two worlds and what an attacker sees of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from discreet.audit.games.scores import log_ratios
from discreet.audit.neighboring import SyntheticSpec, neighboring
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Player, RecordedAdditive, Recorder
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.papers.one_bit.estimators import OneBitOutput
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.sampling import draws

# Fine enough that discrete noise is as good as continuous.
STEPS = 2.0**20


@dataclass
class ReleasedPair:
    """Play on one release whose inputs in both worlds are known."""

    first: RecordedAdditive
    second: RecordedAdditive
    fits: int = 0

    @classmethod
    def shifted(cls, apart, *, gaussian):
        """Return a release whose inputs are `apart`, in units of the noise's width."""
        moved = np.rint(np.atleast_1d(apart) * STEPS).astype(np.int64)
        nothing = np.zeros_like(moved)
        neighbors = (
            RecordedAdditive(gaussian=gaussian, width=STEPS, given=given, output=given)
            for given in (nothing, moved)
        )
        return cls(*neighbors)

    def play(self, count, seed):
        """Return the scores of fresh games, and which world it was."""
        truth = experiment_generator(seed, "paper").random(count) < 0.5
        return log_ratios(self.first, self.second, truth, PrivacyRandom.simulate(seed)), truth

    def paid(self, delta):
        """Return the exact price."""
        return price([self.first], [self.second]).epsilon(delta)


def whole_matrix():
    """Release every cell of a completed matrix with the noise that hides one cell."""
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


def parallel_items(items=737, factors=10):
    """Release every item's linear term with noise for one item: a person is in as many as they chose.

    The noise is scaled to the longest profile; this person's is of usual length.
    """
    draw = experiment_generator(0, "profiles")
    profiles = np.abs(draw.standard_normal((1000, factors))) / math.sqrt(factors)
    norms = profiles.sum(axis=1)
    usual = profiles[np.argsort(norms)[norms.size // 2]]
    return ReleasedPair.shifted(np.tile(usual / norms.max(), items), gaussian=False)


def frank_wolfe_noise(delta=1e-6, saving=8.0):
    """Take the experiments' deviation: the stated one over 8, for rows of residuals that reach 2 L."""
    multiplier = math.sqrt(64 * math.log(1 / delta)) / saving / 4
    return ReleasedPair.shifted(1 / multiplier, gaussian=True)


def labels_beyond_one(delta=1e-5, largest=3.0):
    """Compose two equal Gaussian releases of which one takes labels for at most 1; centered stars reach 3."""
    each = gaussian_multiplier(1.0, delta) * math.sqrt(2)
    return ReleasedPair.shifted(np.array([1 / each, largest / each]), gaussian=True)


def probit_verdicts(cells=121, epsilon=1.0, ridge=1.0):
    """Count the verdicts read off the grid of a tilted probit objective.

    The tilt lies on a grid. At the minimizer it must balance the slope, and only the true verdict's slope
    leaves a tilt that lies there.
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


def _slope(verdicts, scores):
    """Return the slope of -log Phi(verdict score)."""
    signed = verdicts * scores
    return -verdicts * np.exp(-(signed**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(signed))


def _bend(verdicts, scores):
    ratio = -verdicts * _slope(verdicts, scores)
    return ratio * (ratio + verdicts * scores)
