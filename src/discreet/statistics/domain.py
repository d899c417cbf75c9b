"""State the domain of every field of a statistic in its class, and check it whenever one is made.

A field is annotated with what it may hold: `longest: Annotated[float, Number(1.0, MOST)]`. The bound on one
user's contribution is proved for the whole domain, so a question outside it cannot be built or decoded; the
contract suite reads the same statements and searches all of it. Ranges are closed. Sides of arrays are named:
`("n", "k")` is a row for each of n items with k numbers, and a name means one length in all fields of a
statistic, including those of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, final, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np

from discreet.core import DomainError

#: Squares and products of a few numbers within these neither overflow nor vanish.
LEAST, MOST = 1e-30, 1e30
#: The same for numbers that enter once; the ends of a scale may be any that single precision represents.
FARTHEST = 1e100
#: How long a side may be: n items, k factors, f factors and r rounds that may be none, t items that take
#: part, v items that users vote for, p pairs of factors, u users who have a row. The longest k bounds what a
#: stranger makes users solve.
SIDES: dict[str, tuple[int, int]] = {
    "n": (1, 2**31 - 1),
    "k": (1, 256),
    "f": (0, 1000),
    "r": (0, 1000),
    "t": (1, 1 << 12),
    "v": (1, 2**31 - 1),
    "p": (0, 1 << 16),
    "u": (0, 2**40),
    "2": (2, 2),
}

Lengths = dict[str, int]


@final
@dataclass(frozen=True, slots=True)
class Number:
    """One number from `least` to `most`."""

    least: float
    most: float

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Raise for a value that isn't a number, or is outside the range."""
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not self.least <= value <= self.most:
            raise DomainError(name=name, rule=f"be in {self.least:g} to {self.most:g}")


@final
@dataclass(frozen=True, slots=True)
class Length:
    """The length of a side, as a number of its own."""

    side: str

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Raise for a length that arrays can't have."""
        if type(value) is not int:
            raise DomainError(name=name, rule="be a whole number")
        _agree(name, self.side, value, lengths)


@final
@dataclass(frozen=True, slots=True)
class Whole:
    """One whole number from `least` to `most`."""

    least: int
    most: int

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Raise for a value that isn't a whole number, or is outside the range."""
        if type(value) is not int or not self.least <= value <= self.most:
            raise DomainError(name=name, rule=f"be whole, from {self.least} to {self.most}")


@final
@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Raise for other words."""
        if value not in self.words:
            raise DomainError(name=name, rule=f"be one of {', '.join(self.words)}")


@final
@dataclass(frozen=True, slots=True)
class Numbers:
    """An array of doubles from `least` to `most`, finite; as a vector at most `longest` long.

    With `or_none` an array without entries means none.
    """

    sides: tuple[str, ...]
    least: float
    most: float
    longest: float | None = None
    or_none: bool = False

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Raise for a wrong shape or type, and for numbers outside the range."""
        if self.or_none and isinstance(value, np.ndarray) and value.shape == (0,):
            return
        _check_array(name, value, np.dtype(np.float64), self.sides, lengths)
        # NaN is neither.
        if value.size and not (value.min() >= self.least and value.max() <= self.most):
            raise DomainError(name=name, rule=f"have numbers in {self.least:g} to {self.most:g}")
        if self.longest is not None and not np.linalg.norm(value) <= self.longest:
            raise DomainError(name=name, rule=f"be at most {self.longest:g} long as a vector")


@final
@dataclass(frozen=True, slots=True)
class Places:
    """An array of places below the length of a side; different and, with `rising`, in ascending order."""

    sides: tuple[str, ...]
    below: str
    rising: bool = False
    different: bool = True

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Raise for a wrong shape or type, and for places that don't exist."""
        _check_array(name, value, np.dtype(np.int64), self.sides, lengths)
        if not value.size:
            return
        # A part of a statistic may not know the side; the whole does.
        end = lengths.get(self.below, SIDES[self.below][1])
        if value.min() < 0 or value.max() >= end:
            raise DomainError(name=name, rule=f"have places in 0 to {end - 1}")
        if self.rising and not np.all(np.diff(value) > 0):
            raise DomainError(name=name, rule="rise from place to place")
        if self.different and np.unique(value).size != value.size:
            raise DomainError(name=name, rule="have each place once")


@final
@dataclass(frozen=True, slots=True)
class Ranges:
    """A few pairs of numbers, the first at most the second, within `least` and `most`."""

    least: float
    most: float

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Raise for other pairs, or none."""
        good = isinstance(value, tuple) and len(value) > 0
        if not good or not all(self.least <= low <= high <= self.most for low, high in value):
            raise DomainError(name=name, rule=f"have rising pairs in {self.least:g} to {self.most:g}")


@final
@dataclass(frozen=True, slots=True)
class Held:
    """An object that only code of this process gives: a statistic with one is never asked of a party."""

    def check(self, name: str, value: Any, lengths: Lengths) -> None:
        """Accept it unchecked: the caller vouches for it."""


Domain = Number | Length | Whole | OneOf | Numbers | Places | Ranges | Held


class Stated:
    """Fields with stated domains: a statistic, or a part of one."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check all fields, those of what is held included, so that their sides agree.

        Numbers are kept as floats: whole ones would count modulo 2^64 in compiled loops.
        """
        check(self)
        for name, domain in domains(type(self)).items():
            if isinstance(domain, Number):
                object.__setattr__(self, name, float(getattr(self, name)))


def check(stated: Stated, **known: int) -> None:
    """Raise for values outside the domain, or has sides of other lengths than known ones."""
    lengths = dict(known)
    entries = [(path, domain, value) for path, domain, value in entries_of(stated)]
    # Places are checked last: how many there may be is known from the other fields.
    for path, domain, value in sorted(entries, key=lambda entry: isinstance(entry[1], Places)):
        domain.check(path, value, lengths)


def entries_of(stated: Stated, prefix: str = "") -> Iterator[tuple[str, Domain, Any]]:
    """Yield path, domain and value of every field, those of what is held included."""
    for name, domain in domains(type(stated)).items():
        value = getattr(stated, name)
        if isinstance(domain, type):
            if not isinstance(value, domain):
                raise DomainError(name=f"{prefix}{name}", rule=f"be made as {domain.__name__}")
            yield from entries_of(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", domain, value


def domains(kind: type[Stated]) -> dict[str, Domain | type[Stated]]:
    """Return the domain of each field of a class, or the class that the field contains."""
    if kind not in _known:
        _known[kind] = _domains(kind)
    return _known[kind]


# Annotations are read once a class.
_known: WeakKeyDictionary[type[Stated], dict[str, Domain | type[Stated]]] = WeakKeyDictionary()


def _domains(kind: type[Stated]) -> dict[str, Domain | type[Stated]]:
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, Domain | type[Stated]] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        hint = hints[field.name]
        if isinstance(hint, type) and issubclass(hint, Stated):
            found[field.name] = hint
            continue
        stated = [one for one in get_args(hint)[1:] if isinstance(one, Domain)]
        if get_origin(hint) is not Annotated or len(stated) != 1:
            raise TypeError(f"{kind.__name__}.{field.name} states no domain; see discreet.statistics.domain.")
        found[field.name] = stated[0]
    return found


def _check_array(
    name: str, value: Any, kind: np.dtype[Any], sides: tuple[str, ...], lengths: Lengths
) -> None:
    if not isinstance(value, np.ndarray) or value.dtype != kind or value.ndim != len(sides):
        raise DomainError(name=name, rule=f"be an array of {kind} with {len(sides)} sides", shape=True)
    for side, length in zip(sides, value.shape, strict=True):
        _agree(name, side, length, lengths)


def _agree(name: str, side: str, length: int, lengths: Lengths) -> None:
    """See that a side, "f+1" is one more than f, is as long as it may be and as it is elsewhere."""
    letter, _, more = side.partition("+")
    length -= int(more or 0)
    least, most = SIDES[letter]
    if not least <= length <= most:
        raise DomainError(name=name, rule=f"have a side of {least} to {most}, not {length}", shape=True)
    if lengths.setdefault(letter, length) != length:
        raise DomainError(
            name=name, rule=f"have a side of {lengths[letter]} as other fields, not {length}", shape=True
        )
