"""Open what a user names on the command line: a file, a folder or a known dataset; one person's history."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from discreet.checks import DataError, FileError
from discreet.data import catalog
from discreet.data.interactions import Interactions
from discreet.data.readers import read


def open_data(
    source: str,
    *,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    max_per_user: int | None = None,
    name: str | None = None,
    implicit: bool = False,
) -> Interactions:
    """Return the interactions behind a path or a dataset's name; `scale` is declared, else read."""
    if Path(source).exists():
        low, high = scale if scale is not None else (None, None)
        return read(
            Path(source),
            columns=columns,
            low=low,
            high=high,
            max_per_user=max_per_user,
            name=name,
            implicit=implicit,
        )
    if source not in catalog.DATASETS:
        raise FileError(
            f"{source} is neither a file nor a known dataset. "
            f"`discreet datasets` lists {', '.join(catalog.DATASETS)}."
        )
    return catalog.load(source, max_per_user=max_per_user, name=name)


def folder_of(source: str) -> Path | None:
    """Return the folder in which the files of a given split are looked for."""
    path = Path(source) if Path(source).exists() else catalog.find(source)
    return path if path is None or path.is_dir() else path.parent


def read_history(
    path: Path, *, user: str | None = None, columns: Mapping[str, str] | None = None, implicit: bool = False
) -> dict[str | int, float]:
    """Return one person's ratings by item id; with several people in the file, `user` says whose."""
    data = read(path, columns=columns, implicit=implicit)
    if user is None:
        if data.n_users != 1:
            raise DataError(f"The history holds {data.n_users} people. Say whose with --user.")
        row = 0
    else:
        row = int(data.users.index_of([user])[0])
        if row < 0:
            raise DataError("This user has no row in the history. Give a file with the person's own ratings.")
    span = slice(int(data.indptr[row]), int(data.indptr[row + 1]))
    items = data.catalog.id_at(data.items[span]).tolist()
    return dict(zip(items, data.values[span].tolist(), strict=True))
