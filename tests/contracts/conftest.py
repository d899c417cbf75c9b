"""Small data with times, and every estimator fitted to them once."""

import pytest

from discreet.model_settings import MODELS
from discreet.testing.small_data import fitted_once, timed_data


@pytest.fixture(scope="session")
def timed():
    """Return ratings of which no two of a person have one time."""
    return timed_data()


@pytest.fixture(scope="session")
def fitted():
    """Return a model by its name, with little noise; it is fitted once, and has answered for everybody."""
    return lambda name: fitted_once(MODELS[name])
