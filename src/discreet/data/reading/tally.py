"""Count the rows that can't be read, for the data owner; an error has a line's number and no value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.core import logger
from discreet.core.checks import DiscreetError
from discreet.data import errors
from discreet.data.schema import Schema

# Why a line is not a row of the table. The first reason that applies counts.
FITS, FIELDS, QUOTES, LETTERS, LENGTH, SHAPE, USER_MISSING, ITEM_MISSING, USER_TYPE, ITEM_TYPE = range(10)
RATING_MISSING, RATING_TEXT, TIME_MISSING, TIME_TEXT = range(10, 14)
#: A condition of the schema skips the row, so it need not be readable.
OTHER = 14
_REASONS = 15
_MISSING = {USER_MISSING: "user IDs", ITEM_MISSING: "item IDs", TIME_MISSING: "times"}
_TYPES = {USER_TYPE: "user", ITEM_TYPE: "item"}
#: A longer line is not a row.
LONGEST_LINE = 1 << 24


_SKIPPED = {
    FIELDS: "with another number of fields",
    QUOTES: "with open quotes",
    LETTERS: "in another encoding",
    LENGTH: "too long",
    SHAPE: "of another form",
    USER_MISSING: "without a user ID",
    ITEM_MISSING: "without an item ID",
    USER_TYPE: "with another type of user ID",
    ITEM_TYPE: "with another type of item ID",
    RATING_MISSING: "without a rating",
    RATING_TEXT: "with an unreadable rating",
    TIME_MISSING: "without a time",
    TIME_TEXT: "with an unreadable time",
}
# What the files that are read together have of each.
_together: ContextVar[npt.NDArray[np.int64] | None] = ContextVar("together", default=None)
_skipped: ContextVar[list[str] | None] = ContextVar("skipped", default=None)


@contextmanager
def counted_together(name: str, schema: Schema) -> Iterator[None]:
    """Log the rows that are skipped in several files in one line."""
    total = np.zeros(_REASONS, np.int64)
    token = _together.set(total)
    try:
        yield
    finally:
        _together.reset(token)
    if total[1:OTHER].any():
        _log_skipped(total, name, schema)


@contextmanager
def skipped_rows() -> Iterator[list[str]]:
    """Yield a list that gets a sentence for each source, or folder, of which rows are skipped."""
    said: list[str] = []
    token = _skipped.set(said)
    try:
        yield said
    finally:
        _skipped.reset(token)


def _log_skipped(counts: npt.NDArray[np.int64], name: str, schema: Schema) -> None:
    reasons = (f"{counts[mark]:,} {words}" for mark, words in _SKIPPED.items() if counts[mark])
    bad, rows = int(counts[1:OTHER].sum()), int(counts[:OTHER].sum())
    sentence = f"{bad:,} of {rows:,} rows of {name} are skipped: {', '.join(reasons)}."
    if counts[RATING_MISSING] and schema.rating:
        sentence += (
            " To use all rows for recommendations, ratings or not, pass --implicit (implicit=True). "
            "Predictions of ratings can only use rows with a rating."
        )
    said = _skipped.get()
    if said is not None:
        said.append(sentence)
    logger.warning("%s", sentence)


def shown_name(file: Path) -> str:
    """Return a file's name with the keys in its path, without which files of partitions are called alike."""
    return "/".join([*(part for part in file.parent.parts if "=" in part), file.name])


@final
class WrongGuess(Exception):
    """Types of IDs that were guessed to be whole numbers, and aren't."""


@final
class Tally:
    """The number of rows that aren't read, by reason, and the line of the first of each."""

    def __init__(
        self,
        name: str,
        roles: Mapping[str, str],
        columns: int = 0,
        shape: str = "",
        *,
        above: int | None = 0,
    ) -> None:
        self._name, self._roles, self._columns, self._shape = name, roles, columns, shape
        # How many rows of a sheet are above. The rows of a database have no numbers to look up (None).
        self._above = above
        self._counts = np.zeros(_REASONS, np.int64)
        self._first: dict[int, tuple[int, int]] = {}

    @property
    def rows(self) -> int:
        """Return the number of lines that are neither blank, nor comments, nor skipped by a condition."""
        return int(self._counts[:OTHER].sum())

    @property
    def bad(self) -> int:
        """Return the number of rows that aren't read."""
        return int(self._counts[1:OTHER].sum())

    def count(self, *reasons: int) -> int:
        """Return the number of rows that aren't read for these reasons."""
        return int(self._counts[list(reasons)].sum())

    def add(
        self,
        marks: npt.NDArray[np.uint8],
        lines: npt.NDArray[np.int64] | None = None,
        fields: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Count the marks of some rows; `lines` has their numbers and `fields` how many fields each has."""
        if not marks.any():
            # To count them by reason would cost more than to look at them.
            self._counts[FITS] += marks.size
            return
        counts = np.bincount(marks, minlength=_REASONS)
        for mark in np.flatnonzero(counts).tolist():
            if mark not in self._first and mark != FITS:
                place = int(np.argmax(marks == mark))
                line = int(self._counts.sum()) + place + 1 if lines is None else int(lines[place])
                line = 0 if self._above is None else line + self._above
                self._first[mark] = line, 0 if fields is None else int(fields[place])
        self._counts += counts

    def check_guess(self, schema: Schema) -> None:
        """Raise an error if IDs aren't of the type that was guessed."""
        types = [f"{role}_type" for mark, role in _TYPES.items() if self.count(mark)]
        wrong = [name for name in types if name in schema.guessed]
        if wrong:
            raise WrongGuess(*wrong)

    def settle(self, schema: Schema) -> None:
        """Raise an error about the rows that aren't read, or log how many there are."""
        if self.bad and schema.bad_rows == "reject":
            raise self._error(int(np.flatnonzero(self._counts[1:OTHER])[0]) + 1, schema)
        total = _together.get()
        if total is not None:
            total += self._counts
        elif self.bad:
            _log_skipped(self._counts, self._name, schema)

    def _error(self, mark: int, schema: Schema) -> DiscreetError:
        line, found = self._first[mark]
        place: dict[str, Any] = {"path": self._name, "line": line, "count": self.count(mark)}
        if mark == FIELDS:
            return errors.WrongFields(**place, values=found, columns=self._columns)
        if mark in (QUOTES, LENGTH):
            return (
                errors.WrongQuotes(**place)
                if mark == QUOTES
                else errors.LineTooLong(**place, most=LONGEST_LINE)
            )
        if mark == LETTERS:
            return errors.NotText(**place, encoding=schema.encoding.upper())
        if mark == SHAPE:
            return errors.OtherShape(**place, shape=self._shape)
        number = "weight" if "weight" in self._roles else "rating"
        counted: dict[str, Any] = {"count": self.count(mark), "of": self.rows, "line": line}
        if mark in _TYPES:
            return errors.IdsNotWhole(**counted, role=_TYPES[mark])
        if mark in (RATING_TEXT, TIME_TEXT):
            role = "time" if mark == TIME_TEXT else number
            return errors.UnreadableValues(**counted, role=role, column=self._roles.get(role, ""))
        keys = tuple(f"{role}={name}" for role, name in schema.roles.items())
        is_guessed = schema.format == "json" and bool(set(schema.roles) & set(schema.guessed))
        return errors.BadValues(
            **counted,
            what=_MISSING.get(mark, f"{number}s"),
            path=self._name,
            optional=mark == RATING_MISSING and number == "rating",
            keys=(keys if schema.time else (*keys, "time=none")) if is_guessed else (),
        )
