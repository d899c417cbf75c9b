"""Minimize over the nuclear-norm ball by spectral projected gradients, or by fixed numbers of noisy steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, final

import numpy as np

from discreet.core import Floats
from discreet.solvers.low_rank.losses import Oracle
from discreet.solvers.low_rank.matrix import (
    LowRank,
    LowRankPlusSparse,
    ObservedEntries,
    project_both,
    project_nuclear,
)

Point = TypeVar("Point")
Report = Callable[[int, int], None]

_MEMORY = 10
_SUFFICIENT = 1e-4
_SHORTEST, _LONGEST = 1e-3, 1e5
_MOST_HALVINGS = 30


class Domain(Protocol[Point]):
    """A convex set of matrices, and how to move in it."""

    def zero(self) -> Point:
        """Return the matrix of zeros."""

    def scores(self, point: Point) -> Floats:
        """Return the scores of the observed entries."""

    def step(self, point: Point, gradient: Floats, length: float) -> Point:
        """Return the point of the set nearest to `point - length * gradient`."""

    def mix(self, point: Point, other: Point, share: float) -> Point:
        """Return the point that lies `share` of the way to the other."""

    def squared_distance(self, point: Point, other: Point) -> float:
        """Return the squared Frobenius distance."""

    def matrix(self, point: Point) -> LowRank:
        """Return the point as thin factors."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NuclearBall:
    """Matrices whose singular values add up to at most `radius`, as thin factors.

    `weights` multiply the observed entries: the scores are `weights * matrix[cells]`.
    """

    cells: ObservedEntries
    radius: float
    weights: Floats | None = None
    accuracy: float = 1e-3

    def zero(self) -> LowRank:
        """Return the matrix of zeros."""
        return LowRank.zero(self.cells.shape)

    def scores(self, point: LowRank) -> Floats:
        """Return the weighted observed entries."""
        return _weighted(self.cells.of(point), self.weights)

    def step(self, point: LowRank, gradient: Floats, length: float) -> LowRank:
        """Return the projected step."""
        sparse = _weighted(-length * gradient, self.weights)
        return project_nuclear(
            LowRankPlusSparse(point, self.cells, sparse), self.radius, tolerance=self.accuracy
        )

    def mix(self, point: LowRank, other: LowRank, share: float) -> LowRank:
        """Return the point in between; the whole way is the other point itself."""
        return other if share == 1 else point.mixed(other, share)

    def squared_distance(self, point: LowRank, other: LowRank) -> float:
        """Return the squared Frobenius distance."""
        return point.squared_distance(other)

    def matrix(self, point: LowRank) -> LowRank:
        """Return the point."""
        return point


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedNuclearBall:
    """Small matrices in the nuclear-norm ball with no |entry| above its limit, in full."""

    cells: ObservedEntries
    radius: float
    limits: float | Floats
    weights: Floats | None = None
    accuracy: float = 1e-4
    attempts: int = 100

    def zero(self) -> Floats:
        """Return the matrix of zeros."""
        return np.zeros(self.cells.shape)

    def scores(self, point: Floats) -> Floats:
        """Return the weighted observed entries."""
        return _weighted(point[self.cells.rows, self.cells.columns], self.weights)

    def step(self, point: Floats, gradient: Floats, length: float) -> Floats:
        """Return the projected step, by Dykstra's method with momentum."""
        sparse = self.cells.dense(_weighted(-length * gradient, self.weights))
        return project_both(
            point + sparse, self.radius, self.limits, tolerance=self.accuracy, most=self.attempts
        )

    def mix(self, point: Floats, other: Floats, share: float) -> Floats:
        """Return the point in between."""
        return other if share == 1 else (1 - share) * point + share * other

    def squared_distance(self, point: Floats, other: Floats) -> float:
        """Return the squared Frobenius distance."""
        return float(np.sum((point - other) ** 2))

    def matrix(self, point: Floats) -> LowRank:
        """Return the point as factors."""
        return LowRank.of_dense(point)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The result of a solver; `promised` is the predicted relative gain of one more step."""

    matrix: LowRank
    value: float
    iterations: int
    promised: float


@dataclass(slots=True)
class _State(Generic[Point]):
    point: Point
    scores: Floats
    value: float
    gradient: Floats


def minimize(
    oracle: Oracle,
    domain: Domain[Point],
    *,
    first_length: float,
    iterations: int = 100,
    tolerance: float = 1e-6,
    report: Report | None = None,
) -> Solution:
    """Minimize the oracle's objective over the domain, from zero.

    Steps have Barzilai-Borwein lengths; a step is accepted when it improves on the worst of the last ten
    values by enough. Stops when a full step improves less than `tolerance` of the objective.

    References:
        Birgin, Martinez and Raydan, "Nonmonotone spectral projected gradient methods on convex sets", 2000.
    """
    state = _evaluate(oracle, domain, domain.zero())
    best, length, promised = state, first_length, np.inf
    recent = deque([state.value], maxlen=_MEMORY)
    done = 0
    for done in range(1, iterations + 1):
        target = domain.step(state.point, state.gradient, length)
        direction = domain.scores(target) - state.scores
        slope = float(state.gradient @ direction)
        promised = -slope / max(abs(state.value), 1e-300)
        if promised <= tolerance:
            break
        moved = _search(oracle, domain, state, target, slope, max(recent))
        length = _spectral(domain, state, moved)
        state = moved
        recent.append(state.value)
        best = state if state.value < best.value else best
        if report is not None:
            report(done, iterations)
    return Solution(matrix=domain.matrix(best.point), value=best.value, iterations=done, promised=promised)


def walk(
    oracle: Oracle,
    domain: Domain[Point],
    *,
    length: float,
    steps: int,
    spectral: bool = False,
    report: Report | None = None,
) -> LowRank:
    """Take exactly `steps` projected steps along the gradients that the oracle returns.

    The first has the given `length`, and so have the others unless `spectral`: then they have the
    Barzilai-Borwein lengths of the gradients returned so far. Nothing else is asked of the oracle, and the
    number of calls does not depend on its answers.
    """
    point, before = domain.zero(), None
    for done in range(1, steps + 1):
        scores = domain.scores(point)
        here = _State(point, scores, np.nan, oracle.gradient(scores))
        if spectral and before is not None:
            length = _spectral(domain, before, here)
        before, point = here, domain.step(point, here.gradient, length)
        if report is not None:
            report(done, steps)
    return domain.matrix(point)


def _evaluate(oracle: Oracle, domain: Domain[Point], point: Point) -> _State[Point]:
    scores = domain.scores(point)
    value, gradient = oracle.value_and_gradient(scores)
    return _State(point, scores, value, gradient)


def _search(
    oracle: Oracle, domain: Domain[Point], state: _State[Point], target: Point, slope: float, worst: float
) -> _State[Point]:
    """Go toward `target` as far as the objective allows."""
    goal, share = domain.scores(target), 1.0
    for _ in range(_MOST_HALVINGS):
        scores = state.scores + share * (goal - state.scores)
        value, gradient = oracle.value_and_gradient(scores)
        if value <= worst + _SUFFICIENT * share * slope:
            break
        # The minimum of the parabola through the value, the slope and the new value, kept away from both
        # ends.
        bend = value - state.value - share * slope
        share *= min(max(-share * slope / (2 * bend) if bend > 0 else 0.5, 0.1), 0.5)
    return _State(domain.mix(state.point, target, share), scores, value, gradient)


def _spectral(domain: Domain[Point], before: _State[Point], after: _State[Point]) -> float:
    """Return the Barzilai-Borwein length of the next step."""
    bend = float((after.scores - before.scores) @ (after.gradient - before.gradient))
    if bend <= 0:
        return _LONGEST
    length = domain.squared_distance(after.point, before.point) / bend
    return float(min(max(length, _SHORTEST), _LONGEST))


def _weighted(values: Floats, weights: Floats | None) -> Floats:
    return values if weights is None else values * weights
