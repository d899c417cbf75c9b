"""Unite the parties' lists of items: as a public union, or under names that only the parties can read.

Lists may overlap in part. A party's rows are mapped to the united list, where items that the party does not
list have no interactions. Which items a party lists is public; its users' interactions are not.

With a salt, a secret that the parties share and the coordinator does not have, every item is named by a keyed
hash. The united list then shows how many items there are and who listed which hash, but not what they are. A
party reads the names of its own items in the model; those of others stay hashes.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from discreet.core import Indices
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.federated.errors import BadSalt, ItemsMerged, ItemsNotInUnion, TooManyItems

_LEAST_SALT = 16
#: A party's answer has some numbers per listed item; answers for a longer list would exceed a message.
MOST_ITEMS = 1 << 22


def united(catalogs: Sequence[Vocabulary]) -> Vocabulary:
    """Return the union of all lists, in an order that does not reveal whose the items are.

    Raises:
        DataError: The lists are too long, or their union is.
    """
    # Counted before they are joined: a stranger's list must not fill the memory.
    listed = sum(len(catalog) for catalog in catalogs)
    if listed > len(catalogs) * MOST_ITEMS:
        raise TooManyItems(count=listed, most=MOST_ITEMS)
    if any(catalog.is_text for catalog in catalogs):
        union = Vocabulary.of(sorted({str(item) for catalog in catalogs for item in catalog.ids.tolist()}))
    else:
        union = Vocabulary.of(np.unique(np.concatenate([catalog.ids for catalog in catalogs])).tolist())
    if len(union) > MOST_ITEMS:
        raise TooManyItems(count=len(union), most=MOST_ITEMS)
    return union


def places_in(catalog: Vocabulary, own: Vocabulary, *, salted: bool = False) -> Indices:
    """Return the index of each of a party's items in the united list.

    Raises:
        DataError: An item is not in the list, or two of the party's items are the same in it. Their ratings
            would be summed as one item's, and a user's contribution to that sum would no longer be bounded.
    """
    index = catalog.index_of(own.ids).astype(np.int64)
    if np.any(index < 0):
        raise ItemsNotInUnion(count=int(np.count_nonzero(index < 0)), of=len(own), salted=salted)
    merged = index.size - np.unique(index).size
    if merged:
        raise ItemsMerged(count=merged, of=len(own))
    return index


def over(data: Interactions, catalog: Vocabulary) -> Interactions:
    """Return a party's data over the united list; items it does not list have no interactions there."""
    if data.catalog == catalog:
        return data
    return _mapped(data, catalog, places_in(catalog, data.catalog), replace(data.facts, n_items=len(catalog)))


def salted(catalog: Vocabulary, salt: bytes) -> Vocabulary:
    """Return the same items in the same order under keyed hashes, which need the salt."""
    return Vocabulary.of([_named(item, salt) for item in catalog.ids.tolist()])


def salted_data(data: Interactions, salt: bytes, catalog: Vocabulary, facts: PublicFacts) -> Interactions:
    """Return a party's data over the united list of salted names."""
    index = places_in(catalog, salted(data.catalog, salt), salted=True)
    own = data.facts
    read = replace(facts, layout=own.layout, reading=own.reading, rows=own.rows)
    return _mapped(data, catalog, index, read)


def _mapped(data: Interactions, catalog: Vocabulary, index: Indices, facts: PublicFacts) -> Interactions:
    return Interactions.from_columns(
        [data.users.id_at(data.rows()), catalog.id_at(index[data.items]), data.values, data.times],
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
        raise BadSalt(path=path, least=_LEAST_SALT) from error
    if len(salt) < _LEAST_SALT:
        raise BadSalt(path=path, least=_LEAST_SALT)
    return salt


def _named(item: str | int, salt: bytes) -> str:
    return hmac.new(salt, str(item).encode(), hashlib.sha256).hexdigest()
