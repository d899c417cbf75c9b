"""Open what a user names on the command line: a file, a folder or a known dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from discreet.checks import FileError, suggestion
from discreet.data.datasets import catalog
from discreet.data.interactions import Interactions
from discreet.data.reading.readers import ReadOptions, read
from discreet.data.reading.tables import locate
from discreet.data.reading.zeros import Zeros


def open_data(
    source: str,
    *,
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
    implicit: bool = False,
    zeros: Zeros = "ratings",
    **options: Unpack[ReadOptions],
) -> Interactions:
    """Return the interactions behind a path or a dataset's name; what is not declared is read.

    A known dataset brings its own scale, catalog and columns; of the declarations only the cap counts there.
    """
    if Path(source).exists():
        return read(Path(source), columns=columns, name=name, implicit=implicit, zeros=zeros, **options)
    if source not in catalog.DATASETS:
        raise FileError(
            f"{source} is neither a file nor a known dataset.{suggestion(source, catalog.DATASETS)} "
            f"`discreet datasets` lists {', '.join(catalog.DATASETS)}."
        )
    data = catalog.load(source, max_per_user=options.get("max_per_user"), name=name)
    if not implicit:
        return data
    chosen = replace(data.facts, low=1.0, high=1.0, step=None)
    return data.with_values(np.ones(data.n_ratings, dtype=np.float32), facts=chosen)


def files_of(source: str) -> list[Path]:
    """Return the file that a path or a dataset's name is read from; none if it is not on this machine."""
    if Path(source).exists():
        return [locate(Path(source))]
    here = catalog.find(source) if source in catalog.DATASETS else None
    return [] if here is None else [here]


def folder_of(source: str) -> Path | None:
    """Return the folder in which the files of a given split are looked for."""
    return next((file.parent for file in files_of(source)), None)
