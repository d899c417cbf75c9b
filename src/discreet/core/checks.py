"""Checks of arguments, which raise errors of `discreet.core.errors`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from discreet.core.exports import Later

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    # The list of commands needs errors, and no numbers.
    np = Later("numpy")

from discreet.core.errors import BrokenRule, NotFiniteArray, OutOfRange, UnknownChoice, WrongKind, shown
from discreet.core.errors import BudgetError as BudgetError
from discreet.core.errors import DataError as DataError
from discreet.core.errors import DiscreetError as DiscreetError
from discreet.core.errors import FileError as FileError
from discreet.core.errors import ParameterError as ParameterError
from discreet.core.errors import PrivacyError as PrivacyError
from discreet.core.errors import most_similar as most_similar
from discreet.core.errors import visible as visible


def renamed(old: str, new: str) -> None:
    """Warn that a public name has a new one."""
    message = f"`{old}` is now `{new}`. The old name works in this version."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def require(ok: bool, name: str, value: object, *, must: str, do: str = "") -> None:
    """Raise unless an argument satisfies a rule that isn't a range or a choice."""
    if not ok:
        raise BrokenRule(name=name, value=value, must=must, do=do)


def instance(name: str, value: object, kind: type) -> None:
    """Raise unless `value` is a `kind`; the message names its type and never its value."""
    if not isinstance(value, kind):
        raise WrongKind(name=name, kind=f"of type {kind.__name__}", found=type(value).__name__)


def real(name: str, value: object) -> float:
    """Return `value` as a float; raise for booleans, text and NaN."""
    number = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            raise WrongKind(name=name, kind="a 64-bit float", found="a number with more digits") from None
    if math.isnan(number):
        raise WrongKind(name=name, kind="a number", found=shown(value))
    return number


def within(
    name: str,
    value: object,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Return `value` as a float in a range; `most=math.inf` allows infinity, `below=math.inf` doesn't."""
    number = real(name, value)
    if (
        (least is not None and number < least)
        or (most is not None and number > most)
        or (above is not None and number <= above)
        or (below is not None and number >= below)
    ):
        raise OutOfRange(name=name, value=value, least=least, most=most, above=above, below=below)
    return number


def finite(name: str, value: object) -> float:
    """Return `value` as a finite float."""
    return within(name, value, above=-math.inf, below=math.inf)


def positive(name: str, value: object) -> float:
    """Return `value` as a float above 0; infinity is allowed."""
    return within(name, value, above=0)


def positive_finite(name: str, value: object) -> float:
    """Return `value` as a finite float above 0."""
    return within(name, value, above=0, below=math.inf)


def non_negative(name: str, value: object) -> float:
    """Return `value` as a finite float of at least 0."""
    return within(name, value, least=0, below=math.inf)


def probability(name: str, value: object) -> float:
    """Return `value` as a float in [0, 1]."""
    return within(name, value, least=0, most=1)


def failure_probability(name: str, value: object) -> float:
    """Return `value` as a float in [0, 1), the range of delta."""
    return within(name, value, least=0, below=1)


def integer(name: str, value: object, *, least: int | None = None, most: int | None = None) -> int:
    """Return `value` as an int inside [least, most]."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise WrongKind(name=name, kind="a whole number", found=shown(value))
    number = int(value)
    if (least is not None and number < least) or (most is not None and number > most):
        raise OutOfRange(name=name, value=value, least=least, most=most)
    return number


def one_of(name: str, value: object, allowed: Collection[Any]) -> None:
    """Raise unless `value` is among `allowed`."""
    if not any(value == item for item in allowed):
        raise UnknownChoice(name=name, value=value, choices=sorted(allowed, key=repr))


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return "Did you mean ...?" with the most similar known word; empty if none is similar."""
    close = most_similar(word, known)
    return "" if close is None else f" Did you mean {close}?"


def finite_array(name: str, array: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return a float64 array; raise for NaN and infinity without revealing their positions."""
    try:
        raw = np.asarray(array)
    except ValueError as error:
        raise NotFiniteArray(name=name) from error
    if raw.dtype.kind not in "biuf":
        raise NotFiniteArray(name=name)
    numbers = np.asarray(raw, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise NotFiniteArray(name=name)
    return numbers
