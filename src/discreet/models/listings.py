"""Lists of items: each entry is a pair, with more by name, and a list is also a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeVar, final

from discreet.core.frames import FrameKind, to_frame
from discreet.report.pages import html_table

ItemId = str | int


class _Pair(tuple[ItemId, float]):
    """An item and a number, with more by name."""

    title: str | None

    @property
    def item(self) -> ItemId:
        """Return the item's id."""
        return self[0]

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return (*self, *vars(self).values())

    def __repr__(self) -> str:
        """Show all that is known."""
        known = "".join(f", {name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"({self[0]!r}, {self[1]!r}{known})"


@final
class ListedItem(_Pair):
    """An item and the ranking score that its list is sorted by: `item, score = listed`, or `listed.item`.

    `expected_stars` is the rating that the user is expected to give, if the model predicts one, and `title`
    the first public text that the model has for the item.
    """

    expected_stars: float | None

    def __new__(
        cls, item: ItemId, score: float, expected_stars: float | None = None, title: str | None = None
    ) -> Self:
        """An item and its score, with stars and title."""
        made = super().__new__(cls, (item, score))
        made.expected_stars, made.title = expected_stars, title
        return made

    @property
    def score(self) -> float:
        """Return the ranking score."""
        return self[1]

    @property
    def stars(self) -> float | None:
        """Return `expected_stars`, by its earlier name."""
        return self.expected_stars


# The largest confidence in a neighbor.
_SUREST = 0.999


@final
class SimilarItem(_Pair):
    """A neighbor and its similarity: `item, similarity = neighbor`, or `neighbor.item`; perhaps a `title`.

    `confidence` is the chance that it is a neighbor in what was found, and no work of the noise; at most
    0.999: the noise is estimated, so nothing is certain. It is None where no noise was added.
    """

    confidence: float | None

    def __new__(
        cls, item: ItemId, similarity: float, confidence: float | None = None, title: str | None = None
    ) -> Self:
        """An item and its similarity, with confidence and title."""
        made = super().__new__(cls, (item, similarity))
        made.confidence, made.title = None if confidence is None else min(confidence, _SUREST), title
        return made

    @property
    def similarity(self) -> float:
        """Return the similarity."""
        return self[1]


Entry = TypeVar("Entry", bound=ListedItem | SimilarItem)


def any_known(column: Sequence[object]) -> bool:
    """Return whether a column has a value anywhere."""
    return any(value is not None for value in column)


# Columns of numbers, also in an empty list, and those that are omitted if nothing is known.
_NUMBERS = ("score", "similarity", "confidence", "expected_stars")
_OPTIONAL = ("title", "confidence", "expected_stars")


@final
class Listing(list[Entry]):
    """A list of items, best first, that also is a table: `to_frame` and a view for notebooks.

    `frame_kind` is the kind of frame that the history came in, and `why_empty` states why nothing is listed.
    """

    def __init__(
        self, entries: Iterable[Entry] = (), *, frame_kind: FrameKind = "polars", why_empty: str = ""
    ) -> None:
        super().__init__(entries)
        self.frame_kind, self.why_empty = frame_kind, "" if self else why_empty

    def to_frame(self, kind: FrameKind | None = None) -> Any:
        """Return rank, item, score (or similarity), and where known title, expected_stars (or confidence).

        The frame is of the kind that the history came in, else of polars; `kind` names a different one.
        """
        return to_frame(_known(self.columns()), kind or self.frame_kind, numbers=_NUMBERS)

    def columns(self) -> dict[str, list[Any]]:
        """Return all columns, also those in which nothing is known."""
        similar = isinstance(self[0], SimilarItem) if self else bool(self.why_empty)
        score, extra = ("similarity", "confidence") if similar else ("score", "expected_stars")
        return {
            "rank": list(range(1, len(self) + 1)),
            "item": [one[0] for one in self],
            "title": [one.title for one in self],
            score: [one[1] for one in self],
            extra: [getattr(one, extra) for one in self],
        }

    def __repr__(self) -> str:
        """Show the entries; of an empty list, why it is empty."""
        return f"[] ({self.why_empty})" if self.why_empty else super().__repr__()

    def _repr_html_(self) -> str:
        return _view(self.columns(), self.why_empty)


@final
class SimilarItems(dict[ItemId, "Listing[SimilarItem]"]):
    """The neighbors of several items, by item, that also are one table with the item in `similar_to`."""

    def to_frame(self, kind: FrameKind = "polars") -> Any:
        """Return similar_to, rank, item, similarity, and where known title and confidence."""
        return to_frame(_known(self._columns()), kind, numbers=_NUMBERS)

    def _columns(self) -> dict[str, list[Any]]:
        rows = [(asked, rank, one) for asked, near in self.items() for rank, one in enumerate(near, 1)]
        return {
            "similar_to": [asked for asked, _, _ in rows],
            "rank": [rank for _, rank, _ in rows],
            "item": [one.item for *_, one in rows],
            "title": [one.title for *_, one in rows],
            "similarity": [one.similarity for *_, one in rows],
            "confidence": [one.confidence for *_, one in rows],
        }

    def _repr_html_(self) -> str:
        return _view(self._columns(), " ".join(near.why_empty for near in self.values() if near.why_empty))


def _known(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: column for name, column in columns.items() if name not in _OPTIONAL or any_known(column)}


def _view(columns: dict[str, list[Any]], remark: str) -> str:
    shown = _known(columns)
    return html_table(zip(*shown.values(), strict=True), header=list(shown), caption=remark)
