"""Declare the arrays and constants of a scorer, and check a file against them before any is used.

A scorer declares its arrays with types, shapes and ranges, and its constants with ranges. Sizes have names:
`items` is the size of the catalog; any other name takes the first size it meets, and all later ones must
equal it. One loader checks the files of all scorers by these declarations.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.data.vocabulary import Vocabulary
from discreet.models.errors import MalformedPart

#: The name of the catalog's size, which is known before a file's arrays are read.
ITEMS = "items"
RELEASED = "computed from noisy releases only (none if the label states NOT PRIVATE)"
# Beyond this the arithmetic of scoring could overflow.
_LARGEST = 1e60
# Notes are for reading, so they are short.
_MOST_NOTE = 1 << 16

Size = str | int | tuple[str, int]
Sizes = dict[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNumbers:
    """Declare an array: `source` states why it may be published.

    A size is a name, a number, or a name and how much more: `("factors", 1)`. `index_of` names the size that
    whole numbers in it must stay below; `may_be_empty` lets its only dimension be 0 instead, and `longest` is
    the most numbers it may have. Files may omit what is `optional`: older versions did not write it, or
    the model has none.
    """

    source: str
    shape: tuple[Size, ...]
    dtype: type[np.generic] = np.float64
    least: float = -_LARGEST
    most: float = _LARGEST
    index_of: str | None = None
    may_be_empty: bool = False
    longest: int | None = None
    optional: bool = False

    def read(self, name: str, array: object, sizes: Sizes) -> npt.NDArray[Any]:
        """Return the array if it is what was declared; new names of sizes are remembered in `sizes`."""
        if not isinstance(array, np.ndarray) or array.dtype != self.dtype:
            raise MalformedPart(part=name, rule="type")
        self._check_shape(name, array, sizes)
        if self.longest is not None and array.size > self.longest:
            raise MalformedPart(part=name, rule="size")
        most = self.most if self.index_of is None else sizes[self.index_of] - 1
        # NaN compares as false.
        if array.size and not (array.min() >= self.least and array.max() <= most):
            raise MalformedPart(part=name, rule="range")
        plain = np.ascontiguousarray(array)
        plain.flags.writeable = False
        return plain

    def _check_shape(self, name: str, array: npt.NDArray[Any], sizes: Sizes) -> None:
        if array.ndim != len(self.shape):
            raise MalformedPart(part=name, rule="number of dimensions")
        if self.may_be_empty and array.size == 0:
            return
        for size, found in zip(self.shape, array.shape, strict=True):
            key, more = size if isinstance(size, tuple) else (size, 0)
            wanted = key if isinstance(key, int) else sizes.setdefault(key, found - more) + more
            if found != wanted or wanted < more:
                raise MalformedPart(part=name, rule="shape")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Declare a list of distinct ids; `count` names its length."""

    source: str
    count: str

    def read(self, name: str, ids: object, sizes: Sizes) -> Vocabulary:
        """Return the ids if they are what was declared; whole numbers may come as an array."""
        if isinstance(ids, np.ndarray) and ids.ndim == 1 and (ids.dtype == np.int64 or ids.dtype.kind == "U"):
            ids = Vocabulary.of(ids)
        if not isinstance(ids, Vocabulary):
            raise MalformedPart(part=name, rule="type")
        if len(ids) != sizes.setdefault(self.count, len(ids)):
            raise MalformedPart(part=name, rule="length")
        return ids


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNumber:
    """Declare a constant inside [least, most]; `equals` names the size that it must equal."""

    least: float = -_LARGEST
    most: float = _LARGEST
    optional: bool = False
    equals: str | None = None

    def read(self, name: str, value: object, sizes: Sizes) -> float | int | None:
        """Return the constant if it is what was declared."""
        if value is None and self.optional:
            return None
        whole = self.equals is not None
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise MalformedPart(part=name, rule="type")
        if not self.least <= value <= self.most or (self.equals and sizes.get(self.equals) != value):
            raise MalformedPart(part=name, rule="range")
        return value if whole else float(value)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """Declare a constant that is one of a few words."""

    allowed: Collection[str]

    def read(self, name: str, value: object, sizes: Sizes) -> str:
        """Return the word if it is among those allowed."""
        if not isinstance(value, str) or value not in self.allowed:
            raise MalformedPart(part=name, rule="word")
        return value


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Declare named remarks; nothing is computed from them."""

    def read(self, name: str, value: object, sizes: Sizes) -> dict[str, Any]:
        """Return the remarks."""
        if not isinstance(value, dict) or len(repr(value)) > _MOST_NOTE:
            raise MalformedPart(part=name, rule="type")
        return value


Stored = StoredNumbers | Ids
Constant = StoredNumber | Word | Notes


def read_parts(
    stored: Mapping[str, Stored],
    constants: Mapping[str, Constant],
    arrays: Mapping[str, object],
    settings: object,
    n_items: int,
) -> dict[str, Any]:
    """Return all parts by name, each as declared, or raise `DataError`."""
    missing = {name for name in stored if name not in arrays}
    spared = {name for name in missing if getattr(stored[name], "optional", False)}
    if (
        not isinstance(settings, dict)
        or missing != spared
        or not set(arrays) <= set(stored)
        or not set(settings) <= set(constants)
    ):
        raise MalformedPart(part="list of parts", rule="length")
    sizes: Sizes = {ITEMS: n_items}
    found: dict[str, Any] = {
        name: stored[name].read(name, arrays[name], sizes) for name in stored if name in arrays
    }
    # An array or a constant that an older version did not know keeps its default.
    return found | {name: constants[name].read(name, value, sizes) for name, value in settings.items()}


def plain_number(value: Any) -> Any:
    """Return a number as JSON has it; arrays' scalars become Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value
