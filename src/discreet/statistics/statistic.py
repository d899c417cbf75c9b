"""Define a statistic: it maps each user to a bounded vector, and its sum over users is exact.

How to add one. Write a frozen dataclass that derives from `Statistic`; its fields are public or released
numbers only, each annotated with its domain (`domain.py`), which is checked whenever one is made. `parts`
states what is added up: a name, a shape, the steps in 1 as a power of two, and the norm that one user's part
never exceeds, which is the sensitivity that the noise is scaled to. `_add` reads one block of whole users
and adds their whole steps to the given integer arrays, one for each part, in place; a user's steps may
depend on that user's row and on the fields, never on other rows, the block or its place. A user whose
numbers are not finite, or whose equations cannot be solved, contributes zero and never an error: whether a
sum comes out may not depend on a row. Write the formula of the bound, for the whole domain, next to the code.
Then give it an example in tests/contracts/statistic_examples.py: the contract suite finds the class by
itself, and searches its domain for a user who adds more than it declares. Models release
`source.total(statistic)` and add noise; they never see a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import OtherStatistic, TooManyUsers
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.fixed_point import FixedPoint
from discreet.statistics.blocks import Block, blocks
from discreet.statistics.domain import Stated
from discreet.statistics.fixed_point import MOST_PEOPLE, VECTOR_BITS, Steps

Norm = Literal["l1", "l2"]


class Part(NamedTuple):
    """Declare one array of a statistic, and the bound on one user's (or one rating's) contribution to it.

    With `symmetric` only the upper triangle of a square matrix is added; its entries off the diagonal count
    twice in the norm, as they do in the whole matrix. With `nonnegative` no user adds less than 0 anywhere.
    """

    name: str
    shape: tuple[int, ...]
    bits: int = VECTOR_BITS
    norm: Norm = "l2"
    bound: float = 1.0
    symmetric: bool = False
    of: Literal["person", "rating"] = "person"
    nonnegative: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Exact sums, in fixed point, of the contributions of `people` users."""

    parts: tuple[Part, ...]
    arrays: tuple[Steps, ...]
    people: int = 0

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over both groups of users; no user may be in both."""
        if self.parts != other.parts:
            raise OtherStatistic()
        added = tuple(one + two for one, two in zip(self.arrays, other.arrays, strict=True))
        return Sums(self.parts, added, _checked(self.people + other.people))

    def steps(self, name: str | None = None) -> FixedPoint:
        """Return a part (the only one, if not named) in fixed point, so that noise is added exactly."""
        number = 0 if name is None else [part.name for part in self.parts].index(name)
        return FixedPoint(self.arrays[number], self.parts[number].bits)

    def floats(self, name: str | None = None) -> Floats:
        """Return a part as floats: exact up to 2^53 units, the nearest floats beyond.

        A symmetric part is returned as the whole matrix.
        """
        counts, bits = self.steps(name)
        number = 0 if name is None else [part.name for part in self.parts].index(name)
        numbers: Floats = np.ldexp(counts.astype(np.float64), -bits)
        return numbers + np.triu(numbers, 1).T if self.parts[number].symmetric else numbers


class ExactNumbers(NamedTuple):
    """The exact numbers of a query that adds nothing up, such as one per rating, for a session to read."""

    values: Floats

    def steps(self, name: str | None = None) -> Floats:
        """Return the numbers before noise."""
        return self.values


@dataclass(frozen=True, eq=False)
class Statistic(Stated, ABC):
    """Users' contributions, computed block by block. The module's docstring shows how to write one."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Return the arrays that are summed."""

    @abstractmethod
    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        """Add the contributions of a block's users to the arrays, one for each part."""

    def _finish(self, sums: tuple[Steps, ...]) -> None:
        """Turn what was added into the sums, in place: a step that is linear is done once, not by block."""
        return

    @final
    def nothing(self) -> Sums:
        """Return sums of zero, over no users."""
        return Sums(self.parts, tuple(np.zeros(part.shape, dtype=np.int64) for part in self.parts))

    @final
    def over(self, data: Interactions) -> Sums:
        """Return the sums over all users of the data."""
        return self.over_blocks(blocks(data))

    @final
    def over_blocks(self, people: Iterable[Block]) -> Sums:
        """Return the sums over the users of all blocks; no user may be in two of them."""
        sums, count = self.nothing(), 0
        for block in people:
            count = _checked(count + block.counts.size)
            self._add(block, sums.arrays)
        self._finish(sums.arrays)
        return Sums(sums.parts, sums.arrays, count)


def _checked(people: int) -> int:
    if people > MOST_PEOPLE:
        raise TooManyUsers(most=MOST_PEOPLE)
    return people
