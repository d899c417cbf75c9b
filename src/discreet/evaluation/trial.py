"""Answer the first question about a file: is a private model better than private popularity on these data?

A trial fits models on a part of the data with simulated noise, and scores their recommendations on the rest.
It releases nothing and spends nothing: its result is for the data owner alone, because no noise protects it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Unpack, final

import numpy as np

from discreet.core import (
    ESTIMATORS,
    Floats,
    Indices,
    PrivacyRandom,
    Progress,
    experiment_generator,
    logger,
    positive_finite,
    silent,
    terminal_progress,
)
from discreet.data import (
    AcceptOptions,
    Choice,
    Duplicates,
    Interactions,
    RolesMissing,
    SourceOptions,
    Split,
    accept,
    leave_one_out,
    random_split,
    refuse_unknown_names,
    time_split,
)
from discreet.evaluation.errors import TooFewUsers
from discreet.evaluation.list_scores import person_scores, ranks_of
from discreet.evaluation.metrics import Metric
from discreet.evaluation.scoring import Reference, predicted_ratings, rating_references
from discreet.models import Estimator
from discreet.planning.how_many_users import users_instead
from discreet.privacy import Guarantee
from discreet.report import (
    Axis,
    ChartLine,
    Html,
    Odds,
    Point,
    TableView,
    details,
    element,
    line_chart,
    page,
    percent,
    table,
    write_page,
)

METRIC = "hr@10"
#: A trial needs this many users with a held-out interaction, or its interval is too wide.
FEWEST_USERS = 100
# Fits with new noise at the asked epsilon, and at each larger epsilon that is tried.
_RUNS, _MORE_RUNS = 5, 3
# Two-sided 95% quantiles of Student's t for the fits, by their number, and of the normal law for the users.
_FITS_QUANTILE = {_RUNS: 2.776, _MORE_RUNS: 4.303}
_USERS_QUANTILE = 1.960
# How much more epsilon is tried before the trial gives up.
_FACTORS = (2.0, 4.0, 8.0, 16.0)
# Scores per model: enough users for the interval, and an answer within a minute.
_SCORES, _FEWEST_SCORED = 100_000_000, 2_000
# EASE inverts a matrix of items by items.
_MOST_ITEMS_OF_EASE = 4_000
_MODEL, _POPULARITY = "user-factorization", "popularity"

Answer = Literal["yes", "no", "undecided"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The difference between two scores, with a 95% interval over users and noise."""

    mean: float
    low: float
    high: float

    @property
    def answer(self) -> Answer:
        """Return whether the difference is positive, as far as the interval shows it."""
        if self.low > 0:
            return "yes"
        return "no" if self.high < 0 else "undecided"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Hit rates of the private model and of private popularity at one epsilon."""

    epsilon: float
    model: float
    popularity: float
    gain: Gain


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RatingErrors:
    """RMSE of predicted ratings at the asked epsilon: the model, and `biases` for comparison.

    `mean` is the error of the best mean, of all ratings, of items or of users, without privacy, and `of` its
    name. `gain` is how much smaller the model's error is than that of `biases`. `needed_epsilon` is the
    smallest tried epsilon at which one of the two is better than the mean; None if none was.
    """

    model: float
    biases: float
    mean: float
    of: str
    gain: Gain
    needed_epsilon: float | None

    @property
    def is_useful(self) -> bool:
        """Return whether a private model predicts ratings better than the best mean does."""
        return min(self.model, self.biases) < self.mean


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(TableView):
    """What a private model would be worth on these data. For the data owner: no noise protects the scores.

    `levels` starts with the asked epsilon; larger ones follow only if the answer there is not yes.
    `not_private` has the hit rates of models without privacy, which bound what any epsilon can reach.

    Example:
        >>> import discreet, polars
        >>> pairs = [(user, (3 * user + place) % 20) for user in range(200) for place in range(5)]
        >>> found = discreet.trial(polars.DataFrame(pairs, schema=["user", "item"], orient="row"))
        >>> found.needed_epsilon is None or found.needed_epsilon >= found.asked.epsilon
        True

    Stability
        Provisional.
    """

    users: int
    items: int
    rows: int
    scored_users: int
    split: str
    levels: tuple[Level, ...]
    not_private: dict[str, float]
    ratings: RatingErrors | None
    guarantee: Guarantee

    @property
    def asked(self) -> Level:
        """Return the hit rates at the asked epsilon."""
        return self.levels[0]

    @property
    def answer(self) -> Answer:
        """Return whether the model is better than private popularity at the asked epsilon."""
        return self.asked.gain.answer

    @property
    def rated(self) -> Answer:
        """Return whether the model predicts ratings better than `biases`; no without ratings."""
        if self.ratings is None or not self.ratings.is_useful:
            return "no"
        return self.ratings.gain.answer

    @property
    def options(self) -> dict[str, str]:
        """Return the options of `fit` that follow from the answers about recommendations and ratings."""
        if self.answer == "yes":
            return {} if self.rated == "yes" else {"--for": "lists"}
        return {"--for": "ratings"} if self.rated == "yes" else {"--model": _POPULARITY}

    @property
    def best(self) -> tuple[str, float]:
        """Return the best model without privacy, and its hit rate."""
        return max(self.not_private.items(), key=lambda pair: pair[1])

    @property
    def needed_epsilon(self) -> float | None:
        """Return the smallest tried epsilon at which the answer is yes; None if none was enough."""
        return next((one.epsilon for one in self.levels if one.gain.answer == "yes"), None)

    @property
    def needed_users(self) -> int | None:
        """Return about how many users give a yes at the asked epsilon; None if no tried epsilon did.

        Noise on an item's sums matters by epsilon times the number of users, so twice the users count about
        as much as twice the epsilon.
        """
        needed = self.needed_epsilon
        if needed is None:
            return None
        return users_instead(self.users, self.asked.epsilon, needed)

    @property
    def needed_users_for_ratings(self) -> int | None:
        """Return the same for ratings that are predicted better than by their best mean."""
        needed = None if self.ratings is None else self.ratings.needed_epsilon
        return None if needed is None else users_instead(self.users, self.asked.epsilon, needed)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        return ("model", "epsilon", METRIC), _rows(self), f"Better than private popularity: {self.answer}"

    def to_page(self, path: str | Path, *, title: str = "your data", force: bool = False) -> None:
        """Write the page that `discreet try --out` writes, without the next command."""
        write_page(Path(path), render(self, title), kind=KIND, force=force)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as one JSON object."""
        name, value = self.best
        return {
            "answer": self.answer,
            "metric": METRIC,
            "epsilon": self.asked.epsilon,
            "delta": self.guarantee.delta,
            "data": {"users": self.users, "items": self.items, "ratings": self.rows},
            "split": self.split,
            "scored_users": self.scored_users,
            "levels": [asdict(one) for one in self.levels],
            "not_private": self.not_private,
            "best": {"model": name, "value": value},
            "needed": {"epsilon": self.needed_epsilon, "users": self.needed_users},
            "ratings": None
            if self.ratings is None
            else {
                "answer": self.rated,
                **asdict(self.ratings),
                "needed_users": self.needed_users_for_ratings,
            },
            "published": False,
        }


def trial(
    data: Interactions | object,
    *,
    epsilon: float = 1.0,
    seed: int = 0,
    implicit: bool = False,
    columns: Choice | None = None,
    duplicates: Duplicates = "refuse",
    progress: Progress | None = None,
    **declared: Unpack[SourceOptions],
) -> Trial:
    """Return what a private model would be worth on these data, without releasing or spending anything.

    `data`, `columns`, `duplicates`, and further keywords are as in `fit`. With `implicit`, or if no column
    has ratings, rows are interactions. The split is leave-one-out, or the latest tenth if most users have a
    single interaction. Noise comes from `seed`, so a trial repeats. `discreet try` prints the same result.

    Raises:
        DataError: Too few users have a held-out interaction.

    Example:
        >>> import discreet, polars
        >>> pairs = [(user, (3 * user + place) % 20) for user in range(200) for place in range(5)]
        >>> clicks = polars.DataFrame(pairs, schema=["user", "item"], orient="row")
        >>> found = discreet.trial(clicks, epsilon=4.0)
        >>> found.answer in ("yes", "no", "undecided")
        True
        >>> found.asked.epsilon, found.users
        (4.0, 200)
    """
    positive_finite("epsilon", epsilon)
    refuse_unknown_names(declared, trial, SourceOptions)
    data = _accepted(data, implicit=implicit, columns=columns, duplicates=duplicates, **declared)
    split, parts = _split(data, seed)
    bench = _Bench(data=data, parts=parts, scored=_scored(parts, seed), seed=seed)
    if bench.scored.size < FEWEST_USERS:
        raise TooFewUsers(users=bench.scored.size, least=FEWEST_USERS)
    with terminal_progress(progress) as report:
        work = _Work(report, total=_RUNS + 1 + len(_FACTORS) + len(bench.baselines()) + 1)
        levels = [bench.level(epsilon, _RUNS, work)]
        not_private = {one.name: bench.hit_rate(one, work) for one in bench.baselines()}
        # If the model without noise does not beat popularity, no epsilon will.
        if not_private[_MODEL] > levels[0].popularity:
            for factor in _FACTORS:
                if levels[-1].gain.answer == "yes":
                    break
                levels.append(bench.level(epsilon * factor, _MORE_RUNS, work))
        ratings = bench.rating_errors(epsilon)
        work.finish()
    return Trial(
        users=data.n_users,
        items=data.n_items,
        rows=data.n_ratings,
        scored_users=int(bench.scored.size),
        split=split,
        levels=tuple(levels),
        not_private=not_private,
        ratings=ratings,
        guarantee=bench.private(_MODEL, epsilon).promise(data.facts),
    )


def _accepted(
    data: object, *, implicit: bool, columns: Choice | None, **declared: Unpack[AcceptOptions]
) -> Interactions:
    """Return the data; if no column has ratings, rows are interactions."""
    try:
        return accept(data, implicit=implicit, columns=columns, **declared)
    except RolesMissing as missing:
        if implicit or missing.roles != ("rating",):
            raise
    logger.warning("No column has a usual name for ratings, so rows are read as interactions (implicit).")
    return accept(data, implicit=True, columns=columns, **declared)


def _split(data: Interactions, seed: int) -> tuple[str, Split]:
    """Return a split that asks what users choose next: their latest interaction, or the latest tenth."""
    returning = np.count_nonzero(np.diff(data.indptr) > 1)
    if data.times is not None and returning < data.n_users / 2:
        parts = time_split(data, 0.1)
        known = np.diff(parts.train.indptr) > 0
        return "time:0.1", Split(train=parts.train, test=_of_users(parts.test, known))
    return "leave-one-out", leave_one_out(data, seed)


def _of_users(data: Interactions, chosen: Any) -> Interactions:
    return data.where(np.repeat(chosen, np.diff(data.indptr)))


def _scored(parts: Split, seed: int) -> Indices:
    """Return the users to score: all of those with a held-out interaction, or an even draw of them."""
    users = np.flatnonzero(np.diff(parts.test.indptr))
    most = max(_FEWEST_SCORED, _SCORES // max(1, parts.train.n_items))
    if users.size > most:
        users = np.sort(experiment_generator(seed, "trial users").choice(users, most, replace=False))
    return users


class _Work:
    """Steps of a trial, shown as they are done."""

    def __init__(self, report: Progress, total: int) -> None:
        self._report, self._total, self._done = report, total, 0
        report("trying models", 0, total)

    def step(self) -> None:
        """Show that one more step is done."""
        self._done = min(self._done + 1, self._total - 1)
        self._report("trying models", self._done, self._total)

    def finish(self) -> None:
        """Show that the trial is done."""
        self._report("trying models", self._total, self._total)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """The parts and users on which all models of a trial are compared."""

    data: Interactions
    parts: Split
    scored: Indices
    seed: int

    def private(self, name: str, epsilon: float) -> Estimator:
        """Return a private model of recommendations at this epsilon."""
        settings = {"purpose": "lists"} if name == _MODEL else {}
        model: Estimator = ESTIMATORS[name](epsilon=epsilon, **settings)
        return model

    def baselines(self) -> list[Estimator]:
        """Return the models without privacy that the private one is compared with."""
        small = ["ease"] if self.data.n_items <= _MOST_ITEMS_OF_EASE else []
        return [self.private(_MODEL, math.inf), *(ESTIMATORS[name]() for name in ["item-knn", *small])]

    def level(self, epsilon: float, runs: int, work: _Work) -> Level:
        """Return the hit rates at one epsilon, over fits with new noise."""
        model, popularity = self.private(_MODEL, epsilon), self.private(_POPULARITY, epsilon)
        found: list[tuple[Floats, Floats]] = []
        for run in range(runs):
            found.append((self._hits(model, run), self._hits(popularity, run)))
            if run == 0 or runs == _RUNS:
                work.step()
        ours, theirs = (np.stack(column) for column in zip(*found, strict=True))
        return Level(
            epsilon=epsilon,
            model=float(ours.mean()),
            popularity=float(theirs.mean()),
            gain=gain_of(ours - theirs),
        )

    def hit_rate(self, estimator: Estimator, work: _Work) -> float:
        """Return the hit rate of one fit."""
        rate = float(self._hits(estimator, 0).mean())
        work.step()
        return rate

    def rating_errors(self, epsilon: float) -> RatingErrors | None:
        """Return the errors of predicted ratings on a random tenth; None if all ratings are equal."""
        if self.data.facts.low == self.data.facts.high:
            return None
        parts = random_split(self.data, 0.1, self.seed)
        ours = self._of_ratings(epsilon)
        # Squared errors by user, so that their mean over users is the mean over ratings.
        errors = [
            np.stack([self._squared_errors(one, run, parts) for run in range(_MORE_RUNS)])
            for one in (ours, ESTIMATORS["biases"](epsilon=epsilon))
        ]
        model, biases = (math.sqrt(one.mean()) for one in errors)
        means = {name: self._error_of(one, parts) for name, one in rating_references(parts.train).items()}
        of, mean = min(means.items(), key=lambda pair: pair[1])
        # A difference of squares is the difference times the sum.
        return RatingErrors(
            model=model,
            biases=biases,
            mean=mean,
            of=of,
            gain=gain_of((errors[1] - errors[0]) / (model + biases)),
            needed_epsilon=epsilon
            if min(model, biases) < mean
            else self._needed_epsilon(epsilon, mean, parts),
        )

    def _error_of(self, reference: Reference, parts: Split) -> float:
        found = reference.predict(parts.train, parts.test.rows(), parts.test.items)
        return math.sqrt(np.mean((found - parts.test.values) ** 2))

    def _needed_epsilon(self, epsilon: float, mean: float, parts: Split) -> float | None:
        """Return the first larger epsilon at which a private model is better than the best mean."""
        for more in (epsilon * factor for factor in _FACTORS):
            for model in (ESTIMATORS["biases"](epsilon=more), self._of_ratings(more)):
                squares = [self._squared_errors(model, run, parts).mean() for run in range(_MORE_RUNS)]
                if math.sqrt(np.mean(squares)) < mean:
                    return more
        return None

    def _of_ratings(self, epsilon: float) -> Estimator:
        model: Estimator = ESTIMATORS[_MODEL](epsilon=epsilon, purpose="ratings")
        return model

    def _squared_errors(self, estimator: Estimator, run: int, parts: Split) -> Floats:
        model = estimator.fit(parts.train, random=self._noise(estimator, run), progress=silent)
        squares = (predicted_ratings(model, parts.train, parts.test) - parts.test.values) ** 2
        _, users = np.unique(parts.test.rows(), return_inverse=True)
        by_user: Floats = np.bincount(users, squares).astype(np.float64)
        return by_user * by_user.size / parts.test.n_ratings

    def _hits(self, estimator: Estimator, run: int) -> Floats:
        """Return each scored user's hit rate under one fit."""
        metric = Metric.parse(METRIC)
        model = estimator.fit(self.parts.train, random=self._noise(estimator, run), progress=silent)
        wanted = np.zeros(self.data.n_users, dtype=np.bool_)
        wanted[self.scored] = True
        test = _of_users(self.parts.test, wanted)
        return person_scores(metric, ranks_of(model, self.parts.train, test, self.scored, [metric]))

    def _noise(self, estimator: Estimator, run: int) -> PrivacyRandom:
        return PrivacyRandom.simulate(self.seed).spawn(f"trial {estimator.name} {estimator.epsilon} {run}")


def gain_of(differences: Floats) -> Gain:
    """Return the mean difference with its interval, from a row per fit and a column per user.

    Two things vary: which users are in the file, and the noise of a fit. Both widen the interval.
    """
    runs, users = differences.shape
    by_user, by_run = differences.mean(axis=0), differences.mean(axis=1)
    sampling = _USERS_QUANTILE**2 * float(by_user.var(ddof=1)) / users
    noise = _FITS_QUANTILE[runs] ** 2 * float(by_run.var(ddof=1)) / runs
    mean, half = float(differences.mean()), math.sqrt(sampling + noise)
    return Gain(mean=mean, low=mean - half, high=mean + half)


#: What such a page is called in messages.
KIND = "trial"


def summary(found: Trial) -> list[str]:
    """Return the answer, what it rests on, and what would change it: a sentence or two per line."""
    asked, (best, value) = found.asked, found.best
    return [
        f"{found.users:,} users, {found.items:,} items, {found.rows:,} interactions. Held out: "
        f"{_held_out(found)}",
        "",
        *_headlines(found),
        f"Hit rate at 10: {asked.model:.4f} with the model, {asked.popularity:.4f} with private popularity. "
        f"Difference: {asked.gain.mean:+.4f} (95% interval {asked.gain.low:+.4f} to {asked.gain.high:+.4f}).",
        f"Without privacy, the best of {len(found.not_private)} models ({best}) reaches {value:.4f}.",
        *_ratings(found),
        _outlook(found),
        _meaning(found),
        "These scores have no noise. They are for you, the data owner: don't publish them. Nothing was "
        "released, and no budget was spent.",
    ]


def _headlines(found: Trial) -> list[str]:
    """Return the answer about recommendations and, if there are ratings, the answer about those."""
    level = f"at epsilon {found.asked.epsilon:g}"
    lists = {
        "yes": "a private model beats private popularity on your data.",
        "no": "private popularity beats the private model on your data.",
        "undecided": "a private model and private popularity are too close to call.",
    }
    ratings = {
        "yes": "a private model predicts ratings better than the simple private model `biases`.",
        "no": "the simple private model `biases` predicts ratings better than a private model with factors.",
        "undecided": "a private model and the simpler `biases` predict ratings about equally well.",
    }
    if found.ratings is None:
        return [f"{found.answer.upper()}: {level}, {lists[found.answer]}"]
    useless = f"no private model predicts ratings better than the {found.ratings.of} does."
    rated = ratings[found.rated] if found.ratings.is_useful else useless
    return [
        f"Recommendations: {found.answer.upper()}. {level.capitalize()}, {lists[found.answer]}",
        f"Ratings: {found.rated.upper()}. {level.capitalize()}, {rated}",
    ]


def _held_out(found: Trial) -> str:
    what = {
        "leave-one-out": "one interaction per user, the latest if the file has times.",
        "time:0.1": "the latest tenth of all interactions.",
    }[found.split]
    some = "" if found.scored_users >= found.users else f" {found.scored_users:,} users were scored."
    return f"{what}{some}"


def _ratings(found: Trial) -> list[str]:
    if found.ratings is None:
        return []
    errors, gain = found.ratings, found.ratings.gain
    return [
        f"RMSE of ratings (lower is better): {errors.model:.4f} with the model, {errors.biases:.4f} with "
        f"`biases`, {errors.mean:.4f} with the {errors.of} (not private). Gain over `biases`: "
        f"{gain.mean:+.4f} (95% interval {gain.low:+.4f} to {gain.high:+.4f}).",
        *([] if errors.is_useful else [_outlook_for_ratings(found, errors)]),
    ]


def _outlook_for_ratings(found: Trial, errors: RatingErrors) -> str:
    """Return which epsilon, or how many users, would make predicted ratings better than the best mean."""
    asked = found.asked.epsilon
    if errors.needed_epsilon is None:
        most = _FACTORS[-1]
        return (
            f"No private model predicts ratings better than the {errors.of} up to epsilon {most * asked:g}. "
            f"You would need more than {most:.0f} times as many users."
        )
    return (
        f"Predicted ratings are better than the {errors.of} from epsilon {errors.needed_epsilon:g} on. At "
        f"epsilon {asked:g} you would need about {found.needed_users_for_ratings:,} users."
    )


def _outlook(found: Trial) -> str:
    """Return which epsilon, or how many users, would turn the answer into a yes."""
    asked = found.asked
    if found.answer == "yes":
        kept = asked.gain.mean / max(found.best[1] - asked.popularity, 1e-9)
        return f"The model keeps {100 * min(kept, 1.0):.0f}% of what the best model gains over popularity."
    if found.needed_epsilon is not None:
        return (
            f"Recommendations are better from epsilon {found.needed_epsilon:g} on. At epsilon "
            f"{asked.epsilon:g} you would need about {found.needed_users:,} users."
        )
    if len(found.levels) == 1:
        return "The model isn't better than popularity without noise either, so more users won't help."
    return (
        f"The model isn't clearly better up to epsilon {found.levels[-1].epsilon:g}. You would need more "
        f"than {found.levels[-1].epsilon / asked.epsilon:.0f} times as many users."
    )


def _meaning(found: Trial) -> str:
    odds = Odds.of(found.guarantee)
    return (
        f"Epsilon {found.asked.epsilon:g} means: an attacker who knows everything except {odds.secret} "
        f"guesses right at most {percent(odds.posterior)} of the time. A random guess is right 50% of the "
        "time."
    )


def render(found: Trial, name: str, command: str | None = None) -> str:
    """Return the trial as one page."""
    answers = _headlines(found)
    body = [
        element("h1", f"Trial of {name}"),
        *(element("p", line, "note") for line in answers),
        *(element("p", line) for line in summary(found) if line and line not in answers),
        *([] if command is None else [element("h2", "Next command"), element("pre", command)]),
        element("h2", "Hit rate at 10 by model"),
        *([_chart(found)] if len(found.levels) > 1 else []),
        table(["model", "epsilon", METRIC], _rows(found), "Hit rates of all models", numbers={1, 2}),
        details("Everything as JSON", element("pre", json.dumps(found.to_json(), indent=1))),
    ]
    return page(f"Trial of {name}", body, kind=KIND)


def _rows(found: Trial) -> list[list[str]]:
    rows = [
        [name, f"{one.epsilon:g}", f"{value:.4f}"]
        for one in found.levels
        for name, value in (("user-factorization", one.model), ("popularity", one.popularity))
    ]
    rows += [[name, "not private", f"{value:.4f}"] for name, value in found.not_private.items()]
    return rows


def _chart(found: Trial) -> Html:
    model = tuple(Point(one.epsilon, one.model) for one in found.levels)
    popularity = tuple(Point(one.epsilon, one.popularity) for one in found.levels)
    best, value = found.best
    return line_chart(
        [
            ChartLine(name="user-factorization", points=model),
            ChartLine(name="popularity", points=popularity, color=1),
            ChartLine(name=f"{best}, not private", level=value, color=2, dashes="5 4"),
        ],
        title="Hit rate at 10 by epsilon",
        x=Axis(label="epsilon", logarithmic=True, ticks=tuple((one.x, f"{one.x:g}") for one in model)),
        y=Axis(label=METRIC),
    )
