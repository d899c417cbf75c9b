"""Campaigns of the papers' mechanisms: what devices send is what each model reads, and nothing else."""

import numpy as np
import pytest

from discreet.collect.campaign import Campaign
from discreet.collect.collector import CatalogCollector, Collector
from discreet.collect.device import CatalogDevice, Device
from discreet.collect.draw_tables import reported_loss
from discreet.collect.errors import DifferentEpsilon, TooFewReports, WrongReports
from discreet.collect.hidden_items import CatalogCampaign, cell_mechanism
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.models.local import ReportLearner
from discreet.papers.dpimf.neighbors import ItemNeighbors
from discreet.papers.mixture.sgd import LocalSgd
from discreet.papers.one_bit.estimators import OneBitInput
from discreet.privacy.mechanisms.local import rating_mechanism

ITEMS = Vocabulary.of([f"film {number}" for number in range(10)])
SIMULATED = PrivacyRandom.simulate(0)


def one_bit(epsilon=4.0):
    flip = rating_mechanism("bounded-laplace", epsilon=epsilon, low=0.0, high=1.0, points=2)
    return Campaign(name="bits", mechanism=flip, catalog=ITEMS, max_reports=10, step=1.0)


def interactions(epsilon=4.0):
    bits = cell_mechanism(epsilon, PublicFacts(n_items=10, low=1.0, high=1.0))
    return CatalogCampaign(name="likes", mechanism=bits, catalog=ITEMS)


def history(user, value):
    """Return what a user of one of two groups chose: items of the group, and a few others."""
    return {f"film {n}": value for n in range(10) if n % 2 == user % 2 or (n + user) % 5 == 0}


def collected_bits(campaign, users=120):
    collector, random = CatalogCollector(campaign), PrivacyRandom.simulate(1)
    for user in range(users):
        assert collector.receive(CatalogDevice(campaign, random=random).message(history(user, 1.0)))
    return collector.collected()


def collected_likes(campaign, users=60):
    collector, random = Collector(campaign), PrivacyRandom.simulate(1)
    for user in range(users):
        likes = {f"film {n}": float(n % 2 == user % 2) for n in range(10)}
        collector.receive(Device(campaign, random=random).message(likes))
    return collector.collected()


@pytest.mark.parametrize("make", [one_bit, interactions])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_tables_lose_at_most_epsilon_and_nearly_all_of_it(make, epsilon):
    loss = reported_loss(make(epsilon).to_json()["draws"])
    assert 0.98 * epsilon < loss <= epsilon
    again = type(make()).from_bytes(make(epsilon).to_bytes())
    assert again.digest == make(epsilon).digest


def test_devices_flip_as_often_as_the_paper_states():
    """With 20,000 draws an error of .02 is beyond five standard deviations."""
    campaign = one_bit(1.0)
    draws = campaign.mechanism.release(np.ones(20_000), SIMULATED)
    flipped = 1 / (1 + np.e)
    assert abs(np.mean(draws == 0.0) - flipped) < 0.02
    # The twin: the flip of epsilon 2 is rejected.
    assert abs(np.mean(draws == 0.0) - 1 / (1 + np.e**2)) > 0.02


def test_one_bit_reports_complete_the_matrix():
    model = OneBitInput(epsilon=4.0).fit_reports(collected_likes(one_bit()))
    guarantee = model.guarantee
    assert (guarantee.epsilon, guarantee.unit.value, guarantee.trust.value) == (4.0, "value", "local")
    assert not guarantee.reads_raw_ratings
    signs = np.sign(model.scorer.left @ model.scorer.right.T)
    expected = np.where(np.arange(60)[:, None] % 2 == np.arange(10) % 2, 1, -1)
    assert np.mean(signs == expected) > 0.95


@pytest.mark.parametrize("likeness", ["jaccard", "cosine"])
def test_bits_of_devices_find_neighbors(likeness):
    model = ItemNeighbors(epsilon=4.0, likeness=likeness).fit_reports(collected_bits(interactions()))
    assert (model.guarantee.epsilon, model.guarantee.unit.value) == (4.0, "rating")
    best = [item for item, _ in model.recommend(["film 0", "film 2"], 3)]
    assert all(int(item.split()[1]) % 2 == 0 for item in best)


def test_models_reject_reports_that_they_do_not_read():
    bits, likes = collected_bits(interactions(), 10), collected_likes(one_bit(), 10)
    for model, reports in ((OneBitInput, bits), (ItemNeighbors, likes), (LocalSgd, likes)):
        with pytest.raises(WrongReports):
            model(epsilon=4.0).fit_reports(reports)
    with pytest.raises(WrongReports):
        OneBitInput(epsilon=4.0, mean_share=0.1).fit_reports(likes)
    with pytest.raises(DifferentEpsilon):
        ItemNeighbors(epsilon=3.0).fit_reports(bits)
    with pytest.raises(TooFewReports):
        ItemNeighbors(epsilon=4.0).fit_reports(collected_bits(interactions(), 1))
    for model in (OneBitInput, ItemNeighbors, LocalSgd):
        assert isinstance(model(epsilon=1.0), ReportLearner)
