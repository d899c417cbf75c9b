"""Complete the matrix by noisy projections onto a nuclear-norm ball; each user keeps their own row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from discreet.core import Floats, Progress, Rows, integer, positive_finite
from discreet.data import Interactions, PublicFacts
from discreet.models import ProjectedGradientScorer, Scorer, SumsEstimator, check_budget, own_residuals
from discreet.papers.frank_wolfe.directions import Centered, centered, own_means_only, usual_length
from discreet.papers.frank_wolfe.frank_wolfe import MOST_ROUNDS, affordable_rounds, shared_rounds
from discreet.privacy import Session
from discreet.solvers import Projection, project_moment
from discreet.statistics import (
    TYPICAL_RESIDUAL,
    ExactNumbers,
    LocalSteps,
    Part,
    advance,
    begin,
    bounded_moment,
)

# The assumed size of entries of the completed matrix, for the radius of the nuclear ball.
_TYPICAL_ENTRY = 0.3


@final
class MovedRows:
    """The second moment of users' rows, which move by each released map: a statistic with a memory.

    What it remembers of a row is a function of that row and of released maps. A row over `bound` is clipped
    to norm 1, so its outer product has Frobenius norm at most 1.
    """

    def __init__(self, offsets: Floats, *, middle: float, half: float, bound: float) -> None:
        self._offsets, self._middle, self._half, self._bound = offsets, middle, half, bound
        self._rows: Rows | None = None
        self._state: LocalSteps | None = None
        self._maps: list[Projection] = []

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the symmetric matrix of the items."""
        size = self._offsets.size
        return (Part("moment", (size, size), symmetric=True),)

    def advance(self, projection: Projection) -> None:
        """Move every row by this released map before the next moment."""
        self._maps.append(projection)

    def over(self, data: Interactions) -> ExactNumbers:
        """Return the exact second moment of the rows where they are now."""
        if self._rows is None or self._state is None:
            values = ((data.values.astype(np.float64) - self._middle) / self._half).astype(np.float32)
            self._rows, _ = own_residuals(Rows(data.indptr, data.items, values), self._offsets)
            self._state = begin(self._rows, self._offsets.size)
        for projection in self._maps:
            self._state = advance(self._rows, self._state, projection)
        self._maps.clear()
        return ExactNumbers(bounded_moment(self._rows, self._state, self._bound))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedGradient(SumsEstimator):
    """Complete the matrix by noisy projections onto a nuclear-norm ball; each user keeps their own row.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else (proofs/projected_gradient.md). Three releases of the biases, or without biases
        one of the number of users, and one matrix per round.

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
        biases: Whether to release item biases and subtract them first. The poster subtracts users' own means
            only: `false`.

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

    Stability
        Stable.
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
    biases: bool = True

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        integer("factors", self.factors, least=1)
        if self.rounds is not None:
            integer("rounds", self.rounds, least=1, most=1000)
        for name in ("radius", "row_bound"):
            if getattr(self, name) is not None:
                positive_finite(name, getattr(self, name))

    def rows_needed(self) -> str | None:
        """Return why rows must be in memory: every user has a state that changes from round to round."""
        return "every user has a state of their own that changes from round to round"

    def _train(self, session: Session, progress: Progress) -> Scorer:
        session, facts = self.metered(session), session.facts
        rounds = self._rounds(facts, session.multiplier)
        if self.biases:
            biases, *parts = session.split(*shared_rounds([Fraction(1)] * rounds))
            view, _ = centered(biases, progress)
        else:
            view, rest = own_means_only(session)
            parts = list(rest.rounds(rounds))
        maps = self._maps(parts, view, progress)
        return ProjectedGradientScorer(**view.base(facts), **_stored(maps))

    def _maps(self, parts: Sequence[Session], view: Centered, progress: Progress) -> list[Projection]:
        """Return the released map of each round, for rows minus the offsets and users' own means."""
        d = view.offsets.size
        bound = self._row_bound(parts[0].facts) / view.half
        radius = (
            _TYPICAL_ENTRY * math.sqrt(view.people * d) if self.radius is None else self.radius / view.half
        )
        moved = MovedRows(view.offsets, middle=view.middle, half=view.half, bound=bound)
        maps: list[Projection] = []
        for number, part in enumerate(parts):
            moment, noise = part.release(moved, Fraction(1))
            edge = noise * math.sqrt(2 * d) * bound**2
            maps.append(project_moment(moment * bound**2, radius=radius, noise=edge, most=self.factors))
            moved.advance(maps[-1])
            progress("projected-gradient", number + 1, len(parts))
        return maps

    def _rounds(self, facts: PublicFacts, multiplier: float) -> int:
        if self.rounds is not None:
            return self.rounds
        return max(1, affordable_rounds(facts, multiplier)) if self.is_private else MOST_ROUNDS

    def _row_bound(self, facts: PublicFacts) -> float:
        if self.row_bound is not None:
            return self.row_bound
        return TYPICAL_RESIDUAL * (facts.high - facts.low) / 2 * math.sqrt(usual_length(facts))


def _stored(maps: Sequence[Projection]) -> dict[str, Any]:
    """Return the maps of all rounds as the scorer stores them."""
    return {
        "bases": np.column_stack([one.basis for one in maps]),
        "kept": np.concatenate([one.kept for one in maps]),
        "ranks": np.array([one.kept.size for one in maps], dtype=np.int64),
    }
