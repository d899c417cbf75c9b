"""Say what a statistic is: a bounded vector a person, computed block by block and added up exactly.

How to add one. Write a frozen dataclass that derives from `Statistic`; its fields are public or released
numbers only, each annotated with its domain (`domain.py`), which is checked whenever one is made. `parts`
says what is added up: a name, a shape, the steps in 1 as a power of two, and the norm that one person's part
never exceeds, which is the sensitivity that the noise is scaled to. `_add` reads one block of whole people
and adds their whole steps to the given integer arrays, one for each part, in place; a person's steps may
depend on that person's row and on the fields, never on other rows, the block or its place. A person whose
numbers are not finite, or whose equations cannot be solved, contributes zero and never an error: whether a
sum comes out may not depend on a row. Write the formula of the bound, for the whole domain, beside the code.
Then give it an example in tests/contracts/statistic_examples.py: the contract suite finds the class by
itself, and searches its domain for somebody who adds more than it declares. Models release
`crowd.total(statistic)` and add noise; they never see a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import DataError
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.fixed_point import FixedPoint
from discreet.statistics.blocks import Block, blocks
from discreet.statistics.domain import Stated
from discreet.statistics.fixed_point import MOST_PEOPLE, VECTOR_BITS, Steps

Norm = Literal["l1", "l2"]


class Part(NamedTuple):
    """Say what is added up under a name, and how much of it one person (or one rating) can be.

    With `symmetric` only the upper triangle of a square matrix is added; its entries off the diagonal count
    twice in the norm, as they do in the whole matrix. With `nonnegative` no person adds less than 0 anywhere.
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
    """Hold exact sums, in whole steps, of what so many people told."""

    parts: tuple[Part, ...]
    arrays: tuple[Steps, ...]
    people: int = 0

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over both groups of people; no person may be in both."""
        if self.parts != other.parts:
            raise DataError("These are sums of different statistics; only sums of one can be added.")
        added = tuple(one + two for one, two in zip(self.arrays, other.arrays, strict=True))
        return Sums(self.parts, added, _checked(self.people + other.people))

    def steps(self, name: str | None = None) -> FixedPoint:
        """Return a part (the only one, if not named) in whole steps, which noise is added to exactly."""
        number = 0 if name is None else [part.name for part in self.parts].index(name)
        return FixedPoint(self.arrays[number], self.parts[number].bits)

    def floats(self, name: str | None = None) -> Floats:
        """Return a part as floats: exact up to 2^53 steps, the nearest ones beyond.

        Of a symmetric part the whole matrix is returned.
        """
        counts, bits = self.steps(name)
        number = 0 if name is None else [part.name for part in self.parts].index(name)
        numbers: Floats = np.ldexp(counts.astype(np.float64), -bits)
        return numbers + np.triu(numbers, 1).T if self.parts[number].symmetric else numbers


@dataclass(frozen=True, eq=False)
class Statistic(Stated, ABC):
    """Compute what people tell, block by block; see the module for how to write one."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Return what is added up."""

    @abstractmethod
    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        """Add what the people of a block tell to the arrays, one for each part."""

    @final
    def nothing(self) -> Sums:
        """Return the sums over nobody."""
        return Sums(self.parts, tuple(np.zeros(part.shape, dtype=np.int64) for part in self.parts))

    @final
    def over(self, data: Interactions) -> Sums:
        """Return the sums over everybody in the data."""
        return self.over_blocks(blocks(data))

    @final
    def over_blocks(self, people: Iterable[Block]) -> Sums:
        """Return the sums over the people of blocks, none of whom may be in two of them."""
        sums, count = self.nothing(), 0
        for block in people:
            count = _checked(count + block.counts.size)
            self._add(block, sums.arrays)
        return Sums(sums.parts, sums.arrays, count)


def _checked(people: int) -> int:
    if people > MOST_PEOPLE:
        raise DataError(f"Sums are exact for at most {MOST_PEOPLE:,} people; these data hold more.")
    return people
