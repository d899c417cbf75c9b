"""Complete the matrix by noisy projections onto a nuclear-norm ball; each user holds their own row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.core.checks import integer, positive_finite
from discreet.core.progress import Progress
from discreet.core.rows import Rows
from discreet.data.facts import PublicFacts
from discreet.models.estimator import check_budget, unmetered
from discreet.models.scorers.low_rank import ProjectedGradientScorer, own_residuals
from discreet.models.scorers.scorer import Scorer
from discreet.models.sums_estimator import SumsEstimator
from discreet.papers.frank_wolfe.directions import centered
from discreet.papers.frank_wolfe.frank_wolfe import (
    MOST_ROUNDS,
    affordable_rounds,
    releases_of_rounds,
    shared_multipliers,
)
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.session import Session
from discreet.solvers.low_rank.matrix import project_moment
from discreet.statistics.projected_rows import advance, begin, bounded_moment
from discreet.statistics.typical import TYPICAL_RESIDUAL

# The assumed number of ratings per row without a declared cap.
_USUAL_LENGTH = 100
# The assumed size of entries of the completed matrix, for the radius of the nuclear ball.
_TYPICAL_ENTRY = 0.3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedGradient(SumsEstimator):
    """Complete the matrix by noisy projections onto a nuclear-norm ball; each user holds their own row.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else (proofs/projected_gradient.md). Three releases of the biases, and one matrix per
        round.

    Noise
        A row is shortened to `row_bound` and divided by it, so b b' has Frobenius norm |b|^2 at most 1. The
        releases add N(0, m_k^2) with sum of 1 / m_k^2 at most 1 / M^2, M the multiplier of one (`epsilon`,
        `delta`)-private release.

    Parameters:
        rounds: How many gradient steps are taken; by default by the public rule of `FrankWolfe`, at least
            one.
        factors: The largest number of directions kept per round.
        radius: The nuclear norm allowed, in units of the ratings; by default from the released number of
            users and the number of items.
        row_bound: Rows longer than this, in units of the ratings, are shortened; by default from the scale
            and the declared cap on ratings per user.

    References:
        Cai, Candès, Shen. A singular value thresholding algorithm for matrix completion. SIOPT 2010.

    Example:
        >>> from discreet import PrivacyRandom, ProjectedGradient
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = ProjectedGradient(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/projected_gradient.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3
    """

    name: ClassVar[str] = "projected-gradient"
    proof: ClassVar[str] = "proofs/projected_gradient.md"
    source: ClassVar[str] = "baseline of Jain, Thakkar and Thakurta 2018"

    epsilon: float
    delta: float = 1e-6
    rounds: int | None = None
    factors: int = 20
    radius: float | None = None
    row_bound: float | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        integer("factors", self.factors, least=1)
        if self.rounds is not None:
            integer("rounds", self.rounds, least=1, most=1000)
        for name in ("radius", "row_bound"):
            if getattr(self, name) is not None:
                positive_finite(name, getattr(self, name))

    def releases(self, facts: PublicFacts) -> Sequence[Gaussian]:
        """Return three Gaussian releases of the biases and one per round."""
        return releases_of_rounds(self, self._rounds(facts))

    def rows_needed(self) -> str | None:
        """Return why rows must be in memory: every user has a state that changes from round to round."""
        return "every user has a state of their own that changes from round to round"

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data, random = unmetered(session)
        biases, multipliers = shared_multipliers(self, self._rounds(data.facts))
        view = centered(data, biases, random, progress)
        half, d = view.look.half, data.n_items
        bound = self._row_bound(data.facts) / half
        radius = (
            _TYPICAL_ENTRY * math.sqrt(view.look.people * d) if self.radius is None else self.radius / half
        )
        values = view.look.unit(data.values.astype(np.float64)).astype(np.float32)
        rows, _ = own_residuals(Rows(data.indptr, data.items, values), view.offsets)
        state, maps = begin(rows, d), []
        for number, multiplier in enumerate(multipliers):
            moment = bounded_moment(rows, state, bound)
            if multiplier:
                moment = Gaussian(sigma=multiplier, l2_sensitivity=1.0).release_symmetric(moment, random)
            edge = multiplier * math.sqrt(2 * d) * bound**2
            maps.append(project_moment(moment * bound**2, radius=radius, noise=edge, most=self.factors))
            state = advance(rows, state, maps[-1])
            progress("projected-gradient", number + 1, len(multipliers))
        return ProjectedGradientScorer(
            mean=view.look.middle + half * view.look.mean,
            item_bias=half * (view.offsets - view.look.mean),
            bases=np.column_stack([one.basis for one in maps]),
            kept=np.concatenate([one.kept for one in maps]),
            ranks=np.array([one.kept.size for one in maps], dtype=np.int64),
            low=data.facts.low,
            high=data.facts.high,
            **view.look.listing(),
        )

    def _rounds(self, facts: PublicFacts) -> int:
        if self.rounds is not None:
            return self.rounds
        return max(1, affordable_rounds(facts, self.multiplier())) if self.is_private else MOST_ROUNDS

    def _row_bound(self, facts: PublicFacts) -> float:
        if self.row_bound is not None:
            return self.row_bound
        length = facts.max_per_user or _USUAL_LENGTH
        return TYPICAL_RESIDUAL * (facts.high - facts.low) / 2 * math.sqrt(length)
