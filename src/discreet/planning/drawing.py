"""Plot a plan: on axes of matplotlib, or to an image file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.errors import BadEnding
from discreet.core.files import refuse_output, write_whole
from discreet.planning.curves import Curve
from discreet.planning.schedules import Schedule
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.ledger.accounts import Account, epsilon_of
from discreet.report.charts import GRAY, Axis, ChartLine, Point
from discreet.report.plotting import axes_for, plot_lines, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Among the first bytes of every picture of ours.
_MAKER, _HEAD = "discreet, plan", 2048


def plot_curve(curve: Curve, people: int, epsilon: float | None, ax: Axes | None) -> Axes:
    """Draw the expected accuracy by epsilon of one release, and mark one epsilon."""
    drawn = axes_for(ax)
    points = tuple(Point(x * curve.people / people, value) for x, value in curve.points)
    lines = [
        ChartLine(name=f"as on {curve.dataset}", points=points),
        ChartLine(name="without privacy", level=curve.bar, color=GRAY, dashes="7 4"),
        ChartLine(name="without learning anything", level=curve.floor, color=GRAY, dashes="2 4"),
    ]
    if epsilon is not None:
        drawn.axvline(epsilon, color="tab:red", lw=0.8, label=f"one release of the plan: {epsilon:.3g}")
    across = Axis(label=f"epsilon of one release, for {people:,} users", logarithmic=True)
    return plot_lines(drawn, lines, title="Accuracy to expect", x=across, y=Axis(label=curve.metric))


# Marks of more releases would lie on each other.
_MARKED = 24


def plot_schedule(plan: Schedule, ax: Axes | None) -> Axes:
    """Draw the epsilon of the first releases together: as the plan composes them, and merely added."""
    drawn = axes_for(ax)
    each, delta = plan.per_release, plan.limit.delta
    weight = gaussian_multiplier(each.epsilon, each.delta) ** -2
    counts, few = range(1, plan.releases + 1), plan.releases <= _MARKED
    together = tuple(
        Point(count, epsilon_of(Account.GAUSSIAN, count * weight, delta)) for count in _some(counts)
    )
    added = tuple(Point(count, count * each.epsilon) for count in _some(counts))
    lines = [
        ChartLine(name="as this plan composes them", points=together, marked=few),
        ChartLine(name="if epsilons were added", points=added, color=1, dashes="2 4", marked=few),
        ChartLine(name="budget", level=plan.limit.epsilon, color=GRAY, dashes="7 4"),
    ]
    across, up = Axis(label="releases so far"), Axis(label=f"epsilon at delta {delta:g}")
    return plot_lines(drawn, lines, title=f"{plan.releases} equal releases", x=across, y=up)


def _some(counts: range) -> list[int]:
    """Return at most about sixty of the counts, with the first and the last."""
    return sorted({*counts[:: max(1, len(counts) // 60)], counts[-1]})


def is_picture(path: Path) -> bool:
    """Return whether we drew this file, by the maker that it names."""
    try:
        with path.open("rb") as file:
            return _MAKER.encode() in file.read(_HEAD)
    except OSError:
        return False


def draw_plan(path: Path, curve: Curve, people: int, epsilon: float | None, *, force: bool = False) -> None:
    """Write a plot of the expected accuracy by epsilon for `people` users, and mark the plan's epsilon."""
    if path.suffix not in (".svg", ".png"):
        raise BadEnding(path=path.name, endings=(".svg", ".png"))
    refuse_output(path, force=force, kind="picture of a plan", is_ours=is_picture)
    require_matplotlib()
    from matplotlib.figure import Figure

    # Not through pyplot, which would keep the figure.
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    plot_curve(curve, people, epsilon, figure.add_subplot())
    content, form = io.BytesIO(), path.suffix[1:]
    figure.savefig(content, format=form, metadata={"Creator" if form == "svg" else "Software": _MAKER})
    write_whole(path, content.getvalue())
