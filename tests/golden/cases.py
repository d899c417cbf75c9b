"""Every estimator on two small data sets with simulated noise: what refactoring must reproduce.

An array is known by data set, fit (the estimator's name in the registry and a label of the settings) and its
own name, never by where the code stands.
"""

import dataclasses
import math

import numpy as np
from threadpoolctl import threadpool_limits

from discreet.core.randomness import PrivacyRandom
from discreet.recipes import MODELS, estimator, is_never_private
from toy import toy_interactions

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
}


def data_sets():
    """Return the two data sets by name: a small one, and one with enough users for factors."""
    return {
        "small": toy_interactions(n_users=60, n_items=20, per_user=8, seed=1),
        "larger": toy_interactions(n_users=1200, n_items=30, per_user=12, seed=2),
    }


def recipes():
    """Return every fit by name: each estimator with and without noise, and the variants."""
    found = dict(VARIANTS)
    for name in MODELS:
        found[f"{name} inf"] = (name, {"epsilon": math.inf})
        if not is_never_private(name):
            found[name] = (name, {"epsilon": 2.0})
    return dict(sorted(found.items()))


def fitted_arrays(recipe, data):
    """Return the arrays that a saved file of this fit holds."""
    name, settings = recipe
    chosen = estimator(name, settings)
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
    """Return the arrays of one fit on both data sets under the keys `data set/fit/array`."""
    return {
        f"{where}/{fit}/{name}": array
        for where, data in data_sets().items()
        for name, array in fitted_arrays(recipes()[fit], data).items()
    }
