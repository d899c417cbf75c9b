"""Keep a release together with its promise: predict, recommend, save and load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats, Singles
from discreet.checks import DataError, ParameterError, integer
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Guarantee

ItemId = str | int
History = Mapping[ItemId, float] | Iterable[ItemId]
# Nobody in the data is called this: a release with rows of its own people must not take a visitor for one.
_NEWCOMER = "(a newcomer)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel:
    """Answer from what was released; a person's vector comes from the history that person brings."""

    guarantee: Guarantee
    facts: PublicFacts
    catalog: Vocabulary
    name: str
    parameters: dict[str, Any]
    scorer: Scorer

    @property
    def above(self) -> float | None:
        """Return the rating above which a verdict is +1, or None for models that predict ratings."""
        return self.scorer.above

    def predict(self, histories: Interactions, rows: npt.ArrayLike, items: npt.ArrayLike) -> Floats:
        """Return a prediction for each cell (rows[c], items[c]) of people whose histories are given."""
        self._same_catalog(histories)
        rows, items = np.asarray(rows, dtype=np.int64), np.asarray(items, dtype=np.int64)
        if rows.shape != items.shape:
            raise ParameterError(
                f"rows has shape {rows.shape}, items has {items.shape}; they name cells together."
            )
        if rows.size and not (rows.min() >= 0 and rows.max() < histories.n_users):
            raise ParameterError("rows names people outside the histories.")
        if items.size and not (items.min() >= 0 and items.max() < len(self.catalog)):
            raise ParameterError("items names items outside the catalog.")
        return self.scorer.predict(histories, rows, items)

    def scores(self, histories: Interactions, rows: npt.ArrayLike) -> Singles:
        """Return a score for every item of the catalog for each of these people."""
        self._same_catalog(histories)
        return self.scorer.scores(histories, np.asarray(rows, dtype=np.int64))

    def worth(self, histories: Interactions, rows: npt.ArrayLike) -> Singles:
        """Return what `recommend` orders items by, for each of these people; evaluations rank by it too."""
        self._same_catalog(histories)
        return self.scorer.worth(histories, np.asarray(rows, dtype=np.int64))

    def recommend(
        self, history: History, k: int = 10, *, exclude_seen: bool = True
    ) -> list[tuple[ItemId, float]]:
        """Return the `k` best items for a person with this history, best first.

        `history` maps item ids to ratings, or lists the ids a person chose. It is used here and forgotten.
        """
        integer("k", k, least=1)
        person = self._person(history)
        scores = self.scorer.worth(person, np.zeros(1, dtype=np.int64))[0].astype(np.float64)
        if exclude_seen:
            scores[person.items] = -np.inf
        open_items = int(np.count_nonzero(scores > -np.inf))
        best = np.argsort(-scores, kind="stable")[: min(k, open_items)]
        shown = self.scorer.shown(scores[best])
        return list(zip(self.catalog.id_at(best).tolist(), shown.tolist(), strict=True))

    def fold_in(self, history: History) -> Floats:
        """Return the vector that stands for a person with this history."""
        vector: Floats = self.scorer.fold_in(self._person(history))[0]
        return vector

    def similar_items(self, item: ItemId, k: int = 10) -> list[tuple[ItemId, float]]:
        """Return the `k` items most like this one by the angle between their vectors."""
        integer("k", k, least=1)
        vectors = self.scorer.item_vectors()
        index = int(self.catalog.index_of([item])[0])
        if index < 0:
            raise DataError("This item is not in the model's catalog.")
        lengths = np.linalg.norm(vectors, axis=1)
        cosine = vectors @ vectors[index] / np.maximum(lengths * lengths[index], np.finfo(np.float64).tiny)
        cosine[index] = -np.inf
        best = np.argsort(-cosine, kind="stable")[: min(k, len(self.catalog) - 1)]
        return [
            (other, float(cosine[i]))
            for other, i in zip(self.catalog.id_at(best).tolist(), best, strict=True)
        ]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the model and its label to one file; an existing file is kept unless `force`."""
        from discreet.models.storage import save

        save(self, Path(path), force=force)

    def _same_catalog(self, histories: Interactions) -> None:
        if histories.catalog is not self.catalog and histories.catalog != self.catalog:
            raise DataError("The histories name another catalog than the model was fitted on.")

    def _person(self, history: History) -> Interactions:
        """Return the one row of a person, in the model's catalog."""
        if isinstance(history, str | bytes) or not isinstance(history, Iterable):
            raise DataError("A history is a mapping from item to rating, or a list of item ids.")
        # A series of pandas is a mapping that does not say so.
        pairs = getattr(history, "items", None)
        if callable(pairs):
            history = dict(pairs())
        ids = list(history)
        unknown = int(np.count_nonzero(self.catalog.index_of(ids) < 0))
        if unknown:
            raise DataError(
                f"{unknown} of the history's {len(ids)} items are not in the model's catalog. Leave them out."
            )
        if not self.scorer.needs_ratings:
            values = [self.facts.high] * len(ids)
        elif isinstance(history, Mapping):
            values = _numbers(history.values())
        else:
            raise DataError(
                "This model was fitted on ratings; give the history as a mapping from item to rating."
            )
        return Interactions.from_arrays(
            [_NEWCOMER] * len(ids),
            ids,
            np.asarray(values, dtype=np.float64),
            catalog=self.catalog,
            people=Vocabulary.of([_NEWCOMER]),
            facts=self.facts,
            name="history",
        )


def _numbers(ratings: Iterable[object]) -> list[float]:
    try:
        return [float(rating) for rating in ratings]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise DataError("The history's ratings must be numbers.") from None
