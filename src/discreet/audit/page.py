"""Write an HTML page of an audit: the findings, and the claimed and measured trade-off curves."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet.audit.findings import Finding
from discreet.audit.games.scores import Truth
from discreet.core.arrays import Floats
from discreet.core.files import write_whole

# The probability that the band misses the true curve somewhere.
_ERROR = 0.01
_POINTS = np.linspace(0.0, 1.0, 201)
_STYLE = "body{font:16px sans-serif;max-width:60em;margin:2em auto}td,th{padding:.2em .8em;text-align:left}"


def claimed_curve(epsilon: float, delta: float) -> Floats:
    """Return the least miss rate that an (epsilon, delta) promise allows, by false alarm rate.

    Example:
        >>> round(float(claimed_curve(1.0, 0.0)[0]), 3)
        1.0
    """
    e = math.exp(epsilon)
    return np.maximum(0.0, np.maximum(1 - delta - e * _POINTS, (1 - delta - _POINTS) / e))


def measured_band(scores: Floats, truth: Truth) -> tuple[Floats, Floats, Floats]:
    """Return the measured miss rate by false alarm rate, and a simultaneous confidence band.

    Both distribution functions are bounded by the inequality of Dvoretzky, Kiefer and Wolfowitz.
    """
    inside, outside = np.sort(scores[truth]), np.sort(scores[~truth])
    wide = [math.sqrt(math.log(4 / _ERROR) / (2 * max(part.size, 1))) for part in (inside, outside)]

    def misses(alarms: Floats) -> Floats:
        cuts = np.quantile(outside, np.clip(1 - alarms, 0, 1))
        return np.searchsorted(inside, cuts, side="right") / inside.size

    measured = misses(_POINTS)
    low = np.maximum(misses(_POINTS + wide[1]) - wide[0], 0.0)
    high = np.minimum(misses(_POINTS - wide[1]) + wide[0], 1.0)
    return measured, low, high


def write_page(path: Path, found: Sequence[Finding], games: tuple[Floats, Truth] | None) -> None:
    """Write the findings, and the trade-off curve of `games` if given, to one HTML file."""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(cell)}</td>"
            for cell in (one.model, one.attack, f"{one.promised:g}", f"{one.refuted:.3f}", one.verdict)
        )
        + "</tr>"
        for one in found
    )
    head = "".join(f"<th>{name}</th>" for name in ("model", "attack", "promised", "refuted", "verdict"))
    picture = "" if games is None else f'<img alt="trade-off curve" src="{_picture(found[0], *games)}">'
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Audit</title><style>{_STYLE}</style>'
        f"<h1>What an audit found</h1><p>Not refuted is not proved.</p><table><tr>{head}</tr>{rows}</table>"
        f"{picture}</html>\n"
    )
    write_whole(path, text.encode())


def _picture(finding: Finding, scores: Floats, truth: Truth) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    figure = Figure(figsize=(5, 5))
    axes = figure.subplots()
    measured, low, high = measured_band(scores, truth)
    axes.fill_between(_POINTS, low, high, color="#48a", alpha=0.3, label="measured, band at 99 %")
    axes.plot(_POINTS, measured, color="#48a")
    claimed = claimed_curve(finding.promised, finding.delta)
    axes.plot(_POINTS, claimed, color="black", linestyle="--", label="the least that is promised")
    axes.set_xlabel("false alarms")
    axes.set_ylabel("misses")
    axes.legend(frameon=False)
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(target.getvalue()).decode()
