"""List which verdicts changed since they were yes or no by the mean alone, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from discreet.reproduce.claims import Outcome
from discreet.reproduce.details import line, table
from discreet.reproduce.judging import FEWEST_DRAWS, Verdict
from discreet.reproduce.papers import papers_folder

_EARLIER = "earlier.json"
# What an earlier yes or no is called now if nothing changed.
_SAME = {"held": Outcome.HOLDS, "did not hold": Outcome.FAILS}


def changes(verdicts: dict[str, Sequence[Verdict]]) -> list[str]:
    """Return a section with one line for each part of a paper in which a verdict changed."""
    path = papers_folder() / _EARLIER
    if not path.exists():
        return []
    earlier = json.loads(path.read_text(encoding="utf8"))["verdicts"]
    lines = ["## What changed", "", _TEXT, "", *table("part", "was → is", "why")]
    for paper, own in verdicts.items():
        lines += _of_paper(paper, own, earlier.get(paper, {}))
    return [*lines, ""]


_TEXT = """Before, a mean on the right side of a threshold was a yes and everything else a no. Now standard
errors, a paper's own set-up and what it really prints decide. Claims are counted one by one here; those that
another measurement replaced are withdrawn."""


def _of_paper(paper: str, verdicts: Sequence[Verdict], earlier: dict[str, list[str]]) -> list[str]:
    now = {verdict.claim.id: verdict for verdict in verdicts}
    moved: dict[str, Counter[str]] = {}
    reasons: dict[str, dict[str, None]] = {}
    withdrawn = 0
    for was, same in _SAME.items():
        for name in earlier.get(was, ()):
            verdict = now.get(name)
            withdrawn += verdict is None
            if verdict is None or verdict.outcome is same:
                continue
            row = verdict.claim.row
            moved.setdefault(row, Counter())[f"{was} → {verdict.outcome}"] += 1
            reasons.setdefault(row, {})[_reason(verdict)] = None
    lines = [
        line(
            f"{paper}, {row}",
            "; ".join(f"{count} {step}" for step, count in steps.items()),
            "; ".join(reasons[row]),
        )
        for row, steps in moved.items()
    ]
    if withdrawn:
        lines.append(line(f"{paper}, all parts", f"{withdrawn} withdrawn", "replaced by other measurements"))
    return lines


def _reason(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.OTHER:
        return (verdict.claim.setup or verdict.claim.unprinted).rstrip(".")
    if verdict.outcome is Outcome.UNDECIDED:
        few = verdict.runs < FEWEST_DRAWS
        return f"fewer than {FEWEST_DRAWS} draws" if few else "within two standard errors"
    return "another measure, or more draws" if verdict.runs != 1 else "a calculation"
