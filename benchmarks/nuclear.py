"""Time nuclear-norm recovery against cvxpy, and a solve of the size of MovieLens 100K.

    python benchmarks/nuclear.py --json

Small: 50 x 40, rank 3, half of the cells observed with noise, rho the length of the noise. Both sides solve
the same problem; cvxpy uses SCS, its default for this cone. `ratio` is our median processor time over theirs,
each the least of three runs; `difference` is how far the two matrices are apart as a share of their norm.
Large: 943 x 1,682 with every cell's randomized response at epsilon = 0.5 (75 % of the empty cells come back
as ratings): the residuals of the debiased means, weighted as local-nuclear weighs them, and the reports as
the paper takes them, unweighted.

`--stream` also streams 10,000 devices over 10,000 items and prints the peak memory at each quarter.
"""

from __future__ import annotations

import math
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import harness
import numpy as np
from scipy.sparse import csr_array

from discreet.collect.channel_correction import CellReader, corrected_cells, corrected_means
from discreet.collect.collector import CatalogTotals
from discreet.collect.device import CatalogDevice, collect_cells
from discreet.collect.estimate import rho_expected
from discreet.collect.hidden_items import CatalogCampaign
from discreet.core.arrays import Rows
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.cells import HiddenStars
from discreet.solvers.low_rank.nuclear import recover

TOLERANCE = 4e-4


def small(seed: int) -> tuple[Rows, np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 40))
    mask = rng.random((50, 40)) < 0.5
    values = np.where(mask, truth + 0.5 * rng.normal(size=truth.shape), 0.0)
    cells = csr_array(values)
    rho = float(np.linalg.norm((values - truth)[mask]))
    stored = Rows(
        cells.indptr.astype(np.int64), cells.indices.astype(np.int32), cells.data.astype(np.float32)
    )
    return stored, values, mask.astype(float), rho


def quickest(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time of three runs, and the answer."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        answer = action()
        times.append(time.process_time() - begin)
    return min(times), answer


def by_cvxpy(values: np.ndarray, mask: np.ndarray, rho: float) -> tuple[np.ndarray, float]:
    import cvxpy

    matrix = cvxpy.Variable((50, 40))
    fits = cvxpy.norm(cvxpy.multiply(mask, matrix - values), "fro") <= rho
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(matrix)), [fits])
    problem.solve(solver="SCS")
    return matrix.value, float(problem.value)


def against_cvxpy(runs: int) -> dict[str, float]:
    ours, theirs, apart, norms = [], [], [], []
    for seed in range(runs):
        cells, values, mask, rho = small(seed)
        seconds, answer = quickest(partial(recover, cells, 40, rho, tolerance=TOLERANCE))
        ours.append(seconds)
        seconds, (matrix, norm) = quickest(partial(by_cvxpy, values, mask, rho))
        theirs.append(seconds)
        apart.append(float(np.linalg.norm(answer.left @ answer.right.T - matrix) / np.linalg.norm(matrix)))
        norms.append(abs(answer.nuclear_norm - norm) / norm)
    return {
        "ratio": statistics.median(ours) / statistics.median(theirs),
        "ours_seconds": statistics.median(ours),
        "cvxpy_seconds": statistics.median(theirs),
        "difference": max(apart),
        "norm_difference": max(norms),
    }


def ratings(m: int, n: int, count: int) -> Interactions:
    """Return ratings with popular items, active people and a rank of 4."""
    rng = np.random.default_rng(0)
    odds = np.outer(rng.exponential(size=m) + 0.1, (np.arange(n) + 20.0) ** -1.0)
    chosen = rng.random((m, n)) < np.minimum(odds * count / odds.sum(), 0.9)
    rows, items = np.nonzero(chosen)
    taste = rng.normal(size=(m, 4)) @ rng.normal(size=(4, n)) / 2
    values = np.clip(np.rint(3.5 + 0.4 * rng.normal(size=n)[items] + taste[rows, items]), 1, 5)
    return Interactions.from_arrays(
        rows,
        items,
        values,
        facts=PublicFacts(n_items=n, low=1, high=5, step=1),
        people=Vocabulary.of(range(m)),
        catalog=Vocabulary.of(range(n)),
    )


def large(data: Interactions) -> dict[str, float]:
    mechanism = HiddenStars(epsilon=0.5)
    collected = collect_cells(data, mechanism, PrivacyRandom.simulate(1))
    reports = collected.reports
    begin = time.perf_counter()
    reader = CellReader.of(collected, mechanism)
    found = corrected_cells(reader, corrected_means(reader, 4.0))
    prepared = time.perf_counter() - begin
    begin = time.perf_counter()
    corrected = recover(found.cells, data.n_items, found.rho(0.2), tolerance=2e-3, sweeps=90, most_columns=32)
    weighted = time.perf_counter() - begin
    rho = rho_expected(
        mechanism, people=data.n_users, items=data.n_items, rated=data.n_ratings, intrinsic=0.9
    )
    begin = time.perf_counter()
    plain = recover(
        Rows(reports.indptr, reports.items, reports.values),
        data.n_items,
        rho,
        tolerance=2e-3,
        sweeps=90,
        most_columns=32,
    )
    return {
        "cells": data.n_users * data.n_items,
        "reports": reports.n_ratings,
        "means_seconds": prepared,
        "corrected_seconds": weighted,
        "corrected_gap": corrected.gap,
        "plain_seconds": time.perf_counter() - begin,
        "plain_gap": plain.gap,
        "plain_rank": plain.rank,
    }


def stream(devices: int, items: int) -> dict[str, object]:
    campaign = CatalogCampaign(
        name="stream", mechanism=HiddenStars(epsilon=6.0), catalog=Vocabulary.of(range(items))
    )
    totals, random, rng = CatalogTotals(campaign), PrivacyRandom.simulate(1), np.random.default_rng(0)
    peaks, sent, begin = [], 0, time.perf_counter()
    tracemalloc.start()
    for number in range(devices):
        history = dict.fromkeys(rng.integers(0, items, 60).tolist(), 4.0)
        raw = CatalogDevice(campaign, random=random).message(history)
        sent += len(raw)
        totals.receive(raw)
        if (number + 1) % math.ceil(devices / 4) == 0:
            peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
            tracemalloc.reset_peak()
    tracemalloc.stop()
    return {
        "devices": totals.devices,
        "peak_mb_by_quarter": peaks,
        "bytes_a_device": sent / devices,
        "seconds": time.perf_counter() - begin,
    }


def main() -> None:
    options = harness.options(
        __doc__, toy={"runs": 1, "stream": True}, runs=9, stream=harness.flag("stream 10,000 devices too")
    )
    size = (30, 25, 200) if options.toy else (943, 1_682, 100_000)
    result: dict[str, object] = {"peer": "cvxpy (SCS)", **against_cvxpy(options.runs)}
    result["large"] = large(ratings(*size))
    if options.stream:
        result["stream"] = stream(4, 80) if options.toy else stream(10_000, 10_000)
    harness.tell(result, options)


if __name__ == "__main__":
    main()
