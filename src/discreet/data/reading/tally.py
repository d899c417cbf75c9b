"""Count the rows that cannot be read, for the data owner; a message names a line and quotes none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.core.checks import DataError, FileError
from discreet.core.progress import logger

# Why a line is not a row of the table. The first reason that applies counts.
FITS, FIELDS, QUOTES, LETTERS, SHAPE, USER_MISSING, ITEM_MISSING, USER_TYPE, ITEM_TYPE = range(9)
RATING_MISSING, RATING_TEXT, TIME_MISSING, TIME_TEXT = range(9, 13)
_REASONS = 13
# These concern the form of a line, and the others one field of a row.
_FORMS = (FIELDS, QUOTES, LETTERS, SHAPE)
_LEAVE_OUT = "pass skip_bad_lines=True (--skip-bad-lines) to leave such lines out"


@final
class Tally:
    """The number of rows that were left out, by reason, and the line of the first of each."""

    def __init__(self, name: str, columns: int, roles: Mapping[str, str], shape: str = "") -> None:
        self._name, self._columns, self._roles, self._shape = name, columns, roles, shape
        self._counts = np.zeros(_REASONS, np.int64)
        self._first: dict[int, tuple[int, int]] = {}

    @property
    def rows(self) -> int:
        """Return the number of lines that are neither blank nor comments."""
        return int(self._counts.sum())

    @property
    def bad(self) -> int:
        """Return the number of rows that were left out."""
        return int(self._counts[1:].sum())

    def count(self, *reasons: int) -> int:
        """Return the number of rows that were left out for these reasons."""
        return int(self._counts[list(reasons)].sum())

    def add(
        self, marks: npt.NDArray[np.uint8], lines: npt.NDArray[np.int64], fields: npt.NDArray[np.int64]
    ) -> None:
        """Count the marks of some rows; `lines` has their numbers and `fields` how many fields each has."""
        counts = np.bincount(marks, minlength=_REASONS)
        for mark in np.flatnonzero(counts).tolist():
            if mark not in self._first:
                place = int(np.argmax(marks == mark))
                self._first[mark] = int(lines[place]), int(fields[place])
        self._counts += counts

    def settle(self, encoding: str, *, reject: bool) -> None:
        """Raise an error about the rows that were left out, or log how many there are."""
        if reject and self.bad:
            mark = int(np.flatnonzero(self._counts[1:])[0]) + 1
            kind = FileError if mark in (FIELDS, QUOTES, LETTERS) else DataError
            raise kind(self._complaint(mark, encoding))
        forms = self.count(*_FORMS)
        if forms:
            logger.warning("%d of %d lines of %s do not fit and were left out.", forms, self.rows, self._name)
        if self.bad > forms:
            logger.warning(
                "%d of %d lines of %s lack an id, a number or a time and were left out.",
                self.bad - forms,
                self.rows - forms,
                self._name,
            )

    def _complaint(self, mark: int, encoding: str) -> str:
        line, found = self._first[mark]
        bad = self.count(mark)
        alike = f" ({bad:,} lines do not fit)" if bad > 1 else ""
        where = f"Line {line:,} of {self._name}"
        if mark == LETTERS:
            return (
                f"{where} is not {encoding.upper()} text{alike}; say which encoding it is, as in "
                'encoding="latin-1" (--encoding latin-1).'
            )
        if mark == SHAPE:
            return f"{where}{alike} is not {self._shape}; {_LEAVE_OUT}, or name another layout."
        if mark == FIELDS:
            fields = f"{found} field{'s' * (found != 1)}"
            return f"{where} has {fields} where {self._columns} belong{alike}; {_LEAVE_OUT}."
        if mark == QUOTES:
            return (
                f"{where} opens a quote that it does not close, or has a quote inside quotes{alike}; if its "
                f"quotes are escaped, pass escape='\\' (--escape '\\'), or {_LEAVE_OUT[5:]}."
            )
        return self._about_field(mark, f"{bad:,} of {self.rows:,}", f"The first is in line {line:,}.")

    def _about_field(self, mark: int, count: str, first: str) -> str:
        role = "user" if mark in (USER_MISSING, USER_TYPE) else "item"
        remove = "remove such rows first (in text files --skip-bad-lines leaves them out)."
        if mark in (USER_MISSING, ITEM_MISSING):
            return f"{count} {role} ids are missing; {remove} {first}"
        if mark in (USER_TYPE, ITEM_TYPE):
            return (
                f"{count} {role} ids are not whole numbers in the usual form, as the schema declares. {first}"
            )
        number = "weight" if "weight" in self._roles else "rating"
        if mark == RATING_MISSING:
            return f"{count} {number}s are missing, NaN or infinite; {remove} {first}"
        if mark == RATING_TEXT:
            return (
                f"{count} {number}s are text where a number belongs (column {self._roles.get(number, '')}); "
                f"choose another column (--columns {number}=NAME) or leave such rows out (--skip-bad-lines). "
                f"{first}"
            )
        if mark == TIME_MISSING:
            return (
                f"{count} times are missing; fill them in, leave the column out, or (in text files) such "
                f"rows with --skip-bad-lines. {first}"
            )
        return (
            f"{count} times are neither numbers nor dates (as 2005-03-01T12:00:00+00:00); choose another "
            "column, leave such rows out (--skip-bad-lines), or leave the times out with columns time=None "
            f"(--columns time=none). {first}"
        )
