"""Sum counts and means: votes and residuals by item, means and counts of users, votes on the scale.

Recent votes and residuals add up each rating times 2^-(age / half-life). The age counts from `now`, which is
public: a setting or the clock, never the latest time in the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, add_over_rows, require_fit
from discreet.core.exports import Later
from discreet.privacy.mechanisms.selection import MOST_NAMES_OF_ONE
from discreet.statistics.domain import (
    FARTHEST,
    LEAST,
    MOST,
    Length,
    Number,
    Numbers,
    OneOf,
    Places,
    Ranges,
    Stated,
    Whole,
)
from discreet.statistics.statistic import ROUNDING, Block, Norm, Part, Statistic, Steps, to_fixed_point
from discreet.statistics.typical import USER_RIDGE

if TYPE_CHECKING:
    from discreet.statistics import row_kernels
else:
    row_kernels = Later("discreet.statistics.row_kernels")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemVotes(Statistic):
    """Sum of users' votes for the n items they interacted with: 1/n each in l1, 1/sqrt(n) in l2.

    l1: n (1/n) = 1. l2: sqrt(n (1/sqrt(n))^2) = 1. Weights w of a user's interactions are divided by |w|.
    """

    n_items: Annotated[int, Length("n")]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum an item."""
        return (Part("votes", (self.n_items,), norm=self.norm, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        pure = self.norm == "l1"
        if pure and not block.data.facts.weights:
            block.add_by_item(1.0 / block.counts[block.people], sums[0])
            return
        own = block.weights
        lengths = ROUNDING / block.per_person(own)[block.people] if pure else block.unit_weights(own**2)
        block.add_by_item(own * lengths, sums[0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NameVotes(Statistic):
    """Sum of users' votes for their n items, 1/sqrt(n) each. A user with more than `most` items has none.

    sqrt(n (1/sqrt(n))^2) = 1.
    """

    n_items: Annotated[int, Length("n")]
    most: Annotated[int, Whole(1, MOST_NAMES_OF_ONE)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum for each item."""
        return (Part("votes", (self.n_items,), nonnegative=True, most=self.most),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        few = (block.counts <= self.most)[block.people]
        block.add_by_item(few * block.unit_weights(np.ones(block.items.size)), sums[0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class VotesAmong(Statistic):
    """Sum users' votes for the items in `top` (ascending): 1/sqrt(m) each for a user's m items among them.

    sqrt(m (1/sqrt(m))^2) = 1. Weights of these are divided by their length. A user without such items has no
    votes.
    """

    n_items: Annotated[int, Length("n")]
    top: Annotated[npt.NDArray[np.int64], Places(("v",), below="n", rising=True)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum for each item of `top`."""
        return (Part("votes", (self.top.size,), nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        among = np.zeros(self.n_items)
        among[self.top] = 1.0
        own, every = among[block.items] * block.weights, np.zeros(self.n_items, dtype=np.int64)
        block.add_by_item(own * block.unit_weights(own**2), every)
        sums[0][:] += every[self.top]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemResiduals(Statistic):
    """Sum of the residuals of ratings by item, and their weights.

    A residual e_i is a rating minus the mean, the item effect and the user's own mean residual. With weights
    q_i = `item_weights` and c = `count_part` a user contributes (w q_i e_i, w q_i c) for each rated item i,
    w = 1 / sqrt(sum_i q_i^2 (e_i^2 + c^2)); the squared norm of the contribution is 1.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    mean: Annotated[float, Number(-MOST, MOST)]
    effects: Annotated[Floats, Numbers(("n",), -MOST, MOST)]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return two sums an item: of residuals, and of counts times `count_part`."""
        return (Part("residuals", (2, self.effects.size)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        require_fit(block.rows(), self.effects.size)
        values = np.ascontiguousarray(block.values)
        asked = row_kernels.Residuals(*(getattr(self, name) for name in row_kernels.Residuals._fields))

        def part(start: int, stop: int, total: Steps) -> None:
            room = np.empty(int(block.counts.max(initial=0)))
            row_kernels.add_residuals(start, stop, block.indptr, block.items, values, asked, room, *total)

        add_over_rows(part, block.indptr, *sums)

    def weighted(self, block: Block) -> tuple[Floats, Floats]:
        """Return what each rating adds to its item's two sums; `_add` computes the same without arrays."""
        residuals = (block.values - self.middle) / self.half - self.mean - self.effects[block.items]
        own = block.per_person(residuals) / (block.counts + USER_RIDGE)
        residuals -= own[block.people]
        item_weight = self.item_weights[block.items]
        weights = item_weight * block.unit_weights(item_weight**2 * (residuals**2 + self.count_part**2))
        return weights * residuals, weights * self.count_part


#: A user contributes the mean and half a count; this bounds the norm of the vector (mean, 1/2).
MEAN_LENGTH = math.sqrt(1.25)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class UserMeans(Statistic):
    """Sum of users' mean ratings, on a scale from -1 to 1, and half the number of users with ratings.

    |(mean, 1/2)| <= sqrt(1 + 1/4), since |mean| <= 1.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the two sums."""
        return (Part("mean", (2,), bound=MEAN_LENGTH),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        rated = block.counts > 0
        own = block.per_person((block.values - self.middle) / self.half)[rated] / block.counts[rated]
        # On a scale too narrow for single precision, a clipped rating may still lie outside it.
        own = np.clip(own, -1, 1)
        sums[0][:] += [_total(own), _total(np.full(own.size, 0.5))]


@final
@dataclass(frozen=True, eq=False)
class UserCount(Statistic):
    """Number of users with at least one rating. Each adds 1."""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the count."""
        return (Part("people", (1,), nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        sums[0][0] += _total((block.counts > 0).astype(np.float64))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RatingShares(Statistic):
    """Sum of the position of every rating on the scale, from 0 to 1: one *rating* adds at most 1."""

    low: Annotated[float, Number(-FARTHEST, FARTHEST)]
    width: Annotated[float, Number(0.0, FARTHEST)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the sum."""
        return (Part("shares", (1,), norm="l1", of="rating", nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        sums[0][0] += _total(np.clip((block.values - self.low) / self.width, 0, 1))


def _total(numbers: Floats) -> int:
    """Return the sum of numbers, each at most 1 in absolute value, in fixed point."""
    return int(np.sum(to_fixed_point(numbers)))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ScaleVotes(Statistic):
    """Numbers of users by the first of the `scales` that includes all their ratings.

    The last count is of the users whose ratings fit none. A user with ratings adds 1 to one count: 1 in l1.
    """

    scales: Annotated[tuple[tuple[float, float], ...], Ranges(-FARTHEST, FARTHEST)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one count a scale, and one more."""
        return (Part("votes", (len(self.scales) + 1,), bits=0, norm="l1", nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        starts = block.indptr[:-1][block.counts > 0]
        if starts.size == 0:
            return
        least, most = np.minimum.reduceat(block.values, starts), np.maximum.reduceat(block.values, starts)
        votes = np.full(starts.size, len(self.scales))
        for number, (low, high) in reversed(list(enumerate(self.scales))):
            votes[(least >= low) & (most <= high)] = number
        sums[0][:] += np.bincount(votes, minlength=len(self.scales) + 1)


@final
@dataclass(frozen=True, kw_only=True)
class Recency(Stated):
    """A public time and a half-life, both in the unit of the data's times: seconds."""

    now: Annotated[float, Number(-MOST, MOST)]
    half_life: Annotated[float, Number(LEAST, MOST)]

    def of(self, block: Block) -> Floats:
        """Return what is left of each rating, from 0 to 1; one from the future counts fully."""
        times = block.data.times
        if times is None:
            # None is older than another.
            return np.ones(block.items.size)
        own = times[block.data.indptr[block.start] : block.data.indptr[block.stop]]
        age = np.maximum(self.now - own.astype(np.float64), 0.0)
        left: Floats = np.exp2(-age / self.half_life)
        return np.minimum(left, 1.0)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RecentVotes(Statistic):
    """Sum of votes g_i / max(|g|, 1) of users for their items. g_i is what is left of a weight.

    |g / max(|g|, 1)| <= 1, in l1 and l2 alike. A user without recent interactions has less than one vote.
    """

    n_items: Annotated[int, Length("n")]
    norm: Annotated[Norm, OneOf(("l1", "l2"))]
    recency: Recency

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one sum an item."""
        return (Part("votes", (self.n_items,), norm=self.norm, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        left = self.recency.of(block) * block.weights
        lengths = block.per_person(left) if self.norm == "l1" else np.sqrt(block.per_person(left**2))
        block.add_by_item(left * (ROUNDING / np.maximum(lengths, 1.0))[block.people], sums[0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RecentResiduals(Statistic):
    """Sum as in `ItemResiduals`, each rating times what is left of it.

    A user's vector there has length 1, and every entry is multiplied by a number from 0 to 1 here.
    """

    plain: ItemResiduals
    recency: Recency

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return two sums an item: of residuals, and of counts times `count_part`."""
        return self.plain.parts

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        left = self.recency.of(block)
        residuals, counted = self.plain.weighted(block)
        block.add_by_item(left * residuals, sums[0][0])
        block.add_by_item(left * counted, sums[0][1])
