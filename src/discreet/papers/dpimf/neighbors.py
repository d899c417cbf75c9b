"""Recommend by item-item similarity, from bits that each device flipped before sending.

Every user reports one bit per item: interaction or not. Each bit is flipped with a known probability.
Co-occurrence counts of two items are debiased by inverting this channel for both bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final

import numpy as np

from discreet.collect.errors import WrongReports
from discreet.collect.estimate import Collected
from discreet.collect.hidden_items import cell_guarantee
from discreet.core import Floats, PrivacyRandom, Progress, Singles, integer, require
from discreet.data import Interactions, PublicFacts
from discreet.models import (
    Estimator,
    FittedModel,
    NeighborScorer,
    Scorer,
    check_budget,
    fitted_reports,
    without_cap,
)
from discreet.privacy import PARTICIPATION, Guarantee, Session, Unit, assumptions_of
from discreet.privacy.mechanisms.cells import HiddenStars
from discreet.privacy.mechanisms.local import sign_flip
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.statistics import blocks

Similarity = Literal["jaccard", "cosine"]

_ENTRIES_PER_BLOCK = 1 << 21


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemNeighbors(Estimator):
    """Recommend by item-item similarity, from interaction bits flipped on each device.

    Guarantee
        Pure `epsilon` for whether one user interacted with one item, against anyone, the collector included
        (proofs/neighbours.md). All items of a user together cost `epsilon` times the size of the catalog.

    Noise
        Each bit is flipped with probability f = 1 / (1 + e^epsilon); (y - f) / (1 - 2 f) then has the true
        bit as its mean.

    Parameters:
        neighbors: How many neighbors an item keeps.
        likeness: The similarity: `jaccard` as in DPLCF, or `cosine` as in LDPICF.

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

    Stability
        Stable.
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
        require(self.likeness in known, "likeness", self.likeness, must=f"be one of {', '.join(known)}")

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee; it depends on epsilon alone."""
        assumes = (*assumptions_of(without_cap(facts)), PARTICIPATION)
        promise = Guarantee.of_reports(self.epsilon, Unit.RATING, *assumes, proof="proofs/neighbours.md")
        return promise.from_raw_ratings()

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the one report for each user and item."""
        return () if math.isinf(self.epsilon) else (sign_flip(self.epsilon).event(),)

    def _bound(self, data: Interactions) -> Interactions:
        return data.with_facts(without_cap(data.facts)).bounded()

    def _train(self, session: Session, progress: Progress) -> Scorer:
        flip = None if math.isinf(self.epsilon) else sign_flip(self.epsilon)
        reports = session.laplace().perturb(InteractionBits(flip=flip))
        together, alone = np.zeros((session.n_items, session.n_items)), np.zeros(session.n_items)
        seen = 0
        for bits in reports.blocks:
            together += bits.T @ bits
            alone += bits.sum(axis=0, dtype=np.float64)
            seen += len(bits)
            progress(self.name, seen, reports.people)
        lie = 0.0 if flip is None else flip.flip_rates()[0]
        likeness = similarities(together, alone, seen, lie, self.likeness)
        return _nearest(likeness, min(self.neighbors, session.n_items - 1))

    @final
    def fit_reports(self, collected: Collected, *, progress: Progress | None = None) -> FittedModel:
        """Learn from the bits that devices reported; they have spent their budget, so nothing is spent here.

        Raises:
            DifferentEpsilon: The reports were made with an epsilon that this estimator doesn't state.
            WrongReports: The campaign doesn't ask for one bit per item.
        """
        mechanism = collected.mechanism
        if not isinstance(mechanism, HiddenStars) or mechanism.levels > 1:
            came = type(mechanism).__name__
            raise WrongReports(model=self.name, wanted="HiddenStars on a scale of one value", came=came)
        promise = cell_guarantee(mechanism, collected.facts)
        return fitted_reports(self, collected, promise, self._from_reports, progress)

    def _from_reports(self, collected: Collected, progress: Progress) -> Scorer:
        bits = collected.reports.to_scipy().astype(np.float64)
        bits.data[:] = 1.0
        together = np.asarray((bits.T @ bits).toarray(), dtype=np.float64)
        alone, mechanism = np.asarray(bits.sum(axis=0)).ravel(), collected.mechanism
        assert isinstance(mechanism, HiddenStars)
        # A missing bit is flipped a little more often than a set one: gaps are rounded to reveal less.
        found = similarities(together, alone, bits.shape[0], mechanism.fake, self.likeness)
        progress(self.name, 1, 1)
        return _nearest(found, min(self.neighbors, bits.shape[1] - 1))


class ReportedBits(NamedTuple):
    """The number of users who report, and their reports in blocks: a row per user, a bit per item."""

    people: int
    blocks: Iterator[Singles]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionBits:
    """One bit per user and item, flipped on the user's device, for a session to perturb."""

    flip: SignFlip | None
    name: ClassVar[str] = "sign-flip"
    of: ClassVar[str] = "rating"

    @property
    def epsilon(self) -> float:
        """Return the epsilon of one bit."""
        return math.inf if self.flip is None else self.flip.epsilon

    def over(self, data: Interactions, random: PrivacyRandom, /) -> ReportedBits:
        """Return the reports; each block is drawn once, when it is asked for."""
        return ReportedBits(data.n_users, self._blocks(data, random))

    def _blocks(self, data: Interactions, random: PrivacyRandom) -> Iterator[Singles]:
        for block in blocks(data, most_people=max(_ENTRIES_PER_BLOCK // data.n_items, 1)):
            signs = np.full((block.counts.size, data.n_items), -1, dtype=np.int8)
            signs[block.people, block.items] = 1
            if self.flip is not None:
                signs = self.flip.release(signs.ravel(), random).reshape(signs.shape)
            yield (signs > 0).astype(np.float32)


def similarities(together: Floats, alone: Floats, people: int, flip: float, kind: str) -> Floats:
    """Estimate similarities from counts of bits that are flipped with probability `flip`.

    `together[a, b]` counts users whose bits for a and b are both 1, `alone[a]` those whose bit for a is 1.
    A bit y is debiased to (y - flip) / (1 - 2 flip), whose mean is the true bit. The bits of two items are
    flipped independently, so the product of two debiased bits is unbiased for the pair.
    """
    honest = 1 - 2 * flip
    pairs = (together - flip * (alone[:, None] + alone[None, :]) + flip**2 * people) / honest**2
    noise = math.sqrt(people * flip * (1 - flip)) / honest
    counts = np.maximum((alone - flip * people) / honest, max(noise, 1.0))
    pairs = np.clip(pairs, 0.0, np.minimum(counts[:, None], counts[None, :]))
    whole = counts[:, None] + counts[None, :] - pairs
    divisor = whole if kind == "jaccard" else np.sqrt(counts[:, None] * counts[None, :])
    found: Floats = pairs / divisor
    np.fill_diagonal(found, 0.0)
    return found


def _nearest(likeness: Floats, count: int) -> NeighborScorer:
    # By similarity, and among equals by number, so that the same counts give the same model.
    order = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
    order.sort(axis=1)
    kept = np.take_along_axis(likeness, order, axis=1)
    return NeighborScorer(neighbors=order.astype(np.int32), neighbor_similarities=kept.astype(np.float32))
