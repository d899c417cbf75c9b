"""Put the choices of facts before a fit: one promise of all, one payment, one order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from discreet.checks import ParameterError, PrivacyError, require
from discreet.data.facts import CHOSEN, CHOSEN_SCALE, N_ITEMS, SCALE, PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.private_facts.catalog import PrivateCatalog
from discreet.models.private_facts.scale import USUAL_SCALES, PrivateScale
from discreet.privacy.accounting.rounding import sum_up
from discreet.privacy.guarantee import Guarantee, Neighbors, Unit
from discreet.randomness import PrivacyRandom

# Of what is spent on choices the scale needs less than the catalog: a dozen counts, of everybody.
_SCALE_SHARE = 0.25
#: How many items a fit plans for until a catalog is chosen: the fewest, and the most that there can be.
FEWEST_ITEMS, MOST_ITEMS = 2, 2**31 - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFacts:
    """Choose the scale, then the catalog, each with noise and if asked for; a fit takes them as public.

    Guarantee
        The sum of what the choices promise, by basic composition (proofs/private_scale.md).
    """

    catalog: PrivateCatalog | None = None
    scale: PrivateScale | None = None

    @classmethod
    def share_of(cls, share: float, epsilon: float, delta: float, *, scale: bool) -> Self:
        """Return choices that cost this share of a budget together: the catalog, and the scale if asked."""
        require(0 < share < 1, "share", share, "must lie between 0 and 1", "0.2 is a fifth of the budget.")
        if not (math.isfinite(epsilon) and delta > 0):
            raise PrivacyError("Choosing a catalog needs a finite epsilon and a delta above 0.")
        part = share * epsilon * _SCALE_SHARE if scale else 0.0
        return cls(
            catalog=PrivateCatalog(epsilon=share * epsilon - part, delta=share * delta),
            scale=PrivateScale(epsilon=part) if scale else None,
        )

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to choose."""
        return not self._all()

    @property
    def epsilon(self) -> float:
        """Return what the choices cost together."""
        return sum_up(one.epsilon for one in self._all())

    @property
    def delta(self) -> float:
        """Return what may be revealed on top by the choices together."""
        return sum_up(one.delta for one in self._all())

    def events(self) -> Sequence[Any]:
        """Return the events of the choices."""
        return [event for one in self._all() for event in one.events()]

    def promise(self, model: Guarantee) -> Guarantee:
        """Return the promise of making the choices and then a release with this promise."""
        if model.unit is not Unit.USER or model.neighbors is not Neighbors.ADD_OR_REMOVE:
            raise PrivacyError(
                "Facts chosen with noise hide whole people, and this model promises something else. "
                "Declare them, or choose a model that protects a person's whole history."
            )
        if not math.isfinite(model.epsilon):
            raise PrivacyError("A model without privacy needs no facts chosen with noise.")
        return replace(
            model,
            epsilon=sum_up([model.epsilon, self.epsilon]),
            delta=sum_up([model.delta, self.delta]),
            notes=(*model.notes, *(one.note() for one in self._all())),
        )

    def before(self, facts: PublicFacts) -> PublicFacts:
        """Return what is known before the choices: nothing in it is the data's.

        Until a catalog is chosen a fit plans for the fewest items: how many there are in the data steers
        neither the promise, nor the planned events, nor a refusal (proofs/private_catalog.md).
        """
        if self.catalog is not None and self.scale is None and SCALE in facts.from_file:
            raise ParameterError(
                "The scale was taken from the data, so that the promise would still depend on it. "
                "Declare it (low=, high=, step=; --scale), or let it be chosen (select_scale=)."
            )
        if self.scale is not None and SCALE not in facts.from_file:
            raise ParameterError("The scale is declared, so there is none to choose. Leave select_scale out.")
        if self.catalog is not None:
            kept = (name for name in facts.from_file if name != N_ITEMS)
            facts = replace(facts, n_items=FEWEST_ITEMS, from_file=(*kept, CHOSEN))
        return facts if self.scale is None else _on_scale(facts, *USUAL_SCALES[-1])

    def choose(self, data: Interactions, random: PrivacyRandom) -> Interactions:
        """Return the ratings of the chosen items under the chosen scale; no other facts are left."""
        facts = self.before(data.facts)
        if self.scale is not None:
            facts = _on_scale(facts, *self.scale.choose(data, random))
        if self.catalog is None:
            return data.with_facts(facts)
        ordered = _in_canonical_order(data)
        left = ordered.select_items(self.catalog.choose(ordered, random))
        # The type of the chosen ids, too, follows from these ids alone.
        return replace(left, catalog=left.catalog.canonical(), facts=replace(facts, n_items=left.n_items))

    def _all(self) -> list[PrivateScale | PrivateCatalog]:
        return [one for one in (self.scale, self.catalog) if one is not None]


def _in_canonical_order(data: Interactions) -> Interactions:
    """Return the same ratings, items in an order that no id of somebody else can change."""
    order = data.catalog.canonical_order()
    return data if np.array_equal(order, np.arange(order.size)) else data.select_items(order)


def _on_scale(facts: PublicFacts, low: float, high: float) -> PublicFacts:
    kept = (name for name in facts.from_file if name != SCALE)
    return replace(facts, low=low, high=high, step=None, from_file=(*kept, CHOSEN_SCALE))
