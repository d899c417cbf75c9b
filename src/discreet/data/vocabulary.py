"""Translate between the IDs in files (text or whole numbers) and the row numbers arrays use."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cached_property
from typing import Any, Self, TypeAlias, TypeGuard, final

import numpy as np
import numpy.typing as npt

from discreet.core import WrongKind
from discreet.core.exports import pl
from discreet.data.errors import IdsMissing, RepeatedIds, WrongIds

Ids = npt.NDArray[np.int64] | npt.NDArray[np.object_]
Codes = npt.NDArray[np.int32]
Given: TypeAlias = "pl.Series | npt.NDArray[np.int64] | list[str]"

_CHUNK = 1 << 22
_PART = 1 << 16
# A lookup table over the whole range of integer ids is worth it up to this many cells, or four per rating.
_TABLE = 1 << 24
# So many ids are handled one by one before loading polars is worth it.
_FEW = 1 << 16
UNKNOWN = -1
# Python rejects writing out whole numbers of 4,300 digits.
_MOST_BITS = 1 << 13
#: A whole number in the usual form: two texts of this form are two numbers.
WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"


@final
class Vocabulary:
    """External IDs, numbered from 0. All IDs are whole numbers, or all are text, and each occurs once.

    Lookups accept both forms: a vocabulary of whole numbers finds `"50"`, and a vocabulary of text finds
    `50`.

    Example:
        >>> films = Vocabulary.of(["Alien", "Brazil"])
        >>> films.index_of(["Brazil", "Clue"]).tolist()
        [1, -1]

    Stability
        Stable.
    """

    def __init__(self, ids: Given, *, positional: bool = False) -> None:
        self._given = ids
        self.is_positional = positional
        """Whether ids are row numbers: then they are places of users, not names."""

    @cached_property
    def _series(self) -> pl.Series:
        return pl.Series("id", self._given)

    @classmethod
    def of(cls, ids: Iterable[Any] | pl.Series) -> Self:
        """Keep `ids` in their order; reject an ID that comes twice."""
        known: Given | None = _plain(ids)
        if known is None:
            known = as_series(ids, "ids")
            repeated = len(known) - known.n_unique()
        else:
            repeated = len(known) - len(set(known))
        if repeated:
            raise RepeatedIds(count=repeated, of=len(known))
        return cls(known)

    @classmethod
    def range(cls, count: int, start: int = 0) -> Self:
        """Return the whole numbers from `start` on: ids by position."""
        return cls(pl.Series("id", np.arange(start, start + count, dtype=np.int64)), positional=True)

    @classmethod
    def factorize(cls, ids: Iterable[Any] | pl.Series, what: str = "ids") -> tuple[Self, Codes]:
        """Return the sorted distinct ids and the number of each given id, in linear time."""
        if _are_small_integers(ids):
            found = cls._tabulate(ids)
            if found is not None:
                return found
        series = as_series(ids, what, encoded=True)
        if _is_encoded(series):
            return cls._of_encoded(series)
        found = cls._tabulate(series) if series.dtype == pl.Int64 else None
        if found is not None:
            return found
        distinct = cls(series.unique().sort())
        return distinct, distinct.index_of(series)

    @classmethod
    def _of_encoded(cls, ids: pl.Series) -> tuple[Self, Codes]:
        """Factorize what a dictionary encodes: a text is written out once, however many rows have it."""
        used = ids.unique()
        text = used.cast(pl.String)
        distinct = cls(text.sort())
        return distinct, _by_code(ids, used, distinct.index_of(text))

    @classmethod
    def _tabulate(cls, ids: pl.Series) -> tuple[Self, Codes] | None:
        """Factorize whole numbers by a table over their range; None if it would be far larger than they are.

        Numbers are widened a part at a time: all of them at once would take more memory than the ratings.
        """
        if not len(ids):
            return None
        low, high = int(ids.min()), int(ids.max())  # type: ignore[arg-type]
        if high - low >= max(_TABLE, 4 * len(ids)):
            return None
        present = np.zeros(high - low + 1, dtype=np.bool_)
        for part in _parts(ids):
            present[part - low] = True
        distinct = np.flatnonzero(present).astype(np.int64) + low
        table = np.cumsum(present, dtype=np.int32) - np.int32(1)
        codes, done = np.empty(len(ids), dtype=np.int32), 0
        for part in _parts(ids):
            # All are in the table; to check this again would copy the result.
            np.take(table, part - low, out=codes[done : done + part.size], mode="clip")
            done += part.size
        return cls(pl.Series("id", distinct)), codes

    @property
    def is_text(self) -> bool:
        """Return whether the ids are text."""
        if isinstance(self._given, list | np.ndarray):
            return isinstance(self._given, list)
        return self._series.dtype == pl.String

    @cached_property
    def ids(self) -> Ids:
        """Return the ids in order, as a read-only array of int64 or of Python's texts.

        An array of fixed width would give every id the room of the longest, and drop zeros at an id's end.
        """
        given = self._given if isinstance(self._given, list | np.ndarray) else None
        if self.is_text:
            numbers: Ids = np.array(self._series.to_list() if given is None else given, dtype=np.object_)
        else:
            numbers = (self._series.to_numpy() if given is None else np.asarray(given)).view()
        numbers.flags.writeable = False
        return numbers

    @property
    def series(self) -> pl.Series:
        """Return the ids in order, as a polars series."""
        return self._series

    def id_at(self, indices: Any) -> Any:
        """Return the id at an index, or the array of ids at several."""
        return self.ids[indices]

    def series_at(self, indices: npt.NDArray[Any]) -> pl.Series:
        """Return the ids at several indices, as a polars series."""
        return self._series.gather(pl.Series(indices.astype(np.int64)))

    def take(self, indices: npt.NDArray[Any]) -> Vocabulary:
        """Return the vocabulary of the ids at `indices` (numbers, or a mask), in that order."""
        if indices.dtype == np.bool_:
            taken = Vocabulary(self._series.filter(pl.Series(indices)))
        else:
            taken = Vocabulary.of(self.series_at(indices))
        taken.is_positional = self.is_positional
        return taken

    def canonical_order(self) -> npt.NDArray[np.int64]:
        """Return the place of each ID, in an order that no other id and no column's type can change.

        Whole numbers in the usual form (no sign +, no zeros in front) come first, ascending, then texts.
        """
        text, number = self._as_canonical()
        keys = pl.DataFrame({"is text": number.is_null(), "number": number, "text": text})
        return (
            keys.with_row_index("place").sort("is text", "number", "text")["place"].cast(pl.Int64).to_numpy()
        )

    def canonical(self) -> Vocabulary:
        """Return the ids in their canonical order, as whole numbers if each of them is one, else as text.

        Order and type follow from these ids alone. The type of the column they came from would not: it
        depends on every id there is.
        """
        text, number = self._as_canonical()
        ids = text if number.null_count() else number
        return Vocabulary(ids.gather(pl.Series(self.canonical_order())), positional=self.is_positional)

    def _as_canonical(self) -> tuple[pl.Series, pl.Series]:
        """Return each id as text, and as a whole number where that is how its text is written."""
        text = self._series.cast(pl.String).alias("id")
        number = text.cast(pl.Int64, strict=False)
        usual = (number.cast(pl.String) == text).fill_null(False)
        return text, number.set(~usual, None)

    def index_of(self, ids: Iterable[Any] | pl.Series) -> Codes:
        """Return the number of each id as int32; -1 where it is unknown."""
        plain = self.index_of_plain(ids)
        if plain is not None:
            return plain
        if _is_encoded(ids) and len(ids):
            used = ids.unique()
            return _by_code(ids, used, self.index_of(used.cast(pl.String)))
        series = as_series(ids, "ids", nulls=True)
        if series.dtype != self._series.dtype:
            series = series.cast(self._series.dtype, strict=False)
        if len(self) == 0 or len(series) == 0:
            return np.full(len(series), UNKNOWN, dtype=np.int32)
        found = self._lookup_text(series) if self.is_text else self._lookup_numbers(series)
        return found.astype(np.int32, copy=False)

    def index_of_plain(self, ids: object) -> Codes | None:
        """Return the same for a short list of ids of the vocabulary's own kind, without polars; else None."""
        if isinstance(ids, list) and not ids:
            return np.empty(0, dtype=np.int32)
        wanted = _plain(ids) if isinstance(ids, list) and isinstance(self._given, list | np.ndarray) else None
        if wanted is None or isinstance(wanted, list) != self.is_text:
            return None
        places = self._places
        return np.array([places.get(one, UNKNOWN) for one in wanted], dtype=np.int32)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {one: place for place, one in enumerate(self.ids.tolist())}

    def _lookup_text(self, series: pl.Series) -> npt.NDArray[Any]:
        return (
            series.cast(self._enum, strict=False).to_physical().cast(pl.Int32).fill_null(UNKNOWN).to_numpy()
        )

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum(self._series)

    def _lookup_numbers(self, series: pl.Series) -> Codes:
        known, sorter = self._sorted
        numbers = series.fill_null(0).to_numpy()
        codes = np.empty(numbers.size, dtype=np.int32)
        for part, target in zip(_chunks(numbers), _chunks(codes), strict=True):
            place = _find(known, part)
            target[:] = place if sorter is None else np.where(place == UNKNOWN, UNKNOWN, sorter[place])
        if series.null_count():
            codes[series.is_null().to_numpy()] = UNKNOWN
        return codes

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
        numbers: npt.NDArray[np.int64] = np.asarray(self.ids)
        if np.all(numbers[1:] > numbers[:-1]):
            return numbers, None
        sorter = np.argsort(numbers, kind="stable")
        return numbers[sorter], sorter

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, identifier: object) -> bool:
        return bool(self.index_of([identifier])[0] != UNKNOWN)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        alike = len(self) == len(other) and self.is_text == other.is_text
        return self is other or (alike and self._series.equals(other._series))

    def __hash__(self) -> int:
        ends = tuple(self._series.gather([0, len(self) - 1]).to_list()) if len(self) else ()
        return hash((len(self), ends))

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self):,} {'texts' if self.is_text else 'whole numbers'}>"


def as_series(
    ids: Iterable[Any] | pl.Series, what: str, *, nulls: bool = False, encoded: bool = False
) -> pl.Series:
    """Return ids as a series of Int64 or String; reject anything else without quoting it.

    With `encoded`, ids that are encoded by a dictionary stay so: written out, they may be far larger.
    """
    if isinstance(ids, pl.Series):
        series = ids.alias("id")
    else:
        has_one_type = isinstance(ids, np.ndarray) and ids.dtype != object
        series = pl.Series("id", ids) if has_one_type else of_objects(_to_list(ids)).alias("id")
    return (
        series if encoded and _is_encoded(series) and not series.null_count() else _clean(series, what, nulls)
    )


def _is_encoded(ids: object) -> TypeGuard[pl.Series]:
    return isinstance(ids, pl.Series) and ids.dtype in (pl.Categorical, pl.Enum)


def _by_code(ids: pl.Series, used: pl.Series, places: Codes) -> Codes:
    """Return the place of each id, given those of the distinct ones; codes of a dictionary are small."""
    held = used.drop_nulls().to_physical().to_numpy()
    table = np.full(int(held.max(initial=0)) + 1, UNKNOWN, dtype=np.int32)
    table[held] = places[used.is_not_null().to_numpy()]
    found: Codes = table[ids.to_physical().fill_null(0).to_numpy()]
    found[ids.is_null().to_numpy()] = UNKNOWN
    return found


def _plain(ids: object) -> list[str] | npt.NDArray[np.int64] | None:
    """Return a few ids that are all text, or all whole numbers of 64 bits, as they are; else None.

    polars would make the same of them, but takes longer to load than they take to handle.
    """
    if isinstance(ids, np.ndarray) and ids.dtype == np.int64 and ids.ndim == 1 and ids.size <= _FEW:
        return ids
    if not isinstance(ids, list) or not 0 < len(ids) <= _FEW:
        return None
    kinds = {type(one) for one in ids}
    if kinds == {str}:
        return ids
    if kinds == {int} and min(ids) >= -(2**63) and max(ids) < 2**63:
        return np.array(ids, dtype=np.int64)
    return None


def of_objects(items: list[Any], kind: str = "") -> pl.Series:
    """Return IDs in a container of Python objects, each converted by itself to text or a whole number.

    7, 7.0 and "7" are one ID. A fraction, a truth or anything else that is neither a whole number nor text is
    null, and so is what isn't of the declared `kind`. If none is declared, IDs are whole numbers if all are,
    else text: an ID is the same, as a number or as its text, whatever the others are.
    """
    ids = [_id(item) for item in items]
    if kind == "integer":
        return pl.Series([_whole(one) for one in ids], dtype=pl.Int64)
    if not kind and all(one is None or one == _whole(one) for one in ids):
        return pl.Series(ids, dtype=pl.Int64)
    return pl.Series([None if one is None else str(one) for one in ids], dtype=pl.String)


def _whole(item: int | str | None) -> int | None:
    """Return a whole number of 64 bits, also if it is a text in the usual form; None for others."""
    if isinstance(item, str):
        return int(item) if re.fullmatch(WHOLE, item.strip()) else None
    return item if item is not None and -(2**63) <= item < 2**63 else None


def readable_text(text: str) -> str | None:
    """Return a text; None if it has half a letter, which no file can contain."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return str(text)


def _id(item: Any) -> int | str | None:
    if isinstance(item, str):
        return readable_text(item)
    # A span of time is a whole number to numpy.
    if isinstance(item, bool | np.bool_ | np.timedelta64) or not isinstance(item, numbers.Real | Decimal):
        return None
    number: Any = item
    # Other numbers are exact up to 64 bits. A decimal of a billion digits is not written out to learn that.
    if not isinstance(item, numbers.Integral) and not _is_of_64_bits(number):
        return None
    whole = int(number)
    return whole if whole == item and whole.bit_length() <= _MOST_BITS else None


def _is_of_64_bits(number: Any) -> bool:
    try:
        return bool(-(2**63) <= number < 2**63)
    # One that isn't a number doesn't compare.
    except ArithmeticError:
        return False


def _to_list(ids: Iterable[Any]) -> list[Any]:
    if isinstance(ids, str | bytes):
        raise WrongKind(name="ids", kind="a list of IDs", found="text")
    return list(ids)


def _clean(series: pl.Series, what: str, nulls: bool) -> pl.Series:
    dtype = series.dtype
    missing = series.null_count()
    if missing and not nulls:
        raise IdsMissing(count=missing, of=len(series), what=what)
    if dtype == pl.String:
        return series
    if dtype.is_integer():
        return _to_int64(series, what)
    if dtype in (pl.Categorical, pl.Enum):
        return series.cast(pl.String)
    if dtype == pl.Null or len(series) == 0:
        return series.cast(pl.Int64)
    if dtype.is_float():
        whole = (series == series.round()).all() and bool(series.is_finite().all())
        if whole:
            return _to_int64(series, what)
    raise WrongIds(what=what, found=str(dtype))


def _to_int64(series: pl.Series, what: str) -> pl.Series:
    try:
        return series.cast(pl.Int64)
    except pl.exceptions.PolarsError:
        # The error of polars quotes a value, which is a user's record.
        raise WrongIds(what=what, found="larger numbers") from None


def _find(known: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the place of each number in the ascending `known`; a run without gaps needs no search."""
    if int(known[-1]) - int(known[0]) == known.size - 1:
        inside = (numbers >= known[0]) & (numbers <= known[-1])
        return np.where(inside, numbers - known[0], UNKNOWN)
    place = np.minimum(np.searchsorted(known, numbers), known.size - 1)
    return np.where(known[place] == numbers, place, UNKNOWN)


def _are_small_integers(ids: object) -> TypeGuard[pl.Series]:
    """Return whether these are whole numbers that all fit in 64 bits with a sign, and none is missing."""
    if isinstance(ids, np.ndarray | list) or not isinstance(ids, pl.Series):
        return False
    kinds = (pl.Int64, pl.Int32, pl.Int16, pl.Int8, pl.UInt32, pl.UInt16, pl.UInt8)
    return ids.dtype in kinds and not ids.null_count()


def _parts(ids: pl.Series) -> Iterator[npt.NDArray[np.int64]]:
    """Yield whole numbers in 64 bits, a part at a time."""
    for start in range(0, len(ids), _PART):
        yield ids.slice(start, _PART).cast(pl.Int64).to_numpy()


def _chunks(array: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return [array[start : start + _CHUNK] for start in range(0, array.size, _CHUNK)]
