"""The common parts of the four one-bit estimators: settings, what they ask a session for, the solver.

Fields of a query are public or released numbers. Binary ratings are private, so they are computed from the
data inside each query. One rating changes one number of each query, by no more than the bound of its part.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core import (
    Floats,
    PrivacyRandom,
    Progress,
    finite,
    integer,
    non_negative,
    one_algebra_thread,
    one_of,
    positive,
    positive_finite,
    probability,
    require,
)
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.models import Estimator, OneBitScorer, Scorer, binary_ratings, counted, public_threshold
from discreet.privacy import (
    Assumption,
    Basis,
    Fact,
    Guarantee,
    Kind,
    Neighbors,
    Session,
    Trust,
    Unit,
    assumptions_of,
    left_over,
    pure_event,
)
from discreet.privacy.mechanisms.additive import laplace_scale
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.solvers import (
    LINKS,
    BoundedNuclearBall,
    Domain,
    Link,
    LowRank,
    NothingToLearn,
    NuclearBall,
    ObservedEntries,
    OneBitLoss,
    Oracle,
    curvature_at_0,
    minimize,
    walk,
)
from discreet.statistics import ExactNumbers, Norm, Part, RatingShares

# Up to this many entries the matrix is dense and all entries are bounded; above, predictions are clipped.
DENSE_CELLS = 40_000
_WHAT = "completing the matrix"


def check_completion(settings: Any) -> None:
    """Check the settings that all one-bit estimators share, also the printed ones."""
    positive("epsilon", settings.epsilon)
    one_of("link", settings.link, LINKS)
    positive_finite("bound", settings.bound)
    positive_finite("tolerance", settings.tolerance)
    if settings.radius is not None:
        positive_finite("radius", settings.radius)
    if settings.above is not None:
        finite("above", settings.above)
    integer("iterations", settings.iterations, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneBit(Estimator):
    """Complete a matrix of binary ratings; concrete estimators say where the noise enters.

    Parameters:
        epsilon: The guarantee; `math.inf` fits without noise.
        link: The function from a score to the probability of a +1.
        scale: The score at which the link has its unit argument.
        bound: The largest |score|.
        radius: The largest nuclear norm; by default sqrt(users * items), times the share of information that
            the noise leaves.
        leveling: The power of their (public) counts by which rows and columns are scaled inside the nuclear
            norm; it reduces the influence of users and items with many ratings. 0 is the plain norm.
        above: Ratings above this are +1; by default five eighths up the public scale.
        mean_share: Instead of `above`, spend this share of epsilon on the mean rating and use the mean.
        iterations: The largest number of solver steps.
        tolerance: The solver stops when a step is expected to improve the objective by less than this share.
    """

    feedback = "binary"
    source: ClassVar[str] = "Li et al., One-bit matrix completion with differential privacy"

    epsilon: float
    link: Link = "logistic"
    scale: float = 1.0
    bound: float = 1.0
    radius: float | None = None
    leveling: float = 0.25
    above: float | None = None
    mean_share: float = 0.0
    iterations: int = 100
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        check_completion(self)
        positive_finite("scale", self.scale)
        non_negative("leveling", self.leveling)
        probability("mean_share", self.mean_share)
        require(self.mean_share < 1, "mean_share", self.mean_share, must="leave something for the ratings")
        if self.above is not None:
            require(self.mean_share == 0, "above", self.above, must="be None with a mean_share")
        if math.isfinite(self.epsilon):
            # Settings that allow no noise are rejected here, before budget is spent.
            self._check_noise()
            if self.mean_share:
                laplace_scale(epsilon=self.mean_epsilon, bound=1.0)

    @property
    def mean_epsilon(self) -> float:
        """Return the epsilon of the mean."""
        return self.epsilon * self.mean_share if self.mean_share else 0.0

    @property
    def verdict_epsilon(self) -> float:
        """Return the epsilon left for the ratings; with the mean's it is never more than epsilon."""
        if not self.mean_share or math.isinf(self.epsilon):
            return self.epsilon
        return left_over(self.epsilon, self.mean_epsilon)

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return one pure event for all releases of the fit."""
        promise = self.promise(facts)
        return () if math.isinf(promise.epsilon) else (pure_event(promise.epsilon),)

    def _promise(
        self,
        facts: PublicFacts,
        proof: str,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        trust: Trust = Trust.CENTRAL,
        notes: tuple[str, ...] = (),
    ) -> Guarantee:
        above = public_threshold(facts, self.above)
        threshold = Assumption.of(Kind.DECLARED, Fact.THRESHOLD, threshold=above)
        if self.mean_share:
            threshold = Assumption.of(Kind.SELECTED, Fact.THRESHOLD)
        public = (Assumption.of(Kind.DECLARED, fact) for fact in (Fact.PARTICIPATION, Fact.RATED_ITEMS))
        return Guarantee(
            epsilon=self.epsilon if epsilon is None else epsilon,
            delta=0.0 if math.isinf(self.epsilon) else delta,
            unit=Unit.VALUE,
            neighbors=Neighbors.REPLACE,
            trust=trust,
            assumes=(*assumptions_of(facts), *public, threshold),
            notes=notes,
            basis=Basis.PROVED,
            proof=proof,
        )

    @abstractmethod
    def _check_noise(self) -> None:
        """Raise if no noise fits these settings at a finite epsilon."""

    @abstractmethod
    def _learn(self, task: Task, session: Session) -> Scorer:
        """Learn with noise from what the mean left of the budget; `epsilon` is finite here."""

    def _information(self) -> float:
        """Return the share of the information about a score of 0 that the noise leaves."""
        return 1.0

    def _mean(self, session: Session) -> float:
        """Return the mean rating, released for the mean's part of the budget."""
        return released_mean(session.laplace(epsilon=self.mean_epsilon), local=False)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        pattern = session.pattern()
        if pattern.n_ratings == 0:
            raise NothingToLearn()
        above = public_threshold(session.facts, self.above)
        if self.mean_share:
            above = self._mean(session)
        information = 1.0 if math.isinf(self.epsilon) else self._information()
        task = Task(self, pattern, above, information, progress)
        if math.isinf(self.epsilon):
            return task.scorer(task.solve(task.exact_loss(session.rows())))
        return self._learn(task, session)


@final
class Task:
    """The public part of one fit: which entries were observed, the threshold, and the solver's domain."""

    __slots__ = ("_domain", "_levels", "_progress", "_settings", "above", "cells", "users")

    def __init__(
        self,
        settings: OneBit,
        pattern: Interactions,
        above: float,
        information: float,
        progress: Progress,
    ) -> None:
        self._settings, self._progress = settings, progress
        self.above, self.users = above, pattern.users
        self.cells = ObservedEntries(pattern.indptr, pattern.items, pattern.n_items)
        self._levels = tuple(
            _levels(counts, settings.leveling)
            for counts in (self.cells.row_counts(), self.cells.column_counts())
        )
        self._domain = self._build_domain(information)

    @property
    def size(self) -> int:
        """Return the number of entries of the whole matrix."""
        return self.cells.shape[0] * self.cells.shape[1]

    def exact_loss(self, data: Interactions) -> OneBitLoss:
        """Return the loss of the exact binary ratings of data; it is as private as they are."""
        verdicts = binary_ratings(data, self.above)
        return OneBitLoss(verdicts=verdicts, link=self._settings.link, scale=self._settings.scale)

    def solve(self, loss: OneBitLoss, *, show: bool = True) -> LowRank:
        """Minimize the loss; `show` reports the number of steps, so pass it only where that is not secret."""
        self._progress(_WHAT, 0, 1)
        with one_algebra_thread():
            solution = minimize(
                loss,
                self._domain,
                first_length=self.length(),
                iterations=self._settings.iterations,
                tolerance=self._settings.tolerance,
                report=self._report() if show else None,
            )
        self._progress(_WHAT, 1, 1)
        return solution.matrix

    def walk(self, oracle: Oracle, steps: int, *, spectral: bool = False) -> LowRank:
        """Take a fixed number of steps along the oracle's gradients."""
        with one_algebra_thread():
            return walk(
                oracle,
                self._domain,
                length=self.length(),
                steps=steps,
                spectral=spectral,
                report=self._report(),
            )

    def length(self) -> float:
        """Return the step size from public numbers: larger where fewer entries are observed."""
        density = self.cells.size / self.size
        return 1 / (curvature_at_0(self._settings.link, self._settings.scale) * math.sqrt(density))

    def factors(self, matrix: LowRank) -> tuple[Floats, Floats]:
        """Return both factors, singular values split evenly between them, without the leveling."""
        fixed, (rows, columns) = matrix.with_fixed_signs(), self._levels
        root = np.sqrt(fixed.values)
        return fixed.left * root / rows[:, None], fixed.right * root / columns[:, None]

    def scorer(self, matrix: LowRank) -> OneBitScorer:
        """Return the scorer of a matrix that may be published."""
        left, right = self.factors(matrix)
        return OneBitScorer(
            users=Vocabulary.of(self.users.series),
            left=left,
            right=right,
            bound=self._settings.bound,
            link=self._settings.link,
            scale=self._settings.scale,
            above=self.above,
            **counted(np.bincount(self.cells.columns, minlength=self.cells.shape[1]), self.cells.shape[0]),
        )

    def _build_domain(self, information: float) -> Domain[Any]:
        rows, columns = self._levels
        radius = self._settings.radius
        if radius is None:
            radius = self._settings.scale * math.sqrt(self.size) * information
        weights = 1 / (rows[self.cells.rows] * columns[self.cells.columns])
        if self.size > DENSE_CELLS:
            return NuclearBall(cells=self.cells, radius=radius, weights=weights)
        limits = self._settings.bound * np.outer(rows, columns)
        return BoundedNuclearBall(cells=self.cells, radius=radius, limits=limits, weights=weights)

    def _report(self) -> Callable[[int, int], None]:
        return lambda done, total: self._progress(_WHAT, done, total)


def _levels(counts: npt.NDArray[np.int64], power: float) -> Floats:
    """Return the scale of every row or column from its count, with a mean square of 1."""
    levels = np.power(counts + 1.0, power, dtype=np.float64)
    return np.asarray(levels / math.sqrt(float(np.mean(levels**2))), dtype=np.float64)


# Queries.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FlippedRatings:
    """Each binary rating, flipped with a known probability on its user's device."""

    name: ClassVar[str] = "sign-flip"
    of: ClassVar[str] = "rating"

    flip: SignFlip
    above: float

    @property
    def epsilon(self) -> float:
        """Return the epsilon of one binary rating."""
        return self.flip.epsilon

    def over(self, data: Interactions, random: PrivacyRandom, /) -> npt.NDArray[np.int8]:
        """Return the flipped ratings."""
        return self.flip.release(binary_ratings(data, self.above), random)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTerm:
    """The slope that a -1 adds to the logistic loss of a +1: 1 / scale for each disliked item, or 0."""

    size: int
    above: float
    scale: float
    bound: float

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number per rating; `bound` is 1 / scale with its rounding."""
        return (Part("linear term", (self.size,), norm="l1", bound=self.bound, of="rating"),)

    def over(self, data: Interactions, /) -> ExactNumbers:
        """Return the exact slopes."""
        return ExactNumbers((binary_ratings(data, self.above) < 0) / self.scale)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClampedGradient:
    """The gradient of the loss in each observed entry, clamped; one rating moves one entry by 2 `clamp`."""

    scores: Floats
    above: float
    link: Link
    scale: float
    clamp: float
    norm: Norm

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number per rating; l1 and l2 norm of a change of one number are the same."""
        return (Part("gradient", self.scores.shape, norm=self.norm, bound=2 * self.clamp, of="rating"),)

    def over(self, data: Interactions, /) -> ExactNumbers:
        """Return the exact clamped gradient."""
        loss = OneBitLoss(verdicts=binary_ratings(data, self.above), link=self.link, scale=self.scale)
        return ExactNumbers(np.clip(loss.gradient(self.scores), -self.clamp, self.clamp))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RatingPositions:
    """The position of each rating on the scale, from 0 to 1, before noise is added to every one of them."""

    size: int
    low: float
    width: float

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number per rating."""
        return (Part("positions", (self.size,), norm="l1", of="rating"),)

    def over(self, data: Interactions, /) -> ExactNumbers:
        """Return the exact positions."""
        return ExactNumbers(np.clip((data.values.astype(np.float64) - self.low) / self.width, 0.0, 1.0))


def released_mean(session: Session, *, local: bool) -> float:
    """Return the mean rating for all of a pure session's budget; how many ratings there are is public.

    With `local` every rating is noised before it is added up, so that not even the collector sees it.
    """
    low, width = session.facts.low, session.facts.high - session.facts.low
    size = session.pattern().n_ratings
    if local:
        found = session.release(RatingPositions(size=size, low=low, width=width), Fraction(1))
    else:
        found = session.release(RatingShares(low=low, width=width), Fraction(1))
    return mean_on_scale(float(found.values.sum()), size, low, width)


def mean_on_scale(total: float, count: int, low: float, width: float) -> float:
    """Return the mean rating of a noisy sum of positions."""
    return low + width * min(max(total / count, 0.0), 1.0)
