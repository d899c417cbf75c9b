"""Compare one fit, refits and a continual release before anything is spent; only numbers given here are used.

What a list shows depends on its signal-to-noise ratio. Three things decide: how old the latest release is on
average (freshness), how much weight a user's recent ratings have (signal), and the noise. A refit gives
recent ratings a user's whole length, but shares the budget; a continual release has about the noise of one
fit, but a user who rates all year spreads one length over it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from discreet.core import positive_finite
from discreet.data import PublicFacts
from discreet.follow.settings import FollowSettings
from discreet.privacy import allowed_each
from discreet.privacy.ledger.accounts import Account

#: Refits that are compared, a year.
REFITS = (("one fit", 1), ("monthly refits", 12), ("weekly refits", 52))
_FOLLOW, _WEEKLY = "follow", 52
#: Shown if a continual release is advised or started: what it can't do.
SAME_LISTS = (
    "Continual releases are current popularity: all users get the same recommendations, except for items "
    "that they have. If preferences differ more than they change, one fit of user-factorization is better. "
    "`follow add --with MODEL` adds its embeddings, and its cost is added to that of the period."
)
#: The same of ratings.
SAME_RATINGS = (
    "Continual releases of ratings are item effects, added to each user's own mean. They do not fade, so "
    "refits are often as good: a refit scales all of a user's ratings to the whole length again."
)
# Below this advantage refits are called as good.
_AS_GOOD = 1.1
# An item is seen over the noise from so many standard deviations on.
_SEEN = 3.0
# Deviations are averaged over so many releases of a year.
_PLACES = 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to spend a year's budget.

    `noise` is the standard deviation on an item's count, in contributions of one user; `freshness` the part
    of current choices that the latest release has, on average; `signal` the weight of recent choices in it;
    `choices` how many recent ones a user shares that weight among.
    """

    name: str
    releases: int
    epsilon_each: float | None
    noise: float
    freshness: float
    signal: float
    choices: float = 1.0

    @property
    def signal_to_noise(self) -> float:
        """Return the ratio for an item that one user chose recently."""
        return self.freshness * self.signal / (math.sqrt(self.choices) * self.noise)

    @property
    def people_needed(self) -> float:
        """Return how many such users an item needs to be three standard deviations above the noise."""
        return _SEEN / self.signal_to_noise

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "way": self.name,
            "releases": self.releases,
            "epsilon_each": self.epsilon_each,
            "noise": self.noise,
            "freshness": self.freshness,
            "signal": self.signal,
            "signal_to_noise": self.signal_to_noise,
            "people_needed": self.people_needed,
        }


def compared(settings: FollowSettings, *, come_once: bool, choices: float = 1.0) -> list[Way]:
    """Return one fit, monthly and weekly refits, and following, all at the same yearly budget.

    `come_once` states that most users rate at one time of the year only, not all through it; `choices` is how
    many recent ones each has. A year of many releases is also compared with weekly ones: each release adds a
    little noise.
    """
    promise = settings.promise(PublicFacts(n_items=1))
    ways = []
    for name, count in REFITS:
        each = allowed_each(Account.GAUSSIAN, promise, count, settings.delta)
        noise = settings.multiplier * math.sqrt(count)
        fresh = _freshness(settings, settings.days / count)
        ways.append(
            Way(name=name, releases=count, epsilon_each=each, noise=noise, freshness=fresh, signal=1.0)
        )
    fewer = replace(settings, releases=_WEEKLY)
    if settings.releases > _WEEKLY:
        ways.append(_followed(f"{_FOLLOW} weekly", fewer, come_once=come_once))
    ways.append(_followed(_FOLLOW, settings, come_once=come_once))
    return [replace(way, choices=positive_finite("choices", choices)) for way in ways]


def _followed(name: str, settings: FollowSettings, *, come_once: bool) -> Way:
    steps = np.unique(np.linspace(1, settings.releases, _PLACES).astype(int))
    found = [
        settings.counts(rated=False).deviation(int(step), settings.half_life_in_releases) for step in steps
    ]
    return Way(
        name=name,
        releases=settings.releases,
        epsilon_each=None,
        noise=settings.multiplier * float(np.sqrt(np.mean(np.square(found)))),
        freshness=_freshness(settings, settings.days / settings.releases),
        signal=1.0 if come_once else _steady_signal(settings),
    )


def verdict(ways: list[Way], *, rated: bool = False) -> str:
    """Return advice: which way shows current popularity best, and if a continual release gains nothing."""
    followed = [way for way in ways if way.name.startswith(_FOLLOW)]
    follow, best = (
        min(some, key=lambda way: way.people_needed)
        for some in (followed, [way for way in ways if way not in followed])
    )
    what = "recent ratings" if rated else "current popularity"
    often, needs = followed[-1], f"{follow.people_needed:,.0f}"
    gain = best.people_needed / follow.people_needed
    fewer = (
        f" {often.releases:,} releases add noise: with weekly ones it needs {needs} instead of "
        f"{often.people_needed:,.0f}."
    ) * (often.people_needed >= _AS_GOOD * follow.people_needed)
    if gain >= _AS_GOOD:
        return (
            f"For {what} follow: an item then needs {needs} users to exceed the noise, "
            f"instead of {best.people_needed:,.0f} with {best.name}.{fewer}"
        )
    if gain >= 1 / _AS_GOOD:
        are = "is" if best.releases == 1 else "are"
        return (
            f"For {what} {best.name} {are} about as good as a continual release; use what is simpler.{fewer}"
        )
    why = " Users who rate all year spread one weight over all of it." * (follow.signal < 1)
    return (
        f"By this count do not follow: an item needs {best.people_needed:,.0f} users to exceed the "
        f"noise with {best.name}, and {needs} if you follow.{why}"
    )


def _freshness(settings: FollowSettings, period: float) -> float:
    """Return which part of what is current a release has, on average until the next one."""
    if settings.half_life is None:
        # Nothing fades, but what came since the latest release is not in it.
        return 1 - period / (2 * settings.days)
    rate = math.log(2) * period / settings.half_life
    return -math.expm1(-rate) / rate


def _steady_signal(settings: FollowSettings) -> float:
    """Return the weight of a user's recent ratings if one length is spread over the whole year."""
    if settings.half_life is None:
        return 1.0
    recent = settings.half_life / math.log(2) / settings.days
    return math.sqrt(min(recent, 1.0))
