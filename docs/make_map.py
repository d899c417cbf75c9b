"""Draw the layers of the package from the import contract in pyproject.toml: `docs/images/layers.svg`."""

from __future__ import annotations

import tomllib
from html import escape

from making import ROOT, Making

PICTURE = ROOT / "docs" / "images" / "layers.svg"
# What a layer is for, by one of its packages.
_NOTES = {
    "__main__": "python -m discreet",
    "cli": "the command line",
    "service": "HTTP",
    "demo": "demo, papers",
    "model_settings": "models by name",
    "dossier": "documents to sign",
    "export": "models in other systems",
    "audit": "attacks",
    "evaluation": "plans, metrics",
    "sources": "shards and engines",
    "testing": "shipped for tests",
    "papers": "systems of five papers",
    "models": "estimators",
    "statistics": "contributions of a user",
    "data": "never import each other",
    "core": "checks, noise bytes, files",
}
_AUDITED = {"privacy", "statistics"}
_LEFT, _WIDTH, _HEIGHT, _GAP = 250, 640, 44, 8
_STYLE = (
    "text{fill:#1d2733}.note{fill:#444}rect.page{fill:#fbfaf7}rect.package{fill:#dfe9f5;stroke:#5a6b7d}"
    "rect.audited{fill:#ffe3b8}.down{fill:none;stroke:#5a6b7d;stroke-width:2}"
    "@media (prefers-color-scheme:dark){text{fill:#e6e9ee}.note{fill:#b9c0ca}rect.page{fill:#1e2129}"
    "rect.package{fill:#2c3a4d}rect.audited{fill:#5c431c}}"
)


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest first; folders end in a slash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    contract = project["tool"]["importlinter"]["contracts"][0]["layers"]
    packages = [[one.strip() for one in layer.replace(":", "|").split("|")] for layer in contract]
    return [
        [f"{one}/" if (ROOT / "src" / "discreet" / one).is_dir() else one for one in layer]
        for layer in packages
    ]


def text() -> str:
    """Return the picture."""
    rows = layers()
    height = len(rows) * (_HEIGHT + _GAP) + 60
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 {height}" font-family="system-ui, '
        'sans-serif" font-size="14" role="img" aria-label="The layers of the package: imports go down only">',
        f'<style>{_STYLE}</style><rect class="page" width="940" height="{height}"/>',
    ]
    for position, packages in enumerate(rows):
        out += _layer(position, packages)
    bottom = height - 46
    out += [
        f'<text class="note" x="16" y="{height - 18}">Imports go down only. Amber, with proofs/: what '
        "a guarantee rests on.</text>",
        f'<path class="down" d="M914 20 V{bottom} M908 {bottom - 10} L914 {bottom + 4} L920 {bottom - 10}"/>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def _layer(position: int, packages: list[str]) -> list[str]:
    top = 14 + position * (_HEIGHT + _GAP)
    names = {one.rstrip("/") for one in packages}
    note = next((words for name, words in _NOTES.items() if name in names), "")
    out = [f'<text class="note" x="16" y="{top + 27}">{note}</text>']
    width = (_WIDTH - _GAP * (len(packages) - 1)) / len(packages)
    for number, package in enumerate(packages):
        left = _LEFT + number * (width + _GAP)
        kind = "package audited" if package.rstrip("/") in _AUDITED else "package"
        out += [
            f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_HEIGHT}" rx="7"/>',
            f'<text x="{left + width / 2:.1f}" y="{top + 27}" text-anchor="middle">{escape(package)}</text>',
        ]
    return out


def build(made: Making) -> None:
    """Write the files of this module."""
    made.write(PICTURE, text())
