"""Learn one latent factor per round: the server publishes it, and users find their position on it alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import integer, one_of, positive_finite
from discreet.core.progress import Progress
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.models.biases import SHARES
from discreet.models.estimator import check_budget, unmetered
from discreet.models.scorers.scorer import Scorer
from discreet.models.sums_estimator import SumsEstimator, gaussian
from discreet.papers.frank_wolfe.directions import (
    Centered,
    FoundDirection,
    centered,
    item_factor,
    leading,
    release_moment,
)
from discreet.privacy.accounting.gaussian import split_gaussian
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.session import Session
from discreet.solvers.low_rank.oja import oja, random_signs
from discreet.statistics.data_source import DataSource
from discreet.statistics.scaled_rows import ScaledProduct, Scaling

Solver = Literal["auto", "covariance", "oja"]
Schedule = Literal["uniform", "growing"]

# The share of the item biases when there are rounds; without rounds they get the whole budget.
BIAS_SHARE = 0.3
# A round pays with this many users per unit of the noise's spectral norm (noise * sqrt(items)); the first
# round finds the strongest direction and needs fewer.
_USERS_PER_ROUND = 250.0
_USERS_FOR_THE_FIRST = 200.0
MOST_ROUNDS = 10
# Up to this many items the matrix of all pairs is released; beyond it Oja's method needs vectors only.
_MOST_DENSE = 5000
# A direction found by noisy products is kept if its eigenvalue exceeds both of these multiples of the noise.
_STANDARD_ERRORS = 4.0
_OF_NOISE = 0.5


class RoundPlan(NamedTuple):
    """Hold the noise multipliers of a fit: of the biases, and of every release of every round."""

    biases: float
    rounds: tuple[tuple[float, ...], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrankWolfe(SumsEstimator):
    """Factor ratings in rank-one rounds: directions are published, users' coefficients stay private.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else (proofs/frank_wolfe.md). The biases come first; every round, and with Oja's
        method every step, is a release of its own and is accounted for.

    Noise
        A row is scaled to length at most 1, so its outer product without the diagonal has Frobenius norm at
        most 1. Round k adds N(0, m_k^2) with sum of 1 / m_k^2 at most 1 / M^2, M the multiplier of one
        (`epsilon`, `delta`)-private release.

    Parameters:
        rounds: How many directions are learned; by default a public rule of `epsilon`, `delta` and the public
            numbers of users and items decides, and learns none where the noise is too large.
        solver: `"covariance"` releases a matrix of all pairs of items, `"oja"` releases vectors only; by
            default the matrix up to 5,000 items.
        schedule: Whether rounds share the budget evenly or later ones get more.
        steps: How many products with vectors one round of Oja's method releases.
        row_bound: Rows of residuals longer than this (in units of the ratings) are shortened, shorter ones
            count less. By default every row counts equally and no bound has to be guessed.

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

    def releases(self, facts: PublicFacts) -> Sequence[Gaussian]:
        """Return every Gaussian release: three of the biases, then those of the rounds."""
        plan = self._plan(facts)
        multipliers = [*split_gaussian(plan.biases, SHARES), *(m for round_ in plan.rounds for m in round_)]
        return [gaussian(multiplier) for multiplier in multipliers]

    def _uses_oja(self, n_items: int) -> bool:
        return self.solver == "oja" or (self.solver == "auto" and n_items > _MOST_DENSE)

    def _plan(self, facts: PublicFacts) -> RoundPlan:
        """Split the budget; everything here is public."""
        releases = self.steps if self._uses_oja(facts.n_items) else 1
        if not self.is_private:
            rounds = MOST_ROUNDS if self.rounds is None else self.rounds
            return RoundPlan(0.0, ((0.0,) * releases,) * rounds)
        total = self.multiplier()
        rounds = affordable_rounds(facts, total * math.sqrt(releases)) if self.rounds is None else self.rounds
        if rounds == 0:
            return RoundPlan(total, ())
        weights = [float(number) if self.schedule == "growing" else 1.0 for number in range(1, rounds + 1)]
        scale = (1 - BIAS_SHARE) / sum(weights)
        biases, *each = split_gaussian(total, [BIAS_SHARE, *(weight * scale for weight in weights)])
        return RoundPlan(biases, tuple(split_gaussian(one, [1.0] * releases) for one in each))

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data, random = unmetered(session)
        plan = self._plan(data.facts)
        view = centered(data, plan.biases, random, progress)
        factors = np.zeros((data.n_items, 0))
        for number, multipliers in enumerate(plan.rounds):
            scaling = view.scaling(factors, self.row_bound)
            found = self._direction(data, view, scaling, multipliers, number, random)
            if found.value > 0:
                factors = np.column_stack([factors, item_factor(found, view.look, self.row_bound)])
            progress("frank-wolfe", number + 1, len(plan.rounds))
        decisions = {"rounds": len(plan.rounds), "directions kept": factors.shape[1]}
        return view.scorer(factors, data.facts, decisions)

    def _direction(
        self,
        source: DataSource,
        view: Centered,
        scaling: Scaling,
        multipliers: Sequence[float],
        number: int,
        random: PrivacyRandom,
    ) -> FoundDirection:
        """Release one round's direction; its value is 0 if it is not above the noise."""
        n_items = source.n_items
        if self._uses_oja(n_items):
            start = view.look.counts * random_signs(n_items, "frank-wolfe", number)
            return oja_direction(source, scaling, start, multipliers, random)
        moment = release_moment(source, scaling, multipliers[0], random)
        found = leading(moment, multipliers[0], view.look.people, 1)
        return found[0] if found else FoundDirection(np.zeros(n_items), 0.0, 0.0)


def affordable_rounds(facts: PublicFacts, multiplier: float) -> int:
    """Return how many rounds are worth their budget; one if the number of users is not public."""
    if facts.n_users is None:
        return 1
    users_per_noise = facts.n_users / (multiplier * math.sqrt(facts.n_items))
    if users_per_noise < _USERS_FOR_THE_FIRST:
        return 0
    return min(max(1, int(users_per_noise / _USERS_PER_ROUND)), MOST_ROUNDS)


def oja_direction(
    source: DataSource, scaling: Scaling, start: Floats, multipliers: Sequence[float], random: PrivacyRandom
) -> FoundDirection:
    """Run Oja's method on noisy products with the users' second moment, one release per step."""
    left = iter(multipliers)

    def product(vector: Floats) -> Floats:
        sums = source.total(ScaledProduct(scaling=scaling, vector=vector))
        return gaussian(next(left)).release(sums.steps(), random)

    found = oja(product, start, steps=len(multipliers))
    noise = multipliers[-1] / math.sqrt(found.averaged)
    least = noise * max(_STANDARD_ERRORS, _OF_NOISE * math.sqrt(source.n_items))
    return FoundDirection(found.product, found.value if found.value > least else 0.0, noise)


def shared_multipliers(estimator: SumsEstimator, rounds: int) -> tuple[float, tuple[float, ...]]:
    """Return the multipliers of the biases and of equally noisy rounds after them."""
    biases, *each = estimator.split([BIAS_SHARE, *([(1 - BIAS_SHARE) / rounds] * rounds)])
    return biases, tuple(each)


def releases_of_rounds(estimator: SumsEstimator, rounds: int) -> Sequence[Gaussian]:
    """Return the releases of the biases and of the rounds, where there is noise."""
    biases, each = shared_multipliers(estimator, rounds)
    return [gaussian(multiplier) for multiplier in (*split_gaussian(biases, SHARES), *each)]
