"""Pages about the papers: an overview, and one page per paper with figures, claims and readings."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from discreet.reproduce.claims import (
    Headline,
    Outcome,
    Paper,
    PaperRow,
    Verdict,
    grouped,
    over_readings,
    statements,
    strictly,
    tally,
    together,
)
from discreet.reproduce.errors import BadClaims
from discreet.reproduce.figures import THUMBNAIL
from discreet.reproduce.papers import claims_of, committed, draws_made, names, processor_hours, results_of

_INTRODUCTION = """# Five papers, reproduced

`discreet` implements the systems of five papers, and we repeated their experiments.
Each page shows our curves next to the printed curves, and a verdict on every claim.
It lists where our results differ from the paper.
`discreet papers reproduce PAPER --quick` repeats a small version within two minutes.
"""
_MEANING = """## Verdicts

| verdict | meaning |
|---|---|
| holds | a proof or a calculation confirms it, or measurements do, by at least two standard errors |
| fails | a proof or a calculation refutes it, or measurements do, by at least two standard errors |
| depends on the reading | the text allows several readings, and their verdicts differ |
| undecided | measurements differ by less than two standard errors, or have fewer than three draws |
| other set-up | our data, its size, or our settings differ too much from the paper's to judge it |
| cannot be said | we don't have the data, or the paper doesn't state enough |

We count the paper's statements and our own statements separately.
Several measurements of one statement count once.
We report all readings that we measured.
"""
_SHORT = {outcome: str(outcome) for outcome in Outcome} | {Outcome.FAILS: "**fails**"}
# Claims that contradict are listed first.
_ORDER = (
    Outcome.FAILS,
    Outcome.DEPENDS,
    Outcome.UNDECIDED,
    Outcome.HOLDS,
    Outcome.OTHER,
    Outcome.UNSAID,
)
_NAMED = re.compile(r"\{([a-zA-Z0-9.-]+)\}")


def papers_pages(out: Path, beside: Path) -> dict[str, str]:
    """Return all pages by their place under `beside`, for the results under `out`."""
    pages: dict[str, str] = {}
    overview = _table("", "paper", "verdicts on the paper's statements", "processor hours")
    changes = _table("paper", "claim", "was", "is", "why")
    for name in names():
        paper, verdicts = claims_of(name), committed(name, out)
        pages[f"papers/{name}.md"] = paper_page(name, out, beside / "papers", overview="../papers.md")
        picture = results_of(out, name) / THUMBNAIL
        link = Path(os.path.relpath(picture, beside)).as_posix()
        image = f"[![{name}]({link})](papers/{name}.md)" if picture.exists() else ""
        words = f"[{paper.title}](papers/{name}.md). {paper.line}"
        counted = _listed(tally(paper, verdicts, "paper")) or "our own audit of published claims"
        counted += f".{strict}" if (strict := _strict_count(paper, verdicts)) else ""
        overview.append(_line(image, words, counted, f"{processor_hours(name, out):.2f}"))
        changes += [
            _line(name, change.claim, change.was, _verdict_of(change, paper, verdicts), change.why)
            for change in paper.changes
        ]
    hours = sum(processor_hours(name, out) for name in names())
    total = f"All runs together took {hours:.1f} hours of one processor."
    more = "[Commands of the five papers](paper_commands.md) has one command for each part of a paper."
    lines = [_INTRODUCTION, *overview, "", total, more, "", _MEANING]
    reread = "We changed these verdicts after we read the papers again."
    lines += ["## Changed verdicts", "", reread, "", *changes, ""]
    return {"papers.md": "\n".join(lines)} | pages


def paper_page(name: str, out: Path, beside: Path, *, overview: str = "") -> str:
    """Return the page of one paper for the results under `out`, to be written to the folder `beside`."""
    paper, verdicts = claims_of(name), committed(name, out)
    by_id = {verdict.claim.id: verdict for verdict in verdicts}
    lines = [f"# {paper.title}", "", *paper.summary, ""]
    if paper.commands:
        lines += ["```sh", *paper.commands, "```", ""]
    if overview:
        lines += [f"[All papers]({overview}) · [all commands](../paper_commands.md)", ""]
    lines += _headlines(paper, verdicts, by_id)
    if paper.differences:
        lines += ["## Where our results differ from the paper", ""]
        lines += [*(f"- {_filled(text, by_id)}" for text in paper.differences), ""]
    lines += _figures(name, paper, out, beside)
    lines += _readings(verdicts)
    lines += ["## Every part of the paper", "", "Numbers are means ± one standard error of the mean.", ""]
    for row in paper.rows:
        own = [verdict for verdict in verdicts if verdict.claim.row == row.what]
        lines += [f"### {row.what}", "", *_row(row, own, by_id)]
        lines += _folded("claims", [one for one in own if one.claim.kind == "claim"])
        lines += _folded("sanity checks, not counted", [one for one in own if one.claim.kind == "sanity"])
    made = list(draws_made(name, out).values())
    if made:
        reached, wanted = (sum(column) for column in zip(*made, strict=True))
        lines.append(
            f"Draws: {reached:,} of {wanted:,}, in {processor_hours(name, out):.2f} processor hours.\n"
        )
    return "\n".join(lines)


def count(paper: Paper, verdicts: Sequence[Verdict]) -> str:
    """Return how many statements got which verdict, in words: the paper's, then ours."""
    said = ((by, tally(paper, verdicts, by)) for by in ("paper", "ours"))
    return "; ".join(f"{by}: {_listed(counts).replace('**', '')}" for by, counts in said if counts)


def row_verdict(row: PaperRow, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts on all statements of a row; ours follow `ours`."""
    parts = []
    own = [verdict for verdict in verdicts if verdict.claim.row == row.what]
    for by in ("paper", "ours"):
        counts = Counter(outcome for _, _, outcome in statements([row], own, by))
        if counts:
            mark = "ours: " if by == "ours" and not row.what.startswith("Ours") else ""
            parts.append(mark + _listed(counts))
    return "; ".join(parts) or "nothing is claimed"


def _headlines(paper: Paper, verdicts: Sequence[Verdict], by_id: Mapping[str, Verdict]) -> list[str]:
    if not paper.headlines:
        return []
    lines = ["## What the paper claims", "", *_table("claim", "printed", "we found", "verdict")]
    for one in paper.headlines:
        verdict = _verdict_of(one, paper, verdicts)
        lines.append(_line(one.claim, one.printed, _filled(one.ours, by_id), verdict))
    counted = f"All statements: {_listed(tally(paper, verdicts, 'paper'))}."
    return [*lines, "", counted + _strict_count(paper, verdicts), ""]


def _strict_count(paper: Paper, verdicts: Sequence[Verdict]) -> str:
    """Return the second count of a paper: the one without our mark for settings that it doesn't print."""
    plain, strict = (tally(paper, some, "paper") for some in (verdicts, strictly(verdicts)))
    if plain == strict:
        return ""
    excused = strict[Outcome.FAILS] - plain[Outcome.FAILS]
    return (
        f" For {excused} statements marked other set-up, the paper doesn't print the settings, and ours "
        f"miss the printed number. Without this mark: {_listed(strict)}."
    )


def _verdict_of(one: Headline, paper: Paper, verdicts: Sequence[Verdict]) -> str:
    """Return the verdict on the row, group or claim that an entry names."""
    rows = [row for row in paper.rows if row.what == one.of and row.verdict]
    groups = grouped(verdicts, "paper") | grouped(verdicts, "ours")
    own = groups.get(one.of) or groups.get(f"claim {one.of}")
    if own:
        return _SHORT[over_readings(own)]
    if rows:
        return _SHORT[Outcome(rows[0].verdict)]
    raise BadClaims(path="claims.toml", entry=str(one.claim), must="name a row, a group, or a claim")


def _figures(name: str, paper: Paper, out: Path, beside: Path) -> list[str]:
    """Return all figures of the rows: ours solid, printed dashed."""
    folder, lines = results_of(out, name), []
    for row in paper.rows:
        pictures = [one for one in row.picture.split(", ") if one and (folder / one).exists()]
        lines += [f"### {row.what}: our figures", ""] if pictures else []
        for picture in pictures:
            link = Path(os.path.relpath(folder / picture, beside)).as_posix()
            lines += [f"![{row.what}: {picture}]({link})", ""]
    words = "Solid curves are ours. Dashed curves with open markers are printed. Bars are one standard error."
    return ["## Figures", "", words, "", *lines] if lines else []


def _readings(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a table of all readings of each statement that allows several readings."""
    lines = []
    for words, group in (grouped(verdicts, "paper") | grouped(verdicts, "ours")).items():
        alike: dict[str, list[Verdict]] = {}
        for verdict in group:
            alike.setdefault(verdict.claim.reading, []).append(verdict)
        if len(alike) < 2:
            continue
        shown = f"{words}: **{over_readings(group)}**"
        for reading, own in alike.items():
            found = [one.measured for one in own if one.measured is not None]
            span = "" if not found else _span(min(found), max(found))
            outcome = _SHORT[together(one.outcome for one in own)]
            lines.append(_line(shown, reading, own[0].claim.asked(), span, outcome))
            shown = ""
    if not lines:
        return []
    words = "This table has every reading that we measured, with the range of its measurements."
    return [
        "## Readings",
        "",
        words,
        "",
        *_table("statement", "reading", "asked", "measured", "verdict"),
        *lines,
        "",
    ]


def _span(low: float, high: float) -> str:
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


def _row(row: PaperRow, own: Sequence[Verdict], by_id: Mapping[str, Verdict]) -> Iterator[str]:
    yield f"- Printed: {row.printed}"
    if row.found:
        yield f"- Found: {_filled(row.found, by_id)}"
    yield f"- Verdict: {row_verdict(row, own)}"
    yield f"- Why: {row.why}"
    yield "- Code: " + ", ".join(f"`{place}`" for place in row.code.split(", "))
    yield ""


def _folded(what: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    if not verdicts:
        return
    ordered = sorted(verdicts, key=lambda each: (_ORDER.index(each.outcome), each.claim.by))
    yield f'<details markdown="1"><summary>{len(verdicts)} {what}</summary>'
    yield ""
    yield from _table("measure", "source", "asked", "found", "draws", "verdict", "why")
    for verdict in ordered:
        claim = verdict.claim
        draws = "calculated" if claim.exact else str(verdict.runs)
        words = claim.measure if claim.where == claim.row else f"{claim.measure} ({claim.where})"
        yield _line(words, claim.by, claim.asked(), _found(verdict), draws, verdict.outcome, verdict.why)
    yield ""
    yield "</details>"
    yield ""


def _found(verdict: Verdict) -> str:
    if verdict.measured is None:
        return "not measured"
    return f"{verdict.measured:.4g}" + (f" ± {verdict.error:.2g}" if verdict.error else "")


def _filled(text: str, by_id: Mapping[str, Verdict]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in by_id:
            raise BadClaims(path="claims.toml", entry=match[1], must="exist, because a text names it")
        found = by_id[match[1]].measured
        return "not measured" if found is None else f"{found:.3g}"

    return _NAMED.sub(value, text)


def _listed(counts: Mapping[Outcome, int]) -> str:
    if sum(counts.values()) == 1:
        return _SHORT[next(one for one in Outcome if counts[one])]
    return ", ".join(f"{counts[one]} {_SHORT[one]}" for one in Outcome if counts[one])


def _table(*heads: str) -> list[str]:
    return [_line(*heads), "|" + "---|" * len(heads)]


def _line(*columns: str) -> str:
    return "| " + " | ".join(text.replace("\n", " ").replace("|", "\\|") for text in columns) + " |"
