"""Find, fetch and load the datasets this package knows by name.

A dataset is searched in the folder that `DISCREET_DATA` names, then in the user's cache, and only then
fetched from where it is published. Each keeps its published layout, in a folder of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.core import one_of
from discreet.data.datasets.fetching import Progress, cache_folder, fetch
from discreet.data.datasets.known import DATASETS, Dataset
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.data.errors import FetchFailed, NoDataFile
from discreet.data.interactions import Interactions
from discreet.data.reading.readers import read

__all__ = ["DATASETS", "Dataset", "describe", "find", "get", "load", "split_file"]

Announce = Callable[[str], None]


def load(
    dataset: str,
    *,
    max_per_user: int | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> Interactions:
    """Return a known dataset, fetching it first if it is not on this machine.

    The catalog and the scale are declared as public facts because they are published with the dataset;
    `max_per_user` declares a cap and `name` another name for the ledger.

    Raises:
        FileError: If it is not here and cannot be fetched; the message states where to put it.
    """
    entry = _entry(dataset)
    if not entry.folders:
        data = popularity_skewed(name=name or entry.name)
        return data if max_per_user is None else data.with_facts(data.facts.with_cap(max_per_user))
    path = get(dataset, progress=progress, announce=announce)
    return read_as(entry, path, max_per_user=max_per_user, name=name)


def read_as(
    entry: Dataset, path: Path, *, max_per_user: int | None = None, name: str | None = None
) -> Interactions:
    """Read a file with the layout of `entry`, declaring the facts published about it.

    Where the publisher replaces the file now and then, counts are taken from the file, and the facts say so.
    """
    data = read(
        path,
        name=name or entry.name,
        low=entry.low,
        high=entry.high,
        step=entry.step,
        max_per_user=max_per_user,
        n_items=None if entry.replaced else entry.items,
        n_users=None if entry.replaced else entry.users,
    )
    # Which items there are is published, too; only a file that changes brings its own.
    taken = data.facts.from_file if entry.replaced else ()
    facts = replace(data.facts, from_file=taken, layout="", reading=())
    schema = None if data.schema is None else data.schema.changed(guessed=())
    return replace(data, facts=facts, schema=schema)


def find(dataset: str) -> Path | None:
    """Return the rating file on this machine, plain or compressed, or None."""
    entry = _entry(dataset)
    return _find_file(entry, entry.file) if entry.folders else None


def get(dataset: str, *, progress: Progress | None = None, announce: Announce | None = None) -> Path:
    """Return the rating file, fetched into the cache if it is not on this machine.

    Before anything is fetched, `announce` gets the dataset's terms (by default on standard error).
    """
    entry = _entry(dataset)
    if not entry.folders:
        raise NoDataFile(
            dataset=entry.name, why="it is built in and has no file", do="Pass its name as the data."
        )
    here = find(dataset)
    if here is not None:
        return here
    (announce or _say)(terms(dataset))
    folder = cache_folder() / entry.folders[0]
    try:
        return fetch(entry.sources, folder, entry.file, entry.sha256, progress)
    except FetchFailed as error:
        own = (
            Path(os.environ["DISCREET_DATA"]) / entry.folders[0] if "DISCREET_DATA" in os.environ else folder
        )
        raise NoDataFile(
            dataset=entry.name,
            why=f"it isn't on this machine and could not be fetched ({error.why})",
            do=f"Get it from {entry.page} and put {entry.file} (or {entry.file}.gz) into {own}.",
        ) from error


def split_file(dataset: str, file: str) -> Path:
    """Return a file next to the ratings, such as `u1.base` of movielens-100k."""
    entry = _entry(dataset)
    path = _find_file(entry, file)
    if path is None:
        raise NoDataFile(
            dataset=entry.name,
            why=f"{file} isn't in its folder",
            do=f"Get it from the archive at {entry.page}.",
        )
    return path


def terms(dataset: str) -> str:
    """Return the dataset's terms and citation as one paragraph."""
    entry = _entry(dataset)
    cite = f" Cite: {entry.citation}." if entry.citation else ""
    return f"{entry.title}: {entry.terms}{cite}"


def describe() -> list[dict[str, Any]]:
    """Return one record a dataset, ready for a table or JSON, with where it is on this machine."""
    return [
        {
            "name": entry.name,
            "title": entry.title,
            "users": entry.users,
            "items": entry.items,
            "ratings": entry.ratings,
            "scale": entry.scale,
            "splits": list(entry.splits),
            "terms": entry.terms,
            "citation": entry.citation,
            "page": entry.page,
            "here": _whereabouts(entry),
        }
        for entry in DATASETS.values()
    ]


def _whereabouts(entry: Dataset) -> str:
    if not entry.folders:
        return "built in"
    path = find(entry.name)
    return "no" if path is None else str(path)


def _entry(dataset: str) -> Dataset:
    one_of("dataset", dataset, DATASETS.keys())
    return DATASETS[dataset]


def _find_file(entry: Dataset, file: str) -> Path | None:
    for root in _roots():
        for folder in entry.folders:
            for path in (root / folder / file, root / folder / f"{file}.gz"):
                if path.is_file():
                    return path
    return None


def _roots() -> list[Path]:
    given = os.environ.get("DISCREET_DATA")
    return [Path(given), cache_folder()] if given else [cache_folder()]


def _say(text: str) -> None:
    print(text, file=sys.stderr)
