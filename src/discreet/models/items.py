"""Keep public columns of items with a model, and add new items from their public features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.core import Floats
from discreet.core.exports import pl
from discreet.data import Vocabulary
from discreet.models.errors import (
    MalformedPart,
    NothingNew,
    NoVectors,
    OtherIds,
    TitlesTooWide,
    TooFewKnown,
    UnknownItem,
)
from discreet.models.scorers.scorer import ITEMS, Scorer, StoredNumbers
from discreet.privacy import Assumption, Fact, Kind

if TYPE_CHECKING:
    from discreet.data import ItemTable, PublicTable
    from discreet.models.fitted import FittedModel


#: A text for each item of the catalog, by the column's name; empty where nothing is known.
PublicColumns = Mapping[str, tuple[str, ...]]
ItemId = str | int

#: How the label describes these columns.
SOURCE = "public metadata: a table given with the ratings, which do not enter it"
_MOST_COLUMNS = 32


def read_table(source: Any, encoding: str | None = None) -> PublicTable:
    """Read the table whose columns a model keeps, a file or a data frame; no catalog is needed."""
    from discreet.data import PublicTable

    is_file = isinstance(source, str | Path)
    table = PublicTable.read(Path(source), encoding) if is_file else PublicTable.of_frame(source)
    if len(table.names) > _MOST_COLUMNS:
        raise TitlesTooWide(columns=len(table.names), most=_MOST_COLUMNS)
    return table


def read_columns(table: PublicTable, catalog: Vocabulary) -> PublicColumns:
    """Return a table's columns; items it lacks have empty texts. It must name at least one known item."""
    table.refuse_foreign(catalog)
    return beside_chosen(table, catalog)


def beside_chosen(table: PublicTable, catalog: Vocabulary) -> PublicColumns:
    """Return the columns for a catalog that was selected with noise, without any check against it."""
    rows = table.rows_of(catalog)
    return {
        name: tuple(rows[one][name] if one in rows else "" for one in catalog.ids.tolist())
        for name in table.names
    }


def moved(columns: PublicColumns, old: Vocabulary, new: Vocabulary) -> PublicColumns:
    """Return the columns in the order of another catalog; new items have empty texts."""
    if not columns or old is new:
        return columns
    places = old.index_of(new.ids.tolist()).tolist()
    return {
        name: tuple(texts[place] if place >= 0 else "" for place in places) for name, texts in columns.items()
    }


def beside(
    columns: PublicColumns, catalog: Vocabulary, items: Iterable[ItemId]
) -> dict[ItemId, dict[str, str]]:
    """Return the texts of these items, by column."""
    listed = list(items)
    if not columns or not listed:
        return {}
    places = catalog.index_of(listed).tolist()
    return {
        item: {name: texts[place] for name, texts in columns.items()}
        for item, place in zip(listed, places, strict=True)
    }


def checked(names: object, texts: list[object], count: int) -> PublicColumns:
    """Return the columns of a model file, checked: distinct names, `count` texts in each."""
    known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not known or not isinstance(names, list) or len(set(names)) != len(names) or len(names) != len(texts):
        raise MalformedPart(part="public columns", rule="number of names")
    found: dict[str, tuple[str, ...]] = {}
    for name, column in zip(names, texts, strict=True):
        if not isinstance(column, tuple) or len(column) != count:
            raise MalformedPart(part="public column", rule="length")
        found[name] = column
    return found


# So many items are searched for names like an unknown one, so many of them closely, and so many are named.
_MOST_SEARCHED, _MOST_COMPARED, _MOST_NAMED = 100_000, 5_000, 3
# Names may be long, and anything: what is compared of them, and what is shown of each.
_LONGEST_ASKED, _LONGEST_SHOWN = 100, 36


def unknown_item(item: ItemId, catalog: Vocabulary, columns: PublicColumns) -> UnknownItem:
    """Return the error for an item that the catalog lacks, with the most similar IDs and titles."""
    asked = str(item)[:_LONGEST_ASKED]
    ids = [str(one) for one in catalog.ids[:_MOST_SEARCHED].tolist()]
    titles = next(iter(columns.values()), ())[:_MOST_SEARCHED]
    near = _titled(asked, ids, titles) or _alike(asked, ids)
    return UnknownItem(item=_short(asked), near=tuple(near), example=_short(ids[0]), of=len(catalog))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _titled(asked: str, ids: Sequence[str], titles: Sequence[str]) -> list[str]:
    """Return the ids of titles that hold these words."""
    words = asked.casefold()
    found = ((one, title) for one, title in zip(ids, titles, strict=False) if words in title.casefold())
    return [f"{_short(one)} ({_short(title)})" for one, title in islice(found, _MOST_NAMED)]


def _alike(asked: str, ids: Sequence[str]) -> list[str]:
    """Return the ids most like this one: the same but for case, then longer or shorter, then misspelled."""
    small = asked.casefold()
    same = [one for one in ids if one.casefold() == small]
    longer = sorted((one for one in ids if small and small in one.casefold()), key=len)
    if found := list(dict.fromkeys([*same, *longer])):
        return [_short(one) for one in found[:_MOST_NAMED]]
    from difflib import SequenceMatcher, get_close_matches

    near = [one for one in ids if one[:1].casefold() == small[:1]][:_MOST_COMPARED]
    close = get_close_matches(asked, near, n=_MOST_NAMED**2, cutoff=0.7)
    # Of equally similar ones, first those with the longest equal beginning and end; the order is stable.
    close.sort(key=lambda one: (-SequenceMatcher(None, one, asked).ratio(), -_ends(asked, one)))
    return [_short(one) for one in close[:_MOST_NAMED]]


def _ends(one: str, other: str) -> int:
    """Return how many letters two words share at their beginnings and ends."""
    both = (zip(one, other, strict=False), zip(reversed(one), reversed(other), strict=False))
    return sum(len(list(takewhile(lambda pair: pair[0] == pair[1], pairs))) for pairs in both)


_ASSUMED = Assumption.of(Kind.DECLARED, Fact.ITEM_FEATURES)


# With fewer known items the map from features would be unreliable.
_FEWEST_KNOWN = 10


def with_new_items(model: FittedModel, source: Any) -> FittedModel:
    """Return the model with the table's new items; see `FittedModel.add_items`."""
    from discreet.data import read_items

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
    return replace(
        model,
        catalog=catalog,
        facts=replace(model.facts, n_items=len(catalog)),
        guarantee=model.guarantee.assuming(_ASSUMED),
        scorer=model.scorer.with_parts(**grown),
        public=moved(model.public, model.catalog, catalog),
    )


def _parts_by_item(scorer: Scorer) -> Mapping[str, npt.NDArray[Any]]:
    """Return the arrays with a number or a vector for each item; raise for models with anything else."""
    declared = scorer.stored
    by_item = {
        name: scorer.part(name)
        for name, part in declared.items()
        if isinstance(part, StoredNumbers)
        and part.shape[0] == ITEMS
        and ITEMS not in part.shape[1:]
        and not (part.optional and not scorer.part(name).size)
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
    from discreet.solvers import ridge_map

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
