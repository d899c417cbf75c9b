"""Factor implicit feedback privately, by solving each item's problem from noisy sums over users.

Four kinds of releases share the budget: votes (popularity), a second moment of the popular items (it defines
profiles), and, in each round, the Gram matrix of users' profiles and each item's linear term.
`statistics/profile_sums.py` computes users' contributions; `questions.py` and `item_solves.py` use the noisy
sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.checks import integer, require
from discreet.core.progress import Progress
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import check_budget, unmetered
from discreet.models.scorers.profiles import ProfileScorer
from discreet.models.scorers.scorer import Scorer
from discreet.models.sums_estimator import SumsEstimator, split_noise
from discreet.papers.dpimf import item_solves as items_of
from discreet.papers.dpimf import questions
from discreet.privacy.accounting.events import pure_event
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.subsampling import ImportanceSampling
from discreet.privacy.sampling.draws import add_discrete_laplace
from discreet.privacy.session import Session
from discreet.statistics import profile_sums as party
from discreet.statistics.data_source import DataSource
from discreet.statistics.fixed_point import ROUNDING, VECTOR_BITS, VECTOR_STEPS
from discreet.statistics.profile_sums import ProfileQuestion, Profiles, norms_of_all, weighted_terms
from discreet.statistics.statistic import Norm

LossName = Literal["shared", "symmetric", "complementary", "strawman"]

# How the budget is shared: votes, second moment, and over all rounds the shared Gram and the linear terms.
_VOTES, _MOMENT, _GRAM, _LINEAR = 0.10, 0.40, 0.03, 0.47
# Losses that release a matrix per item pay for each of its entries, so they use fewer factors.
_FACTORS_WITH_OWN_GRAMS = 4
_MOST_ROUNDS = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharePlan:
    """Hold the noise of every release of a fit; in each, a user's contribution has norm at most 1."""

    votes: Gaussian | Laplace
    recount: Gaussian | Laplace
    moment: Gaussian | Laplace
    rounds: tuple[tuple[Gaussian | Laplace, Gaussian | Laplace], ...]
    norm: Norm

    @classmethod
    def of(cls, epsilon: float, delta: float, rounds: int) -> SharePlan:
        """Split (epsilon, delta), or a pure epsilon, between the releases; no noise at infinity."""
        shares = [_VOTES, _MOMENT] + [share / rounds for share in (_GRAM, _LINEAR) for _ in range(rounds)]
        noises = split_noise(epsilon, delta, shares)
        pairs = zip(noises[2 : 2 + rounds], noises[2 + rounds :], strict=True)
        pure = delta == 0 and math.isfinite(epsilon)
        recount = split_noise(epsilon, delta, [_VOTES, 1 - _VOTES])[1]
        return cls(
            votes=noises[0],
            recount=recount,
            moment=noises[1],
            rounds=tuple(pairs),
            norm="l1" if pure else "l2",
        )

    def all(self) -> list[Gaussian | Laplace]:
        """Return every release in order; a recount replaces all releases after the votes at the same cost."""
        return [self.votes, self.moment, *(noise for pair in self.rounds for noise in pair)]


def deviation(noise: Gaussian | Laplace) -> float:
    """Return the standard deviation of the noise on one number."""
    return math.sqrt(noise.variance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitObjective(SumsEstimator):
    """Recommend from implicit feedback: popular items, and items of users with a similar profile.

    Every item's factors minimize a squared loss over all users, computed from noisy sums. A user's profile is
    computed from released item vectors and the user's own row; a public bound limits its length.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else; pure `epsilon` with Laplace noise when `delta` is 0
        (proofs/implicit_objective.md). A person's whole contribution to one release has norm at most 1, for
        any number of items, and all releases share the budget.

    Noise
        A user's contribution to release j has l2 norm at most 1, and the sum gets N(0, (M / sqrt(s_j))^2),
        with M the multiplier of one (`epsilon`, `delta`)-private release and shares s_j that add up to 1;
        where `delta` is 0, it has l1 norm at most 1 and the sum gets Laplace noise of scale 1 / (s_j
        epsilon).

    Parameters:
        loss: `shared` weights all entries equally (alpha0 = 1): one Gram matrix serves all items. The others
            weight unobserved entries by `alpha0` and release a matrix per item: `symmetric` its upper
            triangle, `complementary` all its entries, `strawman` all of them for a loss that counts observed
            entries twice. They are kept for comparison.
        alpha0: The weight of unobserved entries, for the losses other than `shared`.
        factors: The largest number of factors; None keeps those above the noise.
        rounds: How often profiles are refined and items solved again; None means once, which measured best.
        importance_sampling: Sample users by the norm of their contribution and reweight; needs `delta=0`.

    References:
        Ran, Ye, Huang, Hu. Differentially private implicit matrix factorization. Its printed procedure
        is not private for a person's row and lives in papers/dpimf.

    Example:
        >>> from discreet import ImplicitObjective, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = ImplicitObjective(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/implicit_objective.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3
    """

    name: ClassVar[str] = "implicit-objective"
    proof: ClassVar[str] = "proofs/implicit_objective.md"
    feedback = "implicit"
    source: ClassVar[str] = "ours, after Ran et al. 2024"

    epsilon: float
    delta: float = 1e-6
    loss: LossName = "shared"
    alpha0: float = 0.8
    factors: int | None = None
    rounds: int | None = None
    importance_sampling: bool = False

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=False)
        known = ("shared", "symmetric", "complementary", "strawman")
        require(self.loss in known, "loss", self.loss, f"must be one of {', '.join(known)}")
        require(0 <= self.alpha0 <= 1, "alpha0", self.alpha0, "must lie in [0, 1]")
        if self.factors is not None:
            integer("factors", self.factors, least=1, most=256)
        if self.rounds is not None:
            integer("rounds", self.rounds, least=1, most=_MOST_ROUNDS)
        pure = self.delta == 0 or not self.is_private
        do = "Importance sampling is proved for Laplace noise: pass delta=0."
        require(pure or not self.importance_sampling, "importance_sampling", True, "needs delta=0", do)

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return what the releases cost; the facts do not matter."""
        return self.release_events()

    def release_events(self) -> Sequence[Any]:
        """Return the event of every release; for pure noise, one event for the cost of all together."""
        if not self.is_private:
            return ()
        return [pure_event(self.epsilon)] if self.delta == 0 else [one.event() for one in self.plan().all()]

    def plan(self) -> SharePlan:
        """Return the noise of every release."""
        return SharePlan.of(self.epsilon, self.delta, self.rounds or 1)

    def most_factors(self) -> int:
        """Return the largest number of factors."""
        rule = questions.MOST_FACTORS if self.loss == "shared" else _FACTORS_WITH_OWN_GRAMS
        return rule if self.factors is None else self.factors

    def objective(self, factors: int) -> tuple[items_of.Loss, npt.NDArray[np.int64]]:
        """Return the weights of the loss and which products of profile entries it needs for each item."""
        full = np.argwhere(np.ones((factors, factors), dtype=np.bool_))
        upper = full[full[:, 0] <= full[:, 1]]
        if self.loss == "shared":
            return items_of.Loss(shared_weight=1.0, chosen_weight=0.0), np.zeros((0, 2), dtype=np.int64)
        if self.loss == "strawman":
            return items_of.Loss(shared_weight=self.alpha0, chosen_weight=1.0), full
        weights = items_of.Loss(shared_weight=self.alpha0, chosen_weight=1 - self.alpha0)
        return weights, upper if self.loss == "symmetric" else full

    def rows_needed(self) -> str | None:
        """Return why rows must be in memory: only importance sampling needs them."""
        return "importance sampling draws users one by one" if self.importance_sampling else None

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data, random = unmetered(session)
        plan = self.plan()
        steps = 2 + len(plan.rounds)
        votes = data.total(party.ProfileVotes(n_items=data.n_items, norm=plan.norm))
        favor = questions.read_votes(plan.votes.release(votes.steps(), random), deviation(plan.votes))
        progress(self.name, 1, steps)
        noise = deviation(plan.moment)
        if not questions.shows_factors(favor, noise, plan.norm):
            return self._recount(data, favor, plan, random)
        items, item_weights = questions.starting_items(favor, noise)
        together = data.total(party.StartMoment(items=items, item_weights=item_weights, norm=plan.norm))
        moment = plan.moment.release_symmetric(together.steps(), random)
        profiles = questions.starting_profiles(moment, items, item_weights, favor, noise, self.most_factors())
        progress(self.name, 2, steps)
        solved = self.sweep(data, profiles, favor, plan, 0, random)
        progress(self.name, 3, steps)
        for number in range(1, len(plan.rounds)):
            profiles = items_of.refined_profiles(solved)
            solved = self.sweep(data, profiles, solved.favor, plan, number, random)
            progress(self.name, 3 + number, steps)
        return _scorer(solved, profiles)

    def _recount(
        self, data: DataSource, favor: questions.Favor, plan: SharePlan, random: PrivacyRandom
    ) -> ProfileScorer:
        """Spend the rest of the budget on popularity, where no factors would be above the noise."""
        again = data.total(party.ProfileVotes(n_items=data.n_items, norm=plan.norm))
        votes = plan.recount.release(again.steps(), random)
        return _scorer(
            items_of.recounted(favor, votes, deviation(plan.recount)), questions.no_profiles(data.n_items)
        )

    def sweep(
        self,
        data: DataSource,
        profiles: party.Profiles,
        favor: questions.Favor,
        plan: SharePlan,
        number: int,
        random: PrivacyRandom,
    ) -> items_of.ItemFactors:
        """Release the shared Gram and every item's terms, and solve all items from them."""
        loss, pairs = self.objective(profiles.factors)
        shared_noise, term_noise = plan.rounds[number]
        gram = data.total(party.ProfileGram(profiles=profiles, norm=plan.norm))
        shared = shared_noise.release_symmetric(gram.steps(), random)
        asked = questions.question(favor, profiles.factors, pairs, plan.norm)
        if self.importance_sampling and isinstance(term_noise, Laplace) and isinstance(data, Interactions):
            released = sampled_linear_terms(data, profiles, asked, term_noise, random)
        else:
            terms = data.total(party.LinearTerms(profiles=profiles, question=asked))
            released = term_noise.release(terms.steps(), random)
        return items_of.solve_items(
            released,
            deviation(term_noise),
            shared,
            deviation(shared_noise),
            asked=asked,
            profiles=profiles,
            favor=favor,
            loss=loss,
        )


def _scorer(solved: items_of.ItemFactors, profiles: party.Profiles) -> ProfileScorer:
    return ProfileScorer.of(
        item_bias=solved.bias, item_factors=solved.factors, origin=solved.origin, profiles=profiles
    )


# A user with this many average items has a contribution of full norm; fewer items give a smaller norm.
_ITEMS_OF_FULL_NORM = 64
_MAX_WEIGHT = 8.0


def sampled_linear_terms(
    data: Interactions, profiles: Profiles, question: ProfileQuestion, noise: Laplace, random: PrivacyRandom
) -> Floats:
    """Return noisy sums over a random sample of users, unbiased for the sums over all users.

    A user's contribution has l1 norm s <= 1. It is sampled with probability 1 / w and counted w times, with
    the largest w that keeps log(1 + (e^(w s / scale) - 1) / w) at most the cost of norm 1 without sampling.
    """
    mechanism = ImportanceSampling(
        epsilon=noise.l1_sensitivity / noise.scale, scale=noise.scale, max_weight=_MAX_WEIGHT
    )
    norms = norms_of_all(data, profiles, question)
    bound = (
        float(np.mean(question.item_weights)) * (question.count_part + profiles.factors) * _ITEMS_OF_FULL_NORM
    )
    clipped = np.minimum(norms / bound, mechanism.largest_norm() * ROUNDING)
    drawn, heavier = mechanism.sample(clipped, random)
    per_norm = np.divide(clipped, norms, out=np.zeros_like(norms), where=norms > 0)
    weights = np.where(drawn, heavier * per_norm * ROUNDING, 0.0)
    steps = weighted_terms(data, profiles, question, weights)
    add_discrete_laplace(steps, noise.scale * VECTOR_STEPS, random)
    noisy: Floats = np.ldexp(steps.astype(np.float64), -VECTOR_BITS)
    return noisy
