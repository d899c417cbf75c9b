"""Factor implicit feedback privately, by solving each item's problem from noisy sums over users.

Four kinds of releases share the budget: votes (popularity), a second moment of the popular items (it defines
profiles), and, in each round, the Gram matrix of users' profiles and each item's linear term.
`statistics/profiles.py` computes users' contributions; `items_of.py` and `item_solves.py` use the noisy
sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Progress, integer, require
from discreet.data import Interactions
from discreet.models import ProfileScorer, Scorer, SumsEstimator, check_budget
from discreet.papers.dpimf import item_solves as items_of
from discreet.privacy import Session, share
from discreet.privacy.mechanisms.additive import FixedPoint
from discreet.statistics import (
    ROUNDING,
    VECTOR_BITS,
    Norm,
    Part,
    ProfileQuestion,
    Profiles,
    norms_of_all,
    weighted_terms,
)
from discreet.statistics import profiles as party

LossName = Literal["shared", "symmetric", "complementary", "strawman"]

# How the budget is shared: votes, second moment, and over all rounds the shared Gram and the linear terms.
VOTES, MOMENT, GRAM, LINEAR = share(0.10), share(0.40), share(0.03), share(0.47)
# Losses that release a matrix per item pay for each of its entries, so they use fewer factors.
_FACTORS_WITH_OWN_GRAMS = 4
_MOST_ROUNDS = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitObjective(SumsEstimator):
    """Recommend from implicit feedback: popular items, and items of users with a similar profile.

    Every item's factors minimize a squared loss over all users, computed from noisy sums. A user's profile is
    computed from released item vectors and the user's own row; a public bound limits its length.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else; pure `epsilon` with Laplace noise when `delta` is 0
        (proofs/implicit_objective.md). A user's whole contribution to one release has norm at most 1, for
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
        is not private for a user's row and is in papers/dpimf.

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

    Stability
        Stable.
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
        require(self.loss in known, "loss", self.loss, must=f"be one of {', '.join(known)}")
        require(0 <= self.alpha0 <= 1, "alpha0", self.alpha0, must="be in [0, 1]")
        if self.factors is not None:
            integer("factors", self.factors, least=1, most=256)
        if self.rounds is not None:
            integer("rounds", self.rounds, least=1, most=_MOST_ROUNDS)
        pure = self.delta == 0 or not self.is_private
        do = "Importance sampling is proved for Laplace noise: pass delta=0."
        require(
            pure or not self.importance_sampling,
            "importance_sampling",
            True,
            must="be False unless delta=0",
            do=do,
        )

    def most_factors(self) -> int:
        """Return the largest number of factors."""
        rule = items_of.MOST_FACTORS if self.loss == "shared" else _FACTORS_WITH_OWN_GRAMS
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

    @property
    def norm(self) -> Norm:
        """Return the norm that contributions are bounded in: l1 for Laplace noise, l2 for Gaussian noise."""
        return "l1" if self.is_pure else "l2"

    def _train(self, session: Session, progress: Progress) -> Scorer:
        session, rounds = self.metered(session), self.rounds or 1
        steps, asked = 2 + rounds, party.ProfileVotes(n_items=session.n_items, norm=self.norm)
        favor = items_of.read_votes(*session.release(asked, VOTES))
        progress(self.name, 1, steps)
        noise = session.deviation(asked, MOMENT)
        if not items_of.shows_factors(favor, noise, self.norm):
            # No factors would be above the noise: the rest of the budget goes to popularity.
            recounted = items_of.recounted(favor, *session.release(asked, session.left))
            return _scorer(recounted, items_of.no_profiles(session.n_items))
        items, item_weights = items_of.starting_items(favor, noise)
        together = party.StartMoment(items=items, item_weights=item_weights, norm=self.norm)
        moment = session.release(together, MOMENT).values
        profiles = items_of.starting_profiles(moment, items, item_weights, favor, noise, self.most_factors())
        progress(self.name, 2, steps)
        first, *later = session.rounds(rounds)
        solved = self.sweep(first, profiles, favor)
        progress(self.name, 3, steps)
        for number, part in enumerate(later):
            profiles = items_of.refined_profiles(solved)
            solved = self.sweep(part, profiles, solved.favor)
            progress(self.name, 4 + number, steps)
        return _scorer(solved, profiles)

    def sweep(self, session: Session, profiles: Profiles, favor: items_of.Favor) -> items_of.ItemFactors:
        """Release the shared Gram and every item's terms, for all of the session, and solve all items."""
        loss, pairs = self.objective(profiles.factors)
        gram_share = GRAM / (GRAM + LINEAR)
        gram = session.release(party.ProfileGram(profiles=profiles, norm=self.norm), gram_share)
        asked = items_of.question(favor, profiles.factors, pairs, self.norm)
        if self.importance_sampling and self.is_private:
            sampled = SampledTerms(profiles=profiles, question=asked)
            terms = session.sampled(sampled, session.left, max_weight=_MAX_WEIGHT)
        else:
            terms = session.release(party.LinearTerms(profiles=profiles, question=asked), session.left)
        return items_of.solve_items(terms, gram, asked=asked, profiles=profiles, favor=favor, loss=loss)


def _scorer(solved: items_of.ItemFactors, profiles: Profiles) -> ProfileScorer:
    return ProfileScorer(
        item_bias=solved.bias, item_factors=solved.factors, origin=solved.origin, profiles=profiles
    )


# A user with this many average items has a contribution of full norm; fewer items give a smaller norm.
_ITEMS_OF_FULL_NORM = 64
_MAX_WEIGHT = 8.0


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SampledTerms:
    """Every item's linear terms, as contributions that can be sampled by their l1 norm."""

    profiles: Profiles
    question: ProfileQuestion

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the sum of all terms."""
        return party.LinearTerms(profiles=self.profiles, question=self.question).parts

    def norms(self, data: Interactions, largest: float) -> Floats:
        """Return each user's l1 norm over that of a full contribution, clipped to `largest`."""
        return self._clipped(norms_of_all(data, self.profiles, self.question), largest)

    def _clipped(self, norms: Floats, largest: float) -> Floats:
        question = self.question
        entries = question.count_part + self.profiles.factors
        full = float(np.mean(question.item_weights)) * entries * _ITEMS_OF_FULL_NORM
        return np.minimum(norms / full, largest * ROUNDING)

    def weighted(self, data: Interactions, weights: Floats, largest: float) -> FixedPoint:
        """Return the sum of clipped contributions times these weights."""
        norms = norms_of_all(data, self.profiles, self.question)
        clipped = self._clipped(norms, largest)
        per_norm = np.divide(clipped, norms, out=np.zeros_like(norms), where=norms > 0)
        scaled = np.where(weights > 0, weights * per_norm * ROUNDING, 0.0)
        return FixedPoint(weighted_terms(data, self.profiles, self.question, scaled), VECTOR_BITS)
