"""Datasets of the papers' experiments: known ones, and copies that `--data NAME=PATH` names.

A copy takes the place of the dataset that a paper used. Some data may not be passed on (Netflix, YahooMusic)
or are larger than what is at hand (ML-10M, all parts of Jester).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType

import numpy as np

from discreet.core import UnknownChoice, require
from discreet.core.errors import FileError
from discreet.data import Interactions, read
from discreet.data.datasets import catalog

JESTER = ("jester-1", "jester-2", "jester-3")
#: The datasets that each paper used, by the names of `--data`.
USED: Mapping[str, Sequence[str]] = {
    "one-bit": ("ml-100k", "rc"),
    "frank-wolfe": ("ml-10m", "ml-1m", "netflix", *JESTER),
    "mixture": ("ml-100k", *JESTER, "rc"),
    "collection": ("ml-100k", "rc"),
    "dpimf": ("ml-10m", "ml-100k", "ml-1m", "yahoo", "amazon"),
    "audit": (),
}
# What the catalog calls them; the others are only known by a copy.
_KNOWN = {
    "movielens-100k": "ml-100k",
    "movielens-1m": "ml-1m",
    "restaurant-consumer": "rc",
    "amazon-instant-video": "amazon",
}
_COPIES: ContextVar[Mapping[str, Path]] = ContextVar("copies", default=MappingProxyType({}))


def checked_copies(paper: str, copies: Mapping[str, Path]) -> dict[str, Path]:
    """Return the copies by the names of `USED`.

    Raises:
        ParameterError: If the paper used no dataset of a name, or a path doesn't exist.
    """
    known = USED.get(paper, ())
    found = {}
    for name, path in copies.items():
        own = _KNOWN.get(name, name)
        if own not in known:
            raise UnknownChoice(name="dataset", value=name, choices=known)
        require(Path(path).exists(), name, str(path), must="be a file or a folder that exists")
        found[own] = Path(path)
    return found


@contextmanager
def using(copies: Mapping[str, Path]) -> Iterator[None]:
    """Make `load` and `find` prefer these copies."""
    mark = _COPIES.set(copies)
    try:
        yield
    finally:
        _COPIES.reset(mark)


def copy_of(name: str) -> Path | None:
    """Return the path of a copy, or None."""
    return _COPIES.get().get(_KNOWN.get(name, name))


def find(name: str) -> Path | None:
    """Return where a dataset of the catalog is on this machine, or None."""
    if name == "jester" and any(map(copy_of, JESTER)):
        return next(filter(None, map(copy_of, JESTER)))
    return copy_of(name) or (catalog.find(name) if name in catalog.DATASETS else None)


def available(name: str, say: Callable[[str], None]) -> bool:
    """Return whether a dataset is on this machine or can be fetched; if not, say where to get it."""
    if find(name) is not None:
        return True
    try:
        catalog.get(name)
    except FileError as error:
        say(str(error))
        return False
    return True


def load(name: str) -> Interactions:
    """Return a dataset: the copy if there is one, else that of the catalog."""
    parts = [path for part in JESTER if (path := copy_of(part)) is not None]
    if name == "jester" and parts:
        return joined([_read_like("jester", path) for path in parts])
    own = copy_of(name)
    if own is None:
        return catalog.load(name)
    return _read_like(name, own) if name in catalog.DATASETS else read(own, name=name)


def joined(parts: Sequence[Interactions]) -> Interactions:
    """Return the users of all parts together; the parts share one catalog, and their users differ."""
    users, before = [], 0
    for part in parts:
        users.append(part.rows() + before)
        before += part.n_users
    return Interactions.from_arrays(
        np.concatenate(users),
        np.concatenate([np.asarray(part.catalog.id_at(part.items)) for part in parts]),
        np.concatenate([part.values for part in parts]),
        name=parts[0].name,
        low=parts[0].facts.low,
        high=parts[0].facts.high,
        step=parts[0].facts.step,
        catalog=parts[0].catalog,
    )


def _read_like(name: str, path: Path) -> Interactions:
    """Read a copy on the scale of the known dataset; its counts may differ."""
    entry = catalog.DATASETS[name]
    return read(path, name=name, low=entry.low, high=entry.high, step=entry.step)
