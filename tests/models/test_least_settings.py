"""The least values that settings may have are taken and give a model; one less is refused."""

import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.papers.mixture.channel import LocalChannel
from discreet.testing import refuses
from toy import toy_interactions

LEAST = {"factors": 0, "iterations": 1, "directions": 0}


@pytest.mark.parametrize("setting", LEAST)
def test_local_channel_takes_the_least_of_each_setting(setting):
    data = toy_interactions(n_users=60, n_items=20, per_user=8)
    model = LocalChannel(epsilon=4.0, **{"iterations": 2, setting: LEAST[setting]}).fit(
        data, random=PrivacyRandom.simulate(1)
    )
    assert len(model.recommend({data.catalog.id_at(0): 5.0}, k=3)) == 3
    with refuses("out-of-range"):
        LocalChannel(epsilon=4.0, **{setting: LEAST[setting] - 1})
