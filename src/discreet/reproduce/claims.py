"""Claims of a paper, and how measured values judge them.

`papers/PAPER/claims.toml` has the parts of a paper (rows) and numbers that a run can confirm or contradict.
A statement of the paper counts once, however many measurements it has. If fair readings of one statement
disagree, its verdict is "depends on the reading".
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from discreet.core import FileUnreadable
from discreet.reproduce.errors import BadClaims
from discreet.reproduce.running import DrawnValues

RULES = ("within", "at-least", "at-most")
#: A claim can fail and is counted; a sanity check guards our own code and is not counted.
KINDS = ("claim", "sanity")
#: The source of a claim: the paper, or this package. The two are counted apart.
AUTHORS = ("paper", "ours")
#: Where a printed value is from; values read off a figure are uncertain by 0.003 (0.01 for DPIMF).
SOURCES = ("", "text", "table", "figure", "theorem", "algorithm")
#: A claim is decided beyond this many standard errors of the mean, and not with fewer draws.
STANDARD_ERRORS = 2.0
FEWEST_DRAWS = 3


class Outcome(StrEnum):
    """Verdict on a claim or a statement.

    Example:
        >>> str(together([Outcome.HOLDS, Outcome.FAILS]))
        'fails'

    Stability
        Provisional: names may still change in 0.x.
    """

    HOLDS = "holds"
    FAILS = "fails"
    DEPENDS = "depends on the reading"
    UNDECIDED = "undecided"
    OTHER = "other set-up"
    UNSAID = "cannot be said"


# The verdict on several measurements of one reading is the first of these that occurs.
_STRONGEST = (Outcome.FAILS, Outcome.UNDECIDED, Outcome.HOLDS, Outcome.OTHER, Outcome.UNSAID)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """One expected number: the measured value must be within, at least or at most that number.

    `exact` marks a calculation without draws. `setup` states which data, size or settings differ so much that
    nothing follows. `unprinted` names settings that the paper does not print: reaching its number with ours
    shows that the number can be reached, and missing it shows nothing. Claims of one `group` are one
    statement. `reading` names the way in which the statement was understood.
    """

    id: str
    where: str
    measure: str
    expected: float
    tolerance: float
    rule: str = "within"
    kind: str = "claim"
    row: str = ""
    why: str = ""
    by: str = "paper"
    exact: bool = False
    setup: str = ""
    unprinted: str = ""
    source: str = ""
    group: str = ""
    reading: str = ""

    def asked(self) -> str:
        """Return the expected number as a condition, in words."""
        words = {"within": "", "at-least": "at least ", "at-most": "at most "}[self.rule]
        give = f" ± {self.tolerance:g}" if self.tolerance else ""
        return f"{words}{self.expected:g}{give}" + (f" ({self.source})" if self.source else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaperRow:
    """An algorithm, theorem, table or figure of a paper: its code, and the result here.

    `found` may name claims: `{fig2-input-at-4}` becomes the measured value. `verdict` is for a statement that
    is settled by a proof or by reading, not by a claim of `claims.toml`; it counts as one.
    """

    what: str
    code: str
    printed: str
    why: str
    found: str = ""
    verdict: str = ""
    by: str = "paper"
    picture: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Headline:
    """One line of the table that a reader sees first. `of` names a row with a verdict, a group or a claim."""

    claim: str
    of: str
    printed: str = ""
    ours: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change(Headline):
    """A verdict that a second reading changed, with the reason."""

    was: str
    why: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paper:
    """Content of `claims.toml`: texts for readers, parts of the paper, and claims."""

    title: str
    rows: tuple[PaperRow, ...]
    claims: tuple[Claim, ...]
    line: str = ""
    summary: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    thumbnail: str = ""
    headlines: tuple[Headline, ...] = ()
    changes: tuple[Change, ...] = ()


def read_claims(path: Path) -> Paper:
    """Return the content of `claims.toml`.

    Raises:
        DiscreetError: If an entry lacks a field, or has an unknown one or an unknown word.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileUnreadable(path=path, reason=str(error)) from error
    claims = tuple(_build(Claim, record, path) for record in content.get("claim", ()))
    rows = tuple(_build(PaperRow, record, path) for record in content.get("row", ()))
    for claim in claims:
        _require_known(claim, path)
        if claim.row and claim.row not in {row.what for row in rows}:
            raise BadClaims(path=path, entry=claim.id, must=f"name a row that exists, not {claim.row}")
    for row in rows:
        if row.by not in AUTHORS or (row.verdict and row.verdict not in list(Outcome)):
            raise BadClaims(path=path, entry=row.what, must="have a known verdict and author")
    if len({claim.id for claim in claims}) < len(claims):
        raise BadClaims(path=path, entry="id", must="be different for each claim")
    return Paper(
        title=str(content.get("title", path.parent.name)),
        rows=rows,
        claims=claims,
        line=content.get("line", ""),
        summary=tuple(content.get("summary", ())),
        commands=tuple(content.get("commands", ())),
        differences=tuple(content.get("differences", ())),
        thumbnail=content.get("thumbnail", ""),
        headlines=tuple(_build(Headline, record, path) for record in content.get("headline", ())),
        changes=tuple(_build(Change, record, path) for record in content.get("change", ())),
    )


def _require_known(claim: Claim, path: Path) -> None:
    known = (
        (claim.rule, RULES),
        (claim.kind, KINDS),
        (claim.by, AUTHORS),
        (claim.source, SOURCES),
    )
    if any(word not in words for word, words in known):
        raise BadClaims(path=path, entry=claim.id, must="have a known rule, kind, author and source")
    if claim.reading and not claim.group:
        raise BadClaims(path=path, entry=claim.id, must="name the group that it is a reading of")


def _build(kind: type, record: Mapping[str, Any], path: Path) -> Any:
    try:
        return kind(**record)
    except TypeError as error:
        name = record.get("id") or record.get("what") or "without a name"
        raise BadClaims(path=path, entry=str(name), must="have all fields and no others") from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim with its measured value; `runs` is the number of draws that were made.

    `reproduce` returns one for each claim of a paper.
    `strict` is the outcome without the excuse of settings that the paper doesn't print.

    Example:
        >>> claim = Claim(id="rmse", where="Table 1", measure="RMSE", expected=0.9, tolerance=0.01,
        ...         exact=True)
        >>> str(judge(claim, [0.905]).outcome)
        'holds'

    Stability
        Provisional: names may still change in 0.x.
    """

    claim: Claim
    measured: float | None
    error: float | None
    runs: int
    outcome: Outcome
    strict: Outcome
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return one flat record."""
        return (
            dataclasses.asdict(self.claim)
            | {"measured": self.measured, "error": self.error, "runs": self.runs}
            | {"outcome": str(self.outcome), "strict": str(self.strict), "why": self.why}
        )


def judge(claim: Claim, drawn: DrawnValues | Sequence[float], *, absent: str = "") -> Verdict:
    """Return the verdict on a claim, by the standard error of the draws' mean.

    `absent` states why draws are missing.
    """
    drawn = DrawnValues.of(drawn)
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
    strict = outcome
    if outcome is Outcome.FAILS and claim.unprinted:
        outcome, why = Outcome.OTHER, " ".join(filter(None, (claim.unprinted, claim.why)))
    return Verdict(
        claim=claim,
        measured=statistics.fmean(drawn.values) if finite else None,
        error=error,
        runs=drawn.draws,
        outcome=outcome,
        strict=strict,
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
    """Return the standard error of the mean, or None if the draws don't give it."""
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
    """Return the verdict on one reading of a statement that has several measurements."""
    seen = set(outcomes)
    return next((outcome for outcome in _STRONGEST if outcome in seen), Outcome.UNSAID)


def over_readings(verdicts: Sequence[Verdict]) -> Outcome:
    """Return the verdict on a statement: "depends" if one reading holds and another fails.

    A reading that is undecided or was not measured leaves a statement of several readings undecided.
    """
    by_reading = set(readings(verdicts).values())
    if {Outcome.HOLDS, Outcome.FAILS} <= by_reading:
        return Outcome.DEPENDS
    open_readings = by_reading & {Outcome.UNDECIDED, Outcome.UNSAID}
    if open_readings and by_reading & {Outcome.HOLDS, Outcome.FAILS}:
        return Outcome.UNDECIDED
    return together(by_reading)


def readings(verdicts: Sequence[Verdict]) -> dict[str, Outcome]:
    """Return the verdict on each reading of one statement, by its words."""
    alike: dict[str, list[Outcome]] = {}
    for verdict in verdicts:
        alike.setdefault(verdict.claim.reading, []).append(verdict.outcome)
    return {reading: together(outcomes) for reading, outcomes in alike.items()}


def grouped(verdicts: Sequence[Verdict], by: str) -> dict[str, list[Verdict]]:
    """Return the counted claims of one author, those of one statement together."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.claim.kind == "claim" and verdict.claim.by == by:
            groups.setdefault(verdict.claim.group or f"claim {verdict.claim.id}", []).append(verdict)
    return groups


def statements(
    rows: Sequence[PaperRow], verdicts: Sequence[Verdict], by: str
) -> list[tuple[str, str, Outcome]]:
    """Return everything that counts once: its row, its words, and the verdict.

    A group of claims is one statement. A row that a proof or the text itself settles is another.
    """
    said = [
        (own[0].claim.row, own[0].claim.measure, over_readings(own)) for own in grouped(verdicts, by).values()
    ]
    return said + [
        (row.what, row.printed, Outcome(row.verdict)) for row in rows if row.verdict and row.by == by
    ]


def tally(paper: Paper, verdicts: Sequence[Verdict], by: str) -> Counter[Outcome]:
    """Return the number of statements of a paper, or of ours, by verdict."""
    return Counter(outcome for _, _, outcome in statements(paper.rows, verdicts, by))


def strictly(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts without the excuse of settings that the paper doesn't print."""
    return [dataclasses.replace(verdict, outcome=verdict.strict) for verdict in verdicts]
