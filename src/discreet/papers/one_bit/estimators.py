"""Complete a matrix of binary ratings privately, by four estimators.

The privacy unit is one rating value (liked or disliked); which items a user rated is public. The estimators
differ in what gets the noise: the binary ratings, the objective, the gradients, or the answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from discreet.collect.campaign import DEVICES, local_guarantee
from discreet.collect.errors import WrongReports
from discreet.collect.estimate import Collected
from discreet.core import (
    Floats,
    Progress,
    experiment_generator,
    failure_probability,
    integer,
    non_negative,
    one_of,
    positive_finite,
    require,
)
from discreet.data import Interactions, PublicFacts
from discreet.models import (
    CompletedMatrix,
    FittedModel,
    OneBitScorer,
    ReleasedCells,
    Scorer,
    SettingsConflict,
    Vault,
    binary_ratings,
    fitted_reports,
)
from discreet.papers.one_bit.task import (
    ClampedGradient,
    FlippedRatings,
    LinearTerm,
    OneBit,
    Task,
    mean_on_scale,
    released_mean,
)
from discreet.privacy import Guarantee, Session, Trust, least, sum_up, times_up
from discreet.privacy.mechanisms.additive import (
    gaussian_deviation,
    gaussian_event,
    laplace_event,
    laplace_scale,
)
from discreet.privacy.mechanisms.local import sign_flip
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.report import PROBIT_OBJECTIVE, answered_entries
from discreet.solvers import (
    LowRank,
    MeteredGradient,
    OneBitLoss,
    curvature_at_0,
    curvature_ratio,
    project_dense,
    steepness,
)
from discreet.statistics import Norm, RatingShares

Step = Literal["fixed", "barzilai-borwein"]

# With the probit link the curvature reveals something about a rating; it costs at most this share of epsilon.
_CURVATURE_SHARE = 0.25
# A small ridge makes the minimizer unique even where the loss is linear.
_LEAST_RIDGE = 1e-3
# Floating-point results are enlarged by this factor, which far exceeds their rounding error.
_SAFE = 1 + 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitInput(OneBit):
    """Flip each binary rating at random, then fit a low-rank model that knows the flip probability.

    Guarantee
        Pure `epsilon` for one rating value against anyone, the collector included; which items were rated is
        public (proofs/one_bit_input.md). Everything after the flip is post-processing.

    Noise
        A binary rating is flipped with probability 1 / (1 + e^epsilon).

    Parameters:
        flip_positive: The flip probability of a +1, p1 of the paper, instead of the one above; give
            `flip_negative`, too. Rates that reveal more than `epsilon`, by any of the four ratios, are
            rejected.
        flip_negative: The flip probability of a -1, p2 of the paper.

    Example:
        >>> from discreet import OneBitInput, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = OneBitInput(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/one_bit_input.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "one-bit-input"

    flip_positive: float | None = None
    flip_negative: float | None = None

    def __post_init__(self) -> None:
        rates = [name for name in ("flip_positive", "flip_negative") if getattr(self, name) is not None]
        if rates and math.isinf(self.epsilon):
            raise SettingsConflict(setting=rates[0], other="an infinite epsilon")
        OneBit.__post_init__(self)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee; it depends on epsilon alone."""
        return self._promise(facts, "proofs/one_bit_input.md", trust=Trust.LOCAL).from_raw_ratings()

    def _mean(self, session: Session) -> float:
        return released_mean(session.laplace(epsilon=self.mean_epsilon), local=True)

    def flip(self) -> SignFlip:
        """Return the mechanism with which devices flip a binary rating."""
        return sign_flip(
            self.verdict_epsilon, flip_positive=self.flip_positive, flip_negative=self.flip_negative
        )

    def _check_noise(self) -> None:
        self.flip()

    def _information(self) -> float:
        positive, negative = self.flip().flip_rates()
        return (1 - positive - negative) ** 2

    def _learn(self, task: Task, session: Session) -> Scorer:
        flip = self.flip()
        reports = session.laplace().perturb(FlippedRatings(flip=flip, above=task.above))
        return self._completed(task, reports, flip.flip_rates())

    def _completed(
        self, task: Task, reports: npt.NDArray[np.int8], flips: tuple[float, float]
    ) -> OneBitScorer:
        loss = OneBitLoss(verdicts=reports, link=self.link, scale=self.scale, flips=flips)
        return task.scorer(task.solve(loss))

    @final
    def fit_reports(self, collected: Collected, *, progress: Progress | None = None) -> FittedModel:
        """Learn from bits that devices flipped; they have spent their budget, so nothing is spent here.

        Raises:
            DifferentEpsilon: The reports were made with an epsilon that this estimator doesn't state.
            WrongReports: The campaign doesn't ask for one bit per rating.
        """
        outputs = collected.mechanism.channel().outputs
        if outputs.size != 2 or self.mean_share or self.flip_positive is not None:
            came = f"{type(collected.mechanism).__name__} with {outputs.size} values"
            raise WrongReports(model=self.name, wanted="one-bit campaigns", came=came)
        promise = local_guarantee(collected.mechanism, collected.facts, DEVICES)
        return fitted_reports(self, collected, promise, self._from_reports, progress)

    def _from_reports(self, collected: Collected, progress: Progress) -> OneBitScorer:
        channel = collected.mechanism.channel()
        positive, negative = float(channel.transition[1, 0]), float(channel.transition[0, 1])
        information = (1 - positive - negative) ** 2
        middle = float(channel.outputs.mean())
        task = Task(self, collected.reports, middle, information, progress)
        return self._completed(task, binary_ratings(collected.reports, middle), (positive, negative))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitObjective(OneBit):
    """Add a random linear term to the objective, then minimize it (objective perturbation).

    Guarantee
        Pure `epsilon` for one rating value against everyone who sees the release
        (proofs/one_bit_objective.md). With the logistic link the solver sees noised numbers only. The
        probit link has no guarantee: the published argument needs continuous noise, and with
        finite-precision noise ratings can be read off.

    Noise
        One rating moves one entry of the linear term by at most 1 / s, with s the scale of the logistic
        link, so that the term gets Laplace noise of scale 1 / (s epsilon). The probit link also spends
        budget on its curvature.

    Parameters:
        regularization: The ridge on observed scores; by default none for the logistic link, and for the
            probit link just enough that the curvature costs at most a quarter of epsilon.

    Example:
        >>> from discreet import OneBitObjective, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = OneBitObjective(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/one_bit_objective.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "one-bit-objective"

    regularization: float | None = None

    def __post_init__(self) -> None:
        if self.regularization is not None:
            non_negative("regularization", self.regularization)
        OneBit.__post_init__(self)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee: proved for the logistic link, and none for the probit link."""
        proof = "proofs/one_bit_objective.md"
        if self.link == "logistic":
            return self._promise(facts, proof)
        return self._promise(facts, proof, epsilon=math.inf, notes=(PROBIT_OBJECTIVE,))

    def ridge(self) -> float:
        """Return the ridge on observed scores."""
        if self.link == "logistic" or math.isinf(self.epsilon):
            return self.regularization or 0.0
        if self.regularization is not None:
            return max(self.regularization, _LEAST_RIDGE)
        price = _CURVATURE_SHARE * self.verdict_epsilon
        return max(_LEAST_RIDGE, least(lambda ridge: self._curvature_cost(ridge) <= price, guess=1.0))

    def noise_epsilon(self) -> float:
        """Return the epsilon left for the noise after the cost of the curvature."""
        return self.verdict_epsilon - self._curvature_cost(self.ridge())

    def _curvature_cost(self, ridge: float) -> float:
        return curvature_ratio(self.link, self.scale, self.bound, ridge) * _SAFE

    def slope_bound(self) -> float:
        """Return how much one rating moves one entry of the linear term, rounding included."""
        return steepness(self.link, self.scale, self.bound) * _SAFE

    def noise_scale(self) -> float:
        """Return the scale of the noise on the linear term."""
        left = self.noise_epsilon()
        require(
            left > 0, "regularization", self.regularization, must="leave a part of epsilon", do="Raise it."
        )
        return laplace_scale(epsilon=left, bound=self.slope_bound())

    def _check_noise(self) -> None:
        self.noise_scale()

    def _information(self) -> float:
        signal = curvature_at_0(self.link, self.scale)
        return signal / (signal + 2 * self.noise_scale() ** 2)

    def _mean(self, session: Session) -> float:
        if session.is_private or math.isinf(self.epsilon):
            return OneBit._mean(self, session)
        rows, scale = session.rows(), laplace_scale(epsilon=self.mean_epsilon, bound=1.0)
        low, width = rows.facts.low, rows.facts.high - rows.facts.low
        exact = rows.total(RatingShares(low=low, width=width)).steps()
        total = session.published_noise(exact, scale=scale, bound=1.0)
        return mean_on_scale(float(total[0]), rows.n_ratings, low, width)

    def _learn(self, task: Task, session: Session) -> Scorer:
        if self.link == "logistic":
            # Up to a constant the loss of a -1 is that of a +1 plus a linear term with slope 1 / scale. So
            # the linear term has all private information, and it is noised before the solver sees it.
            query = LinearTerm(
                size=task.cells.size, above=task.above, scale=self.scale, bound=self.slope_bound()
            )
            linear = session.laplace().release(query, Fraction(1)).values
            verdicts, straight = np.ones(task.cells.size, np.int8), math.inf
        else:
            # As published, without a guarantee: the solver sees exact ratings.
            noise, bound = np.zeros(task.cells.size), self.slope_bound()
            linear = session.published_noise(noise, scale=self.noise_scale(), bound=bound)
            verdicts, straight = task.exact_loss(session.rows()).verdicts, self.bound
        loss = OneBitLoss(
            verdicts=verdicts,
            link=self.link,
            scale=self.scale,
            linear=linear,
            ridge=self.ridge(),
            straight_beyond=straight,
        )
        return task.scorer(task.solve(loss, show=self.link == "logistic"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitGradient(OneBit):
    """Take a fixed number of steps along clamped and noised gradients.

    Guarantee
        `epsilon` for one rating value against everyone who sees the release, pure with Laplace noise, and
        with `delta` above 0 by Gaussian noise (proofs/one_bit_gradient.md). No line search and no stopping
        rule reads the objective; a meter on the gradient enforces this.

    Noise
        One rating moves one entry of a gradient by at most 2 C with C the `clamp`: Laplace noise of scale 2
        C `rounds` / epsilon, or N(0, (2 C M)^2 `rounds`) with M the multiplier of one (`epsilon`,
        `delta`)-private release.

    Parameters:
        delta: 0 for Laplace noise; above 0 for Gaussian noise, which is less from about ten rounds on.
        rounds: How many gradients are released, K of the paper.
        clamp: Entries of the gradient are clamped to this.
        step: The step size: `"fixed"` by a public rule, or `"barzilai-borwein"` as printed, but from the
            noised gradients alone.

    Example:
        >>> from discreet import OneBitGradient, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = OneBitGradient(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/one_bit_gradient.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "one-bit-gradient"

    delta: float = 0.0
    rounds: int = 1
    clamp: float = 0.5
    step: Step = "fixed"

    def __post_init__(self) -> None:
        one_of("step", self.step, ("fixed", "barzilai-borwein"))
        failure_probability("delta", self.delta)
        integer("rounds", self.rounds, least=1)
        positive_finite("clamp", self.clamp)
        OneBit.__post_init__(self)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee; it depends on epsilon and delta alone."""
        return self._promise(facts, "proofs/one_bit_gradient.md", delta=self.delta)

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return one pure event, or the Gaussian releases and the mean's."""
        if math.isinf(self.epsilon) or self.delta == 0:
            return OneBit.events(self, facts)
        rounds: list[Any] = [gaussian_event(self.verdict_epsilon, self.delta)]
        if self.mean_share:
            rounds.append(laplace_event(self.mean_epsilon))
        return rounds

    def noise_variance(self) -> float:
        """Return the variance of one round's noise; one rating moves one entry by twice the clamp at most."""
        epsilon, bound, rounds = self.verdict_epsilon, 2 * self.clamp, self.rounds
        if self.delta == 0:
            return 2 * laplace_scale(epsilon=epsilon, bound=bound, rounds=rounds) ** 2
        return gaussian_deviation(epsilon=epsilon, delta=self.delta, bound=bound, rounds=rounds) ** 2

    def _check_noise(self) -> None:
        self.noise_variance()

    def _information(self) -> float:
        signal = min(self.clamp**2, curvature_at_0(self.link, self.scale))
        return signal / (signal + self.noise_variance() / self.rounds)

    def _learn(self, task: Task, session: Session) -> Scorer:
        budget = session.laplace() if self.delta == 0 else session.gaussian()
        norm: Norm = "l1" if self.delta == 0 else "l2"

        def release(scores: Floats) -> Floats:
            query = ClampedGradient(
                scores=scores,
                above=task.above,
                link=self.link,
                scale=self.scale,
                clamp=self.clamp,
                norm=norm,
            )
            return budget.release(query, Fraction(1, self.rounds)).values

        oracle = MeteredGradient(release, allowed=self.rounds)
        return task.scorer(task.walk(oracle, self.rounds, spectral=self.step == "barzilai-borwein"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitOutput(OneBit):
    """Complete the matrix without noise, keep it, and answer single entries with noise.

    Guarantee
        Pure `epsilon` for one rating value, for each of the `cells` entries that may be asked for: together
        `cells` times `epsilon` (proofs/one_bit_output.md). One rating can move every entry, so the matrix as
        a whole is not protected and never leaves the model: a file has only the entries that were answered.

    Noise
        One rating moves an entry by at most 2 `answer_bound`: Laplace noise of scale 2 `answer_bound` /
        epsilon.

    Parameters:
        answer_bound: Answers are clipped to this before the noise, which is proportional to it. A small bound
            keeps whether an item is liked and loses how strongly.
        cells: How many different entries the budget covers. Under simulated noise, which protects no
            user, any number is answered, so that experiments can measure the accuracy of one entry on many.
        release: `asked` answers entries in the process that fitted. `ahead` answers `cells` entries at public
            random places during the fit and projects them onto the nuclear-norm ball: a model that can be
            saved and served. It costs the same.

    Example:
        >>> from discreet import OneBitOutput, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = OneBitOutput(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/one_bit_output.md')

    Stability
        Stable.
    """

    name: ClassVar[str] = "one-bit-output"

    answer_bound: float = 0.2
    cells: int = 1
    release: Literal["asked", "ahead"] = "asked"

    @property
    def answers_in_process(self) -> bool:  # type: ignore[override]
        """Return whether entries are released when they are asked for, and not during the fit."""
        return self.release == "asked"

    def __post_init__(self) -> None:
        one_of("release", self.release, ("asked", "ahead"))
        positive_finite("answer_bound", self.answer_bound)
        integer("cells", self.cells, least=1)
        OneBit.__post_init__(self)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee for all entries together."""
        note = answered_entries(self.verdict_epsilon, self.cells)
        epsilon = self.epsilon
        if self.cells > 1 and math.isfinite(epsilon):
            epsilon = sum_up([self.mean_epsilon, times_up(self.verdict_epsilon, self.cells)])
        return self._promise(facts, "proofs/one_bit_output.md", epsilon=epsilon, notes=(note,))

    def _check_noise(self) -> None:
        laplace_scale(epsilon=self.verdict_epsilon, bound=2 * self.answer_bound)

    def _learn(self, task: Task, session: Session) -> Scorer:
        def complete(data: Interactions) -> CompletedMatrix:
            return CompletedMatrix(*task.factors(task.solve(task.exact_loss(data), show=False)))

        # The exact matrix stays inside the session, which answers for single entries with noise.
        answers = session.mapped(complete).with_stream("answers").laplace()
        vault = Vault(answers, cells=self.cells, bound=self.answer_bound)
        if self.release == "ahead":
            return self._projected(task, vault)
        vault.expect_answers()
        nothing: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        return ReleasedCells(
            users=task.users,
            n_items=task.cells.shape[1],
            above=task.above,
            cells=nothing,
            values=np.zeros(0),
            vault=vault,
        )

    def _projected(self, task: Task, vault: Vault) -> OneBitScorer:
        """Return the projection of noisy entries at public places; all other entries begin at zero."""
        shape, count = task.cells.shape, min(self.cells, task.size)
        places = experiment_generator(0, "entries ahead", *shape).choice(task.size, count, replace=False)
        rows, items = np.divmod(np.sort(places), shape[1])
        noisy = np.zeros(shape)
        noisy[rows, items] = np.clip(vault.release(rows, items), -self.answer_bound, self.answer_bound)
        # The share of entries that were released is the share of the norm that they can have.
        radius = self.answer_bound * math.sqrt(task.size) * count / task.size
        return projected_scorer(task.scorer(LowRank.of_dense(np.zeros(shape))), noisy, radius)


def projected_scorer(base: OneBitScorer, noisy: Floats, radius: float | None) -> OneBitScorer:
    """Return the scorer of a noisy matrix; with a radius, of its projection onto the nuclear-norm ball."""
    matrix = LowRank.of_dense(noisy if radius is None else project_dense(noisy, radius)).with_fixed_signs()
    root = np.sqrt(matrix.values)
    return replace(base, left=matrix.left * root, right=matrix.right * root)
