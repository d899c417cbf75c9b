"""Define what a fit needs from its data: public facts, a catalog, and exact sums of statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.core import SOURCES
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.statistics.domain import Held
from discreet.statistics.statistic import Block, Part, Statistic, Steps, Sums, blocks


def open_source(path: str | Path) -> DataSource | None:
    """Open a path as a registered kind of data source, such as a folder of shards; None if it is none."""
    for kind in SOURCES:
        found: object = SOURCES[kind](path)
        if isinstance(found, DataSource):
            return found
        if found is not None:
            raise SOURCES.broken(kind, "returned something that is not a DataSource")
    return None


@runtime_checkable
class DataSource(Protocol):
    """A source of sums over users: `Interactions`, a folder of shards, or a cluster that reads one.

    A total is the same to the last bit from each of them (proofs/exact_sums.md).
    """

    @property
    def facts(self) -> PublicFacts:
        """Return the public facts."""

    @property
    def catalog(self) -> Vocabulary:
        """Return all items."""

    @property
    def name(self) -> str:
        """Return the name of the data in a ledger."""

    @property
    def n_users(self) -> int:
        """Return the number of users, those without ratings included."""

    @property
    def n_items(self) -> int:
        """Return the number of items."""

    @property
    def n_ratings(self) -> int:
        """Return the number of ratings; for the data owner only."""

    @property
    def has_one_value(self) -> bool:
        """Return whether all ratings are equal; for the data owner only."""

    def bounded(self) -> DataSource:
        """Return the same users with ratings clipped to the scale and at most the cap of ratings each."""

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of all users' contributions."""


class Hiding(Protocol):
    """Decide which ratings are hidden, for each user by their own row; instances can be sent to workers."""

    def hidden(self, people: Interactions, /) -> npt.NDArray[np.bool_]:
        """Mark the hidden ratings of these users."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OfKnownPart(Statistic):
    """Sum of the contributions that users would make if their rows held only ratings that are not hidden.

    `inner` bounds the contribution of every row, so it bounds that of a row without its hidden ratings.
    """

    inner: Annotated[Statistic, Held()]
    hiding: Annotated[Hiding, Held()]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the inner statistic."""
        return self.inner.parts

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.alone()
        for known in blocks(people.where(~self.hiding.hidden(people))):
            self.inner._add(known, sums)

    def _finish(self, sums: tuple[Steps, ...]) -> None:
        self.inner._finish(sums)


class OverSource:
    """What a data source that reads another one, its `source`, has from it: all but sums."""

    source: DataSource

    @property
    def facts(self) -> PublicFacts:
        """Return the public facts."""
        return self.source.facts

    @property
    def catalog(self) -> Vocabulary:
        """Return all items."""
        return self.source.catalog

    @property
    def name(self) -> str:
        """Return the name of the data in a ledger."""
        return self.source.name

    @property
    def n_users(self) -> int:
        """Return the number of users, those without ratings included."""
        return self.source.n_users

    @property
    def n_items(self) -> int:
        """Return the number of items."""
        return self.source.n_items

    @property
    def n_ratings(self) -> int:
        """Return the number of ratings."""
        return self.source.n_ratings

    @property
    def has_one_value(self) -> bool:
        """Return whether all ratings are equal."""
        return self.source.has_one_value

    @property
    def has_times(self) -> bool:
        """Return whether ratings may have times."""
        return bool(getattr(self.source, "has_times", True))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class KnownPart(OverSource):
    """Restrict a data source to ratings that are not hidden; bounds are set before anything is hidden.

    Counts and whether all ratings are equal include hidden ratings.
    """

    source: DataSource
    hiding: Hiding

    def bounded(self) -> KnownPart:
        """Return the same part of all users' bounded rows."""
        return replace(self, source=self.source.bounded())

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of all users' contributions, from ratings that are not hidden."""
        return self.source.total(OfKnownPart(inner=statistic, hiding=self.hiding))
