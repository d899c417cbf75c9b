"""Write the pages about all papers: one to read in five minutes, and one a paper with all that is behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.reproduce.changes import changes
from discreet.reproduce.claims import Outcome, Paper, PaperRow
from discreet.reproduce.details import anchor, details_page, draws_of, line, table
from discreet.reproduce.judging import Verdict, statements, tally
from discreet.reproduce.papers import claims_of, committed, draws_made, names, processor_hours

_INTRODUCTION = """# Papers, run again

One line for each theorem, algorithm, table and figure of a paper. The linked pages have plots, code, every
claim and its draws.

| verdict | meaning |
|---|---|
| holds | more than two standard errors on the right side, or a calculation or proof |
| fails | more than two standard errors on the wrong side, or a calculation or proof |
| undecided | within two standard errors, or fewer than three draws |
| other set-up | data, size or settings differ so that nothing follows, or are not printed and ours miss |
| cannot be said | the data is not at hand, or the paper does not say enough |

What a paper says is counted apart from what is ours: what we say in its place, and what we read into it
where it leaves room. Several measurements of one statement count once in the table, also where two parts show
them. A sanity check guards our own code and is not counted. A statement that is settled by reading or by a
proof has no draws. Two standard errors of three draws are less sure than of ten; every claim tells its draws.
"""
_TOTAL = """Draws: the fewest and the most behind a claim, and how many of those wanted were reached, all
experiments together. In sum {reached:,} of {wanted:,}, in {hours:.1f} hours of one processor; steps of
earlier runs count with the time that went by, which is longer. `discreet reproduce PAPER --out papers` makes
the draws that are missing, and goes on after a stop."""
_SHORT = {
    Outcome.HOLDS: "holds",
    Outcome.FAILS: "**fails**",
    Outcome.UNDECIDED: "undecided",
    Outcome.OTHER: "other set-up",
    Outcome.UNSAID: "cannot be said",
}


def papers_pages(out: Path, beside: Path) -> dict[str, str]:
    """Return all pages by their place under `beside`, for the results under `out`."""
    pages: dict[str, str] = {}
    judged: dict[str, Sequence[Verdict]] = {}
    overview, parts = table("paper", "whose", *Outcome, "draws", "reached", "processor hours"), []
    for name in names():
        paper = claims_of(name)
        verdicts = judged[name] = committed(name, out)
        pages[f"papers/{name}.md"] = details_page(name, paper, verdicts, out, beside / "papers")
        overview += _counted(name, paper, verdicts, out)
        parts.append(_section(name, paper, verdicts))
    parts += changes(judged)
    reached, wanted = _reached([made for name in names() for made in draws_made(name, out).values()])
    hours = sum(processor_hours(name, out) for name in names())
    total = _TOTAL.format(reached=reached, wanted=wanted, hours=hours)
    return {"papers.md": "\n".join([_INTRODUCTION, *overview, "", total, "", *parts])} | pages


def single_page(name: str, out: Path, beside: Path) -> str:
    """Return the page of one paper for the results under `out`, to be written to the folder `beside`."""
    text = details_page(name, claims_of(name), committed(name, out), out, beside)
    return text.replace(" [All papers](../papers.md).", "")


def count(paper: Paper, verdicts: Sequence[Verdict]) -> str:
    """Return how many statements got which verdict, in words: the paper's, then ours."""
    said = ((by, tally(paper, verdicts, by)) for by in ("paper", "ours"))
    return "; ".join(f"{by}: {_listed(counts).replace('**', '')}" for by, counts in said if counts)


def _counted(name: str, paper: Paper, verdicts: Sequence[Verdict], out: Path) -> list[str]:
    reached, wanted = _reached(list(draws_made(name, out).values()))
    spent = (f"{reached:,} of {wanted:,}", f"{processor_hours(name, out):.2f}") if wanted else ("", "")
    lines: list[str] = []
    for by in ("paper", "ours"):
        counts = tally(paper, verdicts, by)
        if counts:
            link = f"[{name}](#{name})" if not lines else ""
            draws = draws_of([one for one in verdicts if one.claim.by == by])
            lines.append(line(link, by, *(str(counts[one] or "") for one in Outcome), draws, *spent))
            spent = ("", "")
    return lines


def _reached(made: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(reached for reached, _ in made), sum(wanted for _, wanted in made)


def _section(name: str, paper: Paper, verdicts: Sequence[Verdict]) -> str:
    lines = [f"## {name}", "", f"{paper.title}. [Details](papers/{name}.md); `discreet reproduce {name}`", ""]
    lines += table("part", "verdict", "why")
    for row in paper.rows:
        link = f"[{row.what}](papers/{name}.md#{anchor(row.what)})"
        lines.append(line(link, row_verdict(row, verdicts), row.why))
    return "\n".join([*lines, ""])


def row_verdict(row: PaperRow, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts on everything that a row says; what we say in it stands behind `ours`."""
    parts = []
    own = [verdict for verdict in verdicts if verdict.claim.row == row.what]
    for by in ("paper", "ours"):
        counts = Counter(outcome for _, _, outcome in statements([row], own, by))
        if counts:
            mark = "ours: " if by == "ours" and not row.what.startswith("Ours") else ""
            parts.append(mark + _listed(counts))
    return "; ".join(parts) or "nothing is claimed"


def _listed(counts: Mapping[Outcome, int]) -> str:
    if sum(counts.values()) == 1:
        return _SHORT[next(one for one in Outcome if counts[one])]
    return ", ".join(f"{counts[one]} {_SHORT[one]}" for one in Outcome if counts[one])
