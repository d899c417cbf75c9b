"""Every estimator refuses a delta that is no probability below 1, before it does anything with it."""

import dataclasses
import math

import pytest

from discreet.core.checks import ParameterError
from discreet.recipes import MODELS

WITH_DELTA = sorted(
    name for name, kind in MODELS.items() if "delta" in {f.name for f in dataclasses.fields(kind)}
)


@pytest.mark.parametrize("delta", [-1e-6, 1.0, 1.5, math.nan, math.inf, "x"])
@pytest.mark.parametrize("name", WITH_DELTA)
def test_a_delta_that_is_no_probability_is_refused_by_name(name, delta):
    with pytest.raises(ParameterError, match=r"^delta="):
        MODELS[name](epsilon=1.0, delta=delta)
