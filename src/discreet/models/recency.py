"""Read the settings by which ratings fade: a half-life in days, and the public date from which ages count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from discreet.core.checks import positive_finite
from discreet.data.epochs import seconds_of
from discreet.models.errors import SettingsConflict, TimesNeeded
from discreet.models.estimator import Estimator, SumsEstimator
from discreet.privacy.guarantee import Assumption, Fact, Kind
from discreet.statistics.counts import Recency
from discreet.statistics.data_source import DataSource

#: What an estimator that reads times takes as public.
TIMES_ARE_PUBLIC = Assumption.of(Kind.DECLARED, Fact.TIMES)
_DAY = 86400.0
# Beyond this an exponent isn't a number any more; nothing fades in so long a time, and all in so short a one.
_SHORTEST, _LONGEST = 1e-9, 1e9


def check_recency(half_life: float | None, now: str | None) -> None:
    """Raise for a half-life that isn't a time, and for a date that is invalid or unused."""
    if half_life is not None:
        positive_finite("half_life", half_life)
    if now is None:
        return
    if half_life is None:
        raise SettingsConflict(setting="now", other="a model without half_life")
    seconds_of(now)


def recency_of(half_life: float | None, now: str | None) -> Recency | None:
    """Return how ratings fade; None where they do not."""
    if half_life is None:
        return None
    moment = datetime.now(UTC).timestamp() if now is None else seconds_of(now)
    return Recency(now=moment, half_life=min(max(half_life, _SHORTEST), _LONGEST) * _DAY)


def stated_recency(half_life: float | None, now: str | None) -> tuple[Assumption, ...]:
    """Return what is assumed if ratings fade: times are read, and a declared date doesn't come from users."""
    if half_life is None:
        return ()
    date = () if now is None else (Assumption.of(Kind.DECLARED, Fact.DATE, date=str(now)),)
    return (TIMES_ARE_PUBLIC, *date)


def refuse_timeless(half_life: float | None, data: DataSource) -> None:
    """Raise for data without times, before any cost is recorded, if ratings are to fade."""
    if half_life is not None and not may_have_times(data):
        raise TimesNeeded(setting="half_life")


class FadingEstimator(SumsEstimator):
    """A method whose ratings may fade: after `half_life` days one counts half. Ages count from `now`."""

    __slots__ = ()

    half_life: float | None
    now: str | None

    def public_inputs(self) -> Sequence[Assumption]:
        """Return what is assumed if ratings fade."""
        return stated_recency(self.half_life, self.now)

    def _refuse(self, data: DataSource) -> None:
        Estimator._refuse(self, data)
        refuse_timeless(self.half_life, data)


def may_have_times(data: DataSource) -> bool:
    """Return whether data have a column of times, which is public; a source that does not say may have."""
    return bool(getattr(data, "has_times", True))


def month_of(moment: float) -> str:
    """Return the month of a time in seconds since 1970, or the number roughly if it can be none."""
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m}"
    except (ValueError, OverflowError, OSError):
        return f"{moment:.2g}"
