"""Sum over what is left of everybody's row when a rule that looks at that row alone has hidden a part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Protocol, final

import numpy as np
import numpy.typing as npt

from discreet.contributions.blocks import Block, blocks
from discreet.contributions.crowd import Crowd
from discreet.contributions.domain import Held
from discreet.contributions.grid import Steps
from discreet.contributions.statistic import Part, Statistic, Sums
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary


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

    crowd: Crowd
    hiding: Hiding

    @property
    def facts(self) -> PublicFacts:
        """Return what is public."""
        return self.crowd.facts

    @property
    def catalog(self) -> Vocabulary:
        """Return all items."""
        return self.crowd.catalog

    @property
    def name(self) -> str:
        """Return what the data are called in a ledger."""
        return self.crowd.name

    @property
    def n_users(self) -> int:
        """Return how many people have a row."""
        return self.crowd.n_users

    @property
    def n_items(self) -> int:
        """Return how many items there are."""
        return self.crowd.n_items

    @property
    def n_ratings(self) -> int:
        """Return how many ratings there are, hidden ones included."""
        return self.crowd.n_ratings

    @property
    def has_one_value(self) -> bool:
        """Tell whether all ratings are equal, hidden ones included."""
        return self.crowd.has_one_value

    def bounded(self) -> KnownPart:
        """Return the same part of everybody's bounded row."""
        return replace(self, crowd=self.crowd.bounded())

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of what everybody tells by what is not hidden."""
        return self.crowd.total(OfKnownPart(inner=statistic, hiding=self.hiding))
