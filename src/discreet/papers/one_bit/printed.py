"""Objective and output perturbation exactly as printed: what they release protects no user.

`one-bit-objective` and `one-bit-output` are the mechanisms whose guarantees hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from discreet.core import Floats, Progress
from discreet.data import Interactions, PublicFacts
from discreet.models import Estimator, Scorer, public_threshold
from discreet.papers.one_bit.estimators import OneBitOutput, projected_scorer
from discreet.papers.one_bit.task import Task, check_completion
from discreet.papers.one_bit.theory import printed_sensitivity
from discreet.privacy import Guarantee, Session
from discreet.report import PRINTED_OBJECTIVE, PRINTED_OUTPUT, TRAINED_WITHOUT_NOISE
from discreet.solvers import Link

_SOURCE = "Li et al., One-bit matrix completion with differential privacy, as printed: refuted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedOneBit(Estimator):
    """Base of one-bit estimators that release as printed, with the settings of the paper.

    Parameters:
        epsilon: The printed epsilon; it states how much noise is drawn and guarantees nothing.
        link: The function from a score to the probability of a +1.
        bound: The largest |score|, alpha of the paper.
        radius: The largest nuclear norm; by default `bound` * sqrt(users * items).
        above: Ratings above this are +1; by default five eighths up the public scale.
        iterations: The largest number of solver steps.
        tolerance: The solver stops when a step improves the objective by less than this share.
    """

    feedback = "binary"
    source: ClassVar[str] = _SOURCE
    published_noise: ClassVar[bool] = True

    epsilon: float = math.inf
    link: Link = "logistic"
    bound: float = 1.0
    radius: float | None = None
    above: float | None = None
    iterations: int = 100
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        check_completion(self)

    def _refuted(self, facts: PublicFacts, why: str) -> Guarantee:
        note = why if math.isfinite(self.epsilon) else TRAINED_WITHOUT_NOISE
        return replace(OneBitOutput(epsilon=math.inf, above=self.above).promise(facts), notes=(note,))

    def _task(self, data: Interactions, progress: Progress) -> Task:
        """Return the completion problem with the plain nuclear norm, as printed."""
        settings = OneBitOutput(
            epsilon=math.inf,
            link=self.link,
            bound=self.bound,
            radius=self._radius(data),
            leveling=0.0,
            above=self.above,
            iterations=self.iterations,
            tolerance=self.tolerance,
        )
        above = public_threshold(data.facts, self.above)
        return Task(settings, data, above, 1.0, progress)

    def _radius(self, data: Interactions) -> float:
        return self.radius or self.bound * math.sqrt(data.n_users * data.n_items)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitObjectivePrinted(PrintedOneBit):
    """Add noise to the objective as the paper prints it; with the probit link, the paper's proof fails.

    Guarantee
        NOT PRIVATE with the probit link. The printed proof compares noise densities and ignores the
        Jacobian, so that `epsilon` doesn't follow (proofs/one_bit_objective.md). With the logistic link,
        `one-bit-objective` draws the same noise and is proved.

    Noise
        Laplace noise of scale Delta / `epsilon` on each observed score, with the printed Delta: 1 for the
        logistic link, and 2 h'(0) / h(-`bound`) for the probit link, which is 5.03 at bound 1.

    Parameters:
        epsilon: The printed epsilon; it states how much noise is drawn and guarantees nothing.

    References:
        Li, Wei, Huang, Mao and Wang, One-Bit Matrix Completion with Differential Privacy, Algorithm 2.

    Example:
        >>> from discreet import OneBitObjectivePrinted, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = OneBitObjectivePrinted(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False

    Stability
        Stable.
    """

    name: ClassVar[str] = "one-bit-objective-printed"

    link: Link = "probit"

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return no guarantee, and why the printed one does not hold."""
        return self._refuted(facts, PRINTED_OBJECTIVE)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data = session.rows()
        task = self._task(data, progress)
        linear: Floats = np.zeros(task.cells.size)
        if math.isfinite(self.epsilon):
            scale = printed_sensitivity(self.link, bound=self.bound) / self.epsilon
            linear = session.published_noise(linear, scale=scale)
        return task.scorer(task.solve(replace(task.exact_loss(data), linear=linear)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitOutputPrinted(PrintedOneBit):
    """Complete the matrix without noise, then release all of it with the printed noise on each entry.

    Guarantee
        NOT PRIVATE. The printed noise gives `epsilon` for one entry. One rating can move every entry, so that
        the matrix costs `epsilon` times the number of entries (proofs/one_bit_output.md). `one-bit-output`
        answers single entries and counts them.

    Noise
        Laplace noise of scale 2 `bound` / `epsilon` on every entry of the matrix.

    Parameters:
        epsilon: The printed epsilon of one entry; it guarantees nothing for the matrix.
        project: Whether to project the noisy matrix back onto the nuclear-norm ball. This costs nothing, and
            it shows how much of the matrix the noise leaves in the open.

    References:
        Li, Wei, Huang, Mao and Wang, One-Bit Matrix Completion with Differential Privacy, Algorithm 4.

    Example:
        >>> from discreet import OneBitOutputPrinted, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = OneBitOutputPrinted(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False

    Stability
        Stable.
    """

    name: ClassVar[str] = "one-bit-output-printed"

    project: bool = True

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return no guarantee, and why the printed one does not hold."""
        return self._refuted(facts, PRINTED_OUTPUT)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data = session.rows()
        task = self._task(data, progress)
        clear = task.scorer(task.solve(task.exact_loss(data)))
        if math.isinf(self.epsilon):
            return clear
        exact = np.clip(clear.left @ clear.right.T, -self.bound, self.bound)
        noisy = session.published_noise(exact, scale=2 * self.bound / self.epsilon)
        return projected_scorer(clear, noisy, self._radius(data) if self.project else None)
