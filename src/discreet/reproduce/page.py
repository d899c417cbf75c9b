"""Write one page about all papers: for each part its code, the printed and measured numbers, what holds."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from discreet.core.checks import DiscreetError
from discreet.reproduce.claims import Paper, PaperRow, Verdict, read_claims
from discreet.reproduce.papers import committed, names, papers_folder, results_of

_NAMED = re.compile(r"\{([a-z0-9.-]+)\}")
_INTRODUCTION = """# Papers, run again

Made by `python docs/make_papers.py` from the results in `papers/*/results`, which `discreet reproduce --all
--out papers` writes. A claim is a number that can fail: what a paper prints, or what we say in its place. A
sanity check guards our own code; it cannot fail by what it says, and is not counted. What fails stands first:
here by the part of the paper it belongs to, with how many of its claims fail; below claim by claim.
"""


def papers_page(out: Path, beside: Path) -> str:
    """Return the page for the results under `out`; figures are linked relative to the folder `beside`."""
    overview = _table("paper", "claims that hold", "sanity checks", "what does not hold")
    parts = []
    for name in names():
        paper = read_claims(papers_folder() / name.replace("-", "_") / "claims.toml")
        verdicts = committed(name, out)
        overview.append(_overview(name, verdicts))
        parts += [_section(name, paper, verdicts), *_pictures(name, paper, out, beside)]
    return "\n".join([_INTRODUCTION, *overview, "", *parts])


def count(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims hold, in words; sanity checks are not counted."""
    counted = [verdict for verdict in verdicts if verdict.claim.kind == "claim"]
    return f"{sum(verdict.holds for verdict in counted)} of {len(counted)}"


def _overview(name: str, verdicts: Sequence[Verdict]) -> str:
    sane = [verdict for verdict in verdicts if verdict.claim.kind == "sanity"]
    failing = Counter(verdict.claim.row or verdict.claim.where for verdict in verdicts if not verdict.holds)
    named = "; ".join(f"{part} ({times})" for part, times in failing.items())
    passed = f"{sum(verdict.holds for verdict in sane)} of {len(sane)}"
    return _line(f"[{name}](#{name})", count(verdicts), passed, named or "nothing")


def _section(name: str, paper: Paper, verdicts: Sequence[Verdict]) -> str:
    lines = [f"## {name}", "", paper.title, ""]
    lines += [f"**{count(verdicts)} claims hold.** `discreet reproduce {name}`", ""]
    if paper.rows:
        lines += _table("what", "code", "printed", "found", "holds", "why")
        lines += [_line(*row_columns(row, verdicts)) for row in paper.rows] + [""]
    lines += _table("claim", "where", "printed", "found", "draws", "holds", "why")
    lines += [_claim(verdict) for verdict in sorted(verdicts, key=lambda each: each.holds)]
    return "\n".join([*lines, ""])


def _claim(verdict: Verdict) -> str:
    claim = verdict.claim
    found = _measured(verdict) + (f" ± {verdict.spread:.2g}" if verdict.spread else "")
    holds = ("yes" if verdict.holds else "**no**") + (", sanity" if claim.kind == "sanity" else "")
    return _line(claim.measure, claim.where, claim.asked(), found, str(verdict.runs), holds, verdict.why)


def row_columns(row: PaperRow, verdicts: Sequence[Verdict]) -> tuple[str, str, str, str, str, str]:
    """Return the columns of a row: what, code, printed, found, holds, why."""
    own = [verdict for verdict in verdicts if verdict.claim.row == row.what]
    by_id = {verdict.claim.id: verdict for verdict in verdicts}
    found = _filled(row.found, by_id) if row.found else _listed(own)
    counted = [verdict for verdict in own if verdict.claim.kind == "claim"] or own
    held = sum(verdict.holds for verdict in counted)
    of_claims = "yes" if held == len(counted) else "**no**" if not held else f"{held} of {len(counted)}"
    holds = row.holds or (of_claims if counted else "")
    return row.what, f"`{row.code}`", row.printed, found, holds, row.why


def _listed(own: Sequence[Verdict]) -> str:
    return "; ".join(f"{verdict.claim.measure}: {_measured(verdict)}" for verdict in own)


def _filled(text: str, by_id: Mapping[str, Verdict]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in by_id:
            raise DiscreetError(f"A row names the claim {match[1]!r}, which is not in claims.toml.")
        return _measured(by_id[match[1]])

    return _NAMED.sub(value, text)


def _pictures(name: str, paper: Paper, out: Path, beside: Path) -> Iterator[str]:
    folder = results_of(out, name)
    for row in paper.rows:
        for picture in filter(None, row.picture.split(", ")):
            if (folder / picture).exists():
                link = Path(os.path.relpath(folder / picture, beside)).as_posix()
                yield f"![{row.what}: {picture}]({link})\n\n*{row.what}. Printed: {row.printed}*\n"


def _measured(verdict: Verdict) -> str:
    return "not measured" if verdict.measured is None else f"{verdict.measured:.4g}"


def _table(*heads: str) -> list[str]:
    return [_line(*heads), "|" + "---|" * len(heads)]


def _line(*columns: str) -> str:
    return "| " + " | ".join(text.replace("\n", " ").replace("|", "\\|") for text in columns) + " |"
