"""Draw three pictures: the parts of a label, a ledger over a year, and who sees what in a federation."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from figure_style import BLUE, GRAY, ORANGE, use_style
from making import ROOT, Making

from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.accounting.rounding import sum_up

IMAGES = ROOT / "docs" / "images"
BUDGET, DELTA, RELEASES = 5.0, 1e-6, 12
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_STYLE = """<style>
.t{font:14px sans-serif;fill:#333} .s{font:12px sans-serif;fill:#555} .h{font:bold 14px sans-serif;fill:#333}
.box{fill:#fff;stroke:#888} .part{fill:#dfe9f5;stroke:#5a6b7d} .note{fill:#fbf3e6;stroke:#d55e00}
.k{stroke:#888;fill:none;stroke-width:1.5} .b{stroke:#0072b2;fill:none;stroke-width:2}
.o{stroke:#d55e00;fill:none;stroke-width:2;stroke-dasharray:6 4}
</style>"""
# Lines of a label with what they mean, by group.
_LABEL = {
    "the guarantee": (
        ("Guarantee", "PRIVATE", "or PRIVATE IF, with conditions"),
        ("epsilon, delta", "1, 1e-06", "how much one user can change the release"),
        ("Protects", "a user's whole history", "the unit: what stays hidden"),
        ("Against", "everyone but the user", "from whom it stays hidden"),
    ),
    "its basis": (
        ("Basis", "proved", "a proof note covers the code"),
        ("Assumed", "the catalog is public", "if false, the guarantee doesn't apply"),
        ("Noise", "operating system entropy", "simulated noise protects no user"),
    ),
    "its use": (
        ("Ledger", "release 3 of 12", "also what is spent and left, with --ledger"),
        ("Not for", "a user's rating of one item", "uses that the release doesn't support"),
    ),
}


def label() -> str:
    """Return the parts of a label, with the question that each line answers."""
    lines, y = [], 40
    for group, rows in _LABEL.items():
        height = 26 * len(rows) + 2
        lines.append(f'<rect class="part" x="138" y="{y - 18}" width="330" height="{height}" rx="6"/>')
        lines.append(f'<text class="h" x="14" y="{y}">{group}</text>')
        for name, value, meaning in rows:
            lines.append(f'<text class="h" x="150" y="{y}">{name}</text>')
            lines.append(f'<text class="t" x="268" y="{y}">{value}</text>')
            lines.append(f'<text class="s" x="482" y="{y}">{meaning}</text>')
            y += 26
        y += 18
    return _svg(760, y - 10, "The three groups of lines on a label, and what each line means", lines)


def federation() -> str:
    """Return who sends what in a federation with shared noise."""
    lines = []
    for place, name in enumerate(("party A", "party B", "party C")):
        y = 30 + 80 * place
        lines += [
            f'<rect class="part" x="14" y="{y}" width="180" height="60" rx="6"/>',
            f'<text class="h" x="26" y="{y + 24}">{name}</text>',
            f'<text class="s" x="26" y="{y + 44}">ratings stay here</text>',
            f'<path class="b" d="M194 {y + 26} C290 {y + 26} 300 140 398 140"/>',
            f'<path class="o" d="M194 {y + 48} C290 {y + 48} 300 296 398 296"/>',
        ]
    lines += [
        '<rect class="box" x="400" y="104" width="170" height="74" rx="6"/>',
        '<text class="h" x="412" y="128">coordinator</text>',
        '<text class="s" x="412" y="148">adds masked sums,</text>',
        '<text class="s" x="412" y="165">sees only noisy totals</text>',
        '<rect class="note" x="400" y="262" width="170" height="66" rx="6"/>',
        '<text class="h" x="412" y="286">keeper</text>',
        '<text class="s" x="412" y="306">has mask keys,</text>',
        '<text class="s" x="412" y="322">never an answer</text>',
        '<path class="k" d="M485 262 L485 180"/>',
        '<text class="s" x="494" y="226">sum of the masks</text>',
        '<path class="k" d="M570 140 L640 140"/>',
        '<rect class="part" x="642" y="110" width="104" height="62" rx="6"/>',
        '<text class="h" x="654" y="136">model</text>',
        '<text class="s" x="654" y="156">with its label</text>',
        '<path class="b" d="M14 296 L44 296"/><text class="s" x="52" y="300">sum + noise + mask</text>',
        '<path class="o" d="M14 318 L44 318"/><text class="s" x="52" y="322">key of the mask</text>',
    ]
    return _svg(760, 344, "Parties send masked sums to the coordinator and mask keys to the keeper", lines)


def draw_ledger(path: Path) -> None:
    """Write what twelve equal releases cost together after each month, by two accounts."""
    use_style()
    whole = gaussian_multiplier(BUDGET, DELTA)
    each = gaussian_epsilon(whole * RELEASES**0.5, DELTA)
    counts = range(1, RELEASES + 1)
    gaussian = [gaussian_epsilon(whole * (RELEASES / count) ** 0.5, DELTA) for count in counts]
    adding = [sum_up([each] * count) for count in counts]
    figure, axes = plt.subplots(figsize=(7, 3.8))
    axes.bar(MONTHS, [each] * RELEASES, color="#c9d6e3", label=f"one release: epsilon {each:.2f}")
    axes.plot(MONTHS, adding, "s--", color=ORANGE, label="spent, if epsilons are added")
    axes.plot(MONTHS, gaussian, "o-", color=BLUE, label="spent, in a Gaussian account")
    axes.axhline(BUDGET, color=GRAY, lw=1)
    axes.text(0, BUDGET, f"budget: epsilon {BUDGET:g}", va="bottom", fontsize=9, color=GRAY)
    axes.set(ylabel="epsilon", title=f"A ledger over a year, at delta {DELTA:g}")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.88))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _svg(width: int, height: int, about: str, lines: list[str]) -> str:
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
    page = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([f'{opening}aria-label="{about}">', _STYLE, page, *lines, "</svg>"]) + "\n"


def build(made: Making) -> None:
    """Write the files of this module."""
    for name, drawn in (("label", label), ("federation", federation)):
        made.write(IMAGES / f"{name}.svg", drawn())
    draw_ledger(made.place(IMAGES / "ledger.svg"))
