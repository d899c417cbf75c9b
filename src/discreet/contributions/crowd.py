"""Say what a fit from sums needs of people: public facts, a catalog, and exact totals."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from discreet.contributions.statistic import Statistic, Sums
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary


@runtime_checkable
class Crowd(Protocol):
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

    def bounded(self) -> Crowd:
        """Return the same people, each rating on the scale and no more of them a person than the cap."""

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of what everybody tells."""
