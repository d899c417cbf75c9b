"""Define what a fit from sums needs of its data: public facts, a catalog, and exact totals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.core.registry import SOURCES
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.statistics.blocks import Block, blocks
from discreet.statistics.domain import Held
from discreet.statistics.fixed_point import Steps
from discreet.statistics.statistic import Part, Statistic, Sums


def open_source(path: str | Path) -> DataSource | None:
    """Open a path that a registered kind of source knows, such as a folder of shards."""
    for where in SOURCES.values():
        module, _, name = where.partition(":")
        found: DataSource | None = getattr(import_module(module), name)(path)
        if found is not None:
            return found
    return None


@runtime_checkable
class DataSource(Protocol):
    """Many people who can be summed over: `Interactions`, a folder of shards, a cluster that reads one.

    A total is the same to the last bit whichever of them it comes from (proofs/exact_sums.md).
    """

    @property
    def facts(self) -> PublicFacts:
        """Return what is public."""

    @property
    def catalog(self) -> Vocabulary:
        """Return all items."""

    @property
    def name(self) -> str:
        """Return what the data are called in a ledger."""

    @property
    def n_users(self) -> int:
        """Return how many people have a row."""

    @property
    def n_items(self) -> int:
        """Return how many items there are."""

    @property
    def n_ratings(self) -> int:
        """Return how many ratings there are; for whoever holds the data."""

    @property
    def has_one_value(self) -> bool:
        """Tell whether all ratings are equal; for whoever holds the data."""

    def bounded(self) -> DataSource:
        """Return the same people, each rating on the scale and no more of them a person than the cap."""

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of what everybody tells."""


class Hiding(Protocol):
    """Say which ratings are hidden: for each person by that person's own row, and so that it can travel."""

    def hidden(self, people: Interactions, /) -> npt.NDArray[np.bool_]:
        """Mark what is hidden of these people's ratings."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OfKnownPart(Statistic):
    """Sum what people would tell if their rows held only what is not hidden.

    What `inner` bounds for every row it bounds for that row, too.
    """

    inner: Annotated[Statistic, Held()]
    hiding: Annotated[Hiding, Held()]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return what the inner statistic adds up."""
        return self.inner.parts

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.alone()
        for known in blocks(people.where(~self.hiding.hidden(people))):
            self.inner._add(known, sums)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class KnownPart:
    """Hold a crowd as one that knows only what is not hidden; bounds are set before anything is hidden."""

    source: DataSource
    hiding: Hiding

    @property
    def facts(self) -> PublicFacts:
        """Return what is public."""
        return self.source.facts

    @property
    def catalog(self) -> Vocabulary:
        """Return all items."""
        return self.source.catalog

    @property
    def name(self) -> str:
        """Return what the data are called in a ledger."""
        return self.source.name

    @property
    def n_users(self) -> int:
        """Return how many people have a row."""
        return self.source.n_users

    @property
    def n_items(self) -> int:
        """Return how many items there are."""
        return self.source.n_items

    @property
    def n_ratings(self) -> int:
        """Return how many ratings there are, hidden ones included."""
        return self.source.n_ratings

    @property
    def has_one_value(self) -> bool:
        """Tell whether all ratings are equal, hidden ones included."""
        return self.source.has_one_value

    def bounded(self) -> KnownPart:
        """Return the same part of everybody's bounded row."""
        return replace(self, source=self.source.bounded())

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of what everybody tells by what is not hidden."""
        return self.source.total(OfKnownPart(inner=statistic, hiding=self.hiding))
