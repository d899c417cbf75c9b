"""Compute people's profiles, and what they tell about items, on as many threads as there are."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.grid import Steps
from discreet.contributions.kernels import profiles as profile_kernels
from discreet.contributions.kernels.profiles import Lens, Telling
from discreet.solvers.rows import Rows, require_fit, run, run_over_rows, summed_over_rows


def profile_totals(rows: Rows, lens: Lens) -> Floats:
    """Return for each row the sums that its profile is made of: of vectors and, last, of squares."""
    require_fit(rows, len(lens.vectors))
    out = np.empty((rows.n_rows, lens.vectors.shape[1] + 1))
    run_over_rows(profile_kernels.sum_rows, rows, lens, out)
    return out


def profiles(totals: Floats, lens: Lens) -> Floats:
    """Return the profile of each row, all its items included."""
    out = np.empty((len(totals), lens.vectors.shape[1]))
    run(profile_kernels.place_rows, np.arange(len(totals) + 1), lens, totals, out)
    return out


def told_norms(rows: Rows, lens: Lens, telling: Telling, *, absolute: bool) -> Floats:
    """Return the norm of everything each row tells with weight 1: l1 if `absolute`, else l2."""
    norms, scratch = np.zeros(rows.n_rows), np.zeros(width(lens, telling))
    totals = profile_totals(rows, lens)
    run_over_rows(profile_kernels.told_norms, rows, totals, lens, telling, absolute, scratch, norms)
    return norms


def told_sums(
    rows: Rows, lens: Lens, telling: Telling, *, steps: float, absolute: bool, weights: Floats | None = None
) -> Steps:
    """Return for each item the sum of what its rows tell, in whole steps, cut toward zero.

    Everything one row tells is scaled to norm `steps`, or multiplied by its weight where `weights` are given.
    """
    totals = profile_totals(rows, lens)
    given = np.zeros(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    longest = int(np.diff(rows.indptr).max(initial=1))

    def part(start: int, stop: int) -> tuple[Steps]:
        out = np.zeros((len(lens.vectors), width(lens, telling)), dtype=np.int64)
        scratch = np.zeros((longest, out.shape[1]))
        shared = (rows.indptr, rows.columns, totals, lens, telling, given, steps, absolute, scratch)
        profile_kernels.add_told(start, stop, *shared, out)
        return (out,)

    return summed_over_rows(part, rows.indptr)[0]


def width(lens: Lens, telling: Telling) -> int:
    """Return how many numbers a row tells about an item."""
    return 1 + int(lens.vectors.shape[1]) + len(telling.pairs)
