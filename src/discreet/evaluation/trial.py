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
from typing import Any, Literal, Unpack, final, get_args

import numpy as np

from discreet.core import (
    ESTIMATORS,
    Floats,
    Indices,
    PrivacyRandom,
    Progress,
    experiment_generator,
    logger,
    one_of,
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
from discreet.evaluation.errors import NoRatingsToPredict, TooFewUsers
from discreet.evaluation.list_scores import person_scores, ranks_of
from discreet.evaluation.metrics import Metric
from discreet.evaluation.scoring import predicted_ratings, rating_references
from discreet.models import Estimator
from discreet.planning.how_many_users import users_instead
from discreet.privacy import Fact, Guarantee
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
_MODEL, _POPULARITY, _SIMPLE = "user-factorization", "popularity", "biases"
# Whose means predict ratings without privacy.
_WHOSE = {
    "global mean": "the mean of all ratings",
    "user mean": "each user's own mean",
    "item mean": "each item's mean",
}

Answer = Literal["yes", "no", "undecided"]
Question = Literal["lists", "ratings"]


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
    """RMSE of predicted ratings at the asked epsilon: the model, and `biases`, the simple private model.

    `means` has the errors of means without privacy: of all ratings, of each user's, and of each item's.
    `mean` is the smallest of them, and `of` its name. `gain` is how much smaller the model's error is than
    that of `biases`, and `over_mean` how much smaller the error of the `best` private model is than `mean`.
    `needed_epsilon` is the smallest tried epsilon at which one of the two is clearly better than the mean;
    None if none was.
    """

    model: float
    biases: float
    mean: float
    of: str
    means: dict[str, float]
    gain: Gain
    over_mean: Gain
    needed_epsilon: float | None

    @property
    def best(self) -> str:
        """Return the private model to use: the simple one, unless the other is clearly better."""
        return _best_of(self.gain)


def _best_of(gain: Gain) -> str:
    return _MODEL if gain.answer == "yes" else _SIMPLE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(TableView):
    """What a private model would be worth on these data. For the data owner: no noise protects the scores.

    `levels` starts with the asked epsilon; larger ones follow only if the answer there is not yes.
    `not_private` has the hit rates of models without privacy, which bound what any epsilon can reach.
    `purpose` is the question that was asked: about "lists", about "ratings", or about both (None).

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
    purpose: Question | None = None

    @property
    def asked(self) -> Level:
        """Return the hit rates at the asked epsilon."""
        return self.levels[0]

    @property
    def answer(self) -> Answer:
        """Return the answer about ratings if `purpose` asks for it, and else about recommendations."""
        return self.rated if self.purpose == "ratings" else self.recommended

    @property
    def recommended(self) -> Answer:
        """Return whether the model recommends better than private popularity at the asked epsilon."""
        return self.asked.gain.answer

    @property
    def rated(self) -> Answer:
        """Return whether a private model predicts ratings better than the best mean; no without ratings."""
        return "no" if self.ratings is None else self.ratings.over_mean.answer

    @property
    def options(self) -> dict[str, str]:
        """Return the options of `fit` that follow from the answers about recommendations and ratings."""
        lists = {"--for": "lists"} if self.recommended == "yes" else {"--model": _POPULARITY}
        if self.ratings is None or self.purpose == "lists":
            return {} if self.recommended == "yes" and self.purpose is None else lists
        has_factors = self.ratings.best == _MODEL
        ratings = {"--for": "ratings"} if has_factors else {"--model": _SIMPLE}
        if self.purpose == "ratings":
            return ratings
        if self.recommended == "yes":
            return {} if self.rated == "yes" and has_factors else lists
        return ratings if self.rated == "yes" else lists

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
        """Return the same for ratings that a private model predicts better than their best mean does."""
        needed = None if self.ratings is None else self.ratings.needed_epsilon
        return None if needed is None else users_instead(self.users, self.asked.epsilon, needed)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        scores = [[METRIC, *row] for row in _rows(self)] + [["rmse", *row] for row in _rating_rows(self)]
        answer = f"Better than private popularity: {self.recommended}."
        caption = " ".join([answer, *(line for line in summary(self) if line)])
        return ("measure", "model", "epsilon", "score"), scores, caption

    def to_page(self, path: str | Path, *, title: str = "your data", force: bool = False) -> None:
        """Write the page that `discreet try --out` writes, without the next command."""
        write_page(Path(path), render(self, title), kind=KIND, force=force)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as one JSON object."""
        name, value = self.best
        return {
            "question": self.purpose or "lists and ratings",
            "answer": self.answer,
            "recommendations": {"answer": self.recommended, "better_than": _POPULARITY},
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
                "best": self.ratings.best,
                "better_than": self.ratings.of,
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
    purpose: Question | None = None,
    progress: Progress | None = None,
    **declared: Unpack[SourceOptions],
) -> Trial:
    """Return what a private model would be worth on these data, without releasing or spending anything.

    `data`, `columns`, `duplicates`, and further keywords are as in `fit`. With `implicit`, or if no column
    has ratings, rows are interactions. The split is leave-one-out, or the latest tenth if most users have a
    single interaction. Noise comes from `seed`, so a trial repeats. `discreet try` prints the same result.
    If there are ratings, the trial answers two questions: about recommendations, and about predicted ratings.
    `purpose` is "lists" or "ratings" to ask one of them.

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
    if purpose is not None:
        one_of("purpose", purpose, get_args(Question))
    refuse_unknown_names(declared, trial, SourceOptions)
    data = _accepted(data, implicit=implicit, columns=columns, duplicates=duplicates, **declared)
    split, parts = _split(data, seed)
    if purpose == "ratings" and data.facts.low == data.facts.high:
        raise NoRatingsToPredict()
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
        ratings = None if purpose == "lists" else bench.rating_errors(epsilon)
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
        purpose=purpose,
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
        # Squared errors by user, so that their mean over users is the mean over ratings.
        ours, theirs = (self._errors(one, parts) for one in self._of_ratings(epsilon))
        predicted = {
            name: one.predict(parts.train, parts.test.rows(), parts.test.items)
            for name, one in rating_references(parts.train).items()
        }
        references = {name: _by_user(found, parts) for name, found in predicted.items()}
        means = {name: _root(found) for name, found in references.items()}
        of = min(means, key=means.__getitem__)
        gain = _gain_in_rmse(ours, theirs)
        over_mean = _gain_in_rmse(ours if _best_of(gain) == _MODEL else theirs, references[of])
        return RatingErrors(
            model=_root(ours),
            biases=_root(theirs),
            mean=means[of],
            of=of,
            means=means,
            gain=gain,
            over_mean=over_mean,
            needed_epsilon=epsilon
            if over_mean.answer == "yes"
            else self._needed_epsilon(epsilon, references[of], parts),
        )

    def _needed_epsilon(self, epsilon: float, mean: Floats, parts: Split) -> float | None:
        """Return the first larger epsilon at which a private model is clearly better than the best mean."""
        for more in (epsilon * factor for factor in _FACTORS):
            for model in reversed(self._of_ratings(more)):
                if _gain_in_rmse(self._errors(model, parts), mean).answer == "yes":
                    return more
        return None

    def _of_ratings(self, epsilon: float) -> tuple[Estimator, Estimator]:
        """Return the private models of ratings: with factors, and the simple one."""
        return ESTIMATORS[_MODEL](epsilon=epsilon, purpose="ratings"), ESTIMATORS[_SIMPLE](epsilon=epsilon)

    def _errors(self, estimator: Estimator, parts: Split) -> Floats:
        """Return squared errors with a row per fit and a column per user."""
        rows = []
        for run in range(_MORE_RUNS):
            model = estimator.fit(parts.train, random=self._noise(estimator, run), progress=silent)
            rows.append(_by_user(predicted_ratings(model, parts.train, parts.test), parts))
        return np.stack(rows)

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


def _by_user(predicted: Floats, parts: Split) -> Floats:
    """Return squared errors by user, scaled so that their mean is the mean over ratings."""
    _, users = np.unique(parts.test.rows(), return_inverse=True)
    by_user: Floats = np.bincount(users, (predicted - parts.test.values) ** 2).astype(np.float64)
    return by_user * by_user.size / parts.test.n_ratings


def _root(squares: Floats) -> float:
    return math.sqrt(squares.mean())


def _gain_in_rmse(squares: Floats, others: Floats) -> Gain:
    """Return how much smaller an RMSE is: a difference of squares is the difference times the sum."""
    return gain_of((others - squares) / (_root(squares) + _root(others)))


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
    return [
        f"{found.users:,} users, {found.items:,} items, {found.rows:,} interactions. Held out: "
        f"{_held_out(found)}",
        *_weighed(found),
        "",
        *_headlines(found),
        *([] if found.purpose == "ratings" else _recommendations(found)),
        *_ratings(found),
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
    }[found.recommended]
    if found.ratings is None:
        return [f"{found.recommended.upper()}: {level}, {lists}"]
    best, mean = found.ratings.best, f"{_WHOSE[found.ratings.of]} (not private)"
    rated = {
        "yes": f"private `{best}` predicts ratings better than {mean}.",
        "no": f"no private model predicts ratings better than {mean}.",
        "undecided": f"private `{best}` and {mean} are too close to call.",
    }[found.rated]
    answers = {
        "lists": f"Recommendations: {found.recommended.upper()}. {level.capitalize()}, {lists}",
        "ratings": f"Ratings: {found.rated.upper()}. {level.capitalize()}, {rated}",
    }
    return [answer for about, answer in answers.items() if found.purpose in (None, about)]


def _recommendations(found: Trial) -> list[str]:
    asked, (best, value) = found.asked, found.best
    return [
        f"Hit rate at 10: {asked.model:.4f} with the model, {asked.popularity:.4f} with private popularity. "
        f"Difference: {asked.gain.mean:+.4f} (95% interval {asked.gain.low:+.4f} to {asked.gain.high:+.4f}).",
        f"Without privacy, the best of {len(found.not_private)} models ({best}) reaches {value:.4f}.",
        _outlook(found),
    ]


def _weighed(found: Trial) -> list[str]:
    """Return what weights don't change: the interactions that are held out and scored."""
    if not any(one.fact is Fact.WEIGHTS for one in found.guarantee.assumes):
        return []
    return [
        "Weights count in the fits only. Rows of every weight are held out, and each counts the same. If "
        "most rows are views, the answer is about views. To ask about purchases alone, replace --weights by "
        "--only. To fit on all rows and test on purchases, write the purchases to test into a file of their "
        "own, and run `discreet evaluate --split given:TRAIN,TEST`."
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
    errors, gain = found.ratings, found.ratings.over_mean
    means = ", ".join(f"{value:.4f} with {_WHOSE[name]}" for name, value in errors.means.items())
    return [
        f"RMSE of ratings (lower is better): {errors.biases:.4f} with the simple model `{_SIMPLE}` and "
        f"{errors.model:.4f} with `{_MODEL}`, both private. Not private: {means}.",
        f"Gain of `{errors.best}` over {_WHOSE[errors.of]}: {gain.mean:+.4f} (95% interval {gain.low:+.4f} "
        f"to {gain.high:+.4f}). Gain of `{_MODEL}` over `{_SIMPLE}`: {errors.gain.mean:+.4f} "
        f"({errors.gain.low:+.4f} to {errors.gain.high:+.4f}).",
        _outlook_for_ratings(found, errors),
    ]


def _outlook_for_ratings(found: Trial, errors: RatingErrors) -> str:
    """Return which epsilon, or how many users, predicted ratings need to be better than the best mean."""
    asked, mean = found.asked.epsilon, _WHOSE[errors.of]
    if errors.needed_epsilon is None:
        most = _FACTORS[-1]
        return (
            f"Predicted ratings aren't clearly better than {mean} up to epsilon {most * asked:g}. They would "
            f"need more than {most:.0f} times as many users."
        )
    if errors.needed_epsilon == asked:
        return f"For predicted ratings, your {found.users:,} users are enough at epsilon {asked:g}."
    return (
        f"Predicted ratings are better than {mean} from epsilon {errors.needed_epsilon:g} on. At epsilon "
        f"{asked:g}, predicted ratings need about {found.needed_users_for_ratings:,} users."
    )


def _outlook(found: Trial) -> str:
    """Return which epsilon, or how many users, would turn the answer into a yes."""
    asked = found.asked
    if found.recommended == "yes":
        kept = asked.gain.mean / max(found.best[1] - asked.popularity, 1e-9)
        return f"The model keeps {100 * min(kept, 1.0):.0f}% of what the best model gains over popularity."
    if found.needed_epsilon is not None:
        return (
            f"Recommendations are better from epsilon {found.needed_epsilon:g} on. At epsilon "
            f"{asked.epsilon:g}, recommendations need about {found.needed_users:,} users."
        )
    if len(found.levels) == 1:
        return "The model isn't better than popularity without noise either, so more users won't help."
    return (
        f"Recommendations aren't clearly better up to epsilon {found.levels[-1].epsilon:g}. They need more "
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


def _rating_rows(found: Trial) -> list[list[str]]:
    """Return the errors of predicted ratings by model; none if the file has no ratings."""
    if found.ratings is None:
        return []
    errors, epsilon = found.ratings, f"{found.asked.epsilon:g}"
    return [
        [_MODEL, epsilon, f"{errors.model:.4f}"],
        ["biases", epsilon, f"{errors.biases:.4f}"],
        [errors.of, "not private", f"{errors.mean:.4f}"],
    ]


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
