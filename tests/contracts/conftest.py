"""Small data with times, and every estimator fitted to them once."""

import dataclasses
import math
from functools import cache

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.recipes import MODELS
from toy import toy_interactions

#: Fitted without noise: they know no other way.
NON_PRIVATE = {"als", "implicit-als", "ease", "item-knn"}


@pytest.fixture(scope="session")
def timed():
    """Return ratings of which no two of a person have one time."""
    data = toy_interactions(seed=1)
    return dataclasses.replace(data, times=np.random.default_rng(5).permutation(data.n_ratings) + 964_982_703)


@pytest.fixture(scope="session")
def fitted(timed):
    """Return a model by its name, with little noise; it is fitted once, and has answered for everybody."""

    @cache
    def fit(name):
        estimator = MODELS[name](epsilon=math.inf if name in NON_PRIVATE else 30.0)
        model = estimator.fit(timed, random=PrivacyRandom.simulate(3))
        # A release of single cells holds only those that were asked for.
        model.worth(timed, np.arange(timed.n_users))
        return model

    return fit
