"""DPIMF and DPMF as printed: trained without privacy, then solved once with the printed noise. NOT PRIVATE.

`implicit-objective` is our private model in their place (proofs/implicit_objective.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np
from scipy.sparse import csr_matrix

from discreet.core import Floats, Progress, integer, one_of, positive, positive_finite, probability, require
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.models import Estimator, Scorer, TrainedProfileScorer, no_promise
from discreet.papers.dpimf import printed_losses as printed
from discreet.papers.dpimf.theory import LOSSES, Loss, printed_epsilon_before
from discreet.privacy import Guarantee, Session
from discreet.report import PRINTED_DPIMF, PRINTED_DPMF, PRINTED_WEIGHTS, TRAINED_WITHOUT_NOISE

Sampling = Literal["none", "corrected", "printed"]


class PrintedFactorization(Estimator):
    """Base of the printed models: profiles trained without privacy, then one side solved once with noise.

    Over parties, `rounds` and `local` run Algorithm 1 (`federated/protocols/printed_dpimf.py`).
    """

    __slots__ = ()

    feedback = "implicit"
    published_noise: ClassVar[bool] = True
    refuted: ClassVar[str]

    epsilon: float
    solve: printed.Side
    factors: int
    regularization: float
    epochs: int
    rounds: int
    local: int
    seed: int

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        one_of("solve", self.solve, ("items", "users"))
        positive_finite("regularization", self.regularization)
        for name in ("factors", "epochs", "rounds", "local"):
            integer(name, getattr(self, name), least=1)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return no guarantee, and why the printed one does not hold."""
        note = self.refuted if math.isfinite(self.epsilon) else TRAINED_WITHOUT_NOISE
        return replace(no_promise(facts), notes=(note,))

    @abstractmethod
    def setting(self) -> printed.Setting:
        """Return the settings of the printed procedure."""

    @property
    def alpha0_used(self) -> float:
        """Return the weight of empty cells."""
        return 1.0

    @property
    def original(self) -> bool:
        """Return whether the loss counts observed cells twice, as the strawman's does."""
        return False

    def exact(self, rows: csr_matrix, others: Floats) -> Floats:
        """Return the profiles of rows, given those of the other side, without noise."""
        return printed.exact_rows(rows, others, self.setting(), self.alpha0_used, original=self.original)

    def solved(self, rows: csr_matrix, others: Floats, noise: printed.NoiseSource) -> Floats:
        """Return the profiles of rows with the printed noise; without epsilon there is none."""
        return self.exact(rows, others) if math.isinf(self.epsilon) else self._noisy(rows, others, noise)

    @abstractmethod
    def _noisy(self, rows: csr_matrix, others: Floats, noise: printed.NoiseSource) -> Floats:
        """Return the profiles of rows with the printed noise for a finite epsilon."""

    def _train(self, session: Session, progress: Progress) -> Scorer:
        clicks = interactions_matrix(session.rows())
        model = printed.train(clicks, self.setting(), self.alpha0_used, self.seed, original=self.original)
        progress(self.name, 1, 2)
        solved = self.solved(*sides_of(model, self.solve), PublishedNoise(session))
        progress(self.name, 2, 2)
        users = self.solve == "users"
        return profiles_scorer(
            self,
            profiles=model.items,
            items=model.items if users else solved,
            users=Vocabulary.of(session.rows().users.series) if users else None,
            user_factors=solved if users else None,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dpimf(PrintedFactorization):
    """Factor interactions, then solve for all items once, with the noise that the DPIMF paper states.

    The four losses are those of the paper. `strawman` adds noise to all coefficients of the original loss.
    `complementary` and `symmetric` divide epsilon into three parts. `optimal` weighs empty cells by 1,
    so that only the linear term gets noise.

    Guarantee
        NOT PRIVATE. The printed claim of `epsilon` for a user's whole row is refuted: one user is in every
        item's problem, profiles are trained on the same rows without noise, and the sensitivity is that of
        the longest actual profile (proofs/implicit_objective.md). `implicit-objective` is private.

    Noise
        Laplace noise on the coefficients of each item's loss, of the printed scale for `epsilon`. Without
        `epsilon` no noise is drawn.

    Parameters:
        epsilon: The printed epsilon of one solve; it states how much noise is drawn and guarantees nothing.
        loss: The loss: `strawman`, `complementary`, `symmetric` or `optimal`.
        sampling: Importance sampling for the optimal loss: `corrected` is Algorithm 3 for the weighted sum;
            `printed` lowers the noise by Theorem 2 with weights c / |p_u|_1.
        mean_weight: The mean of the printed weights.
        solve: Whose profiles get the noise: `items`, or `users` (parties that share users).
        factors: The number of factors.
        regularization: The ridge lambda; profiles lie in a ball of radius 1 / sqrt(lambda).
        epochs: Alternations of the training without noise.
        rounds: Over parties, how often items (or users) are solved and averaged; the paper runs 100 rounds.
        local: Over parties, the alternations inside a party in each round; the paper runs 20.
        alpha0: The weight of empty cells for all losses but the optimal one.
        beta1: The part of epsilon for the linear term, with the complementary and the symmetric loss.
        beta2: The part of epsilon for the matrix; the ridge gets the rest.

    References:
        Ran, Ye, Huang and Hu, Differentially Private Implicit Matrix Factorization.

    Example:
        >>> from discreet import Dpimf, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Dpimf(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> len(model.recommend([films.catalog.id_at(0)], k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "dpimf"
    source: ClassVar[str] = "Ran et al. 2024, as printed: refuted"
    refuted: ClassVar[str] = PRINTED_DPIMF

    epsilon: float = math.inf
    loss: Loss = "optimal"
    sampling: Sampling = "none"
    mean_weight: float = 16.0
    solve: printed.Side = "items"
    factors: int = 8
    regularization: float = 0.015
    epochs: int = 10
    rounds: int = 10
    local: int = 1
    alpha0: float = 0.95
    beta1: float = 0.5
    beta2: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        PrintedFactorization.__post_init__(self)
        one_of("loss", self.loss, LOSSES)
        one_of("sampling", self.sampling, ("none", "corrected", "printed"))
        require(
            self.sampling == "none" or self.loss == "optimal",
            "sampling",
            self.sampling,
            must="be none unless loss=optimal",
        )
        positive_finite("mean_weight", self.mean_weight)
        require(self.mean_weight >= 1, "mean_weight", self.mean_weight, must="be at least 1")
        probability("alpha0", self.alpha0)
        together = positive_finite("beta1", self.beta1) + positive_finite("beta2", self.beta2)
        require(together < 1, "beta1 + beta2", together, must="be less than 1: the ridge gets the rest")

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return no guarantee, and why the printed one does not hold."""
        promise = PrintedFactorization.promise(self, facts)
        more = (PRINTED_WEIGHTS,) if self.sampling == "printed" else ()
        return replace(promise, notes=(*promise.notes, *more))

    @property
    def variant(self) -> printed.Variant:
        """Return the paper's name of the loss."""
        return printed.VARIANTS[LOSSES.index(self.loss)]

    @property
    def alpha0_used(self) -> float:
        """Return the weight of empty cells: 1 with the optimal loss."""
        return printed.alpha0_of(self.variant, self.setting())

    @property
    def original(self) -> bool:
        """Return whether the loss counts observed cells twice, as the strawman's does."""
        return self.loss == "strawman"

    def setting(self) -> printed.Setting:
        """Return the settings of the printed procedure."""
        return printed.Setting(
            factors=self.factors,
            regularization=self.regularization,
            epochs=self.epochs,
            alpha0=self.alpha0,
            budget=(self.beta1, self.beta2, 1 - self.beta1 - self.beta2),
        )

    def _noisy(self, rows: csr_matrix, others: Floats, noise: printed.NoiseSource) -> Floats:
        setting = self.setting()
        if self.sampling == "corrected":
            return printed.sampled_rows(rows, others, self.epsilon, setting, noise)
        if self.sampling == "printed":
            weights = printed.inverse_weights(others, self.mean_weight)
            before = printed_epsilon_before(self.epsilon, float(weights.min()))
            return printed.lowered_rows(rows, others, weights, before, setting, noise)
        return printed.noisy_rows(rows, others, self.variant, self.epsilon, setting, noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dpmf(PrintedFactorization):
    """Factor interactions, then solve for all items once, with the noise of DPMF: users scaled to norm 1.

    Guarantee
        NOT PRIVATE as the DPIMF paper runs it. Profiles are trained on the same rows without noise, so that
        the noise for `epsilon` protects no user.

    Noise
        Laplace noise of scale 2 sqrt(`factors`) / `epsilon` on the linear term of each item's loss.

    Parameters:
        epsilon: The printed epsilon of one solve; it states how much noise is drawn and guarantees nothing.
        solve: Whose profiles get the noise: `items` or `users`.
        factors: The number of factors.
        regularization: The ridge lambda.
        epochs: Alternations of the training without noise.
        rounds: Over parties, how often items (or users) are solved and averaged.
        local: Over parties, the alternations inside a party in each round.

    References:
        Hua, Xia and Zhong, Differentially Private Matrix Factorization (2015), as a baseline of DPIMF.

    Example:
        >>> from discreet import Dpmf, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Dpmf(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False

    Stability
        Stable.
    """

    name: ClassVar[str] = "dpmf"
    source: ClassVar[str] = "Hua et al. 2015, as run by Ran et al. 2024: refuted"
    refuted: ClassVar[str] = PRINTED_DPMF

    epsilon: float = math.inf
    solve: printed.Side = "items"
    factors: int = 8
    regularization: float = 0.015
    epochs: int = 10
    rounds: int = 10
    local: int = 1
    seed: int = 0

    def setting(self) -> printed.Setting:
        """Return the settings of the printed procedure."""
        return printed.Setting(factors=self.factors, regularization=self.regularization, epochs=self.epochs)

    def _noisy(self, rows: csr_matrix, others: Floats, noise: printed.NoiseSource) -> Floats:
        return printed.dpmf_rows(rows, others, self.epsilon, self.setting(), noise)


@final
class PublishedNoise:
    """Noise of a session without a guarantee, in the form that the printed solves ask for."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        """Return Laplace numbers; none of them moves anything if the scale is 0."""
        values = np.full(() if size is None else size, loc, dtype=np.float64)
        return self._session.published_noise(values, scale=scale) if scale > 0 else values

    def random(self, size: Any = None, /) -> Any:
        """Return uniform numbers in [0, 1): where Laplace noise lies in its distribution."""
        noise = self.laplace(size=size)
        half = 0.5 * np.exp(-np.abs(noise))
        return np.clip(np.where(noise < 0, half, 1 - half), 0.0, np.nextafter(1.0, 0.0))


def interactions_matrix(data: Interactions) -> csr_matrix:
    """Return a matrix with 1 where a user interacted with an item."""
    shape = (data.n_users, data.n_items)
    return csr_matrix((np.ones(data.n_ratings), data.items, data.indptr), shape=shape)


def sides_of(model: printed.Trained, solve: printed.Side) -> tuple[csr_matrix, Floats]:
    """Return the rows that are solved, and the profiles of the other side."""
    return (model.clicks.T.tocsr(), model.users) if solve == "items" else (model.clicks, model.items)


def profiles_scorer(
    settings: PrintedFactorization,
    *,
    profiles: Floats,
    items: Floats,
    users: Vocabulary | None = None,
    user_factors: Floats | None = None,
) -> TrainedProfileScorer:
    """Return the scorer of trained items; users without factors are fitted to `profiles`."""
    return TrainedProfileScorer(
        profiled=Vocabulary.of(np.zeros(0, dtype=np.int64)) if users is None else users,
        user_factors=np.zeros((0, settings.factors)) if user_factors is None else user_factors,
        item_factors=items,
        profile_factors=profiles,
        alpha0=settings.alpha0_used,
        regularization=settings.regularization,
    )
