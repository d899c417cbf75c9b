"""Draw the picture of a continual release from the committed replay (benchmarks/results/follow.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from figure_style import use_style
from making import ROOT, Making

RESULT = ROOT / "benchmarks" / "results" / "follow.json"
PICTURE = ROOT / "docs" / "images" / "fresh.png"
EPSILON = "2"


def draw(found: dict[str, Any], path: Path) -> None:
    """Write the picture: HR@10 over a year, of a continual release and of an unchanged model."""
    use_style()
    figure, panels = plt.subplots(1, len(found), figsize=(9, 3.6))
    for axes, (name, result) in zip(panels, found.items(), strict=True):
        weekly = result["weekly"]
        cell = weekly[EPSILON]
        weeks = range(weekly["releases"] - len(cell["follow_by_release"]), weekly["releases"])
        axes.plot(weeks, cell["follow_by_release"], label="continual release")
        axes.plot(weeks, cell["stale_by_release"], label="from the start of the year")
        axes.axhline(weekly["without_privacy"], color="black", lw=0.8, ls=":", label="without privacy, mean")
        axes.set_title(name)
        axes.set_xlabel("week")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("HR@10 of the next interaction")
    figure.suptitle(f"One yearly budget: epsilon {EPSILON}, delta 1e-6 (one draw)")
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def build(made: Making) -> None:
    """Write the files of this module."""
    draw(json.loads(RESULT.read_text(encoding="utf8")), made.place(PICTURE))
