"""Draw the floors of the house from the import contract in pyproject.toml: `docs/images/house.svg`."""

from __future__ import annotations

import tomllib
from html import escape

from making import ROOT, making

PICTURE = ROOT / "docs" / "images" / "house.svg"
# What a floor is for, by a room of it.
_FLOORS = {
    "__main__": "the door",
    "cli": "what people type",
    "service": "what people call",
    "choosing": "advice, demo, papers",
    "recipes": "every estimator by name",
    "federated": "together, measured, attacked",
    "models": "ways to learn",
    "shards": "people on disk",
    "commands": "one file a verb",
    "contributions": "what one person adds",
    "data": "three that never meet",
    "randomness": "noise and files",
    "checks": "errors, types, names",
}
_PROMISE = {"privacy", "contributions"}
_LEFT, _WIDTH, _HEIGHT, _GAP = 250, 640, 44, 8
_STYLE = (
    "text{fill:#1d2733}.note{fill:#444}rect.page{fill:#fbfaf7}rect.room{fill:#dfe9f5;stroke:#5a6b7d}"
    "rect.promise{fill:#ffe3b8}.down{fill:none;stroke:#5a6b7d;stroke-width:2}"
    "@media (prefers-color-scheme:dark){text{fill:#e6e9ee}.note{fill:#b9c0ca}rect.page{fill:#1e2129}"
    "rect.room{fill:#2c3a4d}rect.promise{fill:#5c431c}}"
)


def floors() -> list[list[str]]:
    """Return the rooms of each floor, the highest first; folders end in a slash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = [[room.strip() for room in layer.replace(":", "|").split("|")] for layer in layers]
    return [
        [f"{room}/" if (ROOT / "src" / "discreet" / room).is_dir() else room for room in floor]
        for floor in rooms
    ]


def text() -> str:
    """Return the picture."""
    rows = floors()
    height = len(rows) * (_HEIGHT + _GAP) + 60
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 {height}" font-family="system-ui, '
        'sans-serif" font-size="14" role="img" aria-label="The floors of the house: imports go down only">',
        f'<style>{_STYLE}</style><rect class="page" width="940" height="{height}"/>',
    ]
    for place, rooms in enumerate(rows):
        out += _floor(place, rooms)
    bottom = height - 46
    out += [
        f'<text class="note" x="16" y="{height - 18}">Imports go down only. Amber, with proofs/: what '
        "a promise rests on.</text>",
        f'<path class="down" d="M914 20 V{bottom} M908 {bottom - 10} L914 {bottom + 4} L920 {bottom - 10}"/>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def _floor(place: int, rooms: list[str]) -> list[str]:
    top = 14 + place * (_HEIGHT + _GAP)
    named = next((words for room, words in _FLOORS.items() if room in {one.rstrip("/") for one in rooms}), "")
    out = [f'<text class="note" x="16" y="{top + 27}">{named}</text>']
    width = (_WIDTH - _GAP * (len(rooms) - 1)) / len(rooms)
    for number, room in enumerate(rooms):
        left = _LEFT + number * (width + _GAP)
        kind = "room promise" if room.rstrip("/") in _PROMISE else "room"
        out += [
            f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_HEIGHT}" rx="7"/>',
            f'<text x="{left + width / 2:.1f}" y="{top + 27}" text-anchor="middle">{escape(room)}</text>',
        ]
    return out


if __name__ == "__main__":
    with making(__doc__) as made:
        made.place(PICTURE).write_text(text(), encoding="utf8")
