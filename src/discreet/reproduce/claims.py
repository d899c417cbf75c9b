"""Read what a paper claims: its parts, and numbers that a run can confirm or contradict."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from discreet.core.checks import DiscreetError, FileError

RULES = ("within", "at-least", "at-most")
#: A claim can fail and is counted; a sanity check guards our own code and is not counted.
KINDS = ("claim", "sanity")
#: Who says it: the paper, or this package in its place. The two are counted apart.
AUTHORS = ("paper", "ours")
#: Where a printed value comes from; values read off a figure are uncertain by 0.003.
SOURCES = ("", "text", "table", "figure", "theorem", "algorithm")


class Outcome(StrEnum):
    """Name what a run says about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    OTHER = "other set-up"
    UNSAID = "cannot be said"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """Hold one expected number: the measured value must be within, at least or at most that number.

    `exact` marks a calculation without draws. `setup` says which data, size or settings differ so much that
    nothing follows. `unprinted` names settings that the paper does not print: reaching its number with ours
    shows that it can be reached, missing it shows nothing. Claims of one `group` are one statement in several
    measurements, and count once.
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

    def asked(self) -> str:
        """Return the expected number as a condition, in words."""
        words = {"within": "", "at-least": "at least ", "at-most": "at most "}[self.rule]
        give = f" ± {self.tolerance:g}" if self.tolerance else ""
        return f"{words}{self.expected:g}{give}" + (f" ({self.source})" if self.source else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaperRow:
    """Describe an algorithm, theorem, table or figure of a paper: its code, and the result here.

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


@dataclasses.dataclass(frozen=True)
class Paper:
    """Hold the content of `claims.toml`."""

    title: str
    rows: tuple[PaperRow, ...]
    claims: tuple[Claim, ...]


def read_claims(path: Path) -> Paper:
    """Read `claims.toml`; refuse an invalid one."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    claims = tuple(_build(Claim, record, path) for record in content.get("claim", ()))
    rows = tuple(_build(PaperRow, record, path) for record in content.get("row", ()))
    for claim in claims:
        _require_known(claim, path)
        if claim.row and claim.row not in {row.what for row in rows}:
            raise DiscreetError(f"The claim {claim.id} of {path} names a row that is not there: {claim.row}.")
    for row in rows:
        if row.by not in AUTHORS or (row.verdict and row.verdict not in list(Outcome)):
            raise DiscreetError(f"The row {row.what} of {path} has no known verdict or author.")
    if len({claim.id for claim in claims}) < len(claims):
        raise DiscreetError(f"Two claims of {path} have the same id.")
    return Paper(title=str(content.get("title", path.parent.name)), rows=rows, claims=claims)


def _require_known(claim: Claim, path: Path) -> None:
    known = (
        (claim.rule, RULES),
        (claim.kind, KINDS),
        (claim.by, AUTHORS),
        (claim.source, SOURCES),
    )
    if any(word not in words for word, words in known):
        raise DiscreetError(f"The claim {claim.id} of {path} has no known rule, kind, author or source.")


def _build(kind: type, record: Mapping[str, Any], path: Path) -> Any:
    try:
        return kind(**record)
    except TypeError as error:
        name = record.get("id") or record.get("what") or "without a name"
        raise DiscreetError(f"The entry {name} of {path} lacks a field or has an unknown one.") from error
