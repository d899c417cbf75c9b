"""Bring parties' lists of items together: as a public union, or under names that only the parties can read.

Lists may overlap in part. A party's people are placed over the united list, where what the party does not
have is simply chosen by nobody; which items a party lists is public, what its people chose is not.

With a salt, a secret that the parties share and the coordinator does not have, every item is named by a keyed
hash. The united list then shows how many items there are and who listed which hash, but not what they are; a
party reads the names of its own items in the model, and those of others stay hashes.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from discreet.core.arrays import Indices
from discreet.core.checks import DataError, FileError
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

_LEAST_SALT = 16
#: A party answers with some numbers for every listed item; a longer list would not fit into messages.
MOST_ITEMS = 1 << 22


def united(catalogs: Sequence[Vocabulary]) -> Vocabulary:
    """Return all items that any list names, each once, in an order that does not tell whose they are.

    Raises:
        DataError: The lists are together too long to be answered for.
    """
    # Counted before they are put together: a list of a stranger must not fill the memory.
    listed = sum(len(catalog) for catalog in catalogs)
    if listed > len(catalogs) * MOST_ITEMS:
        raise DataError(f"The lists name {listed:,} items; each may name {MOST_ITEMS:,} at most.")
    if any(catalog.is_text for catalog in catalogs):
        union = Vocabulary.of(sorted({str(item) for catalog in catalogs for item in catalog.ids.tolist()}))
    else:
        union = Vocabulary.of(np.unique(np.concatenate([catalog.ids for catalog in catalogs])).tolist())
    if len(union) > MOST_ITEMS:
        raise DataError(f"The united list has {len(union):,} items; it may have {MOST_ITEMS:,} at most.")
    return union


def places_in(catalog: Vocabulary, own: Vocabulary, hint: str = "") -> Indices:
    """Return where each of a party's items stands in the united list.

    Raises:
        DataError: An item is not in the list, or two of the party's items are one in it. Their ratings would
            be summed as one item's, and a person's part in that sum would no longer be bounded.
    """
    place = catalog.index_of(own.ids).astype(np.int64)
    if np.any(place < 0):
        raise DataError(
            f"{np.count_nonzero(place < 0):,} of {len(own):,} items are not in the united list{hint}."
        )
    merged = place.size - np.unique(place).size
    if merged:
        raise DataError(
            f"{merged:,} of {len(own):,} items have a name that another one has in the united list."
        )
    return place


def over(data: Interactions, catalog: Vocabulary) -> Interactions:
    """Return a party's people over the united list; what the party does not list nobody there chose."""
    if names_equal(data.catalog, catalog):
        return data
    return _moved(data, catalog, places_in(catalog, data.catalog), replace(data.facts, n_items=len(catalog)))


def names_equal(one: Vocabulary, other: Vocabulary) -> bool:
    """Tell whether two lists name the same items in the same order."""
    return one.is_text == other.is_text and np.array_equal(one.ids, other.ids)


def salted(catalog: Vocabulary, salt: bytes) -> Vocabulary:
    """Return the same items in the same order under names that only who has the salt can make."""
    return Vocabulary.of([_named(item, salt) for item in catalog.ids.tolist()])


def salted_data(data: Interactions, salt: bytes, catalog: Vocabulary, facts: PublicFacts) -> Interactions:
    """Return a party's people over the united list of salted names."""
    place = places_in(catalog, salted(data.catalog, salt), hint=" under this salt")
    return _moved(data, catalog, place, facts)


def _moved(data: Interactions, catalog: Vocabulary, place: Indices, facts: PublicFacts) -> Interactions:
    return Interactions.from_arrays(
        data.users.id_at(data.rows()),
        catalog.id_at(place[data.items]),
        data.values,
        data.times,
        name=data.name,
        catalog=catalog,
        people=data.users,
        facts=facts,
    )


def read_salt(path: Path) -> bytes:
    """Return the secret in a file."""
    try:
        salt = path.read_bytes().strip()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error
    if len(salt) < _LEAST_SALT:
        raise FileError(f"{path} must hold a secret of at least {_LEAST_SALT} bytes.")
    return salt


def _named(item: str | int, salt: bytes) -> str:
    return hmac.new(salt, str(item).encode(), hashlib.sha256).hexdigest()
