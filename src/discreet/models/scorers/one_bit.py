"""Score binary ratings from a completed matrix, or release single entries with noise of their own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, final, get_args

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles, predict_cells
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.models.errors import (
    EntriesNotReleased,
    EntriesOnly,
    EntriesUsedUp,
    MalformedPart,
    NotFoldedIn,
    ScaleTooSmall,
    UnknownUser,
)
from discreet.models.scorers.factors import COUNTS, LIKING, CountedScorer, by_counts
from discreet.models.scorers.scorer import (
    ITEMS,
    RELEASED,
    Constant,
    Ids,
    Scorer,
    Stored,
    StoredNumber,
    StoredNumbers,
    Word,
)
from discreet.privacy import Overspent, Session, times_up
from discreet.solvers import Link, OneBitLoss, curvature_at_0
from discreet.statistics import ExactNumbers, Part

_NEWTON_STEPS = 12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitScorer(CountedScorer):
    """Predictions `left[user] . right[item]`: above 0 is liked.

    The users the matrix was completed for have a row; who they are is public in this privacy definition. A
    newcomer's row is the most likely one given their own binary ratings and the distribution of rows.
    """

    kind: ClassVar[str] = "one-bit"
    liked_part: ClassVar[str] = "odds of liking"
    stored: ClassVar[Mapping[str, Stored]] = {
        "users": Ids(source="public: the users that the guarantee covers", count="people"),
        "left": StoredNumbers(source=RELEASED, shape=("people", "factors")),
        "right": StoredNumbers(source=RELEASED, shape=(ITEMS, "factors")),
        "popularity": replace(
            COUNTS, source="counts of ratings: which items were rated is public in this privacy definition"
        ),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "above": StoredNumber(optional=True),
        "bound": StoredNumber(least=0.0),
        "link": Word(allowed=get_args(Link)),
        "scale": StoredNumber(least=1e-9),
        "liking": LIKING,
    }

    users: Vocabulary
    left: Floats
    right: Floats
    bound: float
    link: Link
    scale: float
    above: float | None

    @property
    def ranked_by(self) -> str:
        """Return what orders lists, and whether it is the odds of liking alone."""
        if self.popularity.size:
            return "the number of ratings, and the odds of liking"
        return "the odds of liking alone, for this model has no counts: poor for lists"

    def _vectors(self, histories: Interactions) -> Floats:
        """Return the row of every user who has one, and the most likely row of each newcomer."""
        known = self.users.index_of(histories.users.series)
        vectors = self.left[np.maximum(known, 0)]
        for newcomer in np.flatnonzero(known < 0):
            vectors[newcomer] = self._most_likely(histories, int(newcomer))
        return vectors

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return signed scores of single pairs of user and item, none beyond the bound."""
        people, place = self.folded(histories, rows)
        return np.clip(predict_cells(people, self.right, place, items), -self.bound, self.bound)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return signed scores of all items, not bounded: the order at the top is kept."""
        people, place = self.folded(histories, rows)
        return (people[place] @ self.right.T).astype(np.float32)

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the logarithm of the counts, plus `liking` times that of the chance of being liked."""
        scores = self.scores(histories, rows)
        return (
            by_counts(self.popularity, self.liking, scores / self.scale) if self.popularity.size else scores
        )

    def item_vectors(self) -> Floats:
        """Return the right factor."""
        return self.right if self.right.shape[1] else Scorer.item_vectors(self)

    def _most_likely(self, histories: Interactions, row: int) -> Floats:
        """Maximize the likelihood of one user's binary ratings under a normal prior with the rows' spread."""
        span = slice(int(histories.indptr[row]), int(histories.indptr[row + 1]))
        design = self.right[histories.items[span]]
        if self.above is None:
            raise NotFoldedIn()
        signs = binary_ratings(histories, self.above)[span]
        loss = OneBitLoss(verdicts=signs, link=self.link, scale=self.scale)
        ridge = 1 / np.maximum(np.mean(self.left**2, axis=0), 1e-12)
        # The curvature at 0 is the largest for the logistic link and nearly so for the probit: steps are
        # safe.
        curvature = 2 * curvature_at_0(self.link, self.scale) * design.T @ design + np.diag(ridge)
        vector = np.zeros(self.right.shape[1])
        for _ in range(_NEWTON_STEPS if signs.size else 0):
            slope = design.T @ loss.gradient(design @ vector) + ridge * vector
            try:
                vector = vector - np.linalg.solve(curvature, slope)
            except np.linalg.LinAlgError as error:
                raise NotFoldedIn() from error
        return vector


@final
class CompletedMatrix:
    """The exact factors of a completed matrix, which a session keeps for `MatrixEntries`."""

    __slots__ = ("_left", "_right")

    def __init__(self, left: Floats, right: Floats) -> None:
        self._left, self._right = left, right

    def total(self, entries: MatrixEntries, /) -> ExactNumbers:
        """Return the exact entries; only a session reads them."""
        exact = predict_cells(self._left, self._right, entries.rows, entries.items)
        return ExactNumbers(np.clip(exact, -entries.bound, entries.bound))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixEntries:
    """Entries of a completed matrix, each clipped to `bound`; one rating can move all of them.

    With `alone` each entry counts as if it were the only one that is ever asked for, in experiments.
    """

    rows: Indices
    items: Indices
    bound: float
    alone: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the entries; whatever changes in the data, each moves by twice the bound at most."""
        most = times_up(2 * self.bound, 1 if self.alone else self.rows.size)
        return (Part("entries", self.rows.shape, norm="l1", bound=most, of="rating"),)


@final
class Vault:
    """The session that keeps the exact factors; they are never written, and entries leave only with noise.

    Each entry costs 1 / `cells` of the session's budget. Simulated noise protects no users, so an experiment
    may ask for any number of entries, as if each were the only one.
    """

    __slots__ = ("_bound", "_session", "cells")

    def __init__(self, session: Session, *, cells: int, bound: float) -> None:
        self._session, self.cells, self._bound = session, cells, bound

    def expect_answers(self) -> None:
        """Announce as many answers as the budget covers; which entries they are about isn't known yet."""
        one = MatrixEntries(rows=np.zeros(1, np.int64), items=np.zeros(1, np.int64), bound=self._bound)
        self._session.expect(one, Fraction(1, self.cells), self.cells)

    def release(self, rows: Indices, items: Indices) -> Floats:
        """Return these entries with noise.

        Raises:
            Overspent: The budget does not cover them; nothing was released.
        """
        if self._session.simulated:
            once = MatrixEntries(rows=rows, items=items, bound=self._bound, alone=True)
            return self._session.repeated().release(once, Fraction(1, self.cells)).values
        # All are reserved before the first is released. Each has noise of its own bound, because that of many
        # together may be too small for the sampler.
        (asked,) = self._session.split(Fraction(rows.size, self.cells))
        released = [
            part.release(
                MatrixEntries(rows=rows[[k]], items=items[[k]], bound=self._bound), Fraction(1)
            ).values
            for k, part in enumerate(asked.rounds(rows.size))
        ]
        return np.concatenate(released)


@final
class Answers:
    """The released entries by number, so that a repeated request reveals nothing new."""

    __slots__ = ("_cells", "_lock", "_values")

    def __init__(self, cells: Indices, values: Floats) -> None:
        order = np.argsort(cells)
        self._cells, self._values = cells[order], values[order]
        self._lock = threading.Lock()

    def snapshot(self) -> tuple[Indices, Floats]:
        """Return the entries released so far and their noisy values."""
        with self._lock:
            return self._cells, self._values

    def of(self, cells: Indices, n_items: int, vault: Vault | None) -> Floats:
        """Return noisy values of these entries; new ones come from the vault if the budget covers them."""
        with self._lock:
            new = np.setdiff1d(cells, self._cells)
            if new.size:
                noised = self._new(new, n_items, vault)
                cells_now = np.concatenate([self._cells, new])
                order = np.argsort(cells_now)
                self._cells = cells_now[order]
                self._values = np.concatenate([self._values, noised])[order]
            answered: Floats = self._values[np.searchsorted(self._cells, cells)]
            return answered

    def _new(self, cells: Indices, n_items: int, vault: Vault | None) -> Floats:
        if vault is None:
            raise EntriesNotReleased(count=int(cells.size))
        try:
            return vault.release(*np.divmod(cells, n_items))
        except Overspent as error:
            raise EntriesUsedUp(released=self._cells.size, asked=cells.size, most=vault.cells) from error


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedCells(Scorer):
    """Released entries for the users the matrix was completed for. A file has only released entries."""

    kind: ClassVar[str] = "one-bit-cells"
    stored: ClassVar[Mapping[str, Stored]] = {
        "users": Ids(source="public: the users that the guarantee covers", count="people"),
        "cells": StoredNumbers(
            source="public: which cells were asked for", shape=("cells",), dtype=np.int64, least=0, most=2**62
        ),
        "values": StoredNumbers(
            source="noised one by one; each costs epsilon, and only these are in the file", shape=("cells",)
        ),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "above": StoredNumber(optional=True),
        "n_items": StoredNumber(least=1, equals=ITEMS),
    }

    users: Vocabulary
    n_items: int
    above: float | None
    cells: Indices
    values: Floats
    vault: Vault | None = None
    answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", Answers(self.cells, self.values))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the released entries, numbered row by row, and their noisy values."""
        cells, values = self.answers.snapshot()
        return {"users": self.users.ids, "cells": cells, "values": values}

    def check(self) -> None:
        """Raise for entries outside the matrix, and entries that come twice."""
        if self.cells.size and int(self.cells.max()) >= len(self.users) * self.n_items:
            raise MalformedPart(part="entries", rule="range")
        if np.unique(self.cells).size < self.cells.size:
            raise MalformedPart(part="entries", rule="order")

    def _vectors(self, histories: Interactions) -> Floats:
        """Raise: a vector would reveal more than single entries do."""
        raise EntriesOnly()

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return noisy entries; the same entry always gets the same answer."""
        known = self.users.index_of(histories.users.series)[rows].astype(np.int64)
        if known.size and known.min() < 0:
            raise UnknownUser()
        return self.answers.of(known * self.n_items + items, self.n_items, self.vault)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the noisy entries of all items: one release per item and user."""
        cells = np.repeat(rows, self.n_items), np.tile(np.arange(self.n_items), rows.size)
        return self.predict(histories, *cells).reshape(rows.size, -1).astype(np.float32)


# Where "liked" begins by default: this far up the scale, which is 3.5 of 1 to 5 stars.
_LIKED = 0.625


def public_threshold(facts: PublicFacts, above: float | None) -> float:
    """Return the rating above which a rating counts as +1; without one, a fixed place on the public scale."""
    if facts.low >= facts.high:
        raise ScaleTooSmall(low=facts.low, high=facts.high)
    if above is None:
        return facts.low + _LIKED * (facts.high - facts.low)
    if not facts.low <= above < facts.high:
        raise ScaleTooSmall(low=facts.low, high=facts.high)
    return above


def binary_ratings(data: Interactions, above: float) -> npt.NDArray[np.int8]:
    """Return +1 for every rating above the threshold and -1 for the others."""
    return np.where(data.values > above, 1, -1).astype(np.int8)
