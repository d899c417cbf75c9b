"""Ratings, immutable and by user, in 4 + 4 bytes a rating (8 more with times)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar, Unpack, final

import numpy as np
import numpy.typing as npt

from discreet.core import WrongKind, require
from discreet.core.exports import sp
from discreet.data.block_sizes import block_sizes
from discreet.data.bounding import clip_counts, clip_to_scale, keep_per_user
from discreet.data.encoding import (
    Column,
    Index,
    by_person_and_item,
    cells_of_rows,
    count_not_finite,
    encode,
    encode_items,
    group,
    repeats,
    rows_are_sorted,
    sort_ratings,
    take_times,
    to_values,
)
from discreet.data.errors import OtherLengths, UnsoundRows
from discreet.data.facts import (
    FRAME,
    LEAST_WEIGHT,
    MOST_WEIGHT,
    PICKED,
    READABLE,
    Declarations,
    PublicFacts,
    check_scale,
    settle_facts,
)
from discreet.data.id_lists import checked_declarations
from discreet.data.schema import Schema
from discreet.data.vocabulary import Codes, Vocabulary
from discreet.report import TableView

__all__ = ["ByItem", "Interactions", "PublicFacts", "Vocabulary"]

# None keeps the width an array came with.
_TYPES = {"indptr": np.int64, "items": np.int32, "values": np.float32, "times": np.int64, "listed": None}

# Columns of more ratings are numbered one after the other.
_MANY = 1 << 24

Total = TypeVar("Total", covariant=True)


class Summed(Protocol[Total]):
    """Define what can be summed over users, given their rows."""

    def over(self, data: Interactions, /) -> Total:
        """Return the sum over all users of the data."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByItem:
    """The same ratings by item; `order` is each one's position in the arrays by user."""

    indptr: npt.NDArray[np.int64]
    users: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    order: npt.NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Interactions(TableView):
    """The ratings of many users, row by row, with items in ascending order and each pair once.

    The arrays are read-only. `listed` contains the order in which the ratings came (only comparisons of its
    values matter; None means the order of the arrays). Leave-one-out needs it, and it takes 4 bytes per
    rating if the source was not in order. `from_arrays` builds and checks interactions; this constructor
    doesn't check its arguments.

    Example:
        >>> data = Interactions.from_arrays(["ann", "bob", "ann"], ["Brazil", "Brazil", "Alien"], [5, 3, 4])
        >>> data.items.tolist(), data.values.tolist(), data.users.ids.tolist()
        ([0, 1, 1], [4.0, 5.0, 3.0], ['ann', 'bob'])

    Stability
        Stable.
    """

    indptr: npt.NDArray[np.int64]
    items: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    times: npt.NDArray[np.int64] | None = None
    users: Vocabulary
    catalog: Vocabulary
    facts: PublicFacts
    name: str = "data"
    listed: Index | None = field(default=None, repr=False)
    #: How the source was understood, for the data owner; nothing is computed from it.
    how_read: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: The schema that the source was read with, and what of it was guessed.
    schema: Schema | None = field(default=None, repr=False)
    #: A column that looks like times and was not read, for the data owner as well.
    unread_times: str | None = field(default=None, repr=False)
    #: What synthetic data were drawn from, in one line; guarantees of fits state it.
    origin: str | None = field(default=None, repr=False)
    #: When lists for these histories are requested, in seconds since 1970; only serving reads it.
    now: float | None = field(default=None, repr=False)
    #: Lists of IDs of users whose rows were removed: files read later with these data skip them, too.
    removed: tuple[Any, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name, kind in _TYPES.items():
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, _read_only(np.ascontiguousarray(array, dtype=kind)))
        columns = (self.items, self.values, self.times, self.listed)
        sizes = {column.size for column in columns if column is not None}
        if len(sizes) != 1 or self.indptr.size != len(self.users) + 1 or int(self.indptr[-1]) not in sizes:
            raise UnsoundRows(rule="lengths")
        require(
            self.facts.n_items == len(self.catalog),
            "facts.n_items",
            self.facts.n_items,
            must=f"equal the catalog's {len(self.catalog)} items",
        )

    @classmethod
    def from_arrays(
        cls,
        users: Column,
        items: Column,
        values: Column | None = None,
        times: Column | None = None,
        *,
        name: str = "data",
        **declared: Unpack[Declarations],
    ) -> Self:
        """Build from columns of external IDs, one rating per row; without `values` every rating is 1.

        Facts that are not declared (`facts=`, or `low=`, `high=`, `step=`, `max_per_user=`, `n_users=`, and
        `catalog=` or `n_items=`) come from the ratings, and `facts.from_file` lists them. A `catalog` may
        have items without ratings; `n_items` alone means the IDs 0..n-1 or 1..n. `people` fixes the rows.
        The library that made the columns may have changed values, and one bad row rejects all of them, so
        `facts.reading` states both as assumptions.

        Raises:
            DataError: Lengths differ, something is missing, a pair repeats, or a declared fact is broken.
        """
        columns = [users, items, values, times]
        del users, items, values, times
        data = cls.from_columns(columns, name=name, **declared)
        # Nothing is skipped: one missing ID, one infinite rating, or one repeated pair rejects all.
        reading = tuple(dict.fromkeys((FRAME, READABLE, *data.facts.reading)))
        return data.with_facts(replace(data.facts, reading=reading))

    @classmethod
    def from_columns(cls, given: list[Column | None], *, name: str, **declared: Unpack[Declarations]) -> Self:
        """Build from users, items, ratings and times in a list, which is emptied.

        Columns without another owner are freed one by one, so the largest files need little more memory than
        their ratings.
        """
        declared = checked_declarations(declared)
        facts = declared.get("facts")
        n_items = declared.get("n_items") if facts is None else facts.n_items
        implicit = given[2] is None
        (people, rows), (catalog, items) = _numbered(given, declared, n_items)
        ratings = to_values(given.pop(0), items.size)
        moments = take_times(given)
        _same_length(rows, items, ratings, moments)
        duplicates = declared.get("duplicates", "refuse")
        size = (len(people), len(catalog))
        # Means lie between the steps of the scale, so declared facts are checked on the ratings themselves.
        averaged = duplicates == "mean"
        seen = ratings if averaged else None
        columns: list[npt.NDArray[Any] | None] = [rows, items, ratings, moments]
        del rows, items, ratings, moments
        data = sort_ratings(columns, size, duplicates)
        counted = duplicates == "count"
        if counted:
            data = replace(data, values=clip_counts(data.values, declared))
        seen = data.values if seen is None else seen
        facts = settle_facts(seen, *size, implicit and not counted, declared)
        check_scale(seen, facts)
        facts = replace(facts, step=None) if averaged else facts
        return cls(
            indptr=data.indptr,
            items=data.items,
            values=data.values,
            times=data.times,
            listed=data.listed,
            users=people,
            catalog=catalog,
            facts=facts,
            name=name,
        )

    @property
    def n_users(self) -> int:
        """Return the number of users, those without ratings included."""
        return self.indptr.size - 1

    @property
    def n_items(self) -> int:
        """Return how many items the catalog has, rated or not."""
        return self.facts.n_items

    @property
    def n_ratings(self) -> int:
        """Return how many ratings there are."""
        return int(self.items.size)

    @property
    def has_one_value(self) -> bool:
        """Return whether there are ratings and all of them are equal."""
        return bool(self.n_ratings and self.values.min() == self.values.max())

    @property
    def has_times(self) -> bool:
        """Return whether ratings have times, which is public."""
        return self.times is not None

    def total(self, statistic: Summed[Total], /) -> Total:
        """Return the exact sum of all users' contributions, each from their own row."""
        return statistic.over(self)

    def are_all(self, rows: npt.NDArray[Any]) -> bool:
        """Return whether these are all rows, in their order."""
        if rows.size != self.n_users or rows.size == 1:
            return rows.size == self.n_users and bool(rows[0] == 0)
        return bool((rows == np.arange(rows.size)).all())

    def rows(self) -> npt.NDArray[np.int32]:
        """Return the row of every rating."""
        if self.n_users == 1:
            return np.zeros(self.n_ratings, dtype=np.int32)
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.indptr))

    def to_scipy(self) -> sp.csr_matrix[np.float32]:
        """Return a scipy matrix of users by items that shares the ratings."""
        shape = (self.n_users, self.n_items)
        matrix = sp.csr_matrix((self.values, self.items, self.indptr), shape=shape)
        matrix.has_canonical_format = True
        return matrix

    @cached_property
    def kept(self) -> dict[str, Any]:
        """Return what was computed from these rows and is needed again; it is forgotten with them."""
        return {}

    @cached_property
    def by_item(self) -> ByItem:
        """Return the ratings by item; sorted on first use."""
        indptr, users, order = group(self.items, self.n_items, self.rows())
        return ByItem(
            indptr=_read_only(indptr),
            users=_read_only(users),
            values=_read_only(self.values[order]),
            order=_read_only(order.astype(np.int64)),
        )

    def bounded(self, max_per_user: int | None = None) -> Interactions:
        """Clip to the scale and keep at most `max_per_user` ratings a user (and at most the declared cap).

        Which are kept depends on that user's own row only: the latest, or without times by a public hash.
        """
        facts = self.facts.with_cap(max_per_user)
        values = self.values if facts.weights else clip_to_scale(self.values, facts.low, facts.high)
        clipped = replace(self, values=values, facts=facts)
        if facts.max_per_user is None:
            return clipped
        keep = keep_per_user(
            self.indptr, self.items, self.times, self.users, self.catalog, facts.max_per_user
        )
        return clipped if keep.all() else clipped.where(keep)

    def where(self, mask: npt.NDArray[np.bool_]) -> Interactions:
        """Return the ratings that the mask marks; users and catalog stay."""
        mask = np.asarray(mask)
        if mask.dtype != np.bool_ or mask.shape != self.items.shape:
            raise WrongKind(name="mask", kind="an array of booleans, one per rating", found=str(mask.dtype))
        before = np.zeros(self.n_ratings + 1, dtype=np.int64)
        np.cumsum(mask, out=before[1:])
        return self._pick(mask, before[self.indptr])

    def select_users(self, which: npt.ArrayLike) -> Interactions:
        """Return the rows that a mask marks, or those of the given numbers in their order."""
        rows = _numbers(which, self.n_users, "users")
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return self._pick(cells_of_rows(self.indptr, rows), indptr, users=self.users.take(rows))

    def span(self, start: int, stop: int) -> Interactions:
        """Return the users from row `start` up to `stop`; only the row pointers are copied."""
        entries = slice(int(self.indptr[start]), int(self.indptr[stop]))
        named = self.users.series.slice(start, stop - start)
        return replace(
            self,
            indptr=self.indptr[start : stop + 1] - self.indptr[start],
            items=self.items[entries],
            values=self.values[entries],
            times=None if self.times is None else self.times[entries],
            listed=None if self.listed is None else self.listed[entries],
            users=Vocabulary(named, positional=self.users.is_positional),
        )

    def without_people(self, ids: Iterable[Any]) -> Interactions:
        """Return the data without the rows of users with these external ids, whether they are there or not.

        A user who asked to be forgotten is skipped by the next fit this way.
        """
        if not isinstance(ids, Sized):
            ids = list(ids)
        gone = self.users.index_of(ids)
        stays = np.ones(self.n_users, dtype=np.bool_)
        stays[gone[gone >= 0]] = False
        return replace(self.select_users(stays), removed=(*self.removed, ids))

    def select_items(self, which: npt.ArrayLike) -> Interactions:
        """Return the ratings of the items marked or numbered, which become the whole catalog, renumbered."""
        chosen = _numbers(which, self.n_items, "items")
        catalog = self.catalog.take(chosen)
        renumbered = np.full(self.n_items, -1, dtype=np.int32)
        renumbered[chosen] = np.arange(chosen.size, dtype=np.int32)
        kept = self.where(renumbered[self.items] >= 0)
        items = renumbered[kept.items]
        facts = replace(self.facts, n_items=chosen.size, from_file=(*self.facts.from_file, PICKED))
        if rows_are_sorted(kept.indptr, items):
            return replace(kept, items=items, catalog=catalog, facts=facts)
        order = by_person_and_item(kept.rows(), items.copy(), self.n_users, chosen.size)[2]
        assert order is not None
        return replace(kept, items=items, catalog=catalog, facts=facts)._pick(order, kept.indptr)

    def with_values(self, values: npt.ArrayLike, facts: PublicFacts | None = None) -> Interactions:
        """Return the same entries with other values; pass `facts` if the scale changes with them."""
        return replace(self, values=np.asarray(values, dtype=np.float32), facts=facts or self.facts)

    def with_facts(self, facts: PublicFacts) -> Interactions:
        """Return the same ratings under other facts; `bounded` clips to a narrower scale."""
        return replace(self, facts=facts)

    def at(self, now: float | None) -> Interactions:
        """Return the same histories, for lists requested at `now`, in seconds since 1970.

        If the schema declares that times are only positions, no time has passed since any of them.
        """
        positions = self.schema is not None and self.schema.has_positions
        return self if positions or now == self.now else replace(self, now=now)

    def pattern(self) -> Interactions:
        """Return who rated which items and nothing else: all values are 0, without times."""
        return Interactions(
            indptr=self.indptr,
            items=self.items,
            values=np.zeros(self.n_ratings, dtype=np.float32),
            users=self.users,
            catalog=self.catalog,
            facts=self.facts,
            name=self.name,
        )

    def without_ratings(self) -> Interactions:
        """Return the same interactions, each with the value 1: no scale is needed, or public, for them."""
        facts = self.facts.without_scale()
        if facts == self.facts:
            return self
        return self.with_values(np.ones(self.n_ratings, dtype=np.float32), facts=facts)

    def weighted(self) -> Interactions:
        """Return the same interactions with their weights, which need no scale; without weights, with 1 each.

        Weights are moved to between 0.001 and 1000, each by itself.
        """
        if self.facts.weights:
            return self
        if self.schema is None or not self.schema.weight:
            return self.without_ratings()
        facts = replace(self.facts.without_scale(), weights=self.schema.weights_text())
        return self.with_values(clip_to_scale(self.values, LEAST_WEIGHT, MOST_WEIGHT), facts=facts)

    def _pick(
        self, which: npt.NDArray[Any], indptr: npt.NDArray[np.int64], users: Vocabulary | None = None
    ) -> Interactions:
        listed = np.arange(self.n_ratings, dtype=np.int64) if self.listed is None else self.listed
        in_order = self.listed is None and which.dtype == np.bool_
        return replace(
            self,
            indptr=indptr,
            items=self.items[which],
            values=self.values[which],
            times=None if self.times is None else self.times[which],
            listed=None if in_order else listed[which],
            users=self.users if users is None else users,
        )

    def __repr__(self) -> str:
        return (
            f"<Interactions {self.name!r}: {self.n_users:,} users, {self.n_items:,} items, "
            f"{self.n_ratings:,} ratings>"
        )

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        facts = self.facts
        step = "" if facts.step is None else f" in steps of {facts.step:g}"
        rows = [
            ("Users", f"{self.n_users:,}"),
            ("Items", f"{self.n_items:,}"),
            ("Rows", f"{self.n_ratings:,}"),
            ("Values", facts.weights or f"{facts.low:g} to {facts.high:g}{step}"),
            ("Times", "no" if self.times is None else "yes"),
            *self.how_read.items(),
        ]
        return (), rows, f"Interactions {self.name!r} (for the data owner, not released)"


def refuse_unsound(data: Interactions) -> None:
    """Raise an error for rows for which bounds don't hold; the constructor trusts its caller."""
    indptr, items = data.indptr, data.items
    if int(indptr[0]) != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise UnsoundRows(rule="rows")
    if items.size and (items.min() < 0 or items.max() >= data.n_items):
        raise UnsoundRows(rule="items")
    if not rows_are_sorted(indptr, items) or repeats(indptr, items).any():
        raise UnsoundRows(rule="order")
    if count_not_finite(data.values):
        raise UnsoundRows(rule="finite")


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _numbered(
    given: list[Column | None], declared: Declarations, n_items: int | None
) -> tuple[tuple[Vocabulary, Codes], tuple[Vocabulary, Codes]]:
    """Number users and items, the first two of a list, which are taken out of it.

    Numbering runs in compiled code that lets the other column be numbered meanwhile. Of a large file one
    column is numbered after the other, so that the first is freed before.
    """
    if isinstance(given[0], Sized) and len(given[0]) < block_sizes().numbered_alone:
        numbered_people = encode(given.pop(0), declared.get("people"), "user ids")  # type: ignore[arg-type]
        return numbered_people, encode_items(given.pop(0), declared.get("catalog"), n_items)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as other:
        numbered = other.submit(encode, given.pop(0), declared.get("people"), "user ids")  # type: ignore[arg-type]
        if isinstance(given[0], Sized) and len(given[0]) > _MANY:
            numbered.result()
        catalog = encode_items(given.pop(0), declared.get("catalog"), n_items)  # type: ignore[arg-type]
        return numbered.result(), catalog


def _same_length(*columns: npt.NDArray[Any] | None) -> None:
    sizes = [column.size for column in columns if column is not None]
    if len(set(sizes)) > 1:
        raise OtherLengths(lengths=tuple(sizes))


def _numbers(which: npt.ArrayLike, count: int, what: str) -> npt.NDArray[np.int64]:
    """Turn a mask or numbers into numbers; reject others and repetitions."""
    array = np.asarray(which)
    if array.dtype == np.bool_:
        require(array.shape == (count,), what, array.shape, must=f"have the shape ({count},)")
        return np.flatnonzero(array)
    ok = array.size == 0 or (
        np.issubdtype(array.dtype, np.integer) and array.min() >= 0 and array.max() < count
    )
    require(bool(ok) and array.ndim == 1, what, array.size, must=f"be numbers in 0..{count - 1}")
    return array.astype(np.int64)
