"""Walk through settings to the best ones: one setting at a time, as long as a hidden part says it helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

Point = dict[str, float]


class Direction(NamedTuple):
    """Say how a setting is walked along: times `ratio` or over it, never outside `least` and `most`."""

    ratio: float
    least: float
    most: float


def walk(start: Point, directions: Mapping[str, Direction], loss: Callable[[Point], float]) -> Point:
    """Return the point with the least loss that is found by walking each direction in turn, twice.

    Each point is tried once. The walk turns around after the first step that does not help: losses of
    regularized models have one valley in each setting.
    """
    tried: dict[tuple[float, ...], float] = {}

    def cost(point: Point) -> float:
        key = tuple(point.values())
        if key not in tried:
            tried[key] = loss(point)
        return tried[key]

    best = dict(start)
    for _ in range(2):
        for name, direction in directions.items():
            best = _along(best, name, direction, cost)
    return best


def _along(best: Point, name: str, direction: Direction, cost: Callable[[Point], float]) -> Point:
    for ratio in (direction.ratio, 1 / direction.ratio):
        start = best
        while direction.least <= (value := best[name] * ratio) <= direction.most:
            step = {**best, name: value}
            if cost(step) >= cost(best):
                break
            best = step
        if best is not start:
            break
    return best
