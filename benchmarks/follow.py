"""Replay a year: a model from its start, refits, a followed year, and no privacy, at one yearly budget.

    python benchmarks/follow.py [--json] [--dataset movietweetings-100k] [--draws 3] [--out FILE]
        [--keep benchmarks/results/follow.json]

Ratings are replayed in the order of their times and cut into releases. After each release, from the second
month on, what comes until the next one is asked for: HR@10 of the first item that every active user chooses
next, among all items that user has not had, and (at weekly releases) the RMSE of all ratings until then. The
half-life is chosen on the second half of the first month, which is not measured. All ways see the same:

- stale: one fit after the first month, with the whole budget;
- refits: 2, 4, 12 fits at even distances, or one every week, that share the budget in a Gaussian account,
  with the same half-life;
- follow: `discreet.follow`, one charge;
- without privacy: a fit before every release.

`--keep` takes all but the followed year from earlier results, which changes in following do not touch.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import harness
import numpy as np
from follow_stream import DATASETS, Stream, hits, load, personal_hits, squared_errors
from keep import how

import discreet
from discreet.core.randomness import PrivacyRandom
from discreet.follow import Following, FollowSettings
from discreet.planning.schedules import schedule

DELTA = 1e-6
CADENCES = (1, 2, 4, 12)
HALF_LIVES = (7.0, 14.0, 30.0, 90.0)


def asked(stream: Stream) -> range:
    return range(stream.first, stream.releases)


def mean_of(parts: list[np.ndarray]) -> float:
    return float(np.concatenate(parts).mean())


# The ways.


def refits(
    stream: Stream, count: int, fit: Callable[[int], Any], score: Callable[[int, Any], np.ndarray]
) -> tuple[float, list[float]]:
    """Return the mean score with so many fits at even distances, and that of every release."""
    fits = {stream.first + (stream.releases - stream.first) * k // count for k in range(count)}
    model, parts = None, []
    for release in asked(stream):
        if release in fits:
            model = fit(release)
        parts.append(score(release, model))
    return mean_of(parts), [float(part.mean()) if part.size else math.nan for part in parts]


def popular(stream: Stream, epsilon: float, half_life: float, seed: int) -> Callable[[int], np.ndarray]:
    def fit(release: int) -> np.ndarray:
        estimator = discreet.Popularity(
            epsilon=epsilon, delta=DELTA, half_life=half_life, now=stream.date(release)
        )
        model = estimator.fit(
            stream.before(release, False), random=PrivacyRandom.simulate(1000 * seed + release)
        )
        return model.scorer.part("popularity")

    return fit


def effects(stream: Stream, epsilon: float, seed: int) -> Callable[[int], discreet.FittedModel]:
    def fit(release: int) -> discreet.FittedModel:
        estimator = discreet.Biases(epsilon=epsilon, delta=DELTA)
        return estimator.fit(
            stream.before(release, True), random=PrivacyRandom.simulate(1000 * seed + release)
        )

    return fit


def followed(
    stream: Stream,
    epsilon: float,
    half_life: float,
    seed: int,
    *,
    rated: bool,
    score: Callable[[int, Any], np.ndarray],
) -> tuple[float, list[float]]:
    settings = FollowSettings(
        releases=stream.releases,
        epsilon=epsilon,
        delta=DELTA,
        half_life=half_life,
        days=stream.releases * stream.period,
        pace=stream.paces[rated],
    )
    random, parts, model = PrivacyRandom.simulate(seed), [], None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "year.follow"
        year = Following.start(path, stream.catalog, stream.facts(rated), settings)
        for release in range(stream.releases):
            if release >= stream.first:
                parts.append(score(release, model))
            now = stream.release == release
            kind = "biases" if rated else "popularity"
            model = year.add(stream.data(now, rated) if now.any() else None, kind=kind, random=random).model
    return mean_of(parts), [float(part.mean()) if part.size else math.nan for part in parts]


def chosen_half_life(stream: Stream, epsilon: float, draws: int) -> float:
    """Choose on the second half of the first month, by daily fits of which each has the whole budget."""
    daily, found = replace(stream, period=1.0), {}
    for half_life in HALF_LIVES:
        parts = []
        for seed in range(draws):
            fit = popular(daily, epsilon, half_life, seed)
            parts += [hits(daily, day, fit(day)) for day in range(max(daily.first // 2, 1), daily.first)]
        found[half_life] = mean_of(parts)
    return max(found, key=found.__getitem__)


def spread(values: list[float]) -> dict[str, float]:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "standard_error": error, "draws": len(values)}


def cadences(stream: Stream) -> tuple[int, ...]:
    """Return how often to refit, weekly among them: refits before daily releases would be but noise."""
    weekly = math.ceil(len(asked(stream)) * min(stream.period / 7, 1))
    return (*CADENCES, weekly) if weekly not in CADENCES else CADENCES


def others(
    stream: Stream,
    counts: tuple[int, ...],
    draws: int,
    way: Callable[[int, int], tuple[float, list[float]]],
) -> dict[str, Any]:
    """Return the stale model and refits; `way` replays so many fits with a seed."""
    cell: dict[str, Any] = {"refits": {}}
    for count in counts:
        runs = [way(count, seed) for seed in range(draws)]
        told = spread([mean for mean, _ in runs])
        if count == 1:
            cell["stale"], cell["stale_by_release"] = told, runs[0][1]
        else:
            cell["refits"][str(count)] = told
    return cell


def hit_rates(
    stream: Stream, epsilons: list[float], half_life: float, draws: int, kept: dict[str, Any] | None
) -> dict[str, Any]:
    """Return HR@10 of all ways, and along the year for a picture."""

    def of_vector(release: int, vector: np.ndarray) -> np.ndarray:
        return hits(stream, release, vector)

    def of_model(release: int, model: discreet.FittedModel) -> np.ndarray:
        return hits(stream, release, model.scorer.part("popularity"))

    found: dict[str, Any] = {"half_life_days": half_life, "releases": stream.releases}
    if kept is None:
        every = len(asked(stream))
        free = popular(stream, math.inf, half_life, 0)
        found["without_privacy"] = refits(stream, every, free, of_vector)[0]
    else:
        found["without_privacy"] = kept["without_privacy"]
    for epsilon in epsilons:

        def way(count: int, seed: int, epsilon: float = epsilon) -> tuple[float, list[float]]:
            each = schedule(epsilon, DELTA, count).per_release.epsilon
            return refits(stream, count, popular(stream, each, half_life, seed), of_vector)

        name = f"{epsilon:g}"
        cell = others(stream, cadences(stream), draws, way) if kept is None else kept[name]
        runs = [
            followed(stream, epsilon, half_life, seed, rated=False, score=of_model) for seed in range(draws)
        ]
        found[name] = {
            **cell,
            "follow": spread([mean for mean, _ in runs]),
            "follow_by_release": runs[0][1],
        }
    return found


def rating_errors(
    stream: Stream, epsilons: list[float], half_life: float, draws: int, kept: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the RMSE of all ways."""

    def score(release: int, model: discreet.FittedModel) -> np.ndarray:
        return squared_errors(stream, release, model)

    if kept is None:
        free = math.sqrt(refits(stream, 12, effects(stream, math.inf, 0), score)[0])
    found: dict[str, Any] = {"without_privacy": free if kept is None else kept["without_privacy"]}
    for epsilon in epsilons:

        def way(count: int, seed: int, epsilon: float = epsilon) -> tuple[float, list[float]]:
            each = schedule(epsilon, DELTA, count).per_release.epsilon
            mean, parts = refits(stream, count, effects(stream, each, seed), score)
            return math.sqrt(mean), parts

        name = f"{epsilon:g}"
        cell = others(stream, CADENCES, draws, way) if kept is None else kept[name]
        cell.pop("stale_by_release", None)
        runs = [
            followed(stream, epsilon, half_life, seed, rated=True, score=score)[0] for seed in range(draws)
        ]
        found[name] = {**cell, "follow": spread([math.sqrt(mean) for mean in runs])}
    return found


def combining(stream: Stream, epsilon: float, half_life: float, draws: int) -> dict[str, Any]:
    """Return HR@10 in the second half of the year: embeddings from its middle, a followed year, and both."""
    middle = (stream.first + stream.releases) // 2
    found: dict[str, list[float]] = {"user-factorization": [], "follow": [], "both": []}
    for seed in range(draws):
        random = PrivacyRandom.simulate(seed)
        fitted = discreet.UserFactorization(epsilon=epsilon, delta=DELTA, feedback="implicit").fit(
            stream.before(middle, False), random=PrivacyRandom.simulate(500 + seed)
        )
        settings = FollowSettings(
            releases=stream.releases,
            epsilon=epsilon,
            delta=DELTA,
            half_life=half_life,
            days=stream.releases * stream.period,
            pace=stream.paces[False],
        )
        parts: dict[str, list[np.ndarray]] = {name: [] for name in found}
        with tempfile.TemporaryDirectory() as folder:
            year = Following.start(Path(folder) / "y", stream.catalog, stream.facts(False), settings)
            alone = both = None
            for release in range(stream.releases):
                if release >= max(middle, 1) and alone is not None and both is not None:
                    models = {"user-factorization": fitted, "follow": alone, "both": both}
                    for name, model in models.items():
                        parts[name].append(personal_hits(stream, release, model))
                now = stream.release == release
                alone = year.add(stream.data(now, False) if now.any() else None, random=random).model
                both = year.model(model=fitted)
        for name, told in parts.items():
            found[name].append(mean_of(told))
    return {"epsilon_each": epsilon, **{name: spread(values) for name, values in found.items()}}


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"draws": 1, "epsilons": [2.0]},
        dataset=harness.option(choices=sorted(DATASETS), default="movietweetings-100k"),
        draws=3,
        epsilons=harness.option(type=float, nargs="+", default=[1.0, 2.0, 5.0]),
        out=harness.option(type=Path, help="also write the result to this file"),
        keep=harness.option(type=Path, help="take all but following from these results"),
        parts=harness.option(nargs="+", default=["weekly", "rmse", "combined", "daily"]),
    )
    stream = load(options.dataset, toy=options.toy)
    result: dict[str, Any] = {
        **how("follow.py", sys.argv[1:]),
        **stream.summary(),
    }
    middle = options.epsilons[len(options.epsilons) // 2]
    earlier = {} if options.keep is None else json.loads(options.keep.read_text())[options.dataset]
    if "weekly" in earlier:
        half_life = earlier["weekly"]["half_life_days"]
    else:
        half_life = chosen_half_life(stream, middle, options.draws)
    daily = replace(stream, period=1.0)
    epsilons, draws = options.epsilons, options.draws
    steps: dict[str, Callable[[], Any]] = {
        "weekly": lambda: hit_rates(stream, epsilons, half_life, draws, earlier.get("weekly")),
        "rmse": lambda: rating_errors(stream, epsilons, half_life, draws, earlier.get("rmse")),
        "combined": lambda: combining(stream, middle, half_life, draws),
        "daily": lambda: hit_rates(daily, epsilons, half_life, draws, earlier.get("daily")),
    }
    for name in options.parts:
        result[name] = steps[name]()
        if options.out is not None:
            options.out.write_text(json.dumps(result, indent=1) + "\n")
    if "weekly" in result:
        cell = result["weekly"][f"{middle:g}"]
        result["ratio"] = cell["follow"]["mean"] / max(cell["stale"]["mean"], 1e-9)
    harness.tell(result, options)


if __name__ == "__main__":
    main()
