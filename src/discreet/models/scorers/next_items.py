"""Score what a user chooses next by weights between items, and blend it with other scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, run
from discreet.core.exports import Later
from discreet.data.interactions import Interactions
from discreet.models.errors import MalformedPart
from discreet.solvers.few_rows import FEW

if TYPE_CHECKING:
    from discreet.models.scorers import next_items_kernels as kernels
else:
    kernels = Later("discreet.models.scorers.next_items_kernels")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NextItems:
    """For the items in `items`, the weights with which each supports its `neighbors` among them.

    A user's weight of an item is the sum over their interactions; with times the r-th latest counts (1 + r)
    to the minus `fading`. The share of `blend` of a list's probability follows these weights, where they are
    positive.
    """

    items: Indices
    neighbors: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float16]
    blend: float
    fading: float
    _places: dict[int, Indices] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def none(cls) -> NextItems:
        """Return no items."""
        empty = np.zeros((0, 0))
        return cls(
            items=np.zeros(0, dtype=np.int64),
            neighbors=empty.astype(np.int32),
            weights=empty.astype(np.float16),
            blend=0.0,
            fading=1.0,
        )

    def __bool__(self) -> bool:
        """Return whether they change any score."""
        return self.items.size > 0 and self.blend > 0

    def check(self) -> None:
        """Raise for parts that do not fit together."""
        if not np.diff(np.sort(self.items)).all():
            raise MalformedPart(part="paired", rule="order")
        if not len(self.neighbors) == len(self.weights) == self.items.size:
            raise MalformedPart(part="neighbors", rule="shape")

    def places(self, histories: Interactions) -> Indices:
        """Return the place of each interaction's item among `items`, or -1."""
        found: Indices = self._place(histories.n_items)[histories.items]
        return found

    def _place(self, n_items: int) -> Indices:
        """Return the place of each item of the catalog among `items`, or -1; computed once."""
        if n_items not in self._places:
            place = np.full(n_items, -1, dtype=np.int64)
            place[self.items] = np.arange(self.items.size)
            self._places[n_items] = place
        return self._places[n_items]

    def following(self, histories: Interactions, recency: Floats) -> Floats:
        """Return the positive sums of the weights of each user's interactions, for all of `items`."""
        own, singles = self.places(histories), recency.astype(np.float32)
        sums = np.zeros((histories.n_users, self.items.size))
        if histories.n_users > FEW:
            cost = histories.indptr + np.arange(histories.indptr.size)
            table = kernels.packed(self.neighbors, self.weights)
            run(kernels.add_rows_of_neighbors, cost, histories.indptr, own, singles, *table, sums)
            return np.maximum(sums, 0.0, out=sums)
        for row, (start, stop) in enumerate(zip(histories.indptr[:-1], histories.indptr[1:], strict=True)):
            known = start + np.flatnonzero(own[start:stop] >= 0)
            weights = self.weights[own[known]].astype(np.float64) * singles[known, None].astype(np.float64)
            names = self.neighbors[own[known]].ravel()
            sums[row] = np.bincount(names, weights=weights.ravel(), minlength=self.items.size)
        return np.maximum(sums, 0.0, out=sums)

    def blended(self, scores: Floats, following: Floats, blend: Floats) -> Floats:
        """Return log-odds of a mixture of `scores` and, by each user's share `blend`, of `following`.

        Both give the same probability to all of `items` together. A user keeps their scores if their
        interactions have no weights.
        """
        total = following.sum(axis=1, keepdims=True)
        speaks = total[:, 0] > 0
        if not speaks.any():
            return scores.copy()
        kept = np.where(speaks, np.log1p(-blend), 0.0)
        found = scores + kept[:, None]
        # Items without weights keep their score, less the share of the others.
        rows, cells = np.nonzero(following)
        base = scores[:, self.items]
        with np.errstate(divide="ignore"):
            follows = np.log(following[rows, cells] / total[rows, 0])
            new = follows + _log_sum(base)[rows, 0] + np.log(blend)[rows]
        found[rows, self.items[cells]] = np.logaddexp(base[rows, cells] + kept[rows], new)
        return found


def _log_sum(numbers: Floats) -> Floats:
    """Return the logarithm of the sum of the exponentials of each row."""
    largest = numbers.max(axis=1, keepdims=True)
    found: Floats = np.log(np.exp(numbers - largest).sum(axis=1, keepdims=True)) + largest
    return found
