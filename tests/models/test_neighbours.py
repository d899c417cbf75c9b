"""Neighbors from flipped bits: decoding without bias, both likenesses, and what a cell costs."""

import math

import numpy as np
import pytest

from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.papers.dpimf.neighbors import InteractionBits, ItemNeighbors, similarities
from discreet.privacy.guarantee import Trust, Unit
from discreet.privacy.mechanisms.randomized_response import SignFlip


def choices(n_users=400, n_items=12, seed=0) -> Interactions:
    """Return choices in which items of the same parity go together."""
    rng = np.random.default_rng(seed)
    chosen = rng.uniform(size=(n_users, n_items)) < np.where(
        np.arange(n_users)[:, None] % 2 == np.arange(n_items) % 2, 0.6, 0.1
    )
    chosen[:, 0] |= ~chosen.any(axis=1)
    users, items = np.nonzero(chosen)
    return Interactions.from_arrays(
        users, items, facts=PublicFacts(n_items=n_items, low=1, high=1), name="choices"
    )


def dense(data: Interactions) -> np.ndarray:
    return (data.to_scipy().toarray() > 0).astype(float)


def counts(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    return bits.T @ bits, bits.sum(axis=0), len(bits)


def test_without_noise_the_likeness_is_the_plain_one():
    bits = dense(choices())
    both, alone, people = counts(bits)
    cosine = similarities(both, alone, people, 0.0, "cosine")
    jaccard = similarities(both, alone, people, 0.0, "jaccard")
    assert cosine[2, 4] == pytest.approx(both[2, 4] / math.sqrt(alone[2] * alone[4]))
    assert jaccard[2, 4] == pytest.approx(both[2, 4] / (alone[2] + alone[4] - both[2, 4]))
    assert (np.diag(cosine) == 0).all()


def test_decoding_enumerated_over_all_flips_gives_the_true_likeness():
    """For every way two bits can be flipped, with its probability, expected counts decode exactly."""
    bits, lie = dense(choices(n_users=50, n_items=4)), 0.3
    both, alone, people = counts(bits)
    expected_alone = lie * people + (1 - 2 * lie) * alone
    shifted = lie + (1 - 2 * lie) * bits
    expected_both = shifted.T @ shifted
    for kind in ("cosine", "jaccard"):
        decoded = similarities(expected_both, expected_alone, people, lie, kind)
        np.testing.assert_allclose(decoded, similarities(both, alone, people, 0.0, kind), atol=1e-9)
        twin = similarities(expected_both, expected_alone, people, 0.27, kind)
        assert np.abs(twin - similarities(both, alone, people, 0.0, kind)).max() > 0.01


def test_reports_carry_the_flip_rate_they_claim():
    data = choices(n_users=2000)
    reports = InteractionBits(flip=SignFlip(epsilon=1.0)).over(data, PrivacyRandom.simulate(1))
    sent = np.concatenate(list(reports.blocks))
    assert reports.people == data.n_users and not list(reports.blocks)
    lie = SignFlip(epsilon=1.0).flip_rates()[0]
    flipped = np.mean(sent != dense(data))
    cells = sent.size
    # Hoeffding: both errors below 1e-9.
    margin = math.sqrt(math.log(2e9) / (2 * cells))
    assert abs(flipped - lie) < margin
    assert abs(flipped - SignFlip(epsilon=1.3).flip_rates()[0]) > margin


@pytest.mark.parametrize("likeness", ["cosine", "jaccard"])
@pytest.mark.parametrize("epsilon", [3.0, math.inf])
def test_finds_the_items_that_go_together(likeness, epsilon):
    data = choices(n_users=1500)
    model = ItemNeighbors(epsilon=epsilon, neighbors=5, likeness=likeness).fit(
        data, random=PrivacyRandom.simulate(2)
    )
    neighbors = model.scorer.neighbors
    assert neighbors.shape == (12, 5)
    same = neighbors % 2 == np.arange(12)[:, None] % 2
    assert same.mean() > 0.95


def test_cells_and_rows_agree():
    data = choices()
    model = ItemNeighbors(epsilon=2.0, neighbors=3).fit(data, random=PrivacyRandom.simulate(3))
    scores = model.scores(data, np.arange(10))
    rows, items = np.repeat(np.arange(10), 12), np.tile(np.arange(12), 10)
    np.testing.assert_allclose(model.predict(data, rows, items), scores.ravel(), rtol=1e-6)


def test_promises_one_cell_against_the_collector():
    promise = ItemNeighbors(epsilon=1.0).promise(PublicFacts(n_items=12))
    assert promise.unit is Unit.RATING and promise.trust is Trust.LOCAL and promise.delta == 0


@pytest.mark.parametrize("bad", [{"neighbors": 0}, {"likeness": "angle"}])
def test_refuses_settings_out_of_range(bad):
    with pytest.raises(ParameterError):
        ItemNeighbors(epsilon=1.0, **bad)
