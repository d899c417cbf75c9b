"""DPIMF and DPMF as printed: trained without privacy, then solved once with the printed noise. NOT PRIVATE.

`implicit-objective` is our private model in their place (proofs/implicit_objective.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np
from scipy.sparse import csr_matrix

from discreet.core.arrays import Floats
from discreet.core.checks import integer, one_of, positive, positive_finite, probability, require
from discreet.core.progress import Progress
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.baselines.tuning import no_promise
from discreet.models.estimator import WITHOUT_PRIVACY, Estimator
from discreet.models.scorers.scorer import Scorer
from discreet.models.scorers.trained_profiles import TrainedProfileScorer
from discreet.papers.dpimf import printed
from discreet.papers.dpimf.theory import LOSSES, Loss
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.session import Session
from discreet.report.notes import PRINTED_DPIMF, PRINTED_DPMF, PRINTED_WEIGHTS, TRAINED_WITHOUT_NOISE

Sampling = Literal["none", "corrected", "printed"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dpimf(Estimator):
    """Factor interactions, then solve all items once with the printed noise of DPIMF.

    The four losses are those of the paper. `strawman` adds noise to all coefficients of the original loss.
    `complementary` and `symmetric` divide epsilon into three parts. `optimal` weighs empty cells by 1,
    so that only the linear term gets noise.

    Guarantee
        NOT PRIVATE. The printed claim of `epsilon` for a user's whole row is refuted: one user is in every
        item's problem, profiles are trained on the same rows without noise, and the sensitivity is that of
        the longest actual profile (proofs/implicit_objective.md). `implicit-objective` is private.

    Noise
        Laplace noise on the coefficients of each item's loss, of the printed scale for `epsilon`. Without
        `epsilon` there is no noise.

    Parameters:
        epsilon: The printed epsilon of one solve; it states how much noise is drawn and promises nothing.
        loss: The loss: `strawman`, `complementary`, `symmetric` or `optimal`.
        sampling: Importance sampling for the optimal loss: `corrected` is Algorithm 3 for the weighted sum;
            `printed` lowers the noise by Theorem 2 with weights c / |p_u|_1.
        mean_weight: The mean of the printed weights.
        solve: Whose profiles get the noise: `items`, or `users` (parties that share users).
        factors: The number of factors.
        regularization: The ridge lambda; profiles lie in a ball of radius 1 / sqrt(lambda).
        epochs: Alternations of the training without noise.
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
    """

    name: ClassVar[str] = "dpimf"
    feedback = "implicit"
    source: ClassVar[str] = "Ran et al. 2024, as printed: refuted"
    published_noise: ClassVar[bool] = True

    epsilon: float = math.inf
    loss: Loss = "optimal"
    sampling: Sampling = "none"
    mean_weight: float = 16.0
    solve: printed.Side = "items"
    factors: int = 8
    regularization: float = 0.015
    epochs: int = 10
    alpha0: float = 0.95
    beta1: float = 0.5
    beta2: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, do=WITHOUT_PRIVACY)
        one_of("loss", self.loss, LOSSES)
        one_of("sampling", self.sampling, ("none", "corrected", "printed"))
        one_of("solve", self.solve, ("items", "users"))
        require(
            self.sampling == "none" or self.loss == "optimal",
            "sampling",
            self.sampling,
            "goes with loss=optimal",
        )
        positive_finite("mean_weight", self.mean_weight)
        require(self.mean_weight >= 1, "mean_weight", self.mean_weight, "must be at least 1")
        integer("factors", self.factors, least=1)
        positive_finite("regularization", self.regularization)
        integer("epochs", self.epochs, least=1)
        probability("alpha0", self.alpha0)
        together = positive_finite("beta1", self.beta1) + positive_finite("beta2", self.beta2)
        require(together < 1, "beta1 + beta2", together, "must be less than 1: the ridge gets the rest")

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return no guarantee, and why the printed one does not hold."""
        notes: tuple[str, ...] = (PRINTED_DPIMF,) if math.isfinite(self.epsilon) else (TRAINED_WITHOUT_NOISE,)
        if self.sampling == "printed":
            notes += (PRINTED_WEIGHTS,)
        return replace(no_promise(facts), notes=notes)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        variant = printed.VARIANTS[LOSSES.index(self.loss)]
        alpha0 = printed.alpha0_of(variant, self._setting())
        clicks = interactions_matrix(session.rows())
        model = printed.train(clicks, self._setting(), alpha0, self.seed, original=variant == "str")
        progress(self.name, 1, 2)
        rows, others = sides_of(model, self.solve)
        solved = self._solved(rows, others, variant, PublishedNoise(session))
        progress(self.name, 2, 2)
        return profiles_scorer(model, solved, self.solve, session.rows(), self._setting())

    def _solved(
        self, rows: csr_matrix, others: Floats, variant: printed.Variant, noise: printed.NoiseSource
    ) -> Floats:
        setting = self._setting()
        if math.isinf(self.epsilon):
            return printed.exact_rows(
                rows, others, setting, printed.alpha0_of(variant, setting), original=variant == "str"
            )
        if self.sampling == "corrected":
            return printed.sampled_rows(rows, others, self.epsilon, setting, noise)
        if self.sampling == "printed":
            return printed.inversely_sampled_rows(
                rows, others, self.epsilon, self.mean_weight, setting, noise
            )
        return printed.noisy_rows(rows, others, variant, self.epsilon, setting, noise)

    def _setting(self) -> printed.Setting:
        return printed.Setting(
            factors=self.factors,
            regularization=self.regularization,
            epochs=self.epochs,
            alpha0=self.alpha0,
            budget=(self.beta1, self.beta2, 1 - self.beta1 - self.beta2),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dpmf(Estimator):
    """Factor interactions, then solve all items once with the noise of DPMF: users scaled to length 1.

    Guarantee
        NOT PRIVATE as the DPIMF paper runs it. Profiles are trained on the same rows without noise, so that
        the noise for `epsilon` protects nobody.

    Noise
        Laplace noise of scale 2 sqrt(`factors`) / `epsilon` on the linear term of each item's loss.

    Parameters:
        epsilon: The printed epsilon of one solve; it states how much noise is drawn and promises nothing.
        solve: Whose profiles get the noise: `items` or `users`.
        factors: The number of factors.
        regularization: The ridge lambda.
        epochs: Alternations of the training without noise.

    References:
        Hua, Xia and Zhong, Differentially Private Matrix Factorization (2015), as a baseline of DPIMF.

    Example:
        >>> from discreet import Dpmf, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Dpmf(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
    """

    name: ClassVar[str] = "dpmf"
    feedback = "implicit"
    source: ClassVar[str] = "Hua et al. 2015, as run by Ran et al. 2024: refuted"
    published_noise: ClassVar[bool] = True

    epsilon: float = math.inf
    solve: printed.Side = "items"
    factors: int = 8
    regularization: float = 0.015
    epochs: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, do=WITHOUT_PRIVACY)
        one_of("solve", self.solve, ("items", "users"))
        integer("factors", self.factors, least=1)
        positive_finite("regularization", self.regularization)
        integer("epochs", self.epochs, least=1)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return no guarantee, and why the printed one does not hold."""
        note = PRINTED_DPMF
        return replace(
            no_promise(facts), notes=(note if math.isfinite(self.epsilon) else TRAINED_WITHOUT_NOISE,)
        )

    def _train(self, session: Session, progress: Progress) -> Scorer:
        setting = printed.Setting(
            factors=self.factors, regularization=self.regularization, epochs=self.epochs
        )
        model = printed.train(interactions_matrix(session.rows()), setting, 1.0, self.seed)
        progress(self.name, 1, 2)
        rows, others = sides_of(model, self.solve)
        if math.isinf(self.epsilon):
            solved = printed.exact_rows(rows, others, setting, 1.0)
        else:
            solved = printed.dpmf_rows(rows, others, self.epsilon, setting, PublishedNoise(session))
        progress(self.name, 2, 2)
        return profiles_scorer(model, solved, self.solve, session.rows(), setting)


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

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
        """Return uniform numbers in [low, high)."""
        return low + (high - low) * self.random(size)


def interactions_matrix(data: Interactions) -> csr_matrix:
    """Return a matrix with 1 where a user interacted with an item."""
    shape = (data.n_users, data.n_items)
    return csr_matrix((np.ones(data.n_ratings), data.items, data.indptr), shape=shape)


def sides_of(model: printed.Trained, solve: printed.Side) -> tuple[csr_matrix, Floats]:
    """Return the rows that are solved, and the profiles of the other side."""
    return (model.clicks.T.tocsr(), model.users) if solve == "items" else (model.clicks, model.items)


def profiles_scorer(
    model: printed.Trained,
    solved: Floats,
    solve: printed.Side,
    data: Interactions,
    setting: printed.Setting,
) -> TrainedProfileScorer:
    """Return the scorer of trained profiles, one side of which was solved with noise."""
    users = solve == "users"
    return TrainedProfileScorer(
        profiled=Vocabulary.of(data.users.series) if users else Vocabulary.of(np.zeros(0, dtype=np.int64)),
        user_factors=solved if users else np.zeros((0, setting.factors)),
        item_factors=model.items if users else solved,
        profile_factors=model.items,
        alpha0=model.alpha0,
        regularization=setting.regularization,
    )
