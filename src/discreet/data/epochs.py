"""Read moments as seconds since 1970; numbers that are too small for epoch times are only positions."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from discreet.core import WrongKind, finite

#: A moment: a date as text, a datetime, an epoch time, or "now".
Moment = str | float | datetime
SECONDS = "epoch seconds"
#: Epoch times of the years 1973 to 5138: name, least and next larger number, and units per second. No number
#: is an epoch time in two units.
EPOCHS = (
    (SECONDS, 10**8, 10**11, 1.0),
    ("epoch milliseconds", 10**11, 10**14, 1e3),
    ("epoch microseconds", 10**14, 10**17, 1e6),
    ("epoch nanoseconds", 10**17, 2**63 - 1, 1e9),
)


def epoch_seconds(times: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return times as seconds since 1970; NaN for numbers that are too small, which are only positions."""
    found = np.full(times.shape, np.nan)
    for _, low, high, per_second in EPOCHS:
        here = (times >= low) & (times < high)
        found[here] = times[here] / per_second
    return found


def seconds_of(date: Moment, name: str = "now") -> float:
    """Return the seconds since 1970 at a date such as 2026-01-31 or 2026-01-31T12:00, by default in UTC.

    A number is an epoch time in any unit, and the word "now" is the clock's time.
    """
    if isinstance(date, int | float) and not isinstance(date, bool):
        seconds = float(epoch_seconds(np.array([finite(name, date)]))[0])
        return float(date) if np.isnan(seconds) else seconds
    moment = date if isinstance(date, datetime) else _parsed(date)
    if moment is None:
        raise WrongKind(name=name, kind="a date such as 2026-01-31", found=repr(date))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _parsed(date: object) -> datetime | None:
    try:
        return datetime.now(UTC) if date == "now" else datetime.fromisoformat(str(date))
    except ValueError:
        return None
