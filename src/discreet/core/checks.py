"""Check arguments, and report errors in one form: what came, the rule it broke, what to do.

Every error a user can cause is a `DiscreetError`; the command line prints its message and exits with 1.
Messages about data count records and name columns; they never quote a record.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

# Control characters and characters that change the direction of text; line breaks are kept.
_CONTROL = [*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROL if code != 0x0A}


def visible(text: str) -> str:
    """Return text with control characters escaped: ids from untrusted files may hold some."""
    return text.translate(_SHOWN)


class DiscreetError(Exception):
    """Report a problem the caller can fix; the message is one clear sentence."""

    def __str__(self) -> str:
        """Return the message on one line; it may name columns and files of untrusted origin."""
        return visible(super().__str__()).replace("\n", "\\n")

    def add_sentence(self, sentence: str) -> None:
        """Append a sentence to the message."""
        self.args = (f"{super().__str__()} {sentence}", *self.args[1:])


class ParameterError(DiscreetError, ValueError):
    """Report an argument that breaks its rule."""


class DataError(DiscreetError, ValueError):
    """Report data that cannot be used, without quoting any of it."""


class FileError(DiscreetError, OSError):
    """Report a file that is missing, not ours, damaged or cannot be written."""


class PrivacyError(DiscreetError, RuntimeError):
    """Report an action that would break or blur a privacy promise; it was not done."""


class BudgetError(PrivacyError):
    """Report a request that the budget does not cover; nothing was spent."""


def require(ok: bool, name: str, value: object, rule: str, do: str = "") -> None:
    """Raise a `ParameterError` unless `ok`."""
    if not ok:
        raise ParameterError(f"{name}={value!r} {rule}.{' ' + do if do else ''}")


def instance(name: str, value: object, kind: type, do: str = "") -> None:
    """Raise unless `value` is a `kind`; the message names its type and never its value."""
    if not isinstance(value, kind):
        found = type(value).__name__
        raise ParameterError(f"{name} must be of type {kind.__name__}, not {found}.{' ' + do if do else ''}")


def real(name: str, value: object, do: str = "") -> float:
    """Return `value` as a float; refuse booleans, text and NaN."""
    ok = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    require(ok, name, value, "must be a number", do)
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise ParameterError(f"{name} must fit a 64-bit float; this number has too many digits.") from None
    require(not math.isnan(number), name, value, "must be a number", do)
    return number


def finite(name: str, value: object, do: str = "") -> float:
    """Return `value` as a finite float."""
    number = real(name, value, do)
    require(math.isfinite(number), name, value, "must be finite", do)
    return number


def positive(name: str, value: object, do: str = "") -> float:
    """Return `value` as a float above 0; infinity is allowed."""
    number = real(name, value, do)
    require(number > 0, name, value, "must be greater than 0", do)
    return number


def positive_finite(name: str, value: object, do: str = "") -> float:
    """Return `value` as a finite float above 0."""
    number = positive(name, value, do)
    require(math.isfinite(number), name, value, "must be finite", do)
    return number


def non_negative(name: str, value: object, do: str = "") -> float:
    """Return `value` as a finite float of at least 0."""
    number = finite(name, value, do)
    require(number >= 0, name, value, "must be at least 0", do)
    return number


def probability(name: str, value: object, do: str = "") -> float:
    """Return `value` as a float in [0, 1]."""
    number = real(name, value, do)
    require(0 <= number <= 1, name, value, "must lie in [0, 1]", do)
    return number


def failure_probability(name: str, value: object, do: str = "") -> float:
    """Return `value` as a float in [0, 1), the range of delta."""
    number = real(name, value, do)
    require(0 <= number < 1, name, value, "must lie in [0, 1)", do)
    return number


def integer(
    name: str, value: object, *, least: int | None = None, most: int | None = None, do: str = ""
) -> int:
    """Return `value` as an int inside [least, most]."""
    ok = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(ok, name, value, "must be a whole number", do)
    number: int = int(value)  # type: ignore[call-overload]
    if least is not None:
        require(number >= least, name, value, f"must be at least {least}", do)
    if most is not None:
        require(number <= most, name, value, f"must be at most {most}", do)
    return number


def one_of(name: str, value: object, allowed: Collection[Any], do: str = "") -> None:
    """Raise unless `value` is among `allowed`."""
    options = ", ".join(sorted(repr(item) for item in allowed))
    close = suggestion(value, map(str, allowed)) if isinstance(value, str) else ""
    require(
        any(value == item for item in allowed),
        name,
        value,
        f"must be one of {options}",
        (close + " " + do).strip(),
    )


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return "Did you mean ...?" with the most similar known word; empty if none is similar."""
    close = most_similar(word, known)
    return "" if close is None else f" Did you mean {close}?"


def most_similar(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, or None if none is similar.

    An abbreviation, such as usr-fact, is similar to the shortest word that has its letters in this order.
    """
    from difflib import get_close_matches

    words, asked = list(known), word.lower()[:_LONGEST_WORD]
    # The same letters in another order are a slip of the fingers.
    close = [one for one in words if sorted(one) == sorted(asked)]
    close = close or get_close_matches(asked, words, n=1, cutoff=0.7)
    close = close or sorted((one for one in words if _abbreviates(asked, one)), key=len)
    return close[0] if close else None


# Nothing longer has a name that is similar; an abbreviation of two letters could be of anything.
_LONGEST_WORD, _SHORTEST_ABBREVIATION = 100, 3


def _abbreviates(short: str, word: str) -> bool:
    letters = iter(word)
    return (
        len(short) >= _SHORTEST_ABBREVIATION and short[0] == word[:1] and all(one in letters for one in short)
    )


def finite_array(name: str, array: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return a float64 array; refuse NaN and infinity without revealing their positions."""
    try:
        raw = np.asarray(array)
    except ValueError as error:
        raise DataError(f"{name} must be a regular array of numbers.") from error
    if raw.dtype.kind not in "biuf":
        raise DataError(f"{name} must hold numbers only.")
    numbers = np.asarray(raw, dtype=np.float64)
    bad = int(np.count_nonzero(~np.isfinite(numbers)))
    if bad:
        raise DataError(f"{name} holds NaN or infinity; remove such values first.")
    return numbers
