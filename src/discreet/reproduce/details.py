"""Write the page of one paper: each part with its plot, what was printed and found, and its claims folded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from discreet.core.checks import DiscreetError
from discreet.reproduce.claims import Outcome, Paper, PaperRow
from discreet.reproduce.judging import Verdict
from discreet.reproduce.papers import draws_made, results_of

# The number of a draw at the end of a step's name, and numbers inside it (epsilons, rounds, shares).
_LAST = re.compile(r"[, ]+(draw |run |split |fold )?\d+$")
_NUMBERS = re.compile(r"(?<=[ ,])(\d+(\.\d+)?%?|inf)(?=[ ,]|$)")
_NAMED = re.compile(r"\{([a-zA-Z0-9.-]+)\}")
# What contradicts a claim stands first.
_ORDER = (Outcome.FAILS, Outcome.UNDECIDED, Outcome.HOLDS, Outcome.OTHER, Outcome.UNSAID)


def details_page(name: str, paper: Paper, verdicts: Sequence[Verdict], out: Path, beside: Path) -> str:
    """Return the page of a paper; figures are linked relative to the folder `beside`."""
    by_id = {verdict.claim.id: verdict for verdict in verdicts}
    lines = [f"# {name}", "", f"{paper.title}. Measured by `discreet reproduce {name}`.", ""]
    lines += ["Numbers are means, with ± one standard error of the mean. [All papers](../papers.md).", ""]
    for row in paper.rows:
        own = [verdict for verdict in verdicts if verdict.claim.row == row.what]
        lines += [f"## {row.what}", "", *_row(row, own, by_id), *_pictures(name, row, out, beside)]
        lines += _folded("claims", [one for one in own if one.claim.kind == "claim"])
        lines += _folded("sanity checks, not counted", [one for one in own if one.claim.kind == "sanity"])
    return "\n".join([*lines, *_experiments(draws_made(name, out))])


def _experiments(made: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Yield a table of draws reached and wanted; experiments that differ in numbers only share a line."""
    if not made:
        return
    alike: dict[str, list[tuple[int, int]]] = {}
    for name, draws in made.items():
        alike.setdefault(_NUMBERS.sub("...", _LAST.sub("", name)), []).append(draws)
    yield "## Draws of every experiment\n"
    yield f'<details markdown="1"><summary>{len(made)} experiments</summary>\n'
    yield from table("experiment", "how many such", "draws each, reached", "wanted")
    for name, several in alike.items():
        reached, wanted = (sorted({pair[place] for pair in several}) for place in (0, 1))
        yield line(name, str(len(several)), _span(reached), _span(wanted))
    yield "\n</details>\n"


def _span(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _row(row: PaperRow, own: Sequence[Verdict], by_id: Mapping[str, Verdict]) -> Iterator[str]:
    yield f"- Printed: {row.printed}"
    found = _filled(row.found, by_id) if row.found else ""
    if found:
        yield f"- Found: {found}"
    if row.verdict:
        yield f"- Verdict: {row.verdict}"
    yield f"- Why: {row.why}"
    yield "- Code: " + ", ".join(f"`{place}`" for place in row.code.split(", "))
    if draws := draws_of(own):
        yield f"- Draws: {draws}"
    yield ""


def draws_of(verdicts: Sequence[Verdict]) -> str:
    """Return the least and the largest number of draws; calculations have none."""
    draws = sorted({one.runs for one in verdicts if not one.claim.exact and one.runs})
    return _span(draws) if draws else ""


def _folded(what: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    if not verdicts:
        return
    ordered = sorted(verdicts, key=lambda each: (_ORDER.index(each.outcome), each.claim.by))
    yield f'<details markdown="1"><summary>{len(verdicts)} {what}</summary>'
    yield ""
    yield from table("what is measured", "whose", "asked", "found", "draws", "verdict", "why")
    for verdict in ordered:
        claim = verdict.claim
        draws = "calculated" if claim.exact else str(verdict.runs)
        what = claim.measure if claim.where == claim.row else f"{claim.measure} ({claim.where})"
        yield line(what, claim.by, claim.asked(), measured(verdict), draws, verdict.outcome, verdict.why)
    yield ""
    yield "</details>"
    yield ""


def _pictures(name: str, row: PaperRow, out: Path, beside: Path) -> Iterator[str]:
    folder = results_of(out, name)
    for picture in filter(None, row.picture.split(", ")):
        if (folder / picture).exists():
            link = Path(os.path.relpath(folder / picture, beside)).as_posix()
            yield f"![{row.what}: {picture}]({link})\n"


def measured(verdict: Verdict) -> str:
    """Return the mean of the draws with its standard error."""
    if verdict.measured is None:
        return "not measured"
    return f"{verdict.measured:.4g}" + (f" ± {verdict.error:.2g}" if verdict.error else "")


def _filled(text: str, by_id: Mapping[str, Verdict]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in by_id:
            raise DiscreetError(f"A row names the claim {match[1]!r}, which is not in claims.toml.")
        found = by_id[match[1]]
        return "not measured" if found.measured is None else f"{found.measured:.4g}"

    return _NAMED.sub(value, text)


def anchor(title: str) -> str:
    """Return the mark of a heading, as the site and its hosts make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def table(*heads: str) -> list[str]:
    """Return the first two lines of a table."""
    return [line(*heads), "|" + "---|" * len(heads)]


def line(*columns: str) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(text.replace("\n", " ").replace("|", "\\|") for text in columns) + " |"
