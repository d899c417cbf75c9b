"""Draw charts as SVG, for pages and for notebooks.

The legend of a page is next to the drawing, or below it on a telephone, in the order in which the lines end.
It is text of the page, so no name is ever cut. A plotting library would bring its own fonts and colors, which
do not follow a reader from light to dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple, final

from discreet.report.pages import Html, page

# One size for all charts. On a telephone they shrink by a quarter, and their letters are larger.
_WIDTH, _HEIGHT = 440.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 14.0, 12.0, 44.0
# How many pixels a notebook has for a chart: drawing, title, and margins.
_FRAMED = 480
# Ticks closer than this would overlap, also in the larger letters of a telephone.
_APART = 34.0
COLORS = 7
#: The color of what is drawn for orientation only.
GRAY = 7
_MARKS = (
    '<circle r="4.5"/>',
    '<path d="M-4.2-4.2h8.4v8.4h-8.4z"/>',
    '<path d="M0-5.6 5.6 0 0 5.6-5.6 0z"/>',
    '<path d="M0-5.4 5.2 4.2h-10.4z"/>',
    '<path d="M0 5.4 5.2-4.2h-10.4z"/>',
    '<path d="M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z"/>',
    '<path d="M0-5.5 1.7-1.7 5.5 0 1.7 1.7 0 5.5-1.7 1.7-5.5 0-1.7-1.7z"/>',
)


class Point(NamedTuple):
    """One mark: its place, its spread up and down, and its tooltip."""

    x: float
    y: float
    spread: float = 0.0
    said: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """One line of a chart; a level has one value over the whole width and no marks.

    A `band` is drawn around the line: the lowest and highest value at each point. A level may have a `label`.
    """

    name: str
    points: tuple[Point, ...] = ()
    level: float | None = None
    color: int = 0
    dashes: str = ""
    marked: bool = True
    band: tuple[tuple[float, float], ...] = ()
    label: str = ""

    @property
    def end(self) -> float:
        """Return the value at the right end, by which the legend is ordered."""
        return self.points[-1].y if self.level is None else self.level


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its title, whether it is logarithmic, and its ticks if they are not to be found."""

    label: str
    logarithmic: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


def line_chart(lines: Sequence[ChartLine], *, title: str, x: Axis, y: Axis, values: bool = True) -> Html:
    """Return a figure with the lines and a legend, which shows the last `values` of the lines."""
    scale = _Scale.around(lines, x)
    drawn = "".join(_line(line, scale) for line in lines) + _labels(lines, scale)
    keys = "".join(
        f"<li>{_key(line)}<span>{escape(line.name)}</span>"
        + (f'<span class="last">{line.end:.4g}</span></li>' if values else "</li>")
        for line in sorted(lines, key=lambda line: -line.end)
    )
    return _figure(title, _frame(scale, x, y) + drawn, f'<ul class="legend">{keys}</ul>')


@final
class Charts(Html):
    """The charts of one result, which `plot()` returns: a notebook shows them.

    Example:
        >>> from discreet import plan
        >>> str(plan(5.0, releases=12).plot()).count("<figure")
        1

    Stability
        Provisional: names may still change in 0.x.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        # The style of a page would change a notebook's own.
        framed, height = escape(page("Charts", [self], kind="chart")), 60 + _FRAMED * self.count("<figure")
        return f'<iframe srcdoc="{framed}" style="width:100%;height:{height}px;border:0"></iframe>'


def ticks_between(low: float, high: float, count: int = 5) -> list[float]:
    """Return about `count` round numbers from `low` to `high`.

    Example:
        >>> ticks_between(0.83, 1.08)
        [0.85, 0.9, 0.95, 1.0, 1.05]
    """
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda round_step: abs(math.log(power * round_step / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{step * number:.12g}") for number in range(first, last + 1)]


@final
@dataclass(frozen=True, slots=True)
class _Scale:
    """Positions of numbers in the drawing."""

    left: float
    right: float
    low: float
    high: float
    logarithmic: bool

    @classmethod
    def around(cls, lines: Sequence[ChartLine], x: Axis) -> _Scale:
        points = [point for line in lines for point in line.points]
        across = [point.x for point in points] + [place for place, _ in x.ticks] or [1.0]
        heights = [value for one in points for value in (one.y - one.spread, one.y + one.spread)]
        heights += [line.level for line in lines if line.level is not None]
        heights += [edge for line in lines for pair in line.band for edge in pair]
        low, high = min(heights, default=0.0), max(heights, default=1.0)
        room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        left, right = (_log(end) if x.logarithmic else end for end in (min(across), max(across)))
        # A mark is within the frame, not on it.
        aside = 0.04 * (right - left) or 0.5
        return cls(left - aside, right + aside, low - room, high + room, x.logarithmic)

    def along(self, x: float) -> float:
        share = ((_log(x) if self.logarithmic else x) - self.left) / (self.right - self.left)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def down(self, y: float) -> float:
        share = (y - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _log(value: float) -> float:
    return math.log10(max(value, 1e-300))


def _figure(title: str, drawn: str, legend: str) -> Html:
    return Html(
        f'<figure><figcaption>{escape(title)}</figcaption><div class="drawing">'
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(title)}">{drawn}</svg>'
        f"{legend}</div></figure>"
    )


def _frame(scale: _Scale, x: Axis, y: Axis) -> str:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    heights = y.ticks or tuple((value, f"{value:.10g}") for value in ticks_between(scale.low, scale.high))
    parts = [
        f'<line class="grid" x1="{_LEFT:g}" x2="{right:g}" y1="{scale.down(value):.1f}" '
        f'y2="{scale.down(value):.1f}"/><text x="{_LEFT - 6:g}" y="{scale.down(value) + 4:.1f}" '
        f'text-anchor="end">{escape(text)}</text>'
        for value, text in heights
    ]
    plain = tuple((value, f"{value:.10g}") for value in ticks_between(scale.left, scale.right))
    for place, text in _spaced(x.ticks or plain, scale):
        parts.append(
            f'<line class="axis" x1="{place:.1f}" x2="{place:.1f}" y1="{bottom:g}" y2="{bottom + 4:g}"/>'
            f'<text x="{place:.1f}" y="{bottom + 18:g}" text-anchor="middle">{escape(text)}</text>'
        )
    middle = (_LEFT + right) / 2
    parts.append(
        f'<line class="axis" x1="{_LEFT:g}" x2="{right:g}" y1="{bottom:g}" y2="{bottom:g}"/>'
        f'<text x="{middle:g}" y="{_HEIGHT - 6:g}" text-anchor="middle">{escape(x.label)}</text>'
        f'<text transform="translate(12 {(_TOP + bottom) / 2:g}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.label)}</text>"
    )
    return "".join(parts)


def _spaced(ticks: Iterable[tuple[float, str]], scale: _Scale) -> list[tuple[float, str]]:
    """Return the places of ticks; one that would overlap the one before is skipped."""
    kept: list[tuple[float, str]] = []
    for value, text in ticks:
        place = scale.along(value)
        if not kept or place - kept[-1][0] >= max(_APART, 4.4 * (len(text) + len(kept[-1][1]))):
            kept.append((place, text))
    return kept


def _line(line: ChartLine, scale: _Scale) -> str:
    dashes = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
    stroke = f'fill="none" stroke="currentColor" stroke-width="2"{dashes}'
    if line.level is not None:
        path = f"M{_LEFT:g} {scale.down(line.level):.1f}H{_WIDTH - _RIGHT:g}"
        said = f"<title>{escape(line.name)}: {line.level:.4g}</title>"
        # A wide line that is not seen, so that the tooltip is easy to hit.
        return (
            f'<g class="c{line.color}"><path d="{path}" {stroke}/>'
            f'<path d="{path}" stroke="transparent" stroke-width="12">{said}</path></g>'
        )
    places = [(scale.along(one.x), scale.down(one.y)) for one in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    marks = "".join(
        _mark(one, place, line, scale) for one, place in zip(line.points, places, strict=True) if line.marked
    )
    return f'<g class="c{line.color}">{_band(line, scale)}<path d="{path}" {stroke}/>{marks}</g>'


# Where labels begin, as shares of the width, one level after the other: so they do not lie on each other.
_LABEL_PLACES = (0.02, 0.35, 0.68)


def _labels(lines: Sequence[ChartLine], scale: _Scale) -> str:
    """Return the labels of levels, on top of all lines."""
    levels = [(line, line.level) for line in lines if line.label and line.level is not None]
    return "".join(
        f'<text class="label c{line.color}" y="{scale.down(level) - 4:.1f}" '
        f'x="{_LEFT + _LABEL_PLACES[number % len(_LABEL_PLACES)] * (_WIDTH - _LEFT - _RIGHT):.1f}">'
        f"{escape(line.label)}</text>"
        for number, (line, level) in enumerate(levels)
    )


def _band(line: ChartLine, scale: _Scale) -> str:
    if not line.band:
        return ""
    across = [scale.along(one.x) for one in line.points]
    below = [(x, scale.down(pair[0])) for x, pair in zip(across, line.band, strict=True)]
    above = [(x, scale.down(pair[1])) for x, pair in zip(across, line.band, strict=True)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in [*below, *reversed(above)])
    return f'<path d="M{path}Z" fill="currentColor" fill-opacity=".2"/>'


def _mark(point: Point, place: tuple[float, float], line: ChartLine, scale: _Scale) -> str:
    x, y = place
    bar = ""
    if point.spread:
        top, bottom = scale.down(point.y + point.spread), scale.down(point.y - point.spread)
        bar = (
            f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 4:.1f} {top:.1f}h8M{x - 4:.1f} {bottom:.1f}h8" '
            'stroke="currentColor" stroke-width="1.3"/>'
        )
    return (
        f'{bar}<g transform="translate({x:.1f} {y:.1f})" fill="currentColor">{_shape(line)}'
        f'<circle r="11" fill="transparent"><title>{escape(point.said)}</title></circle></g>'
    )


def _shape(line: ChartLine) -> str:
    return _MARKS[line.color % len(_MARKS)]


def _key(line: ChartLine) -> str:
    dashes = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
    marked = line.marked and line.level is None
    mark = f'<g transform="translate(19 8)" fill="currentColor">{_shape(line)}</g>' if marked else ""
    return (
        f'<svg class="c{line.color}" viewBox="0 0 38 16" width="38" height="16" aria-hidden="true">'
        f'<path d="M0 8H38" stroke="currentColor" stroke-width="2.4"{dashes}/>{mark}</svg>'
    )
