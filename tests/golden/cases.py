"""Every estimator on small data sets with simulated noise: what refactoring must reproduce.

An array is known by data set, fit (the estimator's name in the registry and a label of the settings) and its
own name, never by where the code stands.
"""

import dataclasses
import math
from functools import cache

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.model_settings import MODELS, estimator, is_never_private
from toy import toy_interactions

# A fit of users in groups with public features of items.
WITH_FEATURES = "user-factorization features"
# Settings under which an estimator runs other code than by default.
VARIANTS = {
    "frank-wolfe oja": ("frank-wolfe", {"epsilon": 8.0, "solver": "oja", "rounds": 2}),
    "frank-wolfe covariance": ("frank-wolfe", {"epsilon": 8.0, "solver": "covariance", "rounds": 2}),
    "frank-wolfe-printed oja": ("frank-wolfe-printed", {"epsilon": 8.0, "solver": "oja", "rounds": 2}),
    "implicit-objective strawman": ("implicit-objective", {"epsilon": 8.0, "loss": "strawman"}),
    "implicit-objective symmetric": ("implicit-objective", {"epsilon": 8.0, "loss": "symmetric"}),
    "implicit-objective complementary": ("implicit-objective", {"epsilon": 8.0, "loss": "complementary"}),
    "one-bit-objective probit": ("one-bit-objective", {"epsilon": 4.0, "link": "probit"}),
    "user-factorization choices": ("user-factorization", {"epsilon": 8.0, "feedback": "implicit"}),
    "user-factorization lists": ("user-factorization", {"epsilon": 8.0, "purpose": "lists"}),
    "user-factorization ratings": ("user-factorization", {"epsilon": 8.0, "purpose": "ratings"}),
    "user-factorization ratings inf": ("user-factorization", {"epsilon": math.inf, "purpose": "ratings"}),
    "user-factorization choices inf": ("user-factorization", {"epsilon": math.inf, "feedback": "implicit"}),
    WITH_FEATURES: ("user-factorization", {"epsilon": 8.0, "feedback": "implicit"}),
}


def data_sets(fit):
    """Return the data sets of a fit by name: a small one, and one with enough users for factors.

    User-factorization also learns from users in groups, whose co-occurrences show: without them it would
    have no item embeddings and no order in time.
    """
    if fit == WITH_FEATURES:
        return {"in groups": users_in_groups()}
    found = {
        "small": toy_interactions(n_users=60, n_items=20, per_user=8, seed=1),
        "larger": toy_interactions(n_users=1200, n_items=30, per_user=12, seed=2),
    }
    return found | ({"in groups": users_in_groups()} if fit.startswith("user-factorization") else {})


def users_in_groups(n_users=2000, groups=5, items_of_group=14, per_user=12, seed=3):
    """Return ratings, with times, of users who mostly choose and like items of one group, in one order."""
    draw, n_items = np.random.default_rng(seed), groups * items_of_group
    group = draw.integers(groups, size=n_users)
    fame = draw.gamma(2.0, size=n_items)
    near = np.arange(n_items) // items_of_group == group[:, None]
    # The items with the smallest exponential keys over weights: a draw without replacement.
    keys = draw.exponential(size=(n_users, n_items)) / (fame * np.where(near, 1.0, 0.08))
    items = np.sort(np.argpartition(keys, per_user, axis=1)[:, :per_user], axis=1)
    liked = np.take_along_axis(near, items, axis=1) + draw.normal(0.0, 0.6, size=items.shape)
    users = np.repeat(np.arange(n_users), per_user)
    return Interactions.from_arrays(
        users,
        items.ravel(),
        np.clip(np.rint(3 + 1.5 * liked), 1, 5).ravel(),
        times=np.tile(np.arange(per_user) * 3600, n_users),
        facts=PublicFacts(n_items=n_items, low=1.0, high=5.0, step=1.0),
    )


@cache
def recipes():
    """Return every fit by name: each estimator with and without noise, and the variants."""
    found = dict(VARIANTS)
    for name in MODELS:
        found[f"{name} inf"] = (name, {"epsilon": math.inf})
        if not is_never_private(name):
            found[name] = (name, {"epsilon": 2.0})
    return dict(sorted(found.items()))


def features_of(data):
    """Return a table of items: one column separates groups of items, and one doesn't.

    Groups have different sizes. With equal sizes, directions of equal length would span a plane in which each
    processor finds other axes.
    """
    items = range(data.n_items)
    group = np.searchsorted([7, 17, 31, 48], items, side="right") / 4
    return pl.DataFrame({"item": items, "group": group, "odd": [item % 2 for item in items]})


def fitted_arrays(recipe, data, **given):
    """Return the arrays that a saved file of this fit holds."""
    name, settings = recipe
    chosen = dataclasses.replace(estimator(name, settings), **given)
    if chosen.feedback == "implicit":
        facts = dataclasses.replace(data.facts, low=1.0, high=1.0, step=None)
        data = data.with_values(np.ones_like(data.values), facts=facts)
    # The number of threads of the linear-algebra library decides in which order it adds.
    with threadpool_limits(1):
        model = chosen.fit(data, random=PrivacyRandom.simulate(7))
        if chosen.answers_in_process:
            model.scorer.predict(data, np.arange(4), np.arange(4))
    return model.scorer.arrays()


def arrays_of(fit):
    """Return the arrays of one fit on its data sets under the keys `data set/fit/array`."""
    return {
        f"{where}/{fit}/{name}": array
        for where, data in data_sets(fit).items()
        for name, array in fitted_arrays(
            recipes()[fit], data, **({"item_features": features_of(data)} if fit == WITH_FEATURES else {})
        ).items()
    }
