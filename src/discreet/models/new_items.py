"""Add items without ratings: public features predict their released numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.data.item_tables import ItemTable, read_items
from discreet.data.vocabulary import Vocabulary
from discreet.models.errors import NothingNew, NoVectors, OtherIds, TooFewKnown
from discreet.models.items import moved
from discreet.models.scorers.parts import ITEMS, StoredNumbers
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Assumption, Fact, Kind
from discreet.solvers.features import ridge_map

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel


_ASSUMED = Assumption.of(Kind.DECLARED, Fact.ITEM_FEATURES)


# With fewer known items the map from features would be unreliable.
_FEWEST_KNOWN = 10


def with_new_items(model: FittedModel, source: Any) -> FittedModel:
    """Return the model with the table's new items; see `FittedModel.add_items`."""
    parts = _parts_by_item(model.scorer)
    table = read_items(source)
    new = model.catalog.index_of(table.ids) < 0
    if (met := int(np.count_nonzero(~new))) < _FEWEST_KNOWN:
        raise TooFewKnown(known=met, least=_FEWEST_KNOWN)
    known, named = table.in_order_of(model.catalog)
    if not new.any():
        raise NothingNew()
    weights = named * parts.get("popularity", np.ones(named.size))
    grown = {
        name: _grown(array, known, table.numbers[new], np.maximum(weights, 0.0))
        for name, array in parts.items()
    }
    catalog = _extended(model.catalog, table, new)
    # Scorers are frozen dataclasses; their common base is not one.
    scorer: Scorer = replace(model.scorer, **grown)  # type: ignore[type-var]
    return replace(
        model,
        catalog=catalog,
        facts=replace(model.facts, n_items=len(catalog)),
        guarantee=model.guarantee.assuming(_ASSUMED),
        scorer=scorer,
        public=moved(model.public, model.catalog, catalog),
    )


def _parts_by_item(scorer: Scorer) -> Mapping[str, npt.NDArray[Any]]:
    """Return the arrays with a number or a vector for each item; raise for models with anything else."""
    declared = scorer.stored
    by_item = {
        name: getattr(scorer, name)
        for name, part in declared.items()
        if isinstance(part, StoredNumbers)
        and part.shape[0] == ITEMS
        and ITEMS not in part.shape[1:]
        and not (part.optional and not getattr(scorer, name).size)
    }
    personal = any(
        # What is optional and names items stays right: new items come after all others.
        not isinstance(part, StoredNumbers) or (part.index_of is not None and not part.optional)
        for part in declared.values()
    )
    if personal or not by_item:
        raise NoVectors()
    return by_item


def _grown(array: npt.NDArray[Any], known: Floats, new: Floats, weights: Floats) -> npt.NDArray[Any]:
    """Return the array with rows for new items, predicted from their features."""
    values = array.astype(np.float64).reshape(len(array), -1)
    # Shares and counts vary by factors, so their logarithms are predicted.
    positive = array.ndim == 1 and array.size > 0 and bool(array.min() > 0)
    targets = np.log(values) if positive else values
    rows = ridge_map(known, targets, weights).predict(new)
    rows = np.exp(rows) if positive else rows
    return np.concatenate([array, rows.reshape(len(new), *array.shape[1:]).astype(array.dtype)])


def _extended(catalog: Vocabulary, table: ItemTable, new: npt.NDArray[np.bool_]) -> Vocabulary:
    ids = table.ids.filter(pl.Series(new))
    try:
        more = ids.cast(catalog.series.dtype)
    except pl.exceptions.PolarsError:
        raise OtherIds() from None
    return Vocabulary.of(pl.concat([catalog.series, more.alias(catalog.series.name)]))
