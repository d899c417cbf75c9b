"""List the datasets this package knows by name: what each contains, its terms, and its source."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from discreet.data.datasets import fetching
from discreet.data.datasets.fetching import Archive, SingleFile, Source, Wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Describe one dataset; its counts and scale are published, so they are declared as public facts."""

    name: str
    title: str
    users: int
    items: int
    """How many items the ratings speak of."""
    ratings: int
    low: float
    high: float
    step: float | None = None
    terms: str
    citation: str = ""
    page: str = ""
    folders: tuple[str, ...] = ()
    """Folder names looked for; the first is used in the cache. None at all: the data are generated."""
    file: str = ""
    sha256: str | None = None
    """Of the rating file, uncompressed; None where only the archive's sum is known."""
    replaced: bool = False
    """Whether the publisher replaces the file now and then, so that counts come from the file at hand."""
    splits: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    @property
    def scale(self) -> str:
        """Return the scale in words."""
        step = "any value" if self.step is None else f"by {self.step:g}"
        return f"{self.low:g}..{self.high:g} {step}"


_KINDS: dict[str, type[Source]] = {"archive": Archive, "file": SingleFile, "wheel": Wheel}


def _known() -> Iterator[Dataset]:
    """Yield the datasets that `known.toml` lists."""
    text = resources.files("discreet.data.datasets").joinpath("known.toml").read_text(encoding="utf8")
    table = tomllib.loads(text)
    for record in table["dataset"]:
        found = {name: _plain(value) for name, value in record.items() if name != "sources"}
        for name in ("terms", "citation"):
            found[name] = table["texts"].get(found.get(name, ""), found.get(name, ""))
        yield Dataset(**found, sources=tuple(map(_source, record.get("sources", ()))))


def _source(record: dict[str, Any]) -> Source:
    given = {name: _plain(value) for name, value in record.items() if name != "kind"}
    if "convert" in given:
        given["convert"] = getattr(fetching, given["convert"])
    return _KINDS[record["kind"]](**given)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _known()}
