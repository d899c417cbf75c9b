"""Choose the catalog from the data, with noise and for a price, so that a promise need not assume it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from discreet.checks import DataError, ParameterError, PrivacyError, require
from discreet.contributions.crowd import Crowd
from discreet.contributions.item_sums import ItemVotes
from discreet.data.facts import CHOSEN, N_ITEMS, SCALE, PublicFacts
from discreet.data.interactions import Interactions
from discreet.privacy.accounting.rounding import sum_up
from discreet.privacy.guarantee import Guarantee, Neighbors, Unit
from discreet.privacy.mechanisms.selection import NoisyThreshold
from discreet.randomness import PrivacyRandom

_PROOF = "proofs/private_catalog.md"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateCatalog:
    """Keep only items that enough people rated, decided with noise; what is left may be published.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person
        (proofs/private_catalog.md). A fit pays for it together with the model.

    Parameters:
        max_per_user: The most items of one person that count for the choice.

    Example:
        >>> from discreet import Biases, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=500, n_items=60, mean_per_user=20)
        >>> chosen = PrivateCatalog(epsilon=0.5, delta=5e-7)
        >>> model = Biases(epsilon=0.5, delta=5e-7).fit(films, select_items=chosen)
        >>> model.guarantee.epsilon, len(model.catalog) < 60
        (1.0, True)
    """

    epsilon: float
    delta: float
    max_per_user: int = 1000

    def __post_init__(self) -> None:
        self._mechanism(self.max_per_user)

    @classmethod
    def share_of(cls, share: float, epsilon: float, delta: float) -> Self:
        """Return the choice that costs this share of a budget."""
        require(0 < share < 1, "share", share, "must lie between 0 and 1", "0.2 is a fifth of the budget.")
        return cls(epsilon=share * epsilon, delta=share * delta)

    def promise(self, model: Guarantee) -> Guarantee:
        """Return the promise of choosing a catalog and then making a release with this promise."""
        if model.unit is not Unit.USER or model.neighbors is not Neighbors.ADD_OR_REMOVE:
            raise PrivacyError(
                "A catalog chosen with noise hides whole people, and this model promises something else. "
                "Declare the catalog, or choose a model that protects a person's whole history."
            )
        if not np.isfinite(model.epsilon):
            raise PrivacyError("A model without privacy needs no catalog chosen with noise.")
        note = f"of this the catalog cost epsilon={self.epsilon:g}, delta={self.delta:g} ({_PROOF})"
        return replace(
            model,
            epsilon=sum_up([model.epsilon, self.epsilon]),
            delta=sum_up([model.delta, self.delta]),
            notes=(*model.notes, note),
        )

    def facts(self, facts: PublicFacts) -> PublicFacts:
        """Return the facts after the choice, which the promise need not assume any more."""
        if SCALE in facts.from_file:
            raise ParameterError(
                "The scale was taken from the data, so that the promise would still depend on it. "
                "Declare it (low=, high=, step=; --scale)."
            )
        kept = tuple(name for name in facts.from_file if name != N_ITEMS)
        return replace(facts, from_file=(*kept, CHOSEN))

    def choose(self, data: Crowd, random: PrivacyRandom) -> Interactions:
        """Return the ratings of the items that were chosen; nothing else of the catalog is left."""
        assert isinstance(data, Interactions)
        bounded = data.bounded(self.max_per_user)
        most = min(self.max_per_user, bounded.facts.max_per_user or self.max_per_user)
        votes = bounded.total(ItemVotes(n_items=data.n_items, norm="l2"))
        chosen = self._mechanism(most).passing(votes.steps(), random)
        if np.count_nonzero(chosen) < 2:
            raise DataError(
                "Fewer than two items were chosen: too few people rated the same ones for this budget."
            )
        left = data.select_items(chosen)
        return left.with_facts(replace(self.facts(data.facts), n_items=left.n_items))

    def _mechanism(self, most: int) -> NoisyThreshold:
        return NoisyThreshold(epsilon=self.epsilon, delta=self.delta, most=most)
