"""Votes come first: lists are not below private popularity where noise hides which items are on top."""

from functools import cache

import numpy as np
import pytest

from discreet import Popularity, PrivacyRandom, UserFactorization
from discreet.data.interactions import Interactions
from discreet.models.user_factorization import votes_first
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.models.user_factorization.votes_first import share_for_votes

EPSILON, SEEDS, TOP = 1.0, range(4), 10
LEAST = FactorizationSettings().first_share


@cache
def shop() -> Interactions:
    """Return 2,000 users of 2,000 items of which none is much more popular than the next."""
    random = np.random.default_rng(0)
    chance = np.cumsum(np.arange(1, 2001) ** -0.3)
    items = np.searchsorted(chance / chance[-1], random.random((2000, 12))).ravel()
    pairs = np.unique(np.repeat(np.arange(2000), 12) * 2000 + items)
    values = np.ones(pairs.size, dtype=np.float32)
    return Interactions.from_arrays(pairs // 2000, pairs % 2000, values, low=1.0, high=5.0, n_items=2000)


def noisy_votes(noise: float) -> np.ndarray:
    true = 500 / np.arange(1, 2001)
    return true + noise * np.random.default_rng(1).standard_normal(2000)


@pytest.mark.parametrize(("noise", "expected"), [(1.0, LEAST), (300.0, None)])
def test_the_noise_decides_what_votes_need(noise, expected):
    assert share_for_votes(noisy_votes(noise), noise, noise * LEAST**0.5, LEAST, pairs=0.5) == expected


def test_votes_need_more_the_more_noise_there_is():
    found = []
    for noise in (1.0, 10.0, 15.0, 20.0, 30.0, 60.0, 300.0):
        share = share_for_votes(noisy_votes(noise), noise, noise * LEAST**0.5, LEAST, pairs=0.5)
        found.append(1.0 if share is None else share)
    assert found == sorted(found)
    assert len(set(found)) > 2


def test_votes_need_less_if_later_releases_show_them_again():
    """If co-occurrences get all of the rest and show nothing, only the first share is left."""
    found = []
    for counted in (0.0, 0.3, 1.0):
        share = share_for_votes(noisy_votes(20.0), 20.0, 20.0 * LEAST**0.5, LEAST, pairs=0.5, counted=counted)
        found.append(1.0 if share is None else share)
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_without_noise_and_in_small_catalogs_nothing_changes():
    assert share_for_votes(noisy_votes(0.0), 0.0, 0.0, LEAST, pairs=0.5) == LEAST
    assert share_for_votes(np.ones(20), 300.0, 95.0, LEAST, pairs=0.5) == LEAST


def worth(models) -> float:
    """Return how many users chose the items that are most popular by a model, on average over models."""
    chosen = np.bincount(shop().items, minlength=shop().n_items)
    tops = [np.argsort(-model.scorer.part("popularity"))[:TOP] for model in models]
    return float(np.mean([chosen[top].sum() for top in tops]))


def fits(estimator) -> list:
    return [estimator.fit(shop(), random=PrivacyRandom.simulate(seed)) for seed in SEEDS]


@pytest.mark.few(1)
@pytest.mark.parametrize("settings", [{"feedback": "implicit"}, {"purpose": "both"}])
def test_few_users_get_no_less_than_private_popularity(settings, monkeypatch):
    """The twin buys pairs although it cannot tell which items are popular, and its list is worse."""
    estimator = UserFactorization(epsilon=EPSILON, delta=1e-5, **settings)
    bar, ours = worth(fits(Popularity(epsilon=EPSILON, delta=1e-5))), fits(estimator)
    monkeypatch.setattr(votes_first, "_AS_GOOD", 0.0)
    twin = fits(estimator)
    assert worth(ours) >= 0.95 * bar
    assert worth(twin) < worth(ours)
    bought = [{entry.statistic for entry in one.releases} for one in (ours[0], twin[0])]
    assert ["CoOccurrence" in one for one in bought] == [False, True]


@cache
def archive() -> Interactions:
    """Return 400 users with long histories in a catalog of 6,000 items, of which few are popular."""
    random = np.random.default_rng(0)
    chance = np.cumsum(np.arange(1, 6001) ** -0.8)
    items = np.searchsorted(chance / chance[-1], random.random((400, 60))).ravel()
    pairs = np.unique(np.repeat(np.arange(400), 60) * 6000 + items)
    values = np.ones(pairs.size, dtype=np.float32)
    return Interactions.from_arrays(pairs // 6000, pairs % 6000, values, low=1.0, high=5.0, n_items=6000)


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [{"feedback": "implicit"}, {"purpose": "both"}])
def test_users_vote_for_the_items_that_may_be_on_top(settings):
    """Private popularity, which spends as much on items that nobody will see, finds fewer popular ones."""
    chosen = np.bincount(archive().items, minlength=6000)
    ours, bar = (
        [one.fit(archive(), random=PrivacyRandom.simulate(seed)) for seed in range(6)]
        for one in (UserFactorization(epsilon=0.7, **settings), Popularity(epsilon=0.7))
    )
    assert all("VotesAmong" in {entry.statistic for entry in one.releases} for one in ours)
    found = [
        np.mean([chosen[np.argsort(-one.scorer.part("popularity"))[:TOP]].sum() for one in m])
        for m in (ours, bar)
    ]
    assert found[0] > 1.1 * found[1]


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("settings", [{"feedback": "implicit"}, {"purpose": "both"}])
def test_every_share_of_votes_leaves_nothing_unspent(epsilon, settings):
    estimator = UserFactorization(epsilon=epsilon, delta=1e-5, **settings)
    model = estimator.fit(shop(), random=PrivacyRandom.simulate(1))
    assert sum(entry.share for entry in model.releases) == 1
