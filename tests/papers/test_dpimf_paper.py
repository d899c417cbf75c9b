"""The printed federation, its samples and its true cost are what their names say."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from discreet.papers.dpimf import printed_losses as printed
from discreet.papers.dpimf.estimators import Dpimf
from discreet.papers.dpimf.theory import composed
from discreet.reproduce.dpimf.experiments import federate, overlap, split_parties
from discreet.reproduce.dpimf.theorems import row_loss, sampling_weights


def clicks(people=60, items=40, seed=0):
    rng = np.random.default_rng(seed)
    liked = rng.standard_normal((people, 2)) @ rng.standard_normal((2, items)) > 0
    return csr_matrix(liked.astype(np.float64))


def test_one_party_without_noise_is_plain_training():
    data = clicks()

    def scores(epsilon, rounds=1, local=60):
        one = Dpimf(epsilon=epsilon, factors=3, regularization=0.1, rounds=rounds, local=local)
        users, items = federate(data, one, 0, parties=1)
        return users @ items.T

    long = printed.Setting(factors=3, regularization=0.1, epochs=60)
    model = printed.train(data, long, 1.0, 0)
    np.testing.assert_allclose(scores(1e12), (model.users @ model.items.T), atol=1e-3)
    assert np.abs(scores(1.0) - (model.users @ model.items.T)).max() > 0.1


def test_parties_hold_parts_of_the_catalog_that_together_are_all_of_it():
    data = clicks(people=60, items=40, seed=1)
    data = data.multiply(np.random.default_rng(2).random(data.shape) < 0.2).tocsr()
    data.eliminate_zeros()
    parties = split_parties(data, "items", 10, 0)
    assert sorted(np.concatenate([party.own for party in parties])) == list(range(60))
    union = set(np.concatenate([party.shared for party in parties]).tolist())
    assert union == set(np.flatnonzero(np.asarray(data.sum(axis=0)).ravel()).tolist())
    mine, all_hold = overlap(parties)
    assert all_hold < mine < 1


def test_weights_of_least_variance_have_no_better_neighbor():
    rng = np.random.default_rng(0)
    users = rng.standard_normal((200, 4)) * rng.uniform(0.1, 3, (200, 1))
    squares = np.sum(users**2, axis=1)
    for name, weights in sampling_weights(users, 20).items():
        assert np.sum(1 / weights) == pytest.approx(20, rel=1e-3)
        chances = 1 / weights
        better = 0
        for _ in range(50):
            moved = np.clip(chances + 1e-3 * rng.standard_normal(200) * chances, 1e-9, 1)
            moved *= 20 / moved.sum()
            better += squares @ (1 / moved) < squares @ weights * (1 - 1e-6)
        assert (better == 0) == (name == "least variance")


def test_a_row_loses_what_its_items_lose_together():
    """In each chosen item the person with the largest norm loses all of epsilon: n times that in n items."""
    data = csr_matrix(np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]))
    lost = row_loss(data, np.array([[2.0, -2.0], [1.0, 0.0]]), 0.5)
    assert lost.tolist() == [1.5, 0.125]
    whole = composed(1.0, 1682, 100, 20)
    assert 1e6 < whole <= 2000 * 1682
