"""Recommend what people with the same choices chose, from bits that each device flipped before sending.

Every person reports one bit an item, chosen or not, and each bit lies with a known probability. What two
items have in common is decoded from the counts of the four pairs of bits by inverting that channel twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from discreet.core.arrays import Floats, Singles
from discreet.core.checks import integer, require
from discreet.core.progress import Progress
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator, check_budget, without_cap
from discreet.models.scorers.item_item import NeighborScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.mechanisms.response import SignFlip
from discreet.statistics.blocks import blocks

Similarity = Literal["jaccard", "cosine"]

_CELLS_PER_BLOCK = 1 << 21


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemNeighbors(Estimator):
    """Recommend what people with the same choices chose, from bits flipped on each device.

    Guarantee
        Pure `epsilon` for one cell (whether one person chose one item) against anyone, the collector included
        (proofs/neighbours.md). All cells of a person together cost `epsilon` times the size of the catalog.

    Noise
        Each bit is flipped with probability f = 1 / (1 + e^epsilon); (y - f) / (1 - 2 f) then has the true
        bit as its mean.

    Parameters:
        neighbors: How many neighbors an item keeps.
        likeness: `jaccard` is what DPLCF publishes, `cosine` what LDPICF does.

    References:
        Gao et al. DPLCF: differentially private local collaborative filtering. SIGIR 2020.
        Guo et al. Locally differentially private item-based collaborative filtering. 2019.

    Example:
        >>> from discreet import ItemNeighbors, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = ItemNeighbors(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('rating', 'proofs/neighbours.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3
    """

    name: ClassVar[str] = "neighbours"
    feedback = "implicit"
    source: ClassVar[str] = "Gao et al. 2020, Guo et al. 2019"

    epsilon: float
    neighbors: int = 100
    likeness: Similarity = "cosine"

    def __post_init__(self) -> None:
        check_budget(self.epsilon, 0.0, gaussian=False)
        integer("neighbors", self.neighbors, least=1)
        known = ("jaccard", "cosine")
        require(self.likeness in known, "likeness", self.likeness, f"must be one of {', '.join(known)}")

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise; it depends on epsilon alone."""
        return Guarantee(
            epsilon=self.epsilon,
            unit=Unit.RATING,
            neighbors=Neighbors.REPLACE,
            trust=Trust.LOCAL,
            assumes=(*without_cap(facts).assumptions(), "who takes part is public"),
            basis=Basis.PROVED,
            proof="proofs/neighbours.md",
        )

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the one report of each cell."""
        return () if math.isinf(self.epsilon) else (SignFlip(epsilon=self.epsilon).event(),)

    def _bound(self, data: Interactions) -> Interactions:
        return data.with_facts(without_cap(data.facts)).bounded()

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        together, alone = np.zeros((data.n_items, data.n_items)), np.zeros(data.n_items)
        seen = 0
        for bits in self._reports(data, random):
            together += bits.T @ bits
            alone += bits.sum(axis=0, dtype=np.float64)
            seen += len(bits)
            progress(self.name, seen, data.n_users)
        lie = 0.0 if math.isinf(self.epsilon) else SignFlip(epsilon=self.epsilon).flip_rates()[0]
        likeness = similarities(together, alone, seen, lie, self.likeness)
        return _nearest(likeness, min(self.neighbors, data.n_items - 1))

    def _reports(self, data: Interactions, random: PrivacyRandom) -> Iterator[Singles]:
        """Yield what blocks of people send: a flipped bit for every item of the catalog."""
        for block in blocks(data, most_people=max(_CELLS_PER_BLOCK // data.n_items, 1)):
            signs = np.full((block.counts.size, data.n_items), -1, dtype=np.int8)
            signs[block.people, block.items] = 1
            if math.isfinite(self.epsilon):
                sent = SignFlip(epsilon=self.epsilon).release(signs.ravel(), random)
                signs = sent.reshape(signs.shape)
            yield (signs > 0).astype(np.float32)


def similarities(together: Floats, alone: Floats, people: int, lie: float, kind: str) -> Floats:
    """Decode how much alike items are from counts of bits that lie with probability `lie`.

    `together[a, b]` counts people whose bits for a and b are both 1, `alone[a]` those whose bit for a is.
    A bit y stands for (y - lie) / (1 - 2 lie), whose mean is the true one; for two items both are
    independent, so the product of two such numbers decodes the pair.
    """
    honest = 1 - 2 * lie
    pairs = (together - lie * (alone[:, None] + alone[None, :]) + lie**2 * people) / honest**2
    noise = math.sqrt(people * lie * (1 - lie)) / honest
    counts = np.maximum((alone - lie * people) / honest, max(noise, 1.0))
    pairs = np.clip(pairs, 0.0, np.minimum(counts[:, None], counts[None, :]))
    whole = counts[:, None] + counts[None, :] - pairs
    divisor = whole if kind == "jaccard" else np.sqrt(counts[:, None] * counts[None, :])
    alike: Floats = pairs / divisor
    np.fill_diagonal(alike, 0.0)
    return alike


def _nearest(likeness: Floats, count: int) -> NeighborScorer:
    # By likeness, and among equals by number, so that the same counts give the same model.
    order = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
    order.sort(axis=1)
    kept = np.take_along_axis(likeness, order, axis=1)
    return NeighborScorer(neighbors=order.astype(np.int32), likeness=kept.astype(np.float32))
