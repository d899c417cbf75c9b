"""One style for the figures of the documentation."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

# Colors that color-blind readers can distinguish, as in the drawn pictures.
BLUE, ORANGE, GREEN, RED, YELLOW, GRAY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#444444"


def use_style() -> None:
    """Set fonts, grid, and colors for all figures that are drawn from now on."""
    plt.rcParams.update(
        {
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.grid": True,
            "grid.color": "#e3e6ea",
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": plt.cycler(color=[BLUE, ORANGE, GREEN, RED, YELLOW]),
            "legend.frameon": False,
            "legend.fontsize": 9,
            "svg.hashsalt": "discreet",
        }
    )


def epsilon_axis(axes: Any, ticks: tuple[float, ...] = (0.1, 1, 10)) -> None:
    """Make the x axis logarithmic, with plain numbers at a few values of epsilon."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("epsilon for a user's whole history")
