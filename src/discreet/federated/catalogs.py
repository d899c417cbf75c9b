"""Bring parties' lists of items together: as a public union, or under names that only the parties can read.

With a salt, a secret that the parties share and the coordinator does not have, every item is named by a keyed
hash. The united list then shows how many items there are and who listed which hash, but not what they are; a
party reads the names of its own items in the model, and those of others stay hashes.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet.checks import DataError, FileError
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

_LEAST_SALT = 16


def united(catalogs: Sequence[Vocabulary]) -> Vocabulary:
    """Return all items that any list names, each once, in an order that does not tell whose they are."""
    if any(catalog.is_text for catalog in catalogs):
        return Vocabulary.of(sorted({str(item) for catalog in catalogs for item in catalog.ids.tolist()}))
    return Vocabulary.of(np.unique(np.concatenate([catalog.ids for catalog in catalogs])).tolist())


def salted(catalog: Vocabulary, salt: bytes) -> Vocabulary:
    """Return the same items in the same order under names that only who has the salt can make."""
    return Vocabulary.of([_named(item, salt) for item in catalog.ids.tolist()])


def salted_data(data: Interactions, salt: bytes, catalog: Vocabulary, facts: PublicFacts) -> Interactions:
    """Return a party's people over the united list of salted names."""
    own = salted(data.catalog, salt)
    place = catalog.index_of(own.ids)
    if np.any(place < 0):
        raise DataError(
            f"{np.count_nonzero(place < 0):,} of {len(own):,} items are not in the united list "
            "under this salt."
        )
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
