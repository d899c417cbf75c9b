"""Draw the charts of pages with matplotlib, for notebooks: the same lines, in the reader's own figure.

matplotlib comes with the extra `report` and is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from discreet.core.errors import ExtraMissing
from discreet.report.charts import GRAY, Axis, ChartLine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colors and the marks of report/page.css and report/charts.py, by day.
_COLORS = ("#0072b2", "#d55e00", "#00855f", "#b0488a", "#8a6500", "#5b4bb0", "#a3262e", "#69757a")
# A legend of more lines is next to the drawing; a single bar is not drawn as high as the figure.
_MOST_INSIDE, _LEAST_BARS = 4, 3
_MARKS = ("o", "s", "D", "^", "v", "P", "*", "")


def require_matplotlib() -> None:
    """Raise without matplotlib, with how to install it."""
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise ExtraMissing(package="matplotlib", extra="discreet[report]") from error


def axes_for(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure, which a notebook shows."""
    require_matplotlib()
    if ax is not None:
        return ax
    pyplot: Any = import_module("matplotlib.pyplot")
    return cast("Axes", pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")[1])


def panels_for(count: int, height: float) -> list[Axes]:
    """Return the axes of a new figure with so many panels of this height, one below the other."""
    require_matplotlib()
    pyplot: Any = import_module("matplotlib.pyplot")
    size = (6.4, height * count)
    return list(pyplot.subplots(count, 1, figsize=size, layout="constrained", squeeze=False)[1][:, 0])


def plot_lines(ax: Axes, lines: Sequence[ChartLine], *, title: str, x: Axis, y: Axis) -> Axes:
    """Draw the lines of a chart with their spreads, and a legend in the order in which they end."""
    before, drawn = ax.get_legend_handles_labels()[0], list[Any]()
    for line in sorted(lines, key=lambda line: -line.end):
        color, style, label = _COLORS[line.color], _style(line), f"{line.name}: {line.end:.4g}"
        if line.level is not None:
            drawn.append(ax.axhline(line.level, color=color, linestyle=style, linewidth=1.4, label=label))
            continue
        spreads = [point.spread for point in line.points]
        bars = ax.errorbar(
            [point.x for point in line.points],
            [point.y for point in line.points],
            yerr=spreads if any(spreads) else None,
            color=color,
            linestyle=style,
            marker=_MARKS[line.color] if line.marked else "",
            capsize=3,
            label=label,
        )
        drawn.append(bars)
    if x.logarithmic:
        ax.set_xscale("log")
    if x.ticks:
        ax.set_xticks([place for place, _ in x.ticks], [text for _, text in x.ticks], minor=False)
        ax.minorticks_off()
    ax.set(xlabel=x.label, ylabel=y.label, title=title)
    if lines:
        # Next to the drawing where it would hide lines; notebooks make room for it.
        beside: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(lines) > _MOST_INSIDE else {}
        ax.legend(handles=[*before, *drawn], fontsize="small", **beside)
    return ax


def plot_bars(ax: Axes, bars: Sequence[tuple[str, float, float]], *, title: str, x: str) -> Axes:
    """Draw a bar for each name, value and spread, from the top; the first one has a color."""
    places = list(range(len(bars)))
    colors = [_COLORS[GRAY if place else 0] for place in places]
    spreads = [spread for _, _, spread in bars]
    values = [value for _, value, _ in bars]
    ax.barh(places, values, xerr=spreads if any(spreads) else None, color=colors, capsize=3)
    ax.set_yticks(places, [name for name, _, _ in bars])
    ax.set_ylim(max(len(bars), _LEAST_BARS) - 0.5, -0.5)
    ax.set(xlabel=x, title=title)
    return ax


def _style(line: ChartLine) -> str | tuple[int, tuple[float, ...]]:
    # Dashes of a page are lengths; here they are multiples of the width, which is 2 there.
    return (0, tuple(float(length) / 2 for length in line.dashes.split())) if line.dashes else "-"
