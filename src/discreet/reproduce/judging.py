"""Judge measured values by their standard errors, and count verdicts: the papers' and ours apart."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from discreet.reproduce.claims import Claim, Outcome, Paper, PaperRow
from discreet.reproduce.running import DrawnValues

#: A claim is decided beyond so many standard errors of the mean, and not with fewer draws than these.
STANDARD_ERRORS = 2.0
FEWEST_DRAWS = 3
# Of several measurements of one statement the first of these that occurs is its verdict.
_STRONGEST = (Outcome.FAILS, Outcome.UNDECIDED, Outcome.HOLDS, Outcome.OTHER, Outcome.UNSAID)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """Hold a claim with its measured value; `runs` is the number of draws that were really made."""

    claim: Claim
    measured: float | None
    error: float | None
    runs: int
    outcome: Outcome
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return one flat record."""
        return (
            dataclasses.asdict(self.claim)
            | {"measured": self.measured, "error": self.error, "runs": self.runs}
            | {"outcome": str(self.outcome), "why": self.why}
        )


def judge(claim: Claim, drawn: DrawnValues | Sequence[float], *, absent: str = "") -> Verdict:
    """Compare the draws' mean with the claim by its standard error; `absent` says why there are none."""
    if not isinstance(drawn, DrawnValues):
        drawn = DrawnValues(drawn, len(drawn))
    finite = bool(drawn.values) and all(math.isfinite(value) for value in drawn.values)
    error = None if claim.exact else standard_error(drawn)
    if not finite:
        outcome, why = Outcome.UNSAID, absent or "not measured: its data is not at hand"
    elif claim.setup:
        outcome, why = Outcome.OTHER, " ".join(filter(None, (claim.setup, claim.why)))
    elif claim.exact:
        worst = min(margin(claim, value) for value in drawn.values)
        outcome, why = Outcome.HOLDS if worst >= 0 else Outcome.FAILS, claim.why
    else:
        outcome, why = _by_error(margin(claim, statistics.fmean(drawn.values)), error, drawn.draws), claim.why
    if outcome is Outcome.FAILS and claim.unprinted:
        outcome, why = Outcome.OTHER, " ".join(filter(None, (claim.unprinted, claim.why)))
    return Verdict(
        claim=claim,
        measured=statistics.fmean(drawn.values) if finite else None,
        error=error,
        runs=drawn.draws,
        outcome=outcome,
        why=why,
    )


def margin(claim: Claim, measured: float) -> float:
    """Return by how much a value satisfies a claim; negative if it does not."""
    return {
        "within": claim.tolerance - abs(measured - claim.expected),
        "at-least": measured - claim.expected + claim.tolerance,
        "at-most": claim.expected + claim.tolerance - measured,
    }[claim.rule]


def standard_error(drawn: DrawnValues) -> float | None:
    """Return the standard error of the mean, or None where the draws do not tell it."""
    if drawn.error is not None:
        return drawn.error
    if len(drawn.values) < 2 or drawn.draws != len(drawn.values):
        return None
    return statistics.stdev(drawn.values) / math.sqrt(len(drawn.values))


def _by_error(by: float, error: float | None, draws: int) -> Outcome:
    if error is None or draws < FEWEST_DRAWS or abs(by) < STANDARD_ERRORS * error:
        return Outcome.UNDECIDED
    return Outcome.HOLDS if by >= 0 else Outcome.FAILS


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the verdict on one statement that several measurements speak about."""
    seen = set(outcomes)
    return next((outcome for outcome in _STRONGEST if outcome in seen), Outcome.UNSAID)


def statements(
    rows: Sequence[PaperRow], verdicts: Sequence[Verdict], by: str
) -> list[tuple[str, str, Outcome]]:
    """Return everything that counts once: its row, what is said, and the verdict.

    A group of claims is one statement; so is a row that a proof or the text itself settles.
    """
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.claim.kind == "claim" and verdict.claim.by == by:
            groups.setdefault(verdict.claim.group or f"claim {verdict.claim.id}", []).append(verdict)
    said = [
        (own[0].claim.row, own[0].claim.measure, together(one.outcome for one in own))
        for own in groups.values()
    ]
    return said + [
        (row.what, row.printed, Outcome(row.verdict)) for row in rows if row.verdict and row.by == by
    ]


def tally(paper: Paper, verdicts: Sequence[Verdict], by: str) -> Counter[Outcome]:
    """Count the statements of a paper, or of ours, by verdict."""
    return Counter(outcome for _, _, outcome in statements(paper.rows, verdicts, by))
