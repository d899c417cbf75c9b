"""Measure learning from reports: cost per rating, an iteration against one weighted sweep, a device, bytes.

The fit of Jester (or data of its shape, where it is not at hand) is timed at two sizes: twice the ratings
should take about twice the time. One iteration of expectation-maximization is set beside one sweep of
weighted alternating least squares over the same cells, both measured in this run.

    python benchmarks/local.py --json
"""

from __future__ import annotations

import time

import harness
import numpy as np

from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.collect.estimate import collect_from
from discreet.core.arrays import Rows
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.datasets import catalog
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.papers.mixture.channel import LocalChannel
from discreet.papers.mixture.mixture import expect, fit_mixture
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.solvers.als import solve_rows


def jester(toy: bool) -> Interactions:
    if toy:
        return invented(people=60, items=20)
    return catalog.load("jester") if catalog.find("jester") is not None else invented()


def invented(people: int = 25_000, items: int = 100) -> Interactions:
    generator = experiment_generator(0, "jester shape")
    cells = np.nonzero(generator.random((people, items)) < 0.72)
    values = np.clip(generator.normal(0.7, 5.0, cells[0].size), -10, 10)
    facts = PublicFacts(n_items=items, low=-10, high=10, n_users=people)
    return Interactions.from_arrays(*cells, values, facts=facts, name="invented", n_items=items)


def seconds(call, repeats: int) -> float:
    """Return processor seconds of the best of some calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def mixture_against_sweep(data: Interactions, factors: int, repeats: int) -> dict[str, float]:
    turned = data.by_item
    low, width = data.facts.low, data.facts.high - data.facts.low
    values = ((data.values - low) / width).astype(np.float32)
    by_user = Rows(data.indptr, data.items, values)
    by_item = Rows(turned.indptr, turned.users, values[turned.order])
    start = fit_mixture(by_user, by_item, turned.order, factors=factors, iterations=2)
    told = expect(by_user, start.user_factors, start.item_factors, start.mixture)
    weights = told.likely @ (1 / start.mixture.variances).astype(np.float32)

    def sweep():
        left = solve_rows(by_user._replace(weights=weights), start.item_factors, ridge=1.0)
        solve_rows(by_item._replace(weights=weights[turned.order]), left, ridge=1.0)

    def iterate(count: int):
        fit_mixture(by_user, by_item, turned.order, factors=factors, iterations=count, initial=start)

    # What a further iteration costs, without the checks at the start of a fit.
    few, more = (seconds(lambda count=count: iterate(count), repeats) for count in (1, 5))
    one, other = (more - few) / 4, seconds(sweep, repeats)
    return {"factors": factors, "em_iteration": one, "weighted_sweep": other, "ratio": one / other}


def linearity(data: Interactions, repeats: int) -> dict[str, float]:
    half = data.select_users(np.arange(data.n_users // 2))
    estimator = LocalChannel(epsilon=1.0, iterations=10)
    reports = {
        part: collect_from(part, estimator.mechanism(part.facts), PrivacyRandom.simulate(1))
        for part in (half, data)
    }
    times = [
        seconds(lambda part=part: estimator.fit_reports(reports[part]), repeats) for part in (half, data)
    ]
    return {
        "seconds_half": times[0],
        "seconds_all": times[1],
        "ratings": data.n_ratings,
        "growth_for_twice_the_ratings": times[1] / times[0] * half.n_ratings * 2 / data.n_ratings,
    }


def device(repeats: int, ratings: int = 1000) -> dict[str, float]:
    """Return microseconds a rating, asked one by one and as a whole history."""
    asked = Campaign(
        name="bench",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=Vocabulary.range(ratings),
        max_reports=ratings,
    )
    history = dict.fromkeys(range(ratings), 3.0)
    Device(asked, budget=1e6).answer_all(history)

    def singly():
        own = Device(asked, budget=1e6)
        for item, rating in history.items():
            own.answer(item, rating)

    return {
        "microseconds_single": seconds(singly, repeats) / ratings * 1e6,
        "microseconds_in_a_history": seconds(lambda: Device(asked, budget=1e6).answer_all(history), repeats)
        / ratings
        * 1e6,
    }


def wire_bytes(items: int = 1682, rated: int = 65) -> dict[str, float]:
    """Return the bytes of a typical MovieLens person here and with private gradients."""
    asked = Campaign(
        name="bench",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=Vocabulary.range(items),
        max_reports=items,
    )
    chosen = experiment_generator(0, "bytes").choice(items, rated, replace=False).tolist()
    ours = len(Device(asked, budget=1e6).message(dict.fromkeys(chosen, 3.0)))
    rival = PrivateGradients(epsilon=1.0).sent_bytes(items)
    return {
        "ours_up": ours,
        "ours_a_rating": ours / rated,
        "private_gradients_up": rival["up"],
        "private_gradients_down": rival["down"],
        "ratio": (rival["up"] + rival["down"]) / ours,
    }


def measure(repeats: int, factors: int, toy: bool) -> dict[str, object]:
    data = jester(toy)
    return {
        "data": data.name,
        **{f"mixture_{rank}": mixture_against_sweep(data, rank, repeats) for rank in (1, factors)},
        "channel": linearity(data, repeats),
        "device": device(repeats, ratings=10 if toy else 1000),
        "bytes": wire_bytes(),
    }


def main() -> None:
    arguments = harness.options(__doc__, toy={"repeats": 1, "factors": 2}, repeats=3, factors=10)
    result = measure(arguments.repeats, arguments.factors, arguments.toy)
    harness.tell(result, arguments)


if __name__ == "__main__":
    main()
