"""What parties gain together is measured beside one holder and each alone, at one epsilon."""

import pytest

from discreet.core.checks import DataError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.data.splits import parse_split
from discreet.evaluation.scoring import measure
from discreet.federated.noise import SharedNoise
from discreet.federated.simulation import ALONE, POOLED, TOGETHER, compare_parties
from discreet.models.popularity import Popularity
from discreet.testing import refuses

THREE = SharedNoise(parties=3, missing=1)


def test_one_holder_is_scored_as_it_would_be_alone():
    data = popularity_skewed(n_users=300, n_items=60, mean_per_user=15)
    estimator = Popularity(epsilon=4.0)
    found = compare_parties(estimator, data, THREE, metrics="hr@10", seed=3)
    (parts,) = parse_split("leave-one-out").splits(data, 3)
    random = PrivacyRandom.simulate(3).spawn("run 0").spawn(POOLED)
    model = estimator.fit(parts.train, random=random)
    assert (
        found.ways[POOLED]["hr@10"].mean == measure(model, parts.train, parts.test, "hr@10", seed=3)["hr@10"]
    )


@pytest.mark.thorough
def test_parties_gain_where_noise_hides_what_each_has():
    data = popularity_skewed(n_users=600, n_items=60, mean_per_user=15)
    ten = SharedNoise(parties=10, missing=1)

    def of(epsilon):
        found = compare_parties(Popularity(epsilon=epsilon), data, ten, metrics="ndcg@10", repeat=3)
        return {way: scores["ndcg@10"].mean for way, scores in found.ways.items()}

    small, large = of(0.5), of(32.0)
    assert small[TOGETHER] > 1.2 * small[ALONE] and small[POOLED] > 1.2 * small[ALONE]
    # The twin: without noise to speak of, a party alone knows what is popular.
    assert large[ALONE] > 0.9 * large[TOGETHER]


def test_mistakes():
    data = popularity_skewed(n_users=20, n_items=30, mean_per_user=15)
    with refuses("metric-does-not-fit", metric="rmse"):
        compare_parties(Popularity(epsilon=1.0), data, THREE, metrics="rmse")
    with pytest.raises(DataError):
        compare_parties(Popularity(epsilon=1.0), data.where(data.items < 0), THREE)
