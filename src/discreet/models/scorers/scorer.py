"""Turn released numbers and one user's own history into scores; find the scorer that a file names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar, final

import numpy as np
import numpy.typing as npt

from discreet.core import SCORERS, Floats, Indices, Singles
from discreet.data import Interactions, Vocabulary
from discreet.models.errors import MalformedPart, NotSearchable, NoVectors, UnknownRanking
from discreet.models.scorers.ranking import Ranking
from discreet.models.scorers.similarity import Directions, KnownVectors, NearestItems
from discreet.solvers import FEW

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


Made = TypeVar("Made")

#: No user in the data is called this: a release with rows of its own users must not take a visitor for one.
NEWCOMER = "(a newcomer)"


class Scorer(ABC):
    """The publishable result of a fit, which computes a user's predictions from that user's own row.

    `stored` declares every array and states why it may be published; `constants` declares the other numbers.
    Both name fields of the class. A file is read by these declarations alone (`build_scorer`).
    """

    # No field: what is in it follows from the fields.
    __slots__ = ("_prepared",)
    _prepared: dict[str, Any]

    kind: ClassVar[str]
    stored: ClassVar[Mapping[str, Stored]]
    constants: ClassVar[Mapping[str, Constant]] = {}
    #: What files call the parts of objects inside this scorer: the field that has each part, and its name
    #: there. `made_of` has the classes of these fields.
    inside: ClassVar[Mapping[str, tuple[str, str]]] = {}
    made_of: ClassVar[Mapping[str, type]] = {}
    #: Ratings above this are "liked" and predictions are signed; None for models that predict ratings.
    above: float | None = None
    #: Whether a user's vector is computed from ratings; otherwise their items are enough.
    needs_ratings: ClassVar[bool] = True
    #: Whether the model expects a rating on the scale for an item, to be shown next to what orders lists.
    predicts_stars: ClassVar[bool] = False
    #: Whether no history changes the order, so that lists differ only by what users had.
    same_for_all: ClassVar[bool] = False
    #: What a newcomer without a history is ranked by, and what a history adds to it, in a word each.
    base_part: ClassVar[str] = "popularity"
    history_part: ClassVar[str] = "history"

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return every array of the release by name; optional ones that it does not have are omitted."""
        parts = {
            name: self.part(name)
            for name, part in self.stored.items()
            if not (getattr(part, "optional", False) and not self.part(name).size)
        }
        return {name: part.ids if isinstance(part, Vocabulary) else part for name, part in parts.items()}

    def settings(self) -> dict[str, Any]:
        """Return all constants by name, as JSON."""
        parts = {name: self.part(name) for name in self.constants}
        return {
            name: dict(part) if isinstance(part, Mapping) else plain_number(part)
            for name, part in parts.items()
        }

    def part(self, name: str) -> Any:
        """Return an array or a constant by the name under which a file has it."""
        where, own = self.inside.get(name, ("", name))
        if not where:
            return getattr(self, own)
        held = getattr(self, where)
        return held.part(own) if isinstance(held, Scorer) else getattr(held, own)

    def with_parts(self, **changed: Any) -> Self:
        """Return the scorer with other parts, by their names in files."""
        own, of = self._by_field(changed)
        held: dict[str, Any] = {}
        for name, parts in of.items():
            one = getattr(self, name)
            held[name] = one.with_parts(**parts) if isinstance(one, Scorer) else replace(one, **parts)
        # Scorers are frozen dataclasses; their common base is not one.
        changed_scorer: Self = replace(self, **own, **held)  # type: ignore[type-var]
        return changed_scorer

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> Self:
        """Return the scorer that has these parts."""
        own, of = cls._by_field(parts)
        held = {
            name: kind.of_parts(of[name]) if issubclass(kind, Scorer) else kind(**of[name])
            for name, kind in cls.made_of.items()
        }
        return cls(**own, **held)

    @classmethod
    def _by_field(cls, parts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Return the scorer's own parts, and those of each object inside it."""
        own: dict[str, Any] = {}
        of: dict[str, dict[str, Any]] = {field: {} for field in cls.made_of}
        for name, part in parts.items():
            where, called = cls.inside.get(name, ("", name))
            (of[where] if where else own)[called] = part
        return own, of

    def check(self) -> None:
        """Raise for parts of a file that do not fit together, although each is as declared."""
        return

    def prepared(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what `make` computes from released numbers alone; it is computed once for this scorer."""
        try:
            known = self._prepared
        except AttributeError:
            known = {}
            object.__setattr__(self, "_prepared", known)
        if name not in known:
            known[name] = make()
        made: Made = known[name]
        return made

    def fold_in(self, histories: Interactions) -> Floats:
        """Return a vector per user, from that user's own row and released numbers.

        Vectors of a few users are kept with their histories: one answer needs them several times.
        """
        if histories.n_users > FEW:
            return self._vectors(histories)
        known = histories.kept.setdefault("folded", {})
        if id(self) not in known:
            # The scorer is kept, too, so that no other one gets its number.
            known[id(self)] = self._vectors(histories), self
        vectors: Floats = known[id(self)][0]
        return vectors

    def _vectors(self, histories: Interactions) -> Floats:
        """Compute the vectors; by default they are empty."""
        return np.zeros((histories.n_users, 0))

    def folded(self, histories: Interactions, rows: Indices) -> tuple[Floats, Indices]:
        """Return the vectors of the users in `rows`, each once, and the place of each row's vector."""
        if histories.are_all(rows):
            return self.fold_in(histories), rows
        # Marks need no sorting, which takes longer than the products of many pairs.
        marked = np.zeros(histories.n_users, dtype=bool)
        marked[rows] = True
        asked, place = np.flatnonzero(marked), (np.cumsum(marked) - 1)[rows]
        if asked.size < histories.n_users:
            histories = histories.select_users(asked)
        return self.fold_in(histories), place

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the prediction for each pair (rows[c], items[c]): by default its score."""
        asked, place = np.unique(rows, return_inverse=True)
        every: Floats = self.scores(histories, asked).astype(np.float64)
        return every[place, items]

    @abstractmethod
    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item for each of these users; call it in blocks."""

    def search_parts(self) -> tuple[Floats, Floats] | None:
        """Return vectors and biases of items if `worth` is `fold_in . vector + bias`, else None.

        What `search_leaves_out` names may be missing from it.
        """
        return None

    @property
    def search_leaves_out(self) -> str:
        """Return what orders lists and is missing if they are made from vectors; empty if nothing is."""
        return ""

    def rescored(self, person: Interactions, found: Indices) -> tuple[Indices, Singles]:
        """Return items and what orders them in a list: those `found` by a search, and perhaps more.

        If a search by `search_parts` found the k best vectors, the k best items are among them.
        """
        parts = self.search_parts()
        if parts is None:
            raise NotSearchable(model="this model")
        vectors, bias = parts
        scores: Floats = vectors[found] @ self.fold_in(person)[0] + bias[found]
        return found, scores.astype(np.float32)

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return what lists are ordered by, for every item for each of these users: by default the scores."""
        return self.scores(histories, rows)

    def worth_by(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Singles:
        """Return what lists are ordered by under one of `rankings`, or the default if it is None."""
        if rank_by is None:
            return self.worth(histories, rows)
        raise UnknownRanking(value=rank_by, known=tuple(self.rankings))

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return what `worth_by` is made of, where many lists can be made from that without all scores."""
        return None

    @property
    def rankings(self) -> tuple[str, ...]:
        """Return what lists can be ordered by, if there is a choice; the first is what `worth` does."""
        return ()

    @property
    def ranked_by(self) -> str:
        """Return what `worth` is, in a few words."""
        return "how likely an interaction is"

    def knows(self, user: object) -> bool:
        """Return whether the release has a row of this user, so that their history is not looked at."""
        listed = (self.part(name) for name, part in self.stored.items() if isinstance(part, Ids))
        return any(len(ids) > 0 and ids.index_of([user])[0] >= 0 for ids in listed)

    def score_parts(self, histories: Interactions, rows: Indices) -> dict[str, Floats]:
        """Return parts of `worth` by name, for every item for each of these users; they add up to it.

        The first is what a newcomer without a history gets, the second what the history adds if its order is
        not given, the last what its order adds.
        """
        people, every = histories.select_users(rows), np.arange(rows.size)
        worth = self.worth(people, every).astype(np.float64)
        plain = worth
        if people.times is not None:
            plain = self.worth(replace(people, times=None), every).astype(np.float64)
        base = self.worth(without_history(people), np.zeros(1, dtype=np.int64)).astype(np.float64)
        return {
            self.base_part: np.broadcast_to(base, worth.shape),
            self.history_part: plain - base,
            "sequence": worth - plain,
        }

    def expected_stars(self, histories: Interactions, rows: Indices, items: Indices) -> Floats | None:
        """Return the rating that each of these users is expected to give, or None: most models know none."""
        return None

    def explain(self) -> dict[str, Any]:
        """Return the decisions of the fit by name; they use public constants and released numbers only."""
        return dict(getattr(self, "decisions", {}))

    def item_vectors(self) -> Floats:
        """Return one vector per item; close vectors mean similar items."""
        raise NoVectors()

    def known_by(self) -> Floats | None:
        """Return the counts by which noise has shortened the items' vectors; None where it has not."""
        return None

    def similarities(self, *, noise: float) -> Callable[[int, int], NearestItems]:
        """Return what finds neighbors of one item, given how many are wanted.

        `noise` is the multiplier of one release of the whole budget; 0 if no noise was added.
        """
        vectors, counts = self.item_vectors(), self.known_by()
        if counts is not None:
            return KnownVectors.of(vectors, counts, noise=noise).neighbors
        return Directions.of(vectors, noised=noise > 0).neighbors


def without_history(people: Interactions) -> Interactions:
    """Return one newcomer who has chosen nothing yet, in the same catalog."""
    return replace(
        people,
        indptr=np.zeros(2, dtype=people.indptr.dtype),
        items=people.items[:0],
        values=people.values[:0],
        times=None,
        listed=None,
        users=Vocabulary.of([NEWCOMER]),
    )


def scorer_class(kind: object) -> type[Scorer]:
    """Return the class of a kind; `discreet.core.registry` and installed packages know where it is."""
    if not isinstance(kind, str) or kind not in SCORERS:
        raise MalformedPart(part="kind", rule="name")
    found: type[Scorer] = SCORERS[kind]
    if not (isinstance(found, type) and issubclass(found, Scorer) and found.kind == kind):
        raise SCORERS.broken(kind, "is not a subclass of Scorer of this kind")
    return found


def build_scorer(kind: object, arrays: Mapping[str, object], settings: object, n_items: int) -> Scorer:
    """Return the scorer that `arrays()` and `settings()` described, or raise for parts that don't fit.

    Everything that is not as declared is a `DataError`, because a file may come from anybody.
    """
    made = scorer_class(kind)
    scorer = made.of_parts(read_parts(made.stored, made.constants, arrays, settings, n_items))
    scorer.check()
    return scorer
