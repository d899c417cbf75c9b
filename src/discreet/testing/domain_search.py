"""Search the whole stated domain of a statistic for a user who contributes more than the declared bound.

Statistics are made from their classes' own statements. Every field is at its ends, just inside them, at
ordinary numbers, and a random mix. Arrays are flat, have one large entry, have equal columns, or are spread
over all magnitudes. Sides are as short as allowed. Rows are empty, full, at the ends of single precision, or
have repeated times. If run as a program with classes (`module:Class`) as arguments, it prints what it tried
as one line of JSON.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.statistics.domain import (
    SIDES,
    Held,
    Length,
    Number,
    Numbers,
    OneOf,
    Places,
    Ranges,
    Whole,
    domains,
)
from discreet.statistics.fixed_point import Steps
from discreet.statistics.statistic import Part, Statistic

N_ITEMS = 5
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def searchable(kind: type) -> bool:
    """Return whether all fields can be made from their stated domains."""
    return all(
        searchable(domain) if isinstance(domain, type) else not isinstance(domain, Held)
        for domain in domains(kind).values()
    )


def ends(low: float, high: float) -> list[float]:
    """Return numbers at, just inside, and between the ends of a range, with zero and subnormal numbers."""
    found = [low, high, np.nextafter(low, high), np.nextafter(high, low)]
    found += [
        number for number in (0.0, 5e-324, -5e-324, 1e-300, 0.5, 1.0, -1.0, 3.0) if low <= number <= high
    ]
    return [float(number) for number in found]


def anywhere(rng: np.random.Generator, low: float, high: float, size: tuple[int, ...] | None = None) -> Any:
    """Return numbers of all magnitudes in a range."""
    least, most = max(low, -1e300), min(high, 1e300)
    top = math.log10(max(abs(least), abs(most)))
    bottom = math.log10(least) if least > 0 else max(-30.0, top - 60)
    sizes = 10 ** rng.uniform(bottom, top, size)
    signs = rng.choice([-1.0, 1.0], size) if least < 0 else 1.0
    return np.clip(sizes * signs, low, high)


class Maker:
    """Random statistics of a class. `extreme` fields are at the ends of their domain, the others ordinary."""

    def __init__(self, rng: np.random.Generator, n_items: int, n_users: int, mood: str) -> None:
        self.rng, self.mood = rng, mood
        self.sides = {"n": n_items, "u": n_users, "2": 2}

    def side(self, name: str) -> int:
        """Return the length of a side, which all arrays of the statistic share."""
        letter, _, more = name.partition("+")
        if letter not in self.sides:
            least = SIDES[letter][0]
            most = min(SIDES[letter][1], self.sides["n"] if letter == "t" else 3)
            self.sides[letter] = int(
                self.rng.choice(np.array([least, most, self.rng.integers(least, most + 1)]))
            )
        return self.sides[letter] + int(more or 0)

    def make(self, kind: type) -> Any:
        """Return an instance with every field made from its domain."""
        given: dict[str, Any] = {}
        # Indices depend on the lengths of the sides.
        order = sorted(domains(kind).items(), key=lambda entry: isinstance(entry[1], Places))
        for name, domain in order:
            given[name] = self.make(domain) if isinstance(domain, type) else self.value(domain)
        if "rounds" in given:
            given["rounds"] = max(given["rounds"], given["paces"].size, 1)
        return kind(**given)

    def value(self, domain: object) -> Any:
        """Return one field."""
        rng, mood = self.rng, self.mood if self.rng.random() < 0.8 else "ordinary"
        match domain:
            case Number(low, high):
                if mood == "ordinary":
                    return float(np.clip(rng.choice([1.0, 0.3, 2.0]), low, high))
                return float(rng.choice(ends(low, high)) if mood == "ends" else anywhere(rng, low, high))
            case Length(side):
                return self.side(side)
            case Whole(least, most):
                return int(rng.choice([least, min(most, 3)]))
            case OneOf(words):
                return str(rng.choice(words))
            case Ranges():
                return ((0.0, 0.5), (0.0, 1.0), (-1.0, 1.0))
            case Places():
                return self.places(domain)
            case Numbers():
                return self.numbers(domain, mood)
        raise TypeError(f"No way to make {domain}.")

    def places(self, domain: Places) -> npt.NDArray[np.int64]:
        """Return an array of indices."""
        shape = tuple(self.side(side) for side in domain.sides)
        below = self.side(domain.below)
        if not domain.different:
            return self.rng.integers(0, max(below, 1), shape if below else (0, *shape[1:]))
        found = self.rng.permutation(below)[: shape[0]].astype(np.int64)
        return np.sort(found) if domain.rising else found

    def numbers(self, domain: Numbers, mood: str) -> Floats:
        """Return an array of numbers."""
        rng = self.rng
        shape = tuple(self.side(side) for side in domain.sides)
        if domain.or_none and rng.random() < 0.5:
            return np.zeros(0)
        ordinary = np.clip(rng.normal(size=shape), domain.least, domain.most)
        if mood == "ordinary":
            found = ordinary
        elif mood == "anywhere":
            found = anywhere(rng, domain.least, domain.most, shape)
        else:
            found = np.full(shape, rng.choice(ends(domain.least, domain.most)))
            if rng.random() < 0.5 and found.size:
                # One large row among ordinary ones, with equal columns.
                loud, found = found.flat[0], ordinary
                found[rng.integers(shape[0])] = loud
        if domain.longest is not None:
            length = np.linalg.norm(found)
            found = found / length if length > 0 else found
        return np.ascontiguousarray(found)


def rows_of_kinds(rng: np.random.Generator, n_items: int) -> Iterator[tuple[str, Interactions]]:
    """Yield one unusual user each: the rated items, with their values and times."""
    everything = np.arange(n_items)
    some = np.sort(rng.permutation(n_items)[: max(1, n_items // 2)])
    values: dict[str, Callable[[int], npt.NDArray[Any]]] = {
        "usual": lambda size: rng.uniform(-1, 1, size),
        "equal": lambda size: np.ones(size),
        "ends": lambda size: rng.choice([-_LARGEST_SINGLE, _LARGEST_SINGLE], size),
        "subnormal": lambda size: rng.choice([-1e-45, 1e-45, 0.0], size),
    }
    # Without an item, values can't differ, and one item has only one order.
    for times in (None, np.zeros(0)):
        yield "empty", person(everything[:0], np.zeros(0), times, n_items)
    chosen = (some, everything) if some.size < n_items else (everything,)
    for items, (name, made) in itertools.product(chosen, values.items()):
        orders = (None, np.zeros(items.size), np.arange(items.size))
        for times in orders if items.size > 1 else orders[:2]:
            yield name, person(items, made(items.size), times, n_items)


def person(
    items: npt.NDArray[Any], values: npt.NDArray[Any], times: npt.NDArray[Any] | None, n_items: int
) -> Interactions:
    """Return one user's ratings on the widest scale."""
    return Interactions(
        indptr=np.array([0, items.size]),
        items=items.astype(np.int32),
        values=values.astype(np.float32),
        times=None if times is None else times.astype(np.int64),
        users=_numbered(1),
        catalog=_numbered(n_items),
        facts=_facts(n_items),
    )


# Made once for the thousands of users of a search.
_numbered = functools.cache(Vocabulary.range)


@functools.cache
def _facts(n_items: int) -> PublicFacts:
    return PublicFacts(n_items=n_items, low=-_LARGEST_SINGLE, high=_LARGEST_SINGLE)


def norm_of(part: Part, steps: Steps) -> Fraction:
    """Return the exact square of the norm over the square of the bound. l1 norms are squared, too."""
    whole = steps + np.triu(steps, 1).T if part.symmetric else steps
    sizes = [abs(int(one)) for one in whole.ravel() if one]
    total = sum(sizes) ** 2 if part.norm == "l1" else sum(one**2 for one in sizes)
    return Fraction(total, 4**part.bits) / Fraction(part.bound) ** 2


@dataclasses.dataclass
class SearchResult:
    """Result of a search of one class: the number of trials, the largest squared norm, and the worst case."""

    tried: int = 0
    rows: int = 0
    largest: Fraction = Fraction(0)
    faults: list[str] = dataclasses.field(default_factory=list)


def search(kind: type[Statistic], made: int = 60, seed: int = 0) -> SearchResult:
    """Return the result of trying random statistics of a class on all unusual rows."""
    rng = np.random.default_rng([seed, *kind.__name__.encode()])
    found = SearchResult()
    for number in range(made):
        n_items = [1, 2, N_ITEMS][number % 3] if number % 4 else N_ITEMS
        maker = Maker(rng, n_items, 1, ["ends", "anywhere", "ordinary"][number % 3])
        statistic = maker.make(kind)
        found.tried += 1
        for name, data in rows_of_kinds(rng, n_items):
            if any(part.of == "rating" for part in statistic.parts) and data.n_ratings > 1:
                data = data.where(np.arange(data.n_ratings) == 0)
            found.rows += 1
            with np.errstate(all="ignore"):
                sums = statistic.over(data)
            for part, steps in zip(sums.parts, sums.arrays, strict=True):
                size = norm_of(part, steps)
                found.largest = max(found.largest, size)
                wrong = size > 1 or (data.n_ratings == 0 and size > 0)
                if wrong or (part.nonnegative and steps.min(initial=0) < 0):
                    found.faults.append(f"{part.name}, {name}: {float(size):.3g} with {statistic}")
    return found


def main(places: list[str]) -> None:
    """Search the named classes, and print the results."""
    searched = {}
    for place in places:
        module, _, name = place.partition(":")
        found = search(getattr(importlib.import_module(module), name), made=24)
        searched[name] = [found.tried, found.rows, float(found.largest) ** 0.5, len(found.faults)]
    print(json.dumps(searched))


if __name__ == "__main__":
    main(sys.argv[1:])
