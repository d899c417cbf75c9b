"""One style for all figures of papers: our curves solid, printed ones dashed, legends below the panels.

A figure is data: `draw` writes its numbers as JSON and a picture of them as SVG. A method has one color in
all panels of a figure, and its printed curve has the same color. The colors are those of Okabe and Ito and,
beyond eight methods, of Tol. Color-blind readers can distinguish them; markers differ as well.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from discreet.reproduce.running import Run

_COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F"),
    *("#882255", "#44AA99", "#999933", "#332288"),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_INCHES = 4.2, 3.2
_COLUMNS = 2
_LEGEND_LINE = 0.22
_POINTS = 20
#: The picture of a paper on the overview.
THUMBNAIL = "thumbnail.svg"


@dataclasses.dataclass(frozen=True)
class PlottedLine:
    """A curve of a method: measured here, printed in the paper, points alone, or a level without markers."""

    method: str
    x: Sequence[float]
    y: Sequence[float | None]
    error: Sequence[float] = ()
    kind: Literal["ours", "printed", "points", "level"] = "ours"

    @property
    def label(self) -> str:
        """Return the words of the legend."""
        return f"{self.method}, printed" if self.kind == "printed" else self.method


@dataclasses.dataclass(frozen=True)
class Panel:
    """Curves over one pair of axes. `ticks` names the places on the horizontal axis.

    `heights` are the ends of the vertical axis; curves beyond them leave the panel.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[PlottedLine]
    x_scale: str = "linear"
    y_scale: str = "linear"
    heights: tuple[float, float] | None = None
    ticks: Mapping[float, str] = dataclasses.field(default_factory=dict)


def measured(method: str, x: Sequence[float], draws: Any, **options: Any) -> PlottedLine:
    """Return the curve of the mean over draws (one row per draw), with standard errors."""
    table = np.asarray(draws, dtype=np.float64)
    mean = _rounded(table.mean(axis=0))
    if len(table) < 2:
        return PlottedLine(method, list(x), mean, **options)
    return PlottedLine(
        method, list(x), mean, _rounded(table.std(axis=0, ddof=1) / math.sqrt(len(table))), **options
    )


def level(method: str, x: Sequence[float], height: float) -> PlottedLine:
    """Return a line at one height, for a method without privacy or without epsilon."""
    return PlottedLine(method, [min(x), max(x)], _rounded([height, height]), kind="level")


def draw(run: Run, name: str, panels: Sequence[Panel]) -> None:
    """Write `name.json` and `name.svg` to the folder of a run, if it has one."""
    if run.folder is None or not panels:
        return
    run.write(f"{name}.json", [dataclasses.asdict(panel) for panel in panels])
    _save(_picture(panels), run.folder / f"{name}.svg")


def _picture(panels: Sequence[Panel], *, legend: bool = True) -> Any:
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    methods = list(dict.fromkeys(line.method for panel in panels for line in panel.lines))
    labels = {_label(line, panel) for panel in panels for line in panel.lines}
    below = _LEGEND_LINE * math.ceil(len(labels) / columns) + 0.15 if legend else 0.0
    width, height = _INCHES[0] * columns, _INCHES[1] * rows
    figure = Figure(figsize=(width, height + below), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes, panels, strict=False):
        for line in panel.lines:
            handles.setdefault(_label(line, panel), _curve(axis, line, methods.index(line.method)))
        _frame(axis, panel)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    if legend:
        figure.legend(
            handles.values(), handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False
        )
    return figure


def _label(line: PlottedLine, panel: Panel) -> str:
    """Return the words of the legend; they state if no point of the curve is inside the panel."""
    low, high = panel.heights or (-math.inf, math.inf)
    inside = any(value is not None and low <= value <= high for value in line.y)
    return line.label if inside else f"{line.label}: off the scale"


def _curve(axis: Any, line: PlottedLine, place: int) -> Any:
    color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
    heights = [math.nan if value is None else value for value in line.y]
    if line.kind == "level":
        return axis.plot(line.x, heights, color=color, linewidth=1.8, linestyle=(0, (1, 1)))[0]
    style = {"ours": "-", "printed": "--", "points": ""}[line.kind]
    options: dict[str, Any] = {"color": color, "linestyle": style, "linewidth": 1.4}
    fill = "white" if line.kind == "printed" else color
    options |= {"marker": marker, "markersize": 4.5, "markerfacecolor": fill}
    if line.kind != "points":
        options["markevery"] = math.ceil(len(line.x) / _POINTS)
    if line.error:
        return axis.errorbar(line.x, heights, line.error, capsize=2, **options)
    return axis.plot(line.x, heights, **options)[0]


def _frame(axis: Any, panel: Panel) -> None:
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.x_label, fontsize=8)
    axis.set_ylabel(panel.y_label, fontsize=8)
    axis.set_xscale(panel.x_scale)
    axis.set_yscale(panel.y_scale)
    axis.tick_params(labelsize=7)
    axis.grid(color="#DDDDDD", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    if panel.heights is not None:
        axis.set_ylim(*panel.heights)
    for side, scale in ((axis.xaxis, panel.x_scale), (axis.yaxis, panel.y_scale)):
        if scale == "log":
            _plain_numbers(side)
    if panel.ticks:
        axis.set_xticks(list(panel.ticks), list(panel.ticks.values()))
        axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)


def _plain_numbers(side: Any) -> None:
    """Mark a logarithmic axis with plain numbers, as many as an axis of any length needs."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = sorted(side.get_view_interval())
    decades = math.log10(high / low) if low > 0 else 1.0
    parts = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if decades < 1 else (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    side.set_major_locator(LogLocator(subs=parts))
    side.set_minor_locator(NullLocator())
    side.set_major_formatter(lambda value, _: f"{value:,.10g}" if value >= 1e-4 else f"{value:.0e}")


def thumbnail(folder: Path, name: str) -> None:
    """Write the first panel of the figure `name.json` in a folder as `thumbnail.svg`, without words."""
    path = folder / f"{name}.json"
    if not path.exists():
        return
    first = read_panels(path)[0]
    ticks = dict.fromkeys(first.ticks, "")
    panel = dataclasses.replace(first, title="", x_label="", y_label="", ticks=ticks)
    _save(_picture([panel], legend=False), folder / THUMBNAIL)


def read_panels(path: Path) -> list[Panel]:
    """Return the panels that `draw` wrote to a file."""
    return [
        Panel(
            **panel
            | {
                "lines": [PlottedLine(**line) for line in panel["lines"]],
                "ticks": {float(place): text for place, text in panel["ticks"].items()},
            }
        )
        for panel in json.loads(path.read_text(encoding="utf8"))
    ]


def _save(figure: Any, path: Path) -> None:
    """Write a small SVG that has the same bytes for the same numbers."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "discreet", "path.simplify": True}):
        figure.savefig(path, metadata={"Date": None})


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
