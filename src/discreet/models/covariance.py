"""Two methods that Frank-Wolfe was compared with, in the same frame: one covariance, and projected steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet.checks import integer, positive_finite
from discreet.data.interactions import Interactions, PublicFacts
from discreet.models.base import Estimator, check_budget, joint_promise
from discreet.models.biases import SHARES, TYPICAL_RESIDUAL, USER_RIDGE
from discreet.models.directions import centered, item_factor, leading, release_moment
from discreet.models.factor_scorers import LinearRatings, rows_of
from discreet.models.frank_wolfe import BIAS_SHARE, MOST_ROUNDS, affordable_rounds
from discreet.models.progress import Progress
from discreet.models.scorers import Floats, Scorer
from discreet.privacy.gaussian import gaussian_multiplier, split_gaussian
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.randomness import PrivacyRandom
from discreet.solvers.projection import Projection, advance, begin, bounded_moment, project_moment
from discreet.solvers.rows import Rows, residuals
from discreet.solvers.second_moment import own_places

# How far people's ratings may lie from the centered prediction, in units of half the scale.
_CLAMP = 0.5
# Without a declared cap a row is bounded as if it held this many ratings.
_USUAL_LENGTH = 100
# How large the entries of the completed matrix are taken to be when the nuclear ball is sized.
_TYPICAL_ENTRY = 0.3


def _shared(epsilon: float, delta: float, rounds: int) -> tuple[float, tuple[float, ...]]:
    """Return the multipliers of the biases and of equally noisy rounds after them."""
    if math.isinf(epsilon):
        return 0.0, (0.0,) * rounds
    weights = [BIAS_SHARE, *([(1 - BIAS_SHARE) / rounds] * rounds)]
    biases, *each = split_gaussian(gaussian_multiplier(epsilon, delta), weights)
    return biases, tuple(each)


def _events(epsilon: float, delta: float, rounds: int) -> Sequence[Any]:
    if math.isinf(epsilon):
        return ()
    biases, each = _shared(epsilon, delta, rounds)
    multipliers = (*split_gaussian(biases, SHARES), *each)
    return [Gaussian(sigma=multiplier, l2_sensitivity=1.0).event() for multiplier in multipliers]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceSvd(Estimator):
    """Factor ratings by the leading directions of one noisy covariance between items.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else (proofs/covariance_svd.md). Three releases of the biases and one matrix.

    Parameters:
        factors: At most so many directions are kept; those that noise alone could have made never are.

    References:
        McSherry, Mironov. Differentially private recommender systems. KDD 2009. They protect single ratings;
        here rows are scaled to length 1, which protects people.
    """

    name: ClassVar[str] = "covariance-svd"
    source: ClassVar[str] = "McSherry and Mironov 2009, at user level"

    epsilon: float
    delta: float = 1e-6
    factors: int = 20

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        integer("factors", self.factors, least=1)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise; it depends on epsilon and delta alone."""
        return joint_promise(self, facts, "proofs/covariance_svd.md")

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the four Gaussian releases."""
        return _events(self.epsilon, self.delta, 1)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        biases, (multiplier,) = _shared(self.epsilon, self.delta, 1)
        view = centered(data, biases, random, progress)
        told = view.told(np.zeros((data.n_items, 0)), clamp=_CLAMP)
        found = leading(release_moment(told, multiplier, random), multiplier, self.factors)
        progress("covariance-svd", 1, 1)
        columns = [item_factor(one, view.look) for one in found]
        factors = np.column_stack(columns) if columns else np.zeros((data.n_items, 0))
        return view.scorer(factors, data.facts, {"directions kept": len(columns)})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedGradientScorer(LinearRatings):
    """Repeat the projected steps on a person's own row: move by the own errors, apply the published map."""

    kind: ClassVar[str] = "projected-gradient"
    provenance: ClassVar[Mapping[str, str]] = {
        "item_bias": "computed from noisy releases only (none if the label says NOT PRIVATE)",
        "bases": "computed from noisy releases only (none if the label says NOT PRIVATE)",
        "kept": "computed from noisy releases only (none if the label says NOT PRIVATE)",
        "ranks": "how many columns of the bases belong to each round; from noisy releases only",
    }

    bases: Floats
    kept: Floats
    ranks: npt.NDArray[np.int64]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return item biases and the maps of all rounds side by side."""
        return {"item_bias": self.item_bias, "bases": self.bases, "kept": self.kept, "ranks": self.ranks}

    def settings(self) -> dict[str, Any]:
        """Return the mean and the scale."""
        return {"mean": self.mean, "low": self.low, "high": self.high}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Build the scorer again."""
        return cls(
            item_bias=arrays["item_bias"],
            bases=arrays["bases"],
            kept=arrays["kept"],
            ranks=arrays["ranks"],
            **settings,
        )

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each person's own bias and place on the last basis."""
        offsets = self.mean + self.item_bias
        rows, own = _own_residuals(rows_of(histories), offsets)
        state = begin(rows, offsets.size)
        for projection in self._projections():
            state = advance(rows, state, projection)
        return np.column_stack([own, state.places])

    def item_vectors(self) -> Floats:
        """Return the last basis."""
        return self._design()[:, 1:] if self.ranks.size and self.ranks[-1] else Scorer.item_vectors(self)

    def _projections(self) -> list[Projection]:
        cuts = np.cumsum(self.ranks)[:-1]
        bases, kept = np.split(self.bases, cuts, axis=1), np.split(self.kept, cuts)
        return [Projection(np.ascontiguousarray(b), k) for b, k in zip(bases, kept, strict=True)]

    def _design(self) -> Floats:
        return np.column_stack([np.ones(self.item_bias.size), self._projections()[-1].basis])


def _own_residuals(rows: Rows, offsets: Floats) -> tuple[Rows, Floats]:
    """Return the rows less the offsets and each person's own shrunken mean, and that mean."""
    own = own_places(rows, offsets, np.zeros((offsets.size, 0)), np.array([USER_RIDGE]))
    left = residuals(rows, own, np.ones((offsets.size, 1)), np.zeros(rows.n_rows), offsets)
    return rows._replace(values=left.astype(np.float32)), own[:, 0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedGradient(Estimator):
    """Complete the matrix by noisy projections onto a nuclear-norm ball; each person holds their own row.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else (proofs/projected_gradient.md). Three releases of the biases, and one matrix a
        round.

    Parameters:
        rounds: How many gradient steps are taken; by default by the public rule of `FrankWolfe`, at least
            one.
        factors: At most so many directions are kept a round.
        radius: The nuclear norm allowed, in units of the ratings; by default from how many people (as
            released) and items there are.
        row_bound: Rows longer than this, in units of the ratings, are shortened; by default from the scale
            and the declared cap on ratings a person.

    References:
        Cai, Candès, Shen. A singular value thresholding algorithm for matrix completion. SIOPT 2010.
    """

    name: ClassVar[str] = "projected-gradient"
    source: ClassVar[str] = "baseline of Jain, Thakkar and Thakurta 2018"

    epsilon: float
    delta: float = 1e-6
    rounds: int | None = None
    factors: int = 20
    radius: float | None = None
    row_bound: float | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        integer("factors", self.factors, least=1)
        if self.rounds is not None:
            integer("rounds", self.rounds, least=1, most=1000)
        for name in ("radius", "row_bound"):
            if getattr(self, name) is not None:
                positive_finite(name, getattr(self, name))

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise; it depends on epsilon and delta alone."""
        return joint_promise(self, facts, "proofs/projected_gradient.md")

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return three Gaussian releases of the biases and one a round."""
        return _events(self.epsilon, self.delta, self._rounds(facts))

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        biases, multipliers = _shared(self.epsilon, self.delta, self._rounds(data.facts))
        view = centered(data, biases, random, progress)
        half, d = view.look.half, data.n_items
        bound = self._row_bound(data.facts) / half
        radius = (
            _TYPICAL_ENTRY * math.sqrt(view.look.people * d) if self.radius is None else self.radius / half
        )
        rows, _ = _own_residuals(view.rows, view.offsets)
        state, maps = begin(rows, d), []
        for number, multiplier in enumerate(multipliers):
            moment = bounded_moment(rows, state, bound)
            if multiplier:
                moment = Gaussian(sigma=multiplier, l2_sensitivity=1.0).release_symmetric(moment, random)
            edge = multiplier * math.sqrt(2 * d) * bound**2
            maps.append(project_moment(moment * bound**2, radius=radius, noise=edge, most=self.factors))
            state = advance(rows, state, maps[-1])
            progress("projected-gradient", number + 1, len(multipliers))
        return ProjectedGradientScorer(
            mean=view.look.middle + half * view.look.mean,
            item_bias=half * (view.offsets - view.look.mean),
            bases=np.column_stack([one.basis for one in maps]),
            kept=np.concatenate([one.kept for one in maps]),
            ranks=np.array([one.kept.size for one in maps], dtype=np.int64),
            low=data.facts.low,
            high=data.facts.high,
        )

    def _rounds(self, facts: PublicFacts) -> int:
        if self.rounds is not None:
            return self.rounds
        if math.isinf(self.epsilon):
            return MOST_ROUNDS
        return max(1, affordable_rounds(facts, gaussian_multiplier(self.epsilon, self.delta)))

    def _row_bound(self, facts: PublicFacts) -> float:
        if self.row_bound is not None:
            return self.row_bound
        length = facts.max_per_user or _USUAL_LENGTH
        return TYPICAL_RESIDUAL * (facts.high - facts.low) / 2 * math.sqrt(length)
