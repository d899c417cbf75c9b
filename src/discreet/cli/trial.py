"""`discreet try`: find out whether a private model is worth it on your own data."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options.declared import AsJson, Data, Force, Reading
from discreet.cli.options.parsing import parse_number
from discreet.cli.output.printing import emit, show

if TYPE_CHECKING:
    from discreet.evaluation.trial import Trial


def trial(
    data: Data,
    reading: Reading,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            help="Privacy loss to try. Smaller is more private; 1 is a strong guarantee.",
            parser=parse_number,
            metavar="FLOAT",
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the split and of the simulated noise.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Also write a page (HTML) to this file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find out in a minute whether a private model beats private popularity on your data.

    Nothing is released and no budget is spent. The answer is for you, the data owner: no noise protects it.
    """
    from discreet.core.progress import terminal_progress
    from discreet.evaluation.trial import trial as run
    from discreet.evaluation.trial_page import KIND, render, summary
    from discreet.report.pages import refuse_page, write_page

    if out is not None:
        refuse_page(out, kind=KIND, force=force, inputs=_inputs(data, reading))
    if reading.implicit and reading.duplicates == "refuse" and reading.schema is None:
        # Users buy and click again. The next command states which of the repeats counts.
        reading = replace(reading, duplicates="last")
    interactions = reading.load(data)
    with terminal_progress(None) as report:
        found = run(interactions, epsilon=epsilon, seed=seed, progress=report)
    command = _next_command(found, data, reading)
    if out is not None:
        write_page(out, render(found, data, command), kind=KIND, force=force)
    if as_json:
        emit(_as_json(found, command, out))
        return
    show(*summary(found), "Next:", f"  {command}")
    if out is not None:
        show(f"Page written to {out}.")


def _inputs(data: str, reading: Reading) -> list[Path]:
    from discreet.data.inputs import files_of

    return [*files_of(data, reading.layout), *reading.files()]


def _as_json(found: Trial, command: str, out: Path | None) -> dict[str, Any]:
    return {**found.to_json(), "next": command, "report": None if out is None else str(out)}


def _next_command(found: Trial, data: str, reading: Reading) -> str:
    """Return the fit that the answer suggests, with all options that read the file."""
    model = [] if found.answer == "yes" else ["--model", "popularity"]
    purpose = ["--for", "lists"] if not model and not reading.implicit else []
    words = ["discreet", "fit", data]
    for option, value in reading.given().items():
        words += [option] if value is True else [option, str(value)]
    words += [*purpose, *model, "--epsilon", f"{found.asked.epsilon:g}", "--out", _model_file(data)]
    return shlex.join(words)


def _model_file(data: str) -> str:
    """Return a file name for a model of these data, which may be a pattern, a table, or an address."""
    if "://" in data or "::" in data:
        return "mine.discreet"
    return (re.sub(r"[^\w.]+", "-", Path(data).stem).strip("-.") or "mine") + ".discreet"
