"""Select the catalog and the rating scale privately from the data before a fit, at a price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, positive_finite, within
from discreet.data import CHOSEN, CHOSEN_SCALE, N_ITEMS, SCALE, Interactions, PublicFacts
from discreet.models.errors import (
    MemoryNeeded,
    ScaleDeclared,
    ScaleFromData,
    SelectionMismatch,
    SelectionNeedsBudget,
    SelectionTooSmall,
)
from discreet.privacy import Assumption, Fact, Guarantee, Kind, Neighbors, Session, Unit, sum_up
from discreet.privacy.mechanisms.additive import laplace_event
from discreet.privacy.mechanisms.selection import threshold_events
from discreet.report import selection_cost
from discreet.statistics import DataSource, NameVotes, ScaleVotes

CATALOG_PROOF = "proofs/private_catalog.md"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateCatalog:
    """A catalog of the items that enough users rated, decided with noise. It may be published.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user
        (proofs/private_catalog.md). Its cost is recorded together with the model's.

    Parameters:
        max_per_user: The most items of one user that are counted.

    Example:
        >>> from discreet import Biases, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=500, n_items=60, mean_per_user=20)
        >>> chosen = PrivateCatalog(epsilon=0.5, delta=5e-7)
        >>> model = Biases(epsilon=0.5, delta=5e-7).fit(films, select_items=chosen)
        >>> model.guarantee.epsilon, len(model.catalog) < 60
        (1.0, True)

    Stability
        Stable.
    """

    epsilon: float
    delta: float
    max_per_user: int = 1000

    def __post_init__(self) -> None:
        threshold_events(epsilon=self.epsilon, delta=self.delta, most=self.max_per_user)

    def note(self) -> str:
        """Return the label's note about the cost."""
        return selection_cost("catalog", self.epsilon, self.delta, CATALOG_PROOF)

    def events(self) -> Sequence[Any]:
        """Return the noise on votes, and the probability that an item of one user alone passes."""
        return threshold_events(epsilon=self.epsilon, delta=self.delta, most=self.max_per_user)

    def choose(self, session: Session) -> npt.NDArray[np.bool_]:
        """Return which items are selected."""
        session = session.mapped(lambda data: data.bounded(self.max_per_user))
        most = min(self.max_per_user, session.facts.max_per_user or self.max_per_user)
        votes = NameVotes(n_items=session.n_items, most=most)
        chosen = session.names(votes, epsilon=self.epsilon, delta=self.delta)
        if np.count_nonzero(chosen) < 2:
            raise SelectionTooSmall(what="catalog")
        return chosen


SCALE_PROOF = "proofs/private_scale.md"
#: The usual scales, the narrowest first; the last one is used if no other fits.
USUAL_SCALES: tuple[tuple[float, float], ...] = (
    (0.0, 1.0),
    (-1.0, 1.0),
    (1.0, 5.0),
    (0.5, 5.0),
    (0.0, 5.0),
    (1.0, 7.0),
    (1.0, 10.0),
    (0.0, 10.0),
    (-5.0, 5.0),
    (-10.0, 10.0),
    (1.0, 100.0),
    (0.0, 100.0),
    (-100.0, 100.0),
)
# A scale is wide enough if all but this fraction of users fit, within so many deviations of the noise.
_FEW = 0.01
_DEVIATIONS = 3.0
# With fewer users than this many deviations of the noise even the first scale would seem wide enough.
_LEAST_DEVIATIONS = 6.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateScale:
    """The narrowest of the usual scales that covers the ratings of nearly all users, selected with noise.

    Ratings outside it are clipped. The rule is in proofs/private_scale.md.

    Guarantee
        Pure `epsilon` for a user's whole history, between datasets with and without that user
        (proofs/private_scale.md). Its cost is recorded together with the model's.

    Example:
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=500, n_items=60, mean_per_user=20)
        >>> from discreet import Biases
        >>> films = films.with_facts(replace(films.facts, from_file=("scale",)))
        >>> model = Biases(epsilon=0.5).fit(films, select_scale=PrivateScale(epsilon=0.5))
        >>> model.facts.low, model.facts.high
        (1.0, 5.0)

    Stability
        Stable.
    """

    epsilon: float
    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        positive_finite("epsilon", self.epsilon)
        self.events()

    def note(self) -> str:
        """Return the label's note about the cost."""
        return selection_cost("scale", self.epsilon, self.delta, SCALE_PROOF)

    def events(self) -> Sequence[Any]:
        """Return the one release."""
        return (laplace_event(self.epsilon),)

    def choose(self, session: Session) -> tuple[float, float]:
        """Return the lowest and the highest rating of the selected scale."""
        votes = ScaleVotes(scales=USUAL_SCALES)
        return narrowest(*session.laplace(epsilon=self.epsilon).release(votes, Fraction(1)))


def narrowest(votes: Floats, deviation: float) -> tuple[float, float]:
    """Return the first usual scale that leaves few users outside; `votes` have noise of this deviation.

    Raises:
        DataError: There are too few users to decide; this, too, was decided with noise.
    """
    people = float(votes.sum())
    if people < _LEAST_DEVIATIONS * deviation * math.sqrt(votes.size):
        raise SelectionTooSmall(what="scale")
    for scale in USUAL_SCALES:
        missed = [
            place for place, other in enumerate(USUAL_SCALES) if other[0] < scale[0] or scale[1] < other[1]
        ]
        outside = votes[[*missed, len(USUAL_SCALES)]]
        if outside.sum() <= _FEW * people + _DEVIATIONS * deviation * math.sqrt(outside.size):
            return scale
    return USUAL_SCALES[-1]


# The scale's part of the budget for both selections: it needs less, because it is a dozen counts of all
# users.
_SCALE_SHARE = 0.25
#: The numbers of items a fit plans for before the catalog is selected: the fewest and the most possible.
FEWEST_ITEMS, MOST_ITEMS = 2, 2**31 - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFacts:
    """The scale, then the catalog, each selected with noise on request. A fit uses them as public.

    Guarantee
        The sum of the guarantees of both selections, by basic composition (proofs/private_scale.md).
    """

    catalog: PrivateCatalog | None = None
    scale: PrivateScale | None = None

    @classmethod
    def share_of(cls, share: float, epsilon: float, delta: float, *, scale: bool) -> Self:
        """Return selections that cost this share of a budget: the catalog, and the scale if asked."""
        within("share", share, above=0, below=1)
        if not (math.isfinite(epsilon) and delta > 0):
            raise SelectionNeedsBudget()
        part = share * epsilon * _SCALE_SHARE if scale else 0.0
        return cls(
            catalog=PrivateCatalog(epsilon=share * epsilon - part, delta=share * delta),
            scale=PrivateScale(epsilon=part) if scale else None,
        )

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to select."""
        return not self._all()

    @property
    def epsilon(self) -> float:
        """Return the epsilon of all selections together."""
        return sum_up(one.epsilon for one in self._all())

    @property
    def delta(self) -> float:
        """Return the delta of all selections together."""
        return sum_up(one.delta for one in self._all())

    def events(self) -> Sequence[Any]:
        """Return the events of the selections."""
        return [event for one in self._all() for event in one.events()]

    def promise(self, model: Guarantee) -> Guarantee:
        """Return the guarantee of the selections followed by a release with this guarantee."""
        if model.unit is not Unit.USER or model.neighbors is not Neighbors.ADD_OR_REMOVE:
            raise SelectionMismatch(model="The model")
        if not math.isfinite(model.epsilon):
            raise SelectionMismatch(model="A model without privacy")
        return replace(
            model,
            epsilon=sum_up([model.epsilon, self.epsilon]),
            delta=sum_up([model.delta, self.delta]),
            notes=(*model.notes, *(one.note() for one in self._all())),
        )

    def before(self, facts: PublicFacts) -> PublicFacts:
        """Return the facts known before the selections; nothing to be selected is taken from the data.

        Until a catalog is selected a fit plans for the fewest items: the number of items in the data affects
        neither the guarantee, nor the planned events, nor an error (proofs/private_catalog.md).
        """
        if self.catalog is not None and self.scale is None and SCALE in facts.from_file:
            raise ScaleFromData()
        if self.scale is not None and SCALE not in facts.from_file:
            raise ScaleDeclared()
        if self.catalog is not None:
            kept = (name for name in facts.from_file if name != N_ITEMS)
            facts = replace(facts, n_items=FEWEST_ITEMS, from_file=(*kept, CHOSEN))
        return facts if self.scale is None else _on_scale(facts, *USUAL_SCALES[-1])

    def narrowed(self, session: Session, data: Interactions) -> Interactions:
        """Return the ratings of the selected items on the selected scale; no other facts remain."""
        facts = self.before(data.facts)
        if self.scale is not None:
            facts = _on_scale(facts, *self.scale.choose(session))
        if self.catalog is None:
            return data.with_facts(facts)
        ordered = _in_canonical_order(data)
        left = ordered.select_items(self.catalog.choose(session.mapped(lambda _: ordered)))
        # The type of the selected ids, too, depends on these ids alone.
        return replace(left, catalog=left.catalog.canonical(), facts=replace(facts, n_items=left.n_items))

    def _all(self) -> list[PrivateScale | PrivateCatalog]:
        return [one for one in (self.scale, self.catalog) if one is not None]


class Planned(Protocol):
    """A release planned from public facts: an estimator, as far as selected facts concern it."""

    name: ClassVar[str]

    def promise(self, facts: PublicFacts, /) -> Guarantee:
        """Return the guarantee on data with these facts."""

    def events(self, facts: PublicFacts, /) -> Sequence[Any]:
        """Return the events of a fit on data with these facts."""


def whole_promise(estimator: Planned, source: DataSource, chosen: PrivateFacts) -> Guarantee:
    """Return the whole guarantee of a fit, private selection of facts included; nothing is learned.

    Of synthetic data it states what they were drawn from: the guarantee is about the synthetic users alone.
    """
    promise = _promise_on(estimator, source, chosen)
    origin = source.origin if isinstance(source, Interactions) else None
    if origin is None:
        return promise
    return promise.assuming(Assumption.of(Kind.SYNTHETIC, Fact.DATA, origin=origin))


def _promise_on(estimator: Planned, source: DataSource, chosen: PrivateFacts) -> Guarantee:
    if chosen.is_empty:
        return estimator.promise(source.facts)
    if not isinstance(source, Interactions):
        raise MemoryNeeded(argument="select_items")
    known = chosen.before(source.facts)
    promise = estimator.promise(known)
    if chosen.catalog is not None and promise != estimator.promise(replace(known, n_items=MOST_ITEMS)):
        raise SelectionMismatch(model=estimator.name)
    return chosen.promise(promise)


def whole_events(estimator: Planned, source: DataSource, chosen: PrivateFacts) -> Sequence[Any]:
    """Return the events of a fit, private selection of facts included.

    Where the catalog is selected they are those for the fewest items; the cost is the same for any number.
    """
    return [*chosen.events(), *estimator.events(chosen.before(source.facts))]


def _in_canonical_order(data: Interactions) -> Interactions:
    """Return the same ratings with items in canonical order, which other users' items cannot change."""
    order = data.catalog.canonical_order()
    return data if np.array_equal(order, np.arange(order.size)) else data.select_items(order)


def _on_scale(facts: PublicFacts, low: float, high: float) -> PublicFacts:
    kept = (name for name in facts.from_file if name != SCALE)
    return replace(facts, low=low, high=high, step=None, from_file=(*kept, CHOSEN_SCALE))
