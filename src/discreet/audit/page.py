"""Write an HTML page of an audit: the findings, and the claimed and measured trade-off curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet.audit.findings import Finding
from discreet.audit.games.scores import Truth
from discreet.core import Floats, write_whole
from discreet.report import Axis, ChartLine, Html, Point, element, line_chart, page, table

# The probability that the band misses the true curve somewhere.
_ERROR = 0.01
_POINTS = np.linspace(0.0, 1.0, 201)


def claimed_curve(epsilon: float, delta: float) -> Floats:
    """Return the least miss rate that an (epsilon, delta) guarantee allows, by false alarm rate.

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
    broken = sum(one.broken for one in found)
    said = (
        f"{broken} of {len(found)} attacks refuted the guarantee."
        if broken
        else f"None of {len(found)} attacks refuted the guarantee."
    )
    body = [
        element("h1", "What an audit found"),
        element("p", f"{said} Not refuted is not proved: the proofs are notes of their own.", "note"),
        table(
            ("model", "attack", "guaranteed ε", "at least ε", "fits", "confidence", "result"),
            [_row(one) for one in found],
            "Findings",
            numbers={2, 3, 4, 5},
        ),
        element(
            "p",
            "An attack shows that epsilon is at least so much. A guarantee is broken only if that is above "
            "what is guaranteed.",
            "quiet",
        ),
        *(
            element("p", f"{one.model}, {one.attack}: {note}.", "quiet")
            for one in found
            for note in one.notes
        ),
    ]
    if games is not None:
        body += [element("h2", "Guaranteed and measured"), _chart(found[0], *games)]
        body.append(
            element(
                "p",
                "An attacker guesses from which of two neighboring datasets a release came. False alarms and "
                "misses trade off. The guarantee is refuted only if the whole band dips below the dashes.",
                "quiet",
            )
        )
    write_whole(path, page("What an audit found", body, kind="audit").encode())


def _row(one: Finding) -> tuple[str, ...]:
    numbers = (f"{one.promised:.4g}", f"{one.refuted:.4g}", f"{one.fits:,}", f"{one.confidence:g}")
    return one.model, one.attack, *numbers, one.verdict


def _chart(finding: Finding, scores: Floats, truth: Truth) -> Html:
    measured, low, high = measured_band(scores, truth)
    claimed = claimed_curve(finding.promised, finding.delta)
    ends = ((0.0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "1"))
    lines = [
        ChartLine(
            name="measured, with a band at 99% confidence",
            points=tuple(map(Point, _POINTS.tolist(), measured.tolist())),
            band=tuple(zip(low.tolist(), high.tolist(), strict=True)),
            marked=False,
        ),
        ChartLine(
            name=f"the least that epsilon {finding.promised:g} allows",
            points=tuple(map(Point, _POINTS.tolist(), claimed.tolist())),
            color=1,
            dashes="7 4",
            marked=False,
        ),
    ]
    return line_chart(
        lines,
        title=f"{finding.model}: misses by false alarms",
        x=Axis(label="false alarms", ticks=ends),
        y=Axis(label="misses", ticks=ends),
        values=False,
    )
