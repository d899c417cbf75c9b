"""What a model answers: places in a list, neighbors of an item, and why an item stands where it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

ItemId = str | int


@final
class ListedItem(tuple[ItemId, float]):
    """An item and the ranking score that its list is sorted by: `item, score = listed`.

    `stars` is the rating that the person is expected to give, where the model knows one.
    """

    stars: float | None

    def __new__(cls, item: ItemId, score: float, stars: float | None = None) -> Self:
        """Hold the pair, and the stars beside it."""
        made = super().__new__(cls, (item, score))
        made.stars = stars
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return (*self, self.stars)

    def __repr__(self) -> str:
        """Show all three."""
        beside = "" if self.stars is None else f", stars={self.stars!r}"
        return f"({self[0]!r}, {self[1]!r}{beside})"


@final
class SimilarItem(tuple[ItemId, float]):
    """A neighbor and its similarity: `item, similarity = neighbor`.

    `confidence` is the chance that it is a neighbor and no work of the noise; None where no noise was added.
    """

    confidence: float | None

    def __new__(cls, item: ItemId, similarity: float, confidence: float | None = None) -> Self:
        """Hold the pair, and the confidence beside it."""
        made = super().__new__(cls, (item, similarity))
        made.confidence = confidence
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return (*self, self.confidence)

    def __repr__(self) -> str:
        """Show all three."""
        beside = "" if self.confidence is None else f", confidence={self.confidence!r}"
        return f"({self[0]!r}, {self[1]!r}{beside})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an item has its ranking score: `reference` plus all `parts` is `score`.

    The reference is the average item of the lower half of the person's own ranking, and each part says by how
    much the item is above or below it. `reasons` are the person's own ratings, each with what the score,
    against the reference, would lose without it; they overlap, so they do not add up.
    """

    item: ItemId
    score: float
    reference: float
    parts: Mapping[str, float]
    reasons: tuple[tuple[ItemId, float], ...]
    ranked_by: str
    #: The item's place among those the person has not met, None if they have.
    rank: int | None

    def __iter__(self) -> Iterator[tuple[ItemId, float]]:
        """Go through the reasons, strongest first."""
        return iter(self.reasons)

    def __len__(self) -> int:
        """Return how many reasons there are."""
        return len(self.reasons)

    def __getitem__(self, place: int) -> tuple[ItemId, float]:
        """Return a reason by its place."""
        return self.reasons[place]
