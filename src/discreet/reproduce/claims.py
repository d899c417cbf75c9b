"""Read the claims of a paper, and judge whether the measured values agree."""

from __future__ import annotations

import dataclasses
import math
import statistics
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.core.checks import DiscreetError, FileError
from discreet.reproduce.running import DrawnValues

_RULES: dict[str, Callable[[float, float, float], bool]] = {
    "within": lambda measured, expected, tolerance: abs(measured - expected) <= tolerance,
    "at-least": lambda measured, expected, tolerance: measured >= expected - tolerance,
    "at-most": lambda measured, expected, tolerance: measured <= expected + tolerance,
}
#: A claim can fail and is counted; a sanity check guards our own code and is not counted.
_KINDS = ("claim", "sanity")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """Hold one expected number: the measured value must be within, at least or at most that number."""

    id: str
    where: str
    measure: str
    expected: float
    tolerance: float
    rule: str = "within"
    kind: str = "claim"
    row: str = ""
    why: str = ""

    def asked(self) -> str:
        """Return the expected number as a condition, in words."""
        words = {"within": "", "at-least": "at least ", "at-most": "at most "}[self.rule]
        give = f" ± {self.tolerance:g}" if self.tolerance else ""
        return f"{words}{self.expected:g}{give}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaperRow:
    """Describe an algorithm, theorem, table or figure of a paper: its code, and the result here.

    `found` may name claims: `{fig2-input-at-4}` becomes the measured value. `holds` is for rows whose
    answer does not follow from their claims.
    """

    what: str
    code: str
    printed: str
    why: str
    found: str = ""
    holds: str = ""
    picture: str = ""


@dataclasses.dataclass(frozen=True)
class Paper:
    """Hold the content of `claims.toml`."""

    title: str
    rows: tuple[PaperRow, ...]
    claims: tuple[Claim, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """Hold a claim with its measured value; `runs` is the number of draws that were really made."""

    claim: Claim
    measured: float | None
    spread: float
    runs: int
    holds: bool
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return one flat record."""
        return (
            dataclasses.asdict(self.claim)
            | {"measured": self.measured, "spread": self.spread, "runs": self.runs}
            | {"holds": self.holds, "why": self.why}
        )


def judge(claim: Claim, drawn: DrawnValues | Sequence[float], *, absent: str = "") -> Verdict:
    """Compare the runs' mean with the claim; a claim without runs does not hold, and `absent` says why."""
    values = drawn.values if isinstance(drawn, DrawnValues) else drawn
    mean = statistics.fmean(values) if values else None
    holds = (
        mean is not None and math.isfinite(mean) and _RULES[claim.rule](mean, claim.expected, claim.tolerance)
    )
    return Verdict(
        claim=claim,
        measured=mean,
        spread=statistics.stdev(values) if len(values) > 1 else 0.0,
        runs=drawn.draws if isinstance(drawn, DrawnValues) else len(values),
        holds=holds,
        why=claim.why if values else absent or "not measured: its data is not at hand",
    )


def read_claims(path: Path) -> Paper:
    """Read `claims.toml`; refuse an invalid one."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    claims = tuple(_build(Claim, record, path) for record in content.get("claim", ()))
    rows = tuple(_build(PaperRow, record, path) for record in content.get("row", ()))
    for claim in claims:
        if claim.rule not in _RULES or claim.kind not in _KINDS:
            raise DiscreetError(f"The claim {claim.id} of {path} has no known rule or kind.")
        if claim.row and claim.row not in {row.what for row in rows}:
            raise DiscreetError(f"The claim {claim.id} of {path} names a row that is not there: {claim.row}.")
    if len({claim.id for claim in claims}) < len(claims):
        raise DiscreetError(f"Two claims of {path} have the same id.")
    return Paper(title=str(content.get("title", path.parent.name)), rows=rows, claims=claims)


def _build(kind: type, record: Mapping[str, Any], path: Path) -> Any:
    try:
        return kind(**record)
    except TypeError as error:
        name = record.get("id") or record.get("what") or "without a name"
        raise DiscreetError(f"The entry {name} of {path} lacks a field or has an unknown one.") from error
