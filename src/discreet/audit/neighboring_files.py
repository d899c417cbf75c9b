"""Write small files that differ by one user, whose ids, ratings and times are unusual.

One user's lines must not change how the others are read. Typical faults: one id turns a column of ids into
text, a new item renumbers the items, and many new items change a model's plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from discreet.data.schema import Schema

#: User, item, rating and time, as written in the file.
Line = tuple[str, str, str, str]
_COLUMNS = ("user", "item", "rating", "time")
#: How the files are written. It is declared, since a guess would be a condition of the guarantee.
SCHEMA = Schema(columns=_COLUMNS, user="user", item="item", rating="rating", time="time")
ITEMS = tuple(str(10 * (item + 1)) for item in range(6))
# So many new items would change the plan of a model that reads the size of the catalog from the data.
_MANY = 5_001
#: All files have the same name, which is public.
_NAME = "ratings of a month.csv"


def _lines(items: tuple[str, ...], rating: str = "5", user: str = "900", moment: str = "7") -> list[Line]:
    return [(user, item, rating, moment) for item in items]


#: Lines of the added user, by what is unusual about them.
CANARIES: Mapping[str, list[Line]] = {
    "an item id in text": _lines(("zebra",)),
    "item ids that look like numbers": _lines(
        ("007", "+20", "-0", "20.0", "1e3", "\uff12\uff10", str(2**63))
    ),
    "an item id with a comma and quotes": _lines(('a, "b"',)),
    "a new number before all others": _lines(("-5", "0")),
    "a new number between others": _lines(("15", "20")),
    "a new number behind all others": _lines((str(10**12),)),
    "a user id in text": _lines(ITEMS[:3], user="zoe"),
    "a user id that looks like a number": _lines(ITEMS[3:], user="007"),
    "all items, and one of their own": _lines((*ITEMS, "unheard of")),
    "ratings in odd writing": [
        ("900", "10", "5e0", "1"),
        ("900", "20", "4.50", "2"),
        ("900", "30", "4,5", "3"),
    ],
    "times in odd writing": [
        ("900", "10", "4", "2020-01-01"),
        ("900", "20", "4", "1e9"),
        ("900", "30", "1", "-1"),
    ],
    "many items of their own": _lines(tuple(str(10**6 + item) for item in range(_MANY))),
}
#: Ratings outside a declared scale, which are rejected when the file is read.
OUTSIDE: Mapping[str, list[Line]] = {
    "ratings far outside": [("900", "10", "1e30", "1"), ("900", "20", "-1e30", "2")],
    "a rating of 0 and one of 100": [("900", "10", "0", "1"), ("900", "20", "100", "2")],
}


def specs() -> Iterator[tuple[str, list[Line]]]:
    """Yield the lines of base files: with numbers as ids, with some ids in text, and with one item only."""
    people = [
        (str(user), item, str(1 + (user + index) % 5), str(user + index))
        for user in range(40)
        for index, item in enumerate(ITEMS)
        if (user + index) % 3
    ]
    yield "a file of numbers", people
    yield (
        "a file with text",
        [
            *people,
            *(("ann", item, "3", "5") for item in ITEMS[:2]),
            *((str(user), "film", "4", "9") for user in range(40)),
        ],
    )
    yield "a file of one item", [line for line in people if line[1] == ITEMS[0]]


def written(folder: Path, lines: list[Line]) -> Path:
    """Write the file into the folder, replacing the previous one."""
    path = folder / _NAME
    text = "\n".join(",".join(map(_field, line)) for line in [_COLUMNS, *lines])
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text
