"""Run the experiments of papers and keep their results.

Experiments are modules next to this one. Claims and printed numbers are in the checkout's `papers/`, and in
the wheel in `printed/` next to the experiments. Results are in the checkout only.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from discreet.core import CannotWrite, Progress, UnknownChoice, silent
from discreet.papers import PAPERS
from discreet.reproduce.claims import Paper, Verdict, judge, read_claims
from discreet.reproduce.copies import checked_copies, using
from discreet.reproduce.errors import FullRunKept, NotResults
from discreet.reproduce.figures import thumbnail
from discreet.reproduce.running import DrawnValues, Run, Size, quiet, read_steps

FOUND = "claims.json"
# Names under which papers were run before.
_EARLIER_NAMES = {"implicit": "dpimf", "local-mixture": "mixture"}
_ABSENT = {
    "full": "not measured: its data is not at hand, or no draw was reached",
    "quick": "not measured in the quick run",
    "toy": "not measured at toy size",
}


def papers_folder() -> Path:
    """Return the folder of claims and committed results: the checkout's `papers/`.

    In a wheel it is the folder `printed` next to the experiments, which has the claims and no results.
    """
    root = Path(__file__).parents[3]
    inside = (root / "papers").is_dir() and (root / "pyproject.toml").is_file()
    return root / "papers" if inside else Path(__file__).parent / "printed"


def names() -> list[str]:
    """Return the papers that can be run: the five papers, then our audit of them."""
    papers = (*PAPERS, "audit")
    return [paper for paper in papers if (papers_folder() / folder_of(paper) / "claims.toml").exists()]


def paper_called(name: str) -> str:
    """Return the paper of this name, or of the name that it had before.

    Raises:
        ParameterError: If the paper is unknown.
    """
    found = _EARLIER_NAMES.get(name, name)
    if found not in names():
        raise UnknownChoice(name="paper", value=name, choices=names())
    return found


def claims_of(paper: str) -> Paper:
    """Return what a paper claims."""
    return read_claims(papers_folder() / folder_of(paper) / "claims.toml")


def printed_numbers(paper: str) -> dict[str, Any]:
    """Return numbers of a paper's tables and figures, for figures here: `papers/PAPER/printed.json`."""
    path = papers_folder() / folder_of(paper) / "printed.json"
    return dict(json.loads(path.read_text(encoding="utf8")))


def folder_of(paper: str) -> str:
    """Return the name of a paper's folder."""
    return paper.replace("-", "_")


def reproduce(
    paper: str,
    *,
    size: Size = "full",
    out: Path | None = None,
    say: Callable[[str], None] = quiet,
    progress: Progress = silent,
    minutes: float = math.inf,
    draws: int | None = None,
    data: Mapping[str, Path] | None = None,
) -> list[Verdict]:
    """Run a paper and judge its claims; with `out`, numbers and figures go to `out/PAPER/results`.

    An interrupted run is resumed: its finished steps are in the same folder. After `minutes` no further step
    begins, and what was reached is judged; `draws` limits the draws of every experiment. `data` has
    paths of your copies of datasets by name, such as `{"netflix": folder}` (`copies.USED` lists the names).
    """
    paper = paper_called(paper)
    copies = checked_copies(paper, data or {})
    stated = claims_of(paper)
    claims = stated.claims
    folder = _prepared(results_of(out, paper), size) if out else None
    earlier = read_steps(results_of(papers_folder(), paper) / "steps.jsonl")
    run = Run(
        size,
        folder,
        say=say,
        progress=partial(progress, paper),
        earlier={step["step"]: step["seconds"] for step in earlier if step["size"] == size},
        minutes=minutes,
        most=draws,
        data=copies,
    )
    with using(copies):
        measured = load_paper(paper).measure(run)
    found = {claim.id: DrawnValues.of(measured.get(claim.id, ())) for claim in claims}
    if folder and stated.thumbnail:
        thumbnail(folder, stated.thumbnail)
    if run.missing:
        say(f"{len(run.missing)} parts were not reached, such as {run.missing[0]}.")
    records = {name: _record(drawn) for name, drawn in found.items()}
    run.write(FOUND, {"size": size, "draws": run.made, "claims": records})
    return [judge(claim, found[claim.id], absent=_ABSENT[size]) for claim in claims]


def results_of(out: Path, paper: str) -> Path:
    """Return the folder of a paper's results under `out`; the committed ones are under `papers/`."""
    return out / folder_of(paper) / "results"


def committed(paper: str, out: Path) -> list[Verdict]:
    """Judge a paper's claims by the results stored under a folder."""
    claims = claims_of(paper).claims
    content = _found(results_of(out, paper) / FOUND)
    kept = content.get("claims", {})
    absent = _ABSENT[content.get("size", "full")]
    return [judge(claim, _drawn(kept.get(claim.id)), absent=absent) for claim in claims]


def draws_made(paper: str, out: Path) -> dict[str, tuple[int, int]]:
    """Return how many draws of each experiment were reached and are wanted, by the name of its first step."""
    made = _found(results_of(out, paper) / FOUND).get("draws", {})
    return {name: (reached, wanted) for name, (reached, wanted) in made.items()}


def processor_hours(paper: str, out: Path) -> float:
    """Return the hours of one processor that the kept steps of a paper took.

    Steps of runs before the processor's time was kept count with the time that went by, which is longer.
    """
    steps = read_steps(results_of(out, paper) / "steps.jsonl")
    return float(sum(step.get("cpu", step["seconds"]) for step in steps)) / 3600


def load_paper(paper: str) -> ModuleType:
    """Return the module with a paper's function `measure`."""
    return importlib.import_module(f"discreet.reproduce.{folder_of(paper)}")


def _prepared(folder: Path, size: Size) -> Path:
    """Make the folder; a smaller run never replaces the results of a full one."""
    if size != "full" and _found(folder / FOUND).get("size") == "full":
        raise FullRunKept(folder=folder, size=size)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(path=folder, why=error.strerror) from error
    return folder


def _found(path: Path) -> Mapping[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf8"))) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise NotResults(path=path) from error


def _record(drawn: DrawnValues) -> dict[str, Any]:
    record = {"values": [float(value) for value in drawn.values], "draws": drawn.draws}
    return record if drawn.error is None else record | {"error": drawn.error}


def _drawn(record: Mapping[str, Any] | None) -> DrawnValues:
    return (
        DrawnValues(record["values"], record["draws"], record.get("error")) if record else DrawnValues((), 0)
    )
