"""Learn one latent factor per round: the server publishes it, and users find their position on it alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, final

import numpy as np

from discreet.core import Floats, Progress, integer, one_of, positive_finite
from discreet.data import PublicFacts
from discreet.models import ItemView, Scorer, SumsEstimator, check_budget
from discreet.papers.frank_wolfe.directions import FoundDirection, centered, item_factor, leading
from discreet.privacy import Session, share
from discreet.solvers import oja, random_signs
from discreet.statistics import ScaledMoment, ScaledProduct, Scaling

Solver = Literal["auto", "covariance", "oja"]
Schedule = Literal["uniform", "growing"]

# The share of the item biases when there are rounds; without rounds they get the whole budget.
BIAS_SHARE = share(0.3)
# A round is worth its cost with this many users per unit of the noise's spectral norm, noise * sqrt(items).
# The first round finds the strongest direction and needs fewer.
_USERS_PER_ROUND = 250.0
_USERS_FOR_THE_FIRST = 200.0
MOST_ROUNDS = 10
# Up to this many items the matrix of all pairs is released; beyond it Oja's method needs vectors only.
_MOST_DENSE = 5000
# A direction found by noisy products is kept if its eigenvalue exceeds both of these multiples of the noise.
_STANDARD_ERRORS = 4.0
_OF_NOISE = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrankWolfe(SumsEstimator):
    """Factor ratings in rank-one rounds: directions are published, users' coefficients stay private.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else (proofs/frank_wolfe.md). The biases are released first. Each round, and with
        Oja's method each step, is a separate release with its own cost.

    Noise
        A row is scaled to length at most 1, so its outer product without the diagonal has Frobenius norm at
        most 1. Round k adds N(0, m_k^2) with sum of 1 / m_k^2 at most 1 / M^2, M the multiplier of one
        (`epsilon`, `delta`)-private release.

    Parameters:
        rounds: The number of directions to learn. The default follows from `epsilon`, `delta`, and the public
            numbers of users and items, and is 0 if the noise is too large.
        solver: `"covariance"` releases a matrix of all pairs of items, and `"oja"` releases only vectors. The
            default is the matrix up to 5,000 items.
        schedule: Whether rounds share the budget evenly, or later rounds get more.
        steps: The number of products with vectors that one round of Oja's method releases.
        row_bound: Rows of residuals longer than this (in units of the ratings) are shortened, and shorter
            rows count less. By default, every row counts equally, so you need not guess a bound.

    References:
        Jain, Thakkar, Thakurta. Differentially private matrix completion revisited. ICML 2018.

    Example:
        >>> from discreet import FrankWolfe, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = FrankWolfe(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/frank_wolfe.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "frank-wolfe"
    proof: ClassVar[str] = "proofs/frank_wolfe.md"
    source: ClassVar[str] = "Jain, Thakkar and Thakurta 2018, with a corrective step"

    epsilon: float
    delta: float = 1e-6
    rounds: int | None = None
    solver: Solver = "auto"
    schedule: Schedule = "uniform"
    steps: int = 8
    row_bound: float | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        one_of("solver", self.solver, ("auto", "covariance", "oja"))
        one_of("schedule", self.schedule, ("uniform", "growing"))
        integer("steps", self.steps, least=2, most=1000)
        if self.rounds is not None:
            integer("rounds", self.rounds, least=0, most=1000)
        if self.row_bound is not None:
            positive_finite("row_bound", self.row_bound)

    def _uses_oja(self, n_items: int) -> bool:
        return self.solver == "oja" or (self.solver == "auto" and n_items > _MOST_DENSE)

    def _shares(self, facts: PublicFacts, multiplier: float) -> list[Fraction]:
        """Return the shares of the biases and of every round; everything here is public."""
        rounds = self.rounds
        if rounds is None:
            noise = multiplier * math.sqrt(self._releases(facts))
            rounds = affordable_rounds(facts, noise) if self.is_private else MOST_ROUNDS
        weights = [Fraction(number if self.schedule == "growing" else 1) for number in range(1, rounds + 1)]
        return shared_rounds(weights)

    def _releases(self, facts: PublicFacts) -> int:
        """Return how many releases a round has."""
        return self.steps if self._uses_oja(facts.n_items) else 1

    def _train(self, session: Session, progress: Progress) -> Scorer:
        session = self.metered(session)
        biases, *rounds = session.split(*self._shares(session.facts, session.multiplier))
        view, look = centered(biases, progress)
        factors = np.zeros((session.n_items, 0))
        for number, part in enumerate(rounds):
            scaling = view.scaling(factors, self.row_bound)
            found = self._direction(part, look, scaling, number)
            if found.value > 0:
                factors = np.column_stack([factors, item_factor(found, look, self.row_bound)])
            progress("frank-wolfe", number + 1, len(rounds))
        decisions = {"rounds": len(rounds), "directions kept": factors.shape[1]}
        return view.scorer(factors, session.facts, **decisions)

    def _direction(self, session: Session, look: ItemView, scaling: Scaling, number: int) -> FoundDirection:
        """Release one round's direction; its value is 0 if it is not above the noise."""
        n_items = session.n_items
        if self._uses_oja(n_items):
            start = look.counts * random_signs(n_items, "frank-wolfe", number)
            return oja_direction(session, scaling, start, self.steps)
        moment, noise = session.release(ScaledMoment(scaling=scaling), Fraction(1))
        found = leading(moment, noise, look.people, 1)
        return found[0] if found else FoundDirection(np.zeros(n_items), 0.0, 0.0)


def affordable_rounds(facts: PublicFacts, multiplier: float) -> int:
    """Return how many rounds are worth their budget; one if the number of users is not public."""
    if facts.n_users is None:
        return 1
    users_per_noise = facts.n_users / (multiplier * math.sqrt(facts.n_items))
    if users_per_noise < _USERS_FOR_THE_FIRST:
        return 0
    return min(max(1, int(users_per_noise / _USERS_PER_ROUND)), MOST_ROUNDS)


def oja_direction(session: Session, scaling: Scaling, start: Floats, steps: int) -> FoundDirection:
    """Run Oja's method on noisy products with the users' second moment, one release per step."""
    share = Fraction(1, steps)

    def product(vector: Floats) -> Floats:
        return session.release(ScaledProduct(scaling=scaling, vector=vector), share).values

    found = oja(product, start, steps=steps)
    noise = session.multiplier_of(share) / math.sqrt(found.averaged)
    least = noise * max(_STANDARD_ERRORS, _OF_NOISE * math.sqrt(session.n_items))
    return FoundDirection(found.product, found.value if found.value > least else 0.0, noise)


def shared_rounds(weights: Sequence[Fraction]) -> list[Fraction]:
    """Return the shares of the biases and of rounds with these weights; without rounds the biases get all."""
    if not weights:
        return [Fraction(1)]
    return [BIAS_SHARE, *((1 - BIAS_SHARE) * weight / sum(weights) for weight in weights)]
