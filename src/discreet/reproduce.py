"""Run a paper's experiments again and hold the results against the numbers it prints.

A paper is a folder of `papers/` in a checkout: `claims.toml` says what is expected and how far off it may be,
`run.py` has a function `measure(quick, say)` that returns, for each claim's id, the values of its runs.
"""

from __future__ import annotations

import importlib
import math
import statistics
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from discreet.checks import DiscreetError, FileError, ParameterError

Say = Callable[[str], None]

_RULES: dict[str, Callable[[float, float, float], bool]] = {
    "within": lambda measured, expected, tolerance: abs(measured - expected) <= tolerance,
    "at-least": lambda measured, expected, tolerance: measured >= expected - tolerance,
    "at-most": lambda measured, expected, tolerance: measured <= expected + tolerance,
}


def papers_folder() -> Path:
    """Return the checkout's `papers/`; an installed package does not carry it."""
    for root in (Path(__file__).parents[2], Path.cwd()):
        if (root / "papers").is_dir() and (root / "pyproject.toml").is_file():
            return root / "papers"
    raise FileError(
        "The papers are not part of the installed package. Run `discreet reproduce` from a checkout."
    )


def names() -> list[str]:
    """Return the papers that can be run."""
    return sorted(path.parent.name.replace("_", "-") for path in papers_folder().glob("*/claims.toml"))


def reproduce(paper: str, *, quick: bool, say: Say) -> list[dict[str, Any]]:
    """Run a paper and return one row a claim: expected, measured, and whether it holds."""
    if paper not in names():
        raise ParameterError(f"paper={paper!r} is not known. The papers are {', '.join(names())}.")
    folder = papers_folder() / paper.replace("-", "_")
    claims = _read_claims(folder / "claims.toml")
    measured = load_paper(folder).measure(quick=quick, say=say)
    return [judge(claim, measured.get(claim["id"], ()), quick=quick) for claim in claims]


def judge(claim: Mapping[str, Any], values: Sequence[float], *, quick: bool = False) -> dict[str, Any]:
    """Hold the runs' mean against the claim; a claim without runs says why and does not hold."""
    mean = statistics.fmean(values) if values else None
    holds = (
        mean is not None
        and math.isfinite(mean)
        and _RULES[claim.get("rule", "within")](mean, claim["expected"], claim["tolerance"])
    )
    why = str(claim.get("why", ""))
    if not values:
        why = "not measured in the quick run" if quick else "not measured: its data is not at hand"
    return {
        "where": claim["where"],
        "measure": claim["measure"],
        "rule": claim.get("rule", "within"),
        "expected": claim["expected"],
        "tolerance": claim["tolerance"],
        "measured": mean,
        "spread": statistics.stdev(values) if len(values) > 1 else 0.0,
        "runs": len(values),
        "holds": holds,
        "why": why,
    }


def _read_claims(path: Path) -> list[dict[str, Any]]:
    claims: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf8"))["claim"]
    for claim in claims:
        missing = {"id", "where", "measure", "expected", "tolerance"} - set(claim)
        if missing or claim.get("rule", "within") not in _RULES:
            raise DiscreetError(
                f"A claim of {path.name} lacks {', '.join(sorted(missing)) or 'a known rule'}."
            )
    return claims


def load_paper(folder: Path) -> ModuleType:
    """Import a paper's `run.py` inside a package of its own, so that papers may call their modules alike."""
    name = f"discreet_paper_{folder.name}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    try:
        return importlib.import_module(f"{name}.run")
    except ModuleNotFoundError as error:
        raise FileError(f"{folder / 'run.py'} cannot be imported: {error}.") from error
