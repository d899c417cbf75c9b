"""Draw a plan as a picture. Needs matplotlib, so it is imported only when one is asked for."""

from __future__ import annotations

from pathlib import Path

from discreet.checks import FileError, ParameterError
from discreet.planning.expected import Curve


def draw_plan(path: Path, curve: Curve, people: int, epsilon: float | None) -> None:
    """Write the expected accuracy against epsilon for so many people, and where the plan stands."""
    if path.suffix not in (".svg", ".png"):
        raise ParameterError(f"{path.name} must end in .svg or .png.")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ParameterError("A picture needs the extra `report`: pip install 'discreet[report]'.") from error
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    places = [place * curve.people / people for place, _ in curve.points]
    axes.plot(places, [value for _, value in curve.points], "o-", label=f"as on {curve.dataset}")
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
