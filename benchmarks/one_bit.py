"""Time one-bit completion against the same solver with a dense matrix and numpy's full decomposition.

    python benchmarks/one_bit.py --json             ML-100K to the end, ML-1M for a few steps of both
    python benchmarks/one_bit.py --json --steps 100  ML-1M to the end too (the dense side takes long)

Both minimize the same logistic loss over the same nuclear ball (radius sqrt(people * items)) by spectral
projected gradients with the same rules; they differ in how a step is projected. The dense side has all
threads of the linear-algebra library, ours takes one, as in the package. `ratio` is dense seconds over
ours, each the median of the runs of that side; both values of the objective stand beside it, and processor
seconds for machines that are busy. `peak_mb` is what numpy allocated at most during the solve, and
`floats_per_unit` the same in 8-byte numbers over ratings + (people + items) * rank.
"""

from __future__ import annotations

import math
import statistics
import time
import tracemalloc
from contextlib import nullcontext
from dataclasses import dataclass

import harness
import numpy as np

from discreet.core.arrays import one_algebra_thread
from discreet.models.scorers.one_bit import binary_ratings
from discreet.solvers.low_rank.losses import OneBitLoss
from discreet.solvers.low_rank.matrix import LowRank, ObservedEntries
from discreet.solvers.low_rank.spg import NuclearBall, minimize

FIRST_LENGTH = 16.0
TOLERANCE = 1e-5
# How accurate the singular vectors of a step are: with this the two objectives agree step by step.
ACCURACY = 3e-5


@dataclass(frozen=True)
class DenseBall:
    """Keep the whole matrix and decompose all of it at every step."""

    cells: ObservedEntries
    radius: float

    def zero(self):
        """Return the matrix of zeros."""
        return np.zeros(self.cells.shape)

    def scores(self, point):
        """Return the observed entries."""
        return point[self.cells.rows, self.cells.columns]

    def step(self, point, gradient, length):
        """Return the projected step."""
        moved = point.copy()
        moved[self.cells.rows, self.cells.columns] -= length * gradient
        left, values, right = np.linalg.svd(moved, full_matrices=False)
        if values.sum() > self.radius:
            cuts = (np.cumsum(values) - self.radius) / np.arange(1, values.size + 1)
            values = np.maximum(values - cuts[np.flatnonzero(values > cuts)[-1]], 0)
        return (left * values) @ right

    def mix(self, point, other, share):
        """Return the point in between."""
        return (1 - share) * point + share * other

    def squared_distance(self, point, other):
        """Return the squared distance."""
        return float(np.sum((point - other) ** 2))

    def matrix(self, point):
        """Return nothing: the benchmark compares values."""
        return LowRank.zero(self.cells.shape)


def solve(loss, domain, steps: int):
    """Return seconds, processor seconds and the solution; ours runs as the package runs it."""
    start, busy = time.perf_counter(), time.process_time()
    with one_algebra_thread() if isinstance(domain, NuclearBall) else nullcontext():
        solution = minimize(loss, domain, first_length=FIRST_LENGTH, iterations=steps, tolerance=TOLERANCE)
    return time.perf_counter() - start, time.process_time() - busy, solution


def peak(loss, domain, steps: int) -> int:
    tracemalloc.start()
    solve(loss, domain, steps)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def compare(name: str, steps: int, repeats: int, toy: bool) -> dict:
    data = harness.ratings(name, toy=toy)
    cells = ObservedEntries(data.indptr, data.items, data.n_items)
    radius = math.sqrt(data.n_users * data.n_items)
    loss = OneBitLoss(verdicts=binary_ratings(data, 3.5))
    thin, dense = NuclearBall(cells=cells, radius=radius, accuracy=ACCURACY), DenseBall(cells, radius)
    solve(loss, thin, 1)  # compile
    ours = [solve(loss, thin, steps) for _ in range(1 if toy else max(repeats, 3))]
    theirs = [solve(loss, dense, steps) for _ in range(repeats)]
    seconds = [statistics.median(wall for wall, _, _ in side) for side in (ours, theirs)]
    busy = [statistics.median(cpu for _, cpu, _ in side) for side in (ours, theirs)]
    solution, reference = ours[0][2], theirs[0][2]
    units = data.n_ratings + (data.n_users + data.n_items) * solution.matrix.rank
    most = peak(loss, thin, steps)
    return {
        "data": data.name,
        "ratings": data.n_ratings,
        "steps": [solution.iterations, reference.iterations],
        "seconds": {"ours": round(seconds[0], 3), "dense": round(seconds[1], 3)},
        "cpu_seconds": {"ours": round(busy[0], 3), "dense": round(busy[1], 3)},
        "ratio": round(seconds[1] / seconds[0], 2),
        "objective": {"ours": solution.value, "dense": reference.value},
        "objective_gap": abs(solution.value - reference.value) / reference.value,
        "rank": solution.matrix.rank,
        "peak_mb": round(most / 2**20, 1),
        "dense_matrix_mb": round(data.n_users * data.n_items * 8 / 2**20, 1),
        "floats_per_unit": round(most / 8 / units, 2),
    }


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"small_steps": 3, "steps": 2},
        small_steps=harness.option(type=int, default=100, help="steps of both sides on ML-100K"),
        steps=harness.option(type=int, default=3, help="steps of both sides on ML-1M"),
        small_only=harness.flag("leave out ML-1M"),
    )
    found = {"movielens-100k": compare("movielens-100k", options.small_steps, 1, options.toy)}
    if not options.small_only:
        found["movielens-1m"] = compare("movielens-1m", options.steps, 1, options.toy)
    harness.tell({"ratio": found["movielens-100k"]["ratio"], **found}, options)


if __name__ == "__main__":
    main()
