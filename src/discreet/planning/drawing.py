"""Draw a curve in plain text, so that a plan can be read in any terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence


def draw(
    points: Sequence[tuple[float, float]], *, width: int = 56, height: int = 10, mark: float | None = None
) -> str:
    """Return the points as text, the horizontal axis logarithmic; `mark` puts a line at one place of it.

    Example:
        >>> print(draw([(0.1, 0.0), (1.0, 0.5), (10.0, 1.0)], width=9, height=3))
              1 |        *
                |    *
              0 |*
                +---------
                 0.1    10
    """
    left, right = math.log(points[0][0]), math.log(points[-1][0])
    low, high = min(value for _, value in points), max(value for _, value in points)
    grid = [[" "] * width for _ in range(height)]

    def column(place: float) -> int:
        share = (math.log(place) - left) / max(right - left, 1e-12)
        return min(max(round(share * (width - 1)), 0), width - 1)

    if mark is not None:
        for line in grid:
            line[column(mark)] = ":"
    for place, value in points:
        share = (value - low) / max(high - low, 1e-12)
        grid[height - 1 - round(share * (height - 1))][column(place)] = "*"
    names = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    lines = [f"{names.get(row, ''):>7} |" + "".join(cells).rstrip() for row, cells in enumerate(grid)]
    ends = f"{points[0][0]:.3g}", f"{points[-1][0]:.3g}"
    axis = ends[0] + " " * max(width - len(ends[0]) - len(ends[1]), 1) + ends[1]
    return "\n".join([*lines, " " * 8 + "+" + "-" * width, " " * 9 + axis])
