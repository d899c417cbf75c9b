"""Choose the catalog from the data, with noise and for a price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.checks import DataError
from discreet.contributions.item_sums import ItemVotes
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.selection import NoisyThreshold
from discreet.randomness import PrivacyRandom

PROOF = "proofs/private_catalog.md"


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

    def note(self) -> str:
        """Return what a label says about the price."""
        return f"of this the catalog cost epsilon={self.epsilon:g}, delta={self.delta:g} ({PROOF})"

    def events(self) -> Sequence[Any]:
        """Return the noise on votes, and the chance that somebody's own item passes."""
        return self._mechanism(self.max_per_user).events()

    def choose(self, data: Interactions, random: PrivacyRandom) -> npt.NDArray[np.bool_]:
        """Return which items were chosen."""
        bounded = data.bounded(self.max_per_user)
        most = min(self.max_per_user, bounded.facts.max_per_user or self.max_per_user)
        votes = bounded.total(ItemVotes(n_items=data.n_items, norm="l2"))
        chosen = self._mechanism(most).passing(votes.steps(), random)
        if np.count_nonzero(chosen) < 2:
            raise DataError(
                "Fewer than two items were chosen with noise: this budget needs more people who rated the "
                "same ones. Give the choice a larger part (--catalog-share), or declare the catalog."
            )
        return chosen

    def _mechanism(self, most: int) -> NoisyThreshold:
        return NoisyThreshold(epsilon=self.epsilon, delta=self.delta, most=most)
