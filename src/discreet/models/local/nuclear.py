"""Recover ratings from reports that hide what was rated, by nuclear-norm completion."""

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
from discreet.core.checks import integer, non_negative, positive_finite
from discreet.core.progress import Progress
from discreet.core.randomness import experiment_generator
from discreet.core.rows import Rows, predict_cells
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.local.estimator import (
    PINNED,
    SWEEPS,
    TOLERANCE,
    CellEstimator,
    cells_of,
    check_local,
    own_ridge,
)
from discreet.models.scorers.counts import counted
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.local import LocalScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.mechanisms.cells import CellMechanism, HiddenNumbers
from discreet.solvers.low_rank.nuclear import Recovery, largest_singular, recover

#: Shares of what means leave of ratings that may be taste, tried from the least on held-out reports.
TASTES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
# One report in this many is held out.
_HELD = 10
_SWEEPS_TO_CHOOSE = 30


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNuclear(CellEstimator):
    """Hide on each device what was rated and how, then recover ratings through the inverted channel.

    Reports are inverted cell by cell without bias and weighted by the probability that they stand for a
    rating; debiased means come first, and the least nuclear norm is sought for what they leave. How much of
    it may be taste is decided on held-out reports; where they show none, or not even what items are worth,
    the answer is the debiased means.

    Guarantee
        Pure `epsilon` for whether and how one person rated one item, against anyone, the collector included
        (proofs/local_nuclear.md). A person answers for the whole catalog, so n items cost n times epsilon.

    Noise
        Every cell of the catalog answers, also an empty one, from a table in which no two rows (no rating, or
        any rating) differ by more than e^epsilon in any answer.

    Parameters:
        epsilon: The loss of one cell.
        most_columns: The most factors of the recovered matrix.
        seed: Which reports are held out.

    References:
        Zheng, Two Differentially Private Rating Collection Mechanisms for Recommender Systems (2022): the
        mechanisms and the recovery that this corrects.

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
        answer = self._taste(found, collected.reports.n_items, progress)
        return _corrected_scorer(collected, means, answer, found.spread)

    def _taste(self, found: CorrectedCells, n_items: int, progress: Progress) -> Recovery:
        """Return the recovered residuals; the zero matrix if held-out reports do not ask for more."""
        # Means that leave everything to chance: zero fits.
        nothing = recover(found.cells, n_items, 1.01 * found.rho(0.0))
        if not stands_out(found.cells, n_items, self.seed):
            return nothing
        kept = experiment_generator(self.seed, "held-out reports").integers(_HELD, size=found.own.size) > 0
        best, gain, start = 0.0, 0.0, None
        for place, taste in enumerate(TASTES):
            part = found.where(kept)
            start = self._recover(part, n_items, taste, start, sweeps=_SWEEPS_TO_CHOOSE)
            loss, error = held_out_loss(found.where(~kept).cells, start)
            progress(self.name, place + 1, len(TASTES) + 1)
            if loss >= gain:
                break
            if loss < -CLEAR * error:
                best, gain = taste, loss
        answer = nothing if best == 0 else self._recover(found, n_items, best, start, sweeps=SWEEPS)
        progress(self.name, len(TASTES) + 1, len(TASTES) + 1)
        return answer

    def _recover(
        self, found: CorrectedCells, n_items: int, taste: float, start: Recovery | None, *, sweeps: int
    ) -> Recovery:
        return recover(
            found.cells,
            n_items,
            found.rho(taste),
            tolerance=TOLERANCE,
            sweeps=sweeps,
            most_columns=self.most_columns,
            start=start,
        )


def stands_out(cells: Rows, n_items: int, seed: int) -> bool:
    """Tell whether any direction is stronger than in the same residuals with random signs."""
    weights = np.ones_like(cells.values) if cells.weights is None else cells.weights
    slope = (weights * cells.values).astype(np.float64)
    signs = experiment_generator(seed, "signs").choice(np.array([-1.0, 1.0]), size=slope.size)
    real, noise = (
        largest_singular(csr_array((values, cells.columns, cells.indptr), shape=(cells.n_rows, n_items)), 1)
        for values in (slope, slope * signs)
    )
    return bool(real[1][0] > noise[1][0])


def held_out_loss(cells: Rows, answer: Recovery) -> tuple[float, float]:
    """Return how the answer changes the weighted squares of held-out cells, and the standard error."""
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


# How far ratings usually lie from what a low-rank matrix explains, as a part of the scale.
_INTRINSIC = 0.225


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNuclearPlain(CellEstimator):
    """Hide on each device what was rated and how, then take reports at their word, as printed.

    The matrix of least nuclear norm within `rho` of all reports; pretended ratings are not told from real
    ones. Kept to compare with; local-nuclear mends it.

    Guarantee
        Pure `epsilon` for whether and how one person rated one item, against anyone, the collector included
        (proofs/local_nuclear.md). A person answers for the whole catalog, so n items cost n times epsilon.

    Noise
        Every cell of the catalog answers, also an empty one, from a table in which no two rows (no rating, or
        any rating) differ by more than e^epsilon in any answer.

    Parameters:
        epsilon: The loss of one cell.
        rho: The misfit allowed, in stars or half scales; None to compute it.
        gamma: Take the printed bound that fails this often, which most often makes zero the answer; None for
            the misfit that is to be expected.
        intrinsic: How far ratings lie from the low-rank truth, in the same unit; None for 0.9 stars of five,
            and as large a part of any other scale.
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
        device = RatingScorer(
            mean=origin,
            item_bias=np.zeros(reports.n_items),
            item_factors=unit * answer.right,
            ridge=np.append(PINNED, own_ridge(answer.left, (unit * intrinsic) ** 2)),
            low=mechanism.low,
            high=mechanism.high,
            **counted(collected.item_counts, collected.reports.n_users),
        )
        vectors = np.column_stack([np.zeros(reports.n_users), answer.left])
        return LocalScorer.of(reports.users, vectors, device)

    def _misfit(self, reports: Interactions, mechanism: CellMechanism, intrinsic: float) -> float:
        """Return rho; the number of rated cells is read off the reports without bias."""
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
