"""Recover ratings from reports that hide what was rated, taking them at their word, as printed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np

from discreet.checks import integer, non_negative, positive_finite
from discreet.collect.catalog.choosing import levels_of
from discreet.collect.catalog.rho import rho_bound, rho_expected
from discreet.collect.estimate import Collected
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.local.cells import PINNED, SWEEPS, TOLERANCE, CellEstimator, cells_of, own_ridge
from discreet.models.local.estimator import check_local
from discreet.models.progress import Progress
from discreet.models.scorers.counts import counted
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.reports import LocalScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.mechanisms.cells import CellMechanism, HiddenNumbers
from discreet.solvers.low_rank.nuclear import recover
from discreet.solvers.rows import Rows

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
        ('cell', 'proofs/local_nuclear.md')
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
