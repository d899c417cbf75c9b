"""Factor ratings by plain stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Floats, Rows, require_fit
from discreet.core.exports import Later
from discreet.core.randomness import experiment_generator
from discreet.solvers.errors import Diverged

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
