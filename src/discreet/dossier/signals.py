"""What a released model orders items by, measured on the release itself with made-up histories.

No user's data are read: the histories are drawn from the model's catalog, so this is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from discreet.core import Singles, experiment_generator
from discreet.data import History, ItemId, UserHistory
from discreet.models import FittedModel, Ids, person_row

# Made-up users, and how many items each has.
_USERS, _LENGTH = 40, 10
# From this share of equal first items on, what all users choose counts more than a history.
_MOSTLY = 0.5
_BASE = {
    "popularity": "how popular an item is with all users",
    "item mean": "how all users rate an item on average",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What items are ordered by: `base` for a user without a history, and what a history adds.

    `usual` is the mean share of the first ten items that a user without a history also gets. `rows` is true
    if the release has rows of its own users, who are then ranked by them.
    """

    base: str
    history: bool
    order: bool
    usual: float
    rows: bool = False

    @classmethod
    def of(cls, model: FittedModel) -> Self:
        """Measure what made-up histories of popular and other items change."""
        rng = experiment_generator(0, "signals of a dossier")
        scorer = model.scorer
        usual, base = [], scorer.worth(person_row(model, []), np.zeros(1, dtype=np.int64))[0]
        changes = reorders = False
        for _ in range(_USERS):
            history = _made_up(model, base, rng)
            own = _first(model, history)
            plain = _first(model, replace(history, times=None))
            newcomer = _first(model, [], exclude=history.items)
            usual.append(len(set(own) & set(newcomer)) / max(len(own), 1))
            changes |= own != newcomer
            reorders |= own != plain
        return cls(
            base=_BASE.get(scorer.base_part, scorer.base_part),
            history=changes,
            order=reorders,
            usual=float(np.mean(usual)),
            rows=any(isinstance(part, Ids) for part in scorer.stored.values()),
        )

    def sentences(self, own: str) -> str:
        """Return the main parameters for users, the most important one first; `own` is what a history has."""
        known = (
            " If your data were in the fit, what the release states about you counts most, whatever history "
            "is sent."
        ) * self.rows
        if not self.history:
            return (
                f"We order items by one signal: {self.base}. Your own history doesn't change the order: all "
                f"users get the same first items, except for those that they know already.{known}"
            )
        history = f"your own history: {own}{', and in which order' * self.order}"
        most, second = (self.base, history) if self.usual >= _MOSTLY else (history, self.base)
        return (
            f"We order items by two signals. The most important one is {most}. The second one is {second}. "
            f"Of the first ten items, a user without a history also gets {10 * self.usual:.0f} on average. "
            f"Noisy sums over all users determine how much each signal counts.{known}"
        )


def _first(model: FittedModel, history: History, exclude: Sequence[ItemId] = ()) -> list[ItemId]:
    """Return the first ten items of a list."""
    return [one.item for one in model.recommend(history, exclude=exclude)]


def _made_up(model: FittedModel, base: Singles, rng: np.random.Generator) -> UserHistory:
    """Return a history in which items that come early for new users are more frequent."""
    weights = np.empty(base.size)
    weights[np.argsort(-base, kind="stable")] = 1 / np.arange(1, base.size + 1)
    chosen = rng.choice(base.size, min(_LENGTH, base.size), replace=False, p=weights / weights.sum())
    low, high = model.facts.low, model.facts.high
    return UserHistory(
        items=model.catalog.id_at(chosen).tolist(),
        ratings=np.where(rng.random(chosen.size) < 0.7, high, low).tolist(),
        times=np.arange(1, chosen.size + 1),
    )
