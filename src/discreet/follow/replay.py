"""Replay a past year of one's own data: would following have shown users what they chose next?

Every way sees the same ratings up to each release and is asked for what comes until the next one. Noise is
simulated and nothing is released, so the scores are for the data owner alone.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from discreet.core import PrivacyRandom, Progress, silent
from discreet.data import Interactions
from discreet.evaluation.scoring import measure
from discreet.federated.noise import SharedNoise
from discreet.federated.simulation import ALONE, POOLED, split_users
from discreet.follow.agreement import FollowAgreement
from discreet.follow.batches import remark_on_weights
from discreet.follow.errors import NothingBetween, TimesForReplay, TooFewReleases
from discreet.follow.federation import releases_together
from discreet.follow.model import Kind
from discreet.follow.settings import FollowSettings
from discreet.follow.stream import Following
from discreet.models import Biases, Estimator, FittedModel, Popularity, UserFactorization, month_of
from discreet.privacy import allowed_each
from discreet.privacy.ledger.accounts import Account
from discreet.report import SCORES_NOT_COVERED

_DAY = 86_400.0
# How often refits are tried, at a shared budget; once is tried in any case.
_REFITS = (4, 12, 52)
FOLLOWED = "follow"
# A model needs so many users to learn from.
_LEAST_USERS = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedWay:
    """The mean score of one way to spend a year's budget; `epsilon_each` is None where spent once."""

    name: str
    epsilon_each: float | None
    score: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How each way did, by which metric, and on how many ratings that came after a release.

    After `empty` of the releases nothing came.
    """

    metric: str
    begins: str
    releases: int
    asked: int
    empty: int
    ways: tuple[ReplayedWay, ...]

    @property
    def lower_is_better(self) -> bool:
        """Return whether a smaller score is better."""
        return self.metric == "rmse"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        ways = [
            # JSON has no infinity.
            {
                "way": way.name,
                "epsilon_each": "inf" if way.epsilon_each == math.inf else way.epsilon_each,
                "score": way.score,
            }
            for way in self.ways
        ]
        return {
            "metric": self.metric,
            "from": self.begins,
            "releases": self.releases,
            "asked": self.asked,
            "empty": self.empty,
            "ways": ways,
            "note": SCORES_NOT_COVERED,
        }


def replay_year(
    data: Interactions,
    settings: FollowSettings,
    *,
    begins: float | None = None,
    noise: SharedNoise | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Replay:
    """Replay the year that begins at `begins` (seconds since 1970; by default the one in which data end).

    Ratings of one value are interactions, and lists are scored (hr@10); otherwise predictions are (rmse).
    With `noise` users are assigned to as many parties, which follow the year together.

    Example:
        >>> import dataclasses
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=200, n_items=40, mean_per_user=15)
        >>> days = np.linspace(0, 300, films.n_ratings).astype(np.int64)
        >>> films = dataclasses.replace(films, times=86_400 * days)
        >>> found = replay_year(films, FollowSettings(releases=6, epsilon=2.0, half_life=30.0))
        >>> found.metric, [way.name for way in found.ways][:2]
        ('rmse', ['follow', 'biases, fitted once'])
    """
    if data.times is None:
        raise TimesForReplay()
    remark_on_weights(data)
    if begins is None:
        begins = max(float(data.times.max()) + 1.0 - settings.days * _DAY, float(data.times.min()))
    if settings.releases < 2:
        raise TooFewReleases()
    year = _Year(data=data, settings=settings, begins=begins, seed=seed)
    asked = sum(year.coming(number).n_ratings for number in year.asked)
    if not asked:
        first, last = (month_of(float(moment)) for moment in (data.times.min(), data.times.max()))
        raise NothingBetween(first=first, last=last)
    found: list[ReplayedWay] = []
    tries = _tries(year, noise)
    for place, (name, each, models) in enumerate(tries):
        progress("replays of the year", place, len(tries))
        found.append(ReplayedWay(name=name, epsilon_each=each, score=year.score(models())))
    if noise is not None:
        found[1:1] = _apart(year, noise)
    return Replay(
        metric=year.metric,
        begins=f"{datetime.fromtimestamp(begins, UTC):%Y-%m-%d}",
        releases=settings.releases,
        asked=asked,
        empty=sum(year.coming(number).n_ratings == 0 for number in range(settings.releases - 1)),
        ways=tuple(found),
    )


def _apart(year: _Year, noise: SharedNoise) -> list[ReplayedWay]:
    """Return how one owner of all data would release, and how each party would alone, on its own users."""
    alone = [replace(year, data=own) for own in split_users(year.data, noise.parties).values()]
    weights = [sum(one.coming(number).n_ratings for number in one.asked) for one in alone]
    scores = [one.score(one.followed()) for one, weight in zip(alone, weights, strict=True) if weight]
    mean = float(np.average(scores, weights=[weight for weight in weights if weight]))
    return [
        ReplayedWay(name=f"{FOLLOWED}, {POOLED}", epsilon_each=None, score=year.score(year.followed())),
        ReplayedWay(name=f"{FOLLOWED}, {ALONE}", epsilon_each=None, score=mean),
    ]


Models = Callable[[], Iterator[FittedModel]]


def _tries(year: _Year, noise: SharedNoise | None) -> list[tuple[str, float | None, Models]]:
    """Return the ways by name, with the epsilon of each fit and what makes their models."""
    settings = year.settings
    promise = settings.promise(year.data.facts)
    simple, whole = "biases" if year.rated else "popularity", settings.epsilon
    followed: Models = year.followed if noise is None else partial(year.followed_together, noise)
    ways: list[tuple[str, float | None, Models]] = [
        (FOLLOWED, None, followed),
        (f"{simple}, fitted once", whole, partial(year.refits, 1, partial(year.simple, whole))),
    ]
    for count in _REFITS:
        if count <= settings.releases:
            each = allowed_each(Account.GAUSSIAN, promise, count, settings.delta)
            fit = partial(year.simple, each)
            ways.append((f"{simple}, fitted {count} times", each, partial(year.refits, count, fit)))
    ways.append(("user-factorization, fitted once", whole, partial(year.refits, 1, year.personal)))
    fresh = partial(year.simple, math.inf)
    ways.append(
        (f"{simple} without privacy, always fresh", math.inf, partial(year.refits, settings.releases, fresh))
    )
    return ways


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Year:
    """Cut data into releases; make the models of each way, and score them by what comes next."""

    data: Interactions
    settings: FollowSettings
    begins: float
    seed: int

    @property
    def rated(self) -> bool:
        return self.data.facts.low != self.data.facts.high

    @property
    def metric(self) -> str:
        return "rmse" if self.rated else "hr@10"

    @property
    def asked(self) -> range:
        """Return the releases that are scored: all from which something can be learned, but the last."""
        last = self.settings.releases - 1
        first = (
            number for number in range(last) if _with_ratings(self.known(number)).n_users >= _LEAST_USERS
        )
        return range(next(first, last), last)

    def end_of(self, number: int) -> float:
        """Return when a release is made, counted from 0."""
        return self.begins + (number + 1) * self.settings.days * _DAY / self.settings.releases

    def known(self, number: int) -> Interactions:
        """Return what came before a release is made."""
        assert self.data.times is not None
        return self.data.where(self.data.times < self.end_of(number))

    def coming(self, number: int) -> Interactions:
        """Return what came between a release and the next one."""
        assert self.data.times is not None
        times = self.data.times
        return self.data.where((times >= self.end_of(number)) & (times < self.end_of(number + 1)))

    def score(self, models: Iterator[FittedModel]) -> float:
        """Return the mean score of the releases that are asked, by how much came after each."""
        scores: list[float] = []
        weights: list[float] = []
        for number, model in zip(self.asked, models, strict=False):
            known, coming = self.known(number), self.coming(number)
            if coming.n_ratings:
                active = np.flatnonzero(np.diff(coming.indptr))
                histories, chosen = known.select_users(active), coming.select_users(active)
                histories = histories.at(self.end_of(number))
                scores.append(measure(model, histories, chosen, self.metric, seed=self.seed)[self.metric])
                weights.append(chosen.n_ratings if self.rated else chosen.n_users)
        if self.rated:
            return math.sqrt(float(np.average(np.square(scores), weights=weights)))
        return float(np.average(scores, weights=weights))

    def followed(self) -> Iterator[FittedModel]:
        """Yield the model of each release of a year of one data owner."""
        random = PrivacyRandom.simulate(self.seed)
        with tempfile.TemporaryDirectory() as folder:
            year = Following.start(
                Path(folder) / "year.follow", self.data.catalog, self.data.facts, self.settings
            )
            for number in range(self.settings.releases - 1):
                new = self.known(0) if number == 0 else self.coming(number - 1)
                batch = _with_ratings(new) if new.n_ratings else None
                kind: Kind = "biases" if self.rated else "popularity"
                model = year.add(batch, kind=kind, random=random).model
                if number in self.asked:
                    yield model

    def followed_together(self, noise: SharedNoise) -> Iterator[FittedModel]:
        """Yield the model of each release of a year that parties follow together."""
        agreed = FollowAgreement(run="replay", settings=self.settings, facts=self.data.facts, noise=noise)
        random = PrivacyRandom.simulate(self.seed)
        together = releases_together(agreed, self.data, begins=self.begins, random=random)
        for number, found in enumerate(together):
            if number in self.asked:
                yield found.model

    def refits(self, count: int, fit: Callable[[int], FittedModel]) -> Iterator[FittedModel]:
        """Yield the latest of so many fits at even distances, at each release."""
        due = {self.asked.start + len(self.asked) * place // count for place in range(count)}
        for number in self.asked:
            if number in due:
                model = fit(number)
            yield model

    def simple(self, epsilon: float, number: int) -> FittedModel:
        """Return popular items, or items' effects, from what is known at a release."""
        settings: dict[str, Any] = {"epsilon": epsilon, "delta": self.settings.delta}
        if self.rated:
            return self._fit(Biases(**settings), number)
        if self.settings.half_life is not None:
            moment = datetime.fromtimestamp(self.end_of(number), UTC)
            settings |= {"half_life": self.settings.half_life, "now": moment.isoformat()}
        return self._fit(Popularity(**settings), number)

    def personal(self, number: int) -> FittedModel:
        """Return a model of tastes from what is known at a release."""
        settings: dict[str, Any] = {"purpose": "ratings"} if self.rated else {"feedback": "implicit"}
        settings |= {"epsilon": self.settings.epsilon, "delta": self.settings.delta}
        return self._fit(UserFactorization(**settings), number)

    def _fit(self, estimator: Estimator, number: int) -> FittedModel:
        random = PrivacyRandom.simulate(self.seed).spawn(f"{estimator.name} {estimator.epsilon} {number}")
        return estimator.fit(_with_ratings(self.known(number)), random=random)


def _with_ratings(data: Interactions) -> Interactions:
    return data.select_users(np.diff(data.indptr) > 0)
