"""Turn released numbers and one person's own history into predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy.typing as npt

from discreet.arrays import Floats, Indices, Singles
from discreet.checks import DiscreetError, ParameterError
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.scorers.parts import Constant, Stored, plain_number


class Scorer(ABC):
    """Hold what a fit may publish and compute a person's predictions from that person's own row.

    `stored` declares every array and says why it may be published, `constants` the numbers besides; both name
    fields of the class. A file is read by these declarations alone (`kinds.build_scorer`).
    """

    __slots__ = ()

    kind: ClassVar[str]
    stored: ClassVar[Mapping[str, Stored]]
    constants: ClassVar[Mapping[str, Constant]] = {}
    #: Ratings above this are "liked" and predictions are signed; None for models that predict ratings.
    above: float | None = None
    #: Whether a person's vector is computed from ratings; otherwise which items were chosen is enough.
    needs_ratings: ClassVar[bool] = True
    #: What lists can be ordered by; the first is what `worth` does.
    rankings: ClassVar[tuple[str, ...]] = ()
    #: Whether an item's vector is the shorter, the less its noise lets through.
    shrunken: ClassVar[bool] = False

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return every array of the release by name."""
        parts = {name: getattr(self, name) for name in self.stored}
        return {name: part.ids if isinstance(part, Vocabulary) else part for name, part in parts.items()}

    def settings(self) -> dict[str, Any]:
        """Return the numbers besides the arrays, as JSON."""
        parts = {name: getattr(self, name) for name in self.constants}
        return {
            name: dict(part) if isinstance(part, Mapping) else plain_number(part)
            for name, part in parts.items()
        }

    def check(self) -> None:
        """Refuse parts from a file that are each as declared and do not fit together."""
        return

    @abstractmethod
    def fold_in(self, histories: Interactions) -> Floats:
        """Return one vector per person, each computed from that person's own row only."""

    @abstractmethod
    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the prediction for each cell (rows[c], items[c])."""

    @abstractmethod
    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item for each of these people; call it in blocks."""

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return what lists are ordered by, for every item for each of these people: here the scores."""
        return self.scores(histories, rows)

    def worth_by(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Singles:
        """Return what lists are ordered by when one of `rankings` is asked for; as usual if it is None."""
        if rank_by is None:
            return self.worth(histories, rows)
        known = ", ".join(self.rankings)
        said = f"It can rank by {known}." if known else "It orders lists in one way only; leave rank_by out."
        raise ParameterError(f"rank_by={rank_by!r} is not known to this model. {said}")

    def shown(self, scores: Floats) -> Floats:
        """Return scores as a person should read them; their order is already used."""
        return scores

    def shown_items(self, histories: Interactions, rows: Indices, items: Indices, worth: Floats) -> Floats:
        """Return what people (`rows`) read beside items, given the `worth` that ordered them."""
        return self.shown(worth)

    def explain(self) -> dict[str, Any]:
        """Return what the fit decided from public constants and released numbers, by name."""
        return {}

    def item_vectors(self) -> Floats:
        """Return one vector per item, where closeness means likeness."""
        raise DiscreetError("This model has no item vectors, so it cannot tell which items are alike.")
