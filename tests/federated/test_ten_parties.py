"""Ten parties on MovieLens 1M come close to one holder of all data at an equal promise to each person."""

import numpy as np
import pytest

from discreet.core.checks import DiscreetError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets import catalog
from discreet.data.splits import leave_one_out
from discreet.evaluation.scoring import measure
from discreet.federated.protocols.summed import SummedStatistics
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from federation import shared_sums, train

METRIC = "hr@10:99"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2.0, 10.0])
def test_shared_noise_is_within_three_points_of_one_holder(epsilon):
    try:
        split = leave_one_out(catalog.load("movielens-1m"))
    except DiscreetError as error:
        pytest.skip(str(error))
    owner = np.arange(split.train.n_users) % 10
    parts = {f"p{k}": split.train.select_users(np.flatnonzero(owner == k)) for k in range(10)}
    whole = ImplicitObjective(epsilon=epsilon, delta=1e-5).fit(split.train, random=PrivacyRandom.simulate(0))
    reached = {}
    budget = {"epsilon": epsilon, "delta": 1e-5}
    shared = shared_sums(split.train, parties=10, missing=2, **budget)
    for protocol in (shared, SummedStatistics(**budget)):
        model = train(protocol, parts, split.train).model
        assert model.guarantee.epsilon == whole.guarantee.epsilon
        reached[protocol.noise.masked] = measure(model, split.train, split.test, METRIC)[METRIC]
    best = measure(whole, split.train, split.test, METRIC)[METRIC]
    assert best - reached[True] < 0.03
    # Ten times the variance is what trusting nobody costs; if it cost nothing, noise would be missing.
    assert best - reached[False] > 0.03
