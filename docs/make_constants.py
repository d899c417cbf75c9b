"""Make constants.md: the tuned constants of user-factorization, and what each is worth."""

from __future__ import annotations

import json
from operator import attrgetter
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from making import Making

from discreet.models.user_factorization.settings import BOUND, EDGE, STATED, FactorizationSettings

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "constants.md"
RESULTS = ROOT / "benchmarks" / "results" / "ablation.json"
# A difference of so many standard errors is called clear; with few seeds some of these are still chance.
ERRORS = 5.0
USUAL = FactorizationSettings()
HEAD = """# Constants of `user-factorization`

Made by `docs/build.py constants` from `benchmarks/results/ablation.json`; do not edit. The values are in
`src/discreet/models/user_factorization/settings.py`. All of them are public.

The sections on half and double are an ablation of the constants of 0.2. One value replaces several of them
now.
Each constant was set to half and to double (or to the largest value that the budget allows). A model was
fitted on a validation part: each user's latest item is not used, and the item before it is hidden. Delta is
1e-5, and noise is simulated. A difference is the mean over seeds, against the usual value with the same
seed. It is in **bold** if it exceeds {errors:g} standard errors; there are few seeds and many cells, so a few
bold ones are chance. "=" means that no seed changed and "-" that the fit does not read the constant. HR@10 is
better when larger, RMSE when smaller.
"""


def cell(sides: dict[str, Any] | None, name: str) -> str:
    """Return the differences at half and double in one column."""
    if sides is None:
        return ""
    if not sides or not any(name in (one or {}) for one in sides.values()):
        return "-"
    return " / ".join(difference((sides.get(side) or {}).get(name)) for side in ("half", "double"))


def difference(found: dict[str, float] | None) -> str:
    """Return one difference, in bold if it is above the noise."""
    if found is None:
        return "."
    if found["mean"] == 0 and found["error"] == 0:
        return "="
    text = f"{found['mean']:+.3f}"
    return f"**{text}**" if is_clear(found) else text


def is_clear(found: dict[str, float]) -> bool:
    """Return whether a difference is above the noise."""
    return abs(found["mean"]) > ERRORS * found["error"] and abs(found["mean"]) >= 5e-4


def columns(found: dict[str, Any]) -> list[str]:
    """Return the measured cells of a data set."""
    return list(found["usual"])


def effects(results: dict[str, Any]) -> dict[str, set[str]]:
    """Return constants by what was seen: clear effects, no clear effect, no change at all, not read."""
    kinds: dict[str, set[str]] = {"clear": set(), "within noise": set(), "unchanged": set(), "unread": set()}
    for name in USUAL.described():
        cells = [
            one
            for data in results["data"].values()
            for side in data["constants"].get(name, {}).values()
            for key, one in (side or {}).items()
            if key != "value"
        ]
        if not cells:
            kinds["unread"].add(name)
        elif all(one["mean"] == 0 == one["error"] for one in cells):
            kinds["unchanged"].add(name)
        else:
            kinds["clear" if any(map(is_clear, cells)) else "within noise"].add(name)
    return kinds


def text(results: dict[str, Any]) -> str:
    """Return the page."""
    described = USUAL.described()
    lines = [HEAD.format(errors=ERRORS), "## Values", "", "| constant | value | meaning | chosen |"]
    lines += ["|---|---|---|---|"]
    lines += [
        f"| `{name}` | {attrgetter(name)(USUAL):g} | {one.meaning} | {one.chosen} |"
        for name, one in described.items()
    ]
    lines += ["", *compared(results["merged"])]
    for data, found in results["data"].items():
        usual = ", ".join(
            f"{name}: {one['mean']:.4f} ± {one['spread']:.4f}" for name, one in found["usual"].items()
        )
        lines += ["", f"## Half / double on {data}", ""]
        lines += [f"{found['seeds']} seeds. Usual values (mean and deviation over seeds): {usual}.", ""]
        lines += ["| constant | tried | " + " | ".join(columns(found)) + " |"]
        lines += ["|---|---|" + "---|" * len(columns(found))]
        lines += [row(name, found) for name in described if found["constants"].get(name)]
        unread = [f"`{name}`" for name in described if found["constants"].get(name) == {}]
        left = [f"`{name}`" for name in described if name not in found["constants"]]
        lines += ["", f"Not read by these fits: {', '.join(unread) or 'none'}."]
        lines += [f"Not measured: {', '.join(left) or 'none'}."]
    lines += ["", "## Summary", "", *summary(effects(results))]
    return "\n".join(lines) + "\n"


def compared(merged: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return the scores before and after constants were merged, with their deviation over seeds."""
    lines = [
        "## Before and after one value replaced several",
        "",
        "The same validation parts. Mean and standard deviation over seeds of simulated noise.",
        "",
        "| data, epsilon, purpose, metric | seeds | before | after |",
        "|---|---|---|---|",
    ]
    for key, before in merged["before"].items():
        scores = [before, merged["after"][key]]
        shown = [f"{mean(one):.4f} ± {stdev(one) if len(one) > 1 else 0:.4f}" for one in scores]
        lines.append(f"| {key} | {len(before)} | {' | '.join(shown)} |")
    return lines


def row(name: str, found: dict[str, Any]) -> str:
    """Return a constant's row for one data set."""
    sides = found["constants"][name]
    tried = " / ".join("." if sides[side] is None else f"{sides[side]['value']:g}" for side in sides)
    return f"| `{name}` | {tried} | " + " | ".join(cell(sides, one) for one in columns(found)) + " |"


def summary(kinds: dict[str, set[str]]) -> list[str]:
    """Return which constants matter here."""
    words = {
        "clear": "An effect above the noise",
        "within noise": "Differences within the noise",
        "unchanged": "No change at all",
        "unread": "Not read, not measured, or new",
    }
    lines = []
    for kind, names in kinds.items():
        listed = ", ".join(f"`{name}`" for name in USUAL.described() if name in names)
        lines.append(f"- {words[kind]} ({len(names)}): {listed or 'none'}.")
    chosen = [one.chosen for one in USUAL.described().values()]
    fixed = sum(one in (BOUND, EDGE, STATED) for one in chosen)
    keep = (
        f"Of {len(chosen)} settings, {len(chosen) - fixed} are tuned. Three tuned constants are elsewhere: "
        "`COUNT_PART` in `statistics/typical.py`, and two in `models/scorers/counts.py` that all models with "
        f"counts share. The other {fixed} settings bound time, memory, or sizes, are the edge of the noise "
        "in theory, or are a documented cost. Numbers with a reason are next to their code, such as weights "
        "of count^-1/2, which give all sums one variance."
    )
    return [*lines, "", keep]


def build(made: Making) -> None:
    """Write the files of this module."""
    measured = json.loads(RESULTS.read_text(encoding="utf8"))
    made.write(PAGE, text(measured))
