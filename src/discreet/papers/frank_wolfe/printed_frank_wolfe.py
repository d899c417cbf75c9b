"""Run Frank-Wolfe as the poster prints it: clipped rows, raised eigenvalues, steps of k / T."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, final

import numpy as np

from discreet.core import Floats, Progress, integer, one_of, positive_finite
from discreet.data import PublicFacts
from discreet.models import Scorer, SteppedScorer, SumsEstimator, check_budget
from discreet.privacy import Session
from discreet.solvers import random_signs, unit, with_fixed_signs
from discreet.statistics import TYPICAL_RESIDUAL, RoundsSoFar, SteppedMoment, SteppedProduct, SteppedStretch

Solver = Literal["auto", "covariance", "oja"]

# The assumed size of entries of the completed matrix, in half scales, for the radius of the nuclear ball.
_TYPICAL_ENTRY = 0.6
# The assumed number of ratings per row without a declared cap, and of users where it is not declared.
_USUAL_LENGTH = 100
_USUAL_USERS = 1000
_MOST_DENSE = 5000
# beta: how often the printed bound on the noise may fail.
_FAILURE = 0.05
# An eigenvalue this small has no direction to step along.
_LEAST_EIGENVALUE = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedFrankWolfe(SumsEstimator):
    """Take one Frank-Wolfe step per published direction, as printed; kept for comparison only.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else (proofs/printed_frank_wolfe.md). The noise is what the accountant requires, not
        what the poster's experiments used.

    Noise
        Rows of ratings and of predictions are clipped to length L, so a row of errors is at most 2 L long and
        its outer product at most 4 L^2 in the Frobenius norm. Every round adds N(0, (4 L^2 m)^2) with
        m = sqrt(T) M, M the multiplier of one (`epsilon`, `delta`)-private release; with Oja's method
        m = sqrt(T (steps + 1)) M for every step and for the eigenvalue.

    Parameters:
        rounds: T, how many steps are taken; every one shares the budget.
        solver: `"covariance"` releases a matrix of all pairs of items, `"oja"` (the private Oja's algorithm)
            vectors and a noisy eigenvalue; by default the matrix up to 5,000 items.
        steps: How many products with vectors one round of Oja's algorithm releases.
        row_bound: L, in units of the ratings; by default from the scale and the declared cap on ratings.
        radius: k, the nuclear norm allowed; by default from the scale and the declared numbers of items and
            users.

    References:
        Jain, Thakkar, Thakurta. Differentially private matrix completion revisited. ICML 2018.

    Example:
        >>> from discreet import PrintedFrankWolfe, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = PrintedFrankWolfe(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/printed_frank_wolfe.md')

    Stability
        Stable.
    """

    name: ClassVar[str] = "frank-wolfe-printed"
    proof: ClassVar[str] = "proofs/printed_frank_wolfe.md"
    source: ClassVar[str] = "Jain, Thakkar and Thakurta 2018, as printed"

    epsilon: float
    delta: float = 1e-6
    rounds: int = 5
    solver: Solver = "auto"
    steps: int = 8
    row_bound: float | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        integer("rounds", self.rounds, least=1, most=1000)
        one_of("solver", self.solver, ("auto", "covariance", "oja"))
        integer("steps", self.steps, least=1, most=1000)
        for name in ("row_bound", "radius"):
            if getattr(self, name) is not None:
                positive_finite(name, getattr(self, name))

    def _per_round(self, facts: PublicFacts) -> int:
        oja = self.solver == "oja" or (self.solver == "auto" and facts.n_items > _MOST_DENSE)
        return self.steps + 1 if oja else 1

    def _train(self, session: Session, progress: Progress) -> Scorer:
        session, facts = self.metered(session), session.facts
        count = self._per_round(facts)
        each = session.multiplier_of(Fraction(1, self.rounds * count))
        # On a scale of one value every row is zero, in whatever unit.
        middle, half = (facts.low + facts.high) / 2, (facts.high - facts.low) / 2 or 1.0
        bound = self.row_bound or TYPICAL_RESIDUAL * half * math.sqrt(facts.max_per_user or _USUAL_LENGTH)
        people = facts.n_users or _USUAL_USERS
        radius = self.radius or _TYPICAL_ENTRY * half * math.sqrt(people * facts.n_items)
        so_far = RoundsSoFar(
            middle=middle,
            half=half,
            row_bound=bound / half,
            rounds=self.rounds,
            directions=np.zeros((facts.n_items, 0)),
            paces=np.zeros(0),
        )
        for number, part in enumerate(session.rounds(self.rounds)):
            direction, eigenvalue = self._direction(part, so_far, number, count)
            raised = 2 * bound * (math.sqrt(max(eigenvalue, 0.0)) + _raise(each, facts))
            pace = radius / (self.rounds * raised) if raised > _LEAST_EIGENVALUE * bound else 0.0
            so_far = so_far.after(direction, pace)
            progress("frank-wolfe-printed", number + 1, self.rounds)
        return SteppedScorer(
            mean=middle,
            item_bias=np.zeros(facts.n_items),
            directions=so_far.directions,
            paces=so_far.paces,
            row_bound=bound,
            low=facts.low,
            high=facts.high,
        )

    def _direction(
        self, session: Session, so_far: RoundsSoFar, number: int, count: int
    ) -> tuple[Floats, float]:
        """Release a round's direction and its eigenvalue, in units of 4 L^2."""
        if count == 1:
            moment = session.release(SteppedMoment(so_far=so_far), Fraction(1)).values
            values, vectors = np.linalg.eigh(moment)
            return with_fixed_signs(vectors[:, -1:])[:, 0], float(values[-1])
        start = unit(random_signs(session.n_items, self.name, number))
        return self._oja(session, so_far, start, Fraction(1, count))

    def _oja(
        self, session: Session, so_far: RoundsSoFar, vector: Floats, share: Fraction
    ) -> tuple[Floats, float]:
        """Update v by noisy products, v + c (W v + noise), then release the eigenvalue along v.

        The poster leaves c open. Here noise alone moves v by about its own length; without noise c is
        infinite, which is power iteration.
        """
        reach = session.multiplier_of(share) * math.sqrt(vector.size)
        for _ in range(self.steps):
            product = session.release(SteppedProduct(so_far=so_far, vector=vector), share).values
            turned = unit(reach * vector + product)
            vector = turned if turned.any() else vector
        stretch = session.release(SteppedStretch(so_far=so_far, vector=vector), share).values
        return vector, float(stretch[0])


def _raise(multiplier: float, facts: PublicFacts) -> float:
    """Return what the printed algorithm adds to the root of an eigenvalue, over 2 L."""
    return math.sqrt(multiplier * math.log(facts.n_items / _FAILURE) * math.sqrt(facts.n_items))
