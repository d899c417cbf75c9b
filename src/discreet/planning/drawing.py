"""Plot a plan: as text for a terminal, or as an image file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from discreet.core.checks import FileError, ParameterError
from discreet.planning.plan import Curve


def draw(
    points: Sequence[tuple[float, float]], *, width: int = 56, height: int = 10, mark: float | None = None
) -> str:
    """Return a text plot of the points with a logarithmic x axis; `mark` draws a vertical line at one x.

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

    def column(x: float) -> int:
        share = (math.log(x) - left) / max(right - left, 1e-12)
        return min(max(round(share * (width - 1)), 0), width - 1)

    if mark is not None:
        for line in grid:
            line[column(mark)] = ":"
    for x, value in points:
        share = (value - low) / max(high - low, 1e-12)
        grid[height - 1 - round(share * (height - 1))][column(x)] = "*"
    names = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    lines = [f"{names.get(row, ''):>7} |" + "".join(cells).rstrip() for row, cells in enumerate(grid)]
    ends = f"{points[0][0]:.3g}", f"{points[-1][0]:.3g}"
    axis = ends[0] + " " * max(width - len(ends[0]) - len(ends[1]), 1) + ends[1]
    return "\n".join([*lines, " " * 8 + "+" + "-" * width, " " * 9 + axis])


def draw_plan(path: Path, curve: Curve, people: int, epsilon: float | None) -> None:
    """Write a plot of the expected accuracy by epsilon for `people` people, and mark the plan's epsilon."""
    if path.suffix not in (".svg", ".png"):
        raise ParameterError(f"{path.name} must end in .svg or .png.")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ParameterError("A picture needs the extra `report`: pip install 'discreet[report]'.") from error
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    epsilons = [x * curve.people / people for x, _ in curve.points]
    axes.plot(epsilons, [value for _, value in curve.points], "o-", label=f"as on {curve.dataset}")
    axes.axhline(curve.bar, color="black", lw=0.8, label="without privacy")
    axes.axhline(curve.floor, color="black", lw=0.8, ls=":", label="without learning anything")
    if epsilon is not None:
        axes.axvline(epsilon, color="tab:red", lw=0.8, label=f"one release of the plan: {epsilon:.3g}")
    axes.set_xscale("log")
    axes.set_xlabel(f"epsilon of one release, for {people:,} people")
    axes.set_ylabel(curve.metric)
    axes.legend(fontsize=8)
    try:
        figure.savefig(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
