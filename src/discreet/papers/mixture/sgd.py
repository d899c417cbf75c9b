"""Factor clamped noisy ratings by stochastic gradient descent: a baseline for local models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from discreet.collect.estimate import Collected
from discreet.core import (
    Floats,
    Progress,
    Rows,
    experiment_generator,
    integer,
    non_negative,
    positive_finite,
    require_fit,
)
from discreet.core.exports import Later
from discreet.models import LocalEstimator, Scorer, check_local, factor_scorer
from discreet.solvers import Diverged

if TYPE_CHECKING:
    from discreet.solvers import report_kernels
else:
    report_kernels = Later("discreet.solvers.report_kernels")


_START = 0.1


def descend(
    rows: Rows,
    n_columns: int,
    *,
    factors: int,
    rate: float,
    regularization: float,
    epochs: int,
    seed: int = 0,
    report: Callable[[int], None] = lambda done: None,
) -> tuple[Floats, Floats]:
    """Return row and column factors after `epochs` passes over the entries, each in a new order.

    They start around the value at which every prediction is the middle of a scale from 0 to 1.
    """
    require_fit(rows, n_columns)
    generator = experiment_generator(seed, "gradient descent")
    left, right = (
        np.sqrt(0.5 / factors) + _START * generator.standard_normal((count, factors))
        for count in (rows.n_rows, n_columns)
    )
    row_of = np.repeat(np.arange(rows.n_rows, dtype=np.int32), np.diff(rows.indptr))
    for done in range(epochs):
        order = generator.permutation(rows.values.size)
        report_kernels.gradient_epoch(
            order, row_of, rows.columns, rows.values, rate, regularization, left, right
        )
        report(done + 1)
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise Diverged()
    return left, right


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSgd(LocalEstimator):
    """Perturb each rating with clamped Laplace noise on its own device, then factor by gradient descent.

    Guarantee
        Pure `epsilon` for the value of one rating against anyone, the collector included; which items were
        rated is public (proofs/local_collection.md). n ratings of one user cost n times epsilon.

    Noise
        Laplace noise of scale (high - low) / epsilon, then clamped to the scale (proofs/clamped_laplace.md).

    Parameters:
        epsilon: The loss of one rating.
        factors: The rank.
        rate: The step size, for ratings in units in which the scale is [0, 1].
        regularization: The ridge at every step.
        epochs: Passes over the reports.
        ratings_per_user: A public number of ratings for which the label spells out the guarantee for a user.

    References:
        Berlioz, Friedman, Kaafar, Boreli and Berkovsky, Applying Differential Privacy to Matrix Factorization
        (2015): ISGD.

    Example:
        >>> from discreet import LocalSgd, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = LocalSgd(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/local_collection.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "local-sgd"
    source: ClassVar[str] = "Berlioz et al. 2015"
    noise: ClassVar[str] = "clamped-laplace"

    epsilon: float
    factors: int = 10
    rate: float = 0.01
    regularization: float = 0.02
    epochs: int = 20
    ratings_per_user: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_local(self)
        integer("factors", self.factors, least=1)
        integer("epochs", self.epochs, least=1)
        positive_finite("rate", self.rate)
        non_negative("regularization", self.regularization)

    def _learn(self, collected: Collected, progress: Progress) -> Scorer:
        # The order of steps matters; sorting by id makes it independent of the order of the input.
        order = np.argsort(collected.reports.users.ids, kind="stable")
        reports = collected.reports.select_users(order)
        low, width = collected.mechanism.low, collected.width
        values = ((reports.values - low) / width).astype(np.float32)
        people, items = descend(
            Rows(reports.indptr, reports.items, values),
            reports.n_items,
            factors=self.factors,
            rate=self.rate,
            regularization=self.regularization,
            epochs=self.epochs,
            seed=self.seed,
            report=lambda done: progress(self.name, done, self.epochs),
        )
        # Stochastic steps shrink a vector once per rating; the typical number of ratings is used for all
        # users.
        typical = max(reports.n_ratings / max(reports.n_users, 1), 1.0)
        ridge = width**2 * max(self.regularization, 1e-3) * typical
        return factor_scorer(collected, people[np.argsort(order)], items, ridge, origin=low, unit=width)
