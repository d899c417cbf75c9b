"""Figures of papers: legends never cover curves, methods keep their colors, and files are reproducible."""

import dataclasses
import json
from pathlib import Path

import pytest

from discreet.reproduce.figures import (
    _COLORS,
    Panel,
    PlottedLine,
    _picture,
    draw,
    level,
    measured,
    read_panels,
)
from discreet.reproduce.running import Run

pytest.importorskip("matplotlib")


def panels(methods=9, count=3):
    lines = [measured(f"method {place}", (1.0, 2.0), [[place, place + 1.0]] * 3) for place in range(methods)]
    lines += [
        PlottedLine("method 0", (1.0, 2.0), (0.5, None), kind="printed"),
        level("flat", (1.0, 2.0), 3.0),
    ]
    return [Panel(f"panel {place}", "x", "y", lines) for place in range(count)]


@pytest.mark.few(1)
@pytest.mark.parametrize(("methods", "count"), [(1, 1), (9, 3), (11, 6)])
def test_a_legend_is_below_all_panels(methods, count):
    figure = _picture(panels(methods, count))
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    shown = [axis for axis in figure.axes if axis.axison]
    assert len(shown) == count
    assert all(axis.get_tightbbox().y0 >= legend.y1 for axis in shown)
    # The twin: a legend inside a panel covers it.
    inside = shown[0].legend(shown[0].lines[:1], ["covers"])
    figure.draw_without_rendering()
    assert shown[0].get_tightbbox().y0 < inside.get_window_extent().y1


FIGURES = [
    path.with_suffix(".json")
    for path in sorted((Path(__file__).parents[2] / "papers").glob("*/results/*.svg"))
    if path.with_suffix(".json").exists()
]


def outside(figure):
    """Return the legend's words that reach beyond the figure."""
    figure.draw_without_rendering()
    texts = figure.legends[0].get_texts()
    return [text.get_text() for text in texts if text.get_window_extent().x1 > figure.bbox.x1]


@pytest.mark.thorough
@pytest.mark.parametrize("path", FIGURES, ids=lambda path: f"{path.parts[-3]} {path.stem}")
def test_every_legend_of_the_repository_fits(path):
    figure = _picture(read_panels(path))
    assert not outside(figure)
    legend = figure.legends[0].get_window_extent()
    assert all(axis.get_tightbbox().y0 >= legend.y1 for axis in figure.axes if axis.axison)


def test_a_legend_that_is_too_wide_is_found_and_a_curve_outside_its_panel_is_named():
    long = PlottedLine(
        "a method with a name that no legend of one column has room for, not even a wide one", [1], [1]
    )
    assert outside(_picture([Panel("", "x", "y", [long])]))
    far = Panel("", "x", "y", [PlottedLine("far", [1.0, 2.0], [9.0, None])], heights=(0.0, 1.0))
    near = dataclasses.replace(far, heights=(0.0, 10.0))
    words = [_picture([panel]).legends[0].get_texts()[0].get_text() for panel in (far, near)]
    assert words[1] == far.lines[0].label and len(words[0]) > len(words[1])


def test_a_printed_curve_has_the_color_of_its_method_and_an_open_marker():
    axis = _picture(panels(methods=2, count=1)).axes[0]
    marked = [line for line in axis.lines if line.get_marker() == "o"]
    dashed, solid = ([line for line in marked if line.get_linestyle() == style] for style in ("--", "-"))
    assert {line.get_color() for line in dashed} == {line.get_color() for line in solid} == {_COLORS[0]}
    assert dashed[0].get_markerfacecolor() == "white" and solid[0].get_markerfacecolor() == _COLORS[0]
    assert len(set(_COLORS)) == len(_COLORS) == 12


@pytest.mark.thorough
def test_a_figure_is_written_as_numbers_and_as_the_same_picture_again(tmp_path):
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        draw(Run("full", tmp_path / name), "figure", panels())
        written.append((tmp_path / name / "figure.svg").read_bytes())
    assert written[0] == written[1]
    assert json.loads((tmp_path / "a" / "figure.json").read_text())[0]["lines"][0]["y"] == [0.0, 1.0]
    draw(Run("full", None), "figure", panels())
