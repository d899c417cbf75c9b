"""Read the settings by which ratings fade: a half-life in days, and the public date from which ages count."""

from __future__ import annotations

from datetime import UTC, datetime

from discreet.core.checks import DataError, ParameterError, positive_finite
from discreet.statistics.data_source import DataSource
from discreet.statistics.recency import Recency

_DAY = 86400.0
# Beyond this an exponent is no number any more; nothing fades in so long a time, and all in so short a one.
_SHORTEST, _LONGEST = 1e-9, 1e9


def check_recency(half_life: float | None, now: str | None) -> None:
    """Refuse a half-life that is no time, and a date that is none or has nothing to do."""
    if half_life is not None:
        positive_finite("half_life", half_life)
    if now is None:
        return
    if half_life is None:
        raise ParameterError("now says from when ages count, which matters with half_life only.")
    seconds_of(now)


def recency_of(half_life: float | None, now: str | None) -> Recency | None:
    """Return how ratings fade; None where they do not."""
    if half_life is None:
        return None
    moment = datetime.now(UTC).timestamp() if now is None else seconds_of(now)
    return Recency(now=moment, half_life=min(max(half_life, _SHORTEST), _LONGEST) * _DAY)


def refuse_timeless(half_life: float | None, data: DataSource) -> None:
    """Refuse data without times, before anything is paid, where ratings are to fade."""
    if half_life is not None and not may_have_times(data):
        raise DataError("The ratings have no times, so half_life means nothing. Leave it out, or add times.")


def may_have_times(data: DataSource) -> bool:
    """Return whether data have a column of times, which is public; a source that does not say may have."""
    return bool(getattr(data, "has_times", True))


def month_of(moment: float) -> str:
    """Return the month of a time in seconds since 1970, or the number roughly if it can be none."""
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m}"
    except (ValueError, OverflowError, OSError):
        return f"{moment:.2g}"


def seconds_of(date: str) -> float:
    """Return the seconds since 1970 at a date such as 2026-01-31 or 2026-01-31T12:00, in UTC if not said."""
    try:
        moment = datetime.fromisoformat(str(date))
    except ValueError:
        raise ParameterError(f"{date!r} must be a date such as 2026-01-31.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
