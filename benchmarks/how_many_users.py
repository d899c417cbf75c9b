"""Measure how many users a private model needs, on users drawn from public data.

    python benchmarks/how_many_users.py [--json] [--toy] [--only DATASETS]

Of each data set a test tenth is set aside. Of the rest, some users are drawn, and a validation tenth of their
ratings is held out. Ratings: the RMSE of the better one of `user-factorization` and `biases`, and that of the
best mean in `discreet compare`, without privacy. Lists: the hit rates at 10 of `user-factorization` and of
private `popularity`, for one item per user. Each row is the mean over two draws of noise.
"""

from __future__ import annotations

import math
from typing import Any

import harness
import numpy as np

from discreet import Popularity, PrivacyRandom, UserFactorization
from discreet.core import ESTIMATORS, experiment_generator, silent
from discreet.data import Interactions, leave_one_out, random_split
from discreet.evaluation import Metric
from discreet.evaluation.list_scores import person_scores, ranks_of
from discreet.evaluation.scoring import predicted_ratings, rating_references

#: The numbers of users that are drawn. Limits were chosen on the first three data sets.
SIZES = {
    "movielens-1m": (750, 1500, 3000, 6040),
    "movielens-100k": (471, 943),
    "amazon-instant-video": (1700, 5130),
    "movielens-latest-small": (335, 671),
    "movietweetings-100k": (4000, 16_554),
    "jester": (600, 2500),
}
EPSILONS = (0.25, 1.0, 4.0, 16.0)
_RUNS = 2


def drawn(data: Interactions, users: int) -> Interactions:
    """Return some users without the test tenth, and the items that they rated."""
    rest = random_split(data, 0.1, 0).train
    chosen = experiment_generator(0, f"users {users}").permutation(rest.n_users)[:users]
    some = rest.select_users(np.sort(chosen))
    return some.select_items(np.unique(some.items))


def ratings_row(data: Interactions, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the error of the better private model, and of the best mean."""
    parts = random_split(data, 0.1, 1)
    found = []
    for name, settings in (("user-factorization", {"purpose": "ratings"}), ("biases", {})):
        noise = PrivacyRandom.simulate(seed)
        model = ESTIMATORS[name](epsilon=epsilon, **settings).fit(parts.train, random=noise, progress=silent)
        squares = (predicted_ratings(model, parts.train, parts.test) - parts.test.values) ** 2
        found.append(math.sqrt(squares.mean()))
    cells = parts.test.rows(), parts.test.items
    means = [one.predict(parts.train, *cells) for one in rating_references(parts.train).values()]
    return min(found), min(math.sqrt(np.mean((mean - parts.test.values) ** 2)) for mean in means)


def lists_row(data: Interactions, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the hit rates of the private model and of private popularity."""
    parts, metric = leave_one_out(data, 1), Metric.parse("hr@10")
    users = np.flatnonzero(np.diff(parts.test.indptr))[:2000]
    wanted = np.zeros(data.n_users, dtype=bool)
    wanted[users] = True
    test = parts.test.where(wanted[parts.test.rows()])
    found = []
    for estimator in (UserFactorization(epsilon=epsilon, purpose="lists"), Popularity(epsilon=epsilon)):
        model = estimator.fit(parts.train, random=PrivacyRandom.simulate(seed), progress=silent)
        found.append(float(person_scores(metric, ranks_of(model, parts.train, test, users, [metric])).mean()))
    return found[0], found[1]


def main() -> None:
    options = harness.options(__doc__, only=harness.option(default="", help="data sets, comma-separated"))
    chosen = {"toy": (30,)} if options.toy else SIZES
    epsilons = EPSILONS[-1:] if options.toy else EPSILONS
    rows: list[dict[str, Any]] = []
    for name in options.only.split(",") if options.only else chosen:
        whole = harness.ratings(name, toy=options.toy)
        for users in chosen[name]:
            data = drawn(whole, users)
            rows += [
                row(name, data, what, epsilon)
                for epsilon in epsilons
                for what in MEASURES
                if (name, what) != SAME_LISTS
            ]
    harness.tell({"rows": rows}, options)


def row(name: str, data: Interactions, what: str, epsilon: float) -> dict[str, Any]:
    """Return one measured row."""
    model, simple = np.mean([MEASURES[what](data, epsilon, run) for run in range(_RUNS)], axis=0)
    found = {
        "dataset": name,
        "what": what,
        "users": data.n_users,
        "items": data.n_items,
        "rows_per_user": round(data.n_ratings / data.n_users, 1),
        "epsilon": epsilon,
        "model": round(float(model), 5),
        "simple": round(float(simple), 5),
    }
    harness.say(f"{name}, {what}", found)
    return found


MEASURES = {"ratings": ratings_row, "lists": lists_row}
#: With 100 items all users get the same ten.
SAME_LISTS = ("jester", "lists")


if __name__ == "__main__":
    main()
