"""Write a comparison as one HTML page: a table, a curve for each metric, every model's privacy label.

The page needs nothing but itself: pictures are drawn as SVG inside it, and it runs no script. It needs the
extra `report` (matplotlib, jinja2).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from discreet.checks import DiscreetError, ParameterError
from discreet.evaluation.evaluation import Evaluation, Score
from discreet.evaluation.variants import variant_names
from discreet.files import refuse_output, write_whole
from discreet.privacy.guarantee import TRUST_WORDS, UNIT_WORDS

#: What a message calls such a page.
KIND = "report of a comparison"
# The template writes this among its first lines.
_MARK, _HEAD = b'<meta name="generator" content="discreet">', 512


def require_libraries() -> None:
    """Refuse at once, before hours of fitting, if what draws a report is not installed."""
    try:
        for name in ("matplotlib", "jinja2"):
            import_module(name)
    except ImportError as error:
        raise DiscreetError(
            'A report needs matplotlib and jinja2. Install them with pip install "discreet[report]".'
        ) from error


def write_report(
    evaluations: Iterable[Evaluation], path: str | Path, *, title: str, force: bool = False
) -> None:
    """Write the page to `path` in one step.

    An existing file is kept unless `force`, and what is no such page is kept even then.
    """
    path = Path(path)
    refuse_output(path, force=force, kind=KIND, is_ours=is_report)
    write_whole(path, render_report(evaluations, title=title).encode())


def is_report(path: Path) -> bool:
    """Tell whether a file is a page that `write_report` wrote, by the line it has for that."""
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_HEAD)
    except OSError:
        return False


def render_report(evaluations: Iterable[Evaluation], *, title: str) -> str:
    """Return the page as text."""
    found = tuple(evaluations)
    if not found:
        raise ParameterError("evaluations must hold at least one to report.")
    require_libraries()
    from jinja2 import Environment

    from discreet.evaluation.curves import draw_curve

    names = tuple(dict.fromkeys(name for evaluation in found for name in evaluation.metrics))
    template = resources.files("discreet.evaluation").joinpath("report.html.jinja").read_text("utf-8")
    page: str = (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(
            title=title,
            data=found[0].data,
            metrics=names,
            rows=report_rows(found, names),
            references=reference_rows(found, names),
            groups=[
                (
                    _words(frame),
                    [(name, draw_curve(found, name, frame)) for name in names if _has(found, name, frame)],
                )
                for frame in _frames(found)
            ],
            mixed_frames=len(_frames(found)) > 1,
            simulated=any(evaluation.guarantee.simulated for evaluation in found),
            raw=json.dumps([evaluation.to_json() for evaluation in found], indent=1),
        )
    )
    return page


def _frames(found: Sequence[Evaluation]) -> list[tuple[Any, ...] | None]:
    """Return the frames that promises are made in; without any promise there is one picture all the same."""
    return list(dict.fromkeys(one.guarantee.frame for one in found if _promises(one))) or [None]


def _has(found: Sequence[Evaluation], name: str, frame: tuple[Any, ...] | None) -> bool:
    return any(name in one.metrics and (frame is None or one.guarantee.frame == frame) for one in found)


def _words(frame: tuple[Any, ...] | None) -> str:
    if frame is None:
        return "Nothing is protected"
    unit, _, trust = frame
    return f"Protected: {UNIT_WORDS[unit]}; from {TRUST_WORDS[trust]}"


def _promises(evaluation: Evaluation) -> bool:
    return math.isfinite(evaluation.guarantee.epsilon)


def report_rows(found: Sequence[Evaluation], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row of texts for each evaluation; evaluations of one model are told apart by settings."""
    return [_row(one, called, names) for one, called in zip(found, variant_names(found), strict=True)]


def _row(evaluation: Evaluation, called: str, names: Sequence[str]) -> dict[str, Any]:
    promise = evaluation.guarantee
    return {
        "model": called,
        "epsilon": f"{promise.epsilon:g}" if _promises(evaluation) else "∞",
        "delta": f"{promise.delta:g}" if _promises(evaluation) else "",
        "protects": f"one {promise.unit.value}, {promise.trust.value}"
        if _promises(evaluation)
        else "NOT PRIVATE",
        "scores": _cells(evaluation.metrics, names),
        "runs": len(next(iter(evaluation.metrics.values())).values),
        "fit": f"{evaluation.seconds['fit']:.2f}",
        "label": promise.rows(),
    }


def reference_rows(found: Sequence[Evaluation], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return each reference once, with the scores that any evaluation has of it."""
    merged: dict[str, dict[str, Score]] = {}
    for evaluation in found:
        for name, scores in evaluation.references.items():
            merged[name] = {**scores, **merged.get(name, {})}
    return [{"name": name, "scores": _cells(scores, names)} for name, scores in merged.items()]


def _cells(scores: dict[str, Score], names: Sequence[str]) -> list[str]:
    """Return mean and spread as text, a dash where the metric means nothing."""
    cells = []
    for name in names:
        score = scores.get(name)
        spread = f" ± {score.std:.4f}" if score is not None and len(score.values) > 1 else ""
        cells.append("–" if score is None else f"{score.mean:.4f}{spread}")
    return cells
