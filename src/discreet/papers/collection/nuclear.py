"""Recover ratings from reports that hide which items were rated, by nuclear-norm matrix completion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np
from scipy.sparse import csr_array

from discreet.collect.channel_correction import (
    CLEAR,
    CellReader,
    CorrectedCells,
    CorrectedMeans,
    corrected_cells,
    corrected_means,
)
from discreet.collect.estimate import Collected, rho_bound, rho_expected
from discreet.collect.hidden_items import levels_of
from discreet.core import (
    Progress,
    Rows,
    experiment_generator,
    integer,
    non_negative,
    positive_finite,
    predict_cells,
)
from discreet.data import Interactions, PublicFacts
from discreet.models import (
    SWEEPS,
    TOLERANCE,
    CellEstimator,
    LocalScorer,
    RatingScorer,
    Scorer,
    cells_of,
    check_local,
    counted,
    factor_scorer,
    own_ridge,
)
from discreet.privacy.mechanisms.cells import CellMechanism, HiddenNumbers
from discreet.solvers import Recovery, largest_singular, recover

#: Shares of the residual variance that latent factors may explain, tried in this order on held-out reports.
SHARES_TRIED = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
# One report in this many is held out.
_HELD = 10
_SWEEPS_TO_CHOOSE = 30


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNuclear(CellEstimator):
    """Hide on each device which items were rated and how, then recover ratings by inverting the channel.

    The fit debiases each report and weights it by the probability that it comes from a rating. It first fits
    debiased means, and then fits a matrix of least nuclear norm to the residuals. Held-out reports decide how
    much of the residuals latent factors may explain. If they support no factors, the result is the debiased
    means.

    Guarantee
        Pure `epsilon` for whether and how one user rated one item, against anyone, the collector included
        (proofs/local_nuclear.md). A user answers for the whole catalog, so n items cost n times epsilon.

    Noise
        A device answers for every item of the catalog, also an unrated one, from a table in which no two rows
        (no rating, or any rating) differ by more than e^epsilon in any answer.

    Parameters:
        epsilon: The loss of one rating.
        most_columns: The most factors of the recovered matrix.
        seed: Which reports are held out.

    References:
        Zheng, Two Differentially Private Rating Collection Mechanisms for Recommender Systems (2022): the
        mechanisms, and the recovery that this estimator corrects.

    Example:
        >>> from discreet import LocalNuclear, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = LocalNuclear(epsilon=2.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('rating', 'proofs/local_nuclear.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "local-nuclear"
    source: ClassVar[str] = "ours, after Zheng 2022"

    epsilon: float
    most_columns: int = 32
    seed: int = 0
    ratings_per_user: int | None = None

    def __post_init__(self) -> None:
        check_local(self)
        integer("most_columns", self.most_columns, least=1)

    def _learn(self, collected: Collected, progress: Progress) -> Scorer:
        mechanism = cells_of(collected)
        reader = CellReader.of(collected, mechanism)
        means = corrected_means(reader, collected.width)
        found = corrected_cells(reader, means)
        answer = self._residuals(found, collected.reports.n_items, progress)
        return _corrected_scorer(collected, means, answer, found.spread)

    def _residuals(self, found: CorrectedCells, n_items: int, progress: Progress) -> Recovery:
        """Return the recovered residuals; the zero matrix if held-out reports do not ask for more."""
        # The bound that the zero matrix meets.
        nothing = recover(found.cells, n_items, 1.01 * found.rho(0.0))
        if not stands_out(found.cells, n_items, self.seed):
            return nothing
        kept = experiment_generator(self.seed, "held-out reports").integers(_HELD, size=found.own.size) > 0
        best, gain, start = 0.0, 0.0, None
        for number, share in enumerate(SHARES_TRIED):
            part = found.where(kept)
            start = self._recover(part, n_items, share, start, sweeps=_SWEEPS_TO_CHOOSE)
            loss, error = held_out_loss(found.where(~kept).cells, start)
            progress(self.name, number + 1, len(SHARES_TRIED) + 1)
            if loss >= gain:
                break
            if loss < -CLEAR * error:
                best, gain = share, loss
        answer = nothing if best == 0 else self._recover(found, n_items, best, start, sweeps=SWEEPS)
        progress(self.name, len(SHARES_TRIED) + 1, len(SHARES_TRIED) + 1)
        return answer

    def _recover(
        self, found: CorrectedCells, n_items: int, share: float, start: Recovery | None, *, sweeps: int
    ) -> Recovery:
        return recover(
            found.cells,
            n_items,
            found.rho(share),
            tolerance=TOLERANCE,
            sweeps=sweeps,
            most_columns=self.most_columns,
            start=start,
        )


def stands_out(cells: Rows, n_items: int, seed: int) -> bool:
    """Return whether the largest singular value exceeds that of the same residuals with random signs."""
    weights = np.ones_like(cells.values) if cells.weights is None else cells.weights
    slope = (weights * cells.values).astype(np.float64)
    signs = experiment_generator(seed, "signs").choice(np.array([-1.0, 1.0]), size=slope.size)
    real, noise = (
        largest_singular(csr_array((values, cells.columns, cells.indptr), shape=(cells.n_rows, n_items)), 1)
        for values in (slope, slope * signs)
    )
    return bool(real[1][0] > noise[1][0])


def held_out_loss(cells: Rows, answer: Recovery) -> tuple[float, float]:
    """Return the change in weighted squared error on held-out reports, and its standard error."""
    rows = np.repeat(np.arange(cells.n_rows), np.diff(cells.indptr))
    if answer.rank == 0 or cells.weights is None:
        return 0.0, 0.0
    shown = predict_cells(answer.left, answer.right, rows, cells.columns)
    change = cells.weights * ((cells.values - shown) ** 2 - cells.values.astype(np.float64) ** 2)
    return float(change.sum()), math.sqrt(float(np.sum(change**2)))


def _corrected_scorer(
    collected: Collected, means: CorrectedMeans, answer: Recovery, variance: float
) -> LocalScorer:
    mechanism = collected.mechanism
    vectors = np.column_stack([means.people, answer.left])
    device = RatingScorer(
        mean=mechanism.low + collected.width / 2 + means.mean,
        item_bias=means.items,
        item_factors=answer.right,
        ridge=own_ridge(vectors, variance),
        low=mechanism.low,
        high=mechanism.high,
        **counted(collected.item_counts, collected.reports.n_users),
    )
    return LocalScorer.of(collected.reports.users, vectors, device)


# The usual standard deviation of ratings around a low-rank matrix, as a fraction of the scale.
_INTRINSIC = 0.225


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNuclearPlain(CellEstimator):
    """Hide on each device which items were rated and how, then fit the raw reports, as printed.

    The result is the matrix of least nuclear norm within `rho` of all reports. This method doesn't
    distinguish fake ratings from real ratings. Use it only for comparison: `local-nuclear` corrects it.

    Guarantee
        Pure `epsilon` for whether and how one user rated one item, against anyone, the collector included
        (proofs/local_nuclear.md). A user answers for the whole catalog, so n items cost n times epsilon.

    Noise
        A device answers for every item of the catalog, also an unrated one, from a table in which no two rows
        (no rating, or any rating) differ by more than e^epsilon in any answer.

    Parameters:
        epsilon: The loss of one rating.
        rho: The misfit allowed, in stars or half scales; None to compute it.
        gamma: Use the printed bound with this failure probability, which usually makes zero the answer; None
            uses the expected misfit.
        intrinsic: The deviation of ratings from the low-rank truth, in the same unit; None for 0.9 stars of
            five, and the same fraction of any other scale.
        most_columns: The most factors of the recovered matrix.

    References:
        Zheng, Two Differentially Private Rating Collection Mechanisms for Recommender Systems (2022).

    Example:
        >>> from discreet import LocalNuclearPlain, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = LocalNuclearPlain(epsilon=2.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('rating', 'proofs/local_nuclear.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "local-nuclear-plain"
    source: ClassVar[str] = "Zheng 2022"

    epsilon: float
    rho: float | None = None
    gamma: float | None = None
    intrinsic: float | None = None
    most_columns: int = 32
    ratings_per_user: int | None = None

    def __post_init__(self) -> None:
        check_local(self)
        if self.rho is not None:
            positive_finite("rho", self.rho)
        if self.intrinsic is not None:
            non_negative("intrinsic", self.intrinsic)
        if self.gamma is not None:
            positive_finite("gamma", self.gamma)
        integer("most_columns", self.most_columns, least=1)

    def _learn(self, collected: Collected, progress: Progress) -> Scorer:
        mechanism, reports = cells_of(collected), collected.reports
        origin, unit = printed_unit(mechanism, collected.facts)
        values = ((reports.values - origin) / unit).astype(np.float32)
        intrinsic = _INTRINSIC * collected.width / unit if self.intrinsic is None else self.intrinsic
        rho = self._misfit(reports, mechanism, intrinsic) if self.rho is None else self.rho
        answer = recover(
            Rows(reports.indptr, reports.items, values),
            reports.n_items,
            rho,
            tolerance=TOLERANCE,
            sweeps=SWEEPS,
            most_columns=self.most_columns,
        )
        progress(self.name, 1, 1)
        ridge = own_ridge(answer.left, (unit * intrinsic) ** 2)
        return factor_scorer(collected, answer.left, answer.right, ridge, origin=origin, unit=unit)

    def _misfit(self, reports: Interactions, mechanism: CellMechanism, intrinsic: float) -> float:
        """Return rho; the number of ratings is estimated from the reports without bias."""
        people, items = reports.n_users, reports.n_items
        cells = people * items
        rated = (reports.n_ratings - mechanism.fake * cells) / (mechanism.keep - mechanism.fake)
        misfit = partial(
            rho_expected if self.gamma is None else partial(rho_bound, gamma=self.gamma),
            people=people,
            items=items,
            rated=min(max(rated, 0.0), cells),
        )
        return misfit(mechanism, intrinsic=intrinsic)


def printed_unit(mechanism: CellMechanism, facts: PublicFacts) -> tuple[float, float]:
    """Return origin and unit of the paper's numbers: stars 1, ..., d, or the scale as [-1, 1]."""
    levels = levels_of(facts)
    if isinstance(mechanism, HiddenNumbers) or levels is None:
        return mechanism.middle, (mechanism.high - mechanism.low) / 2
    step = (mechanism.high - mechanism.low) / (levels - 1)
    return mechanism.low - step, step
