"""Evidence of order: equal to plain algebra, zero on average for random orders, large for chains."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from discreet.data.interactions import Interactions
from discreet.statistics.co_occurrence import EVIDENCE_LENGTH, CoOccurrence, OrderEvidence

N_ITEMS, LATEST = 12, 32
WEIGHT = np.random.default_rng(1).uniform(0.2, 2, N_ITEMS)
ASKED = CoOccurrence(n_items=N_ITEMS, top=np.arange(N_ITEMS), weight=WEIGHT, near=0.8, apart=0.2, back=4)
SCALE = np.random.default_rng(2).uniform(0.1, 1, N_ITEMS)


def evidence(pairs, scale=SCALE, asked=ASKED):
    return OrderEvidence(asked=asked, pairs=pairs, scale=scale)


def people(chosen, times=None, n_items=N_ITEMS) -> Interactions:
    """Return people who choose these items, in this order if no times are given."""
    rows = np.repeat(np.arange(len(chosen)), [len(one) for one in chosen])
    when = [np.arange(len(one)) for one in chosen] if times is None else times
    return Interactions.from_arrays(
        rows, np.concatenate(chosen), times=np.concatenate(when), n_items=n_items, low=1, high=1
    )


def some(n_users=40, seed=3) -> Interactions:
    """Return people whose interactions coincide here and there."""
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(N_ITEMS)[: rng.integers(1, 10)] for _ in range(n_users)]
    return people(chosen, [rng.integers(0, 7, one.size) for one in chosen])


def by_hand(items, times, left):
    """Return a user's correlation over all ordered pairs with the matrix that the others made."""
    moments, weights, entries = np.unique(times), [], []
    for i, at in zip(items, times, strict=True):
        for j, then in zip(items, times, strict=True):
            if i != j:
                steps = abs(np.searchsorted(moments, at) - np.searchsorted(moments, then))
                ahead = 1.0 if at < then else 0.25 if at > then else 0.625
                weights.append((0.2 + 0.8 * 0.8**steps) * ahead)
                entries.append(left[i, j] * SCALE[i] * SCALE[j])
    return np.corrcoef(weights, entries)[0, 1]


def test_contributions_equal_plain_algebra():
    data, noise = some(), np.random.default_rng(4).normal(size=(N_ITEMS, N_ITEMS))
    released, told = data.total(ASKED).floats() + noise, 0
    for person in range(data.n_users):
        alone = data.select_users(np.arange(data.n_users) == person)
        total, half_squares, halves = alone.total(evidence(released)).floats()
        if alone.n_ratings < 3 or np.unique(alone.times).size < 2:
            assert total == half_squares == halves == 0
            continue
        expected = by_hand(alone.items, alone.times, released - alone.total(ASKED).floats())
        np.testing.assert_allclose([total, half_squares, halves], [expected, expected**2 / 2, 0.5], atol=1e-4)
        told += 1
    assert told > 20


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_random_order_has_a_mean_of_zero_because_the_own_part_is_taken_out(noise):
    """All orders of one user among others; the twin leaves the own part in, and finds itself."""
    others = some().total(ASKED).floats() + noise * np.random.default_rng(5).normal(size=(N_ITEMS, N_ITEMS))
    found, twin = [], []
    for order in permutations([1, 4, 5, 8, 10]):
        alone = people([np.array(order)])
        own = alone.total(ASKED).floats()
        found.append(alone.total(evidence(others + own)).floats()[0])
        twin.append(alone.total(evidence(others + 2 * own)).floats()[0])
    assert np.std(found) > 0.05 and abs(np.mean(found)) < 1e-4
    assert np.mean(twin) > 0.03


def test_whoever_is_alone_learns_nothing_from_themselves():
    alone = people([np.array([3, 1, 7, 2])])
    assert not alone.total(evidence(alone.total(ASKED).floats())).floats().any()


def test_chains_show_and_the_same_with_shuffled_times_does_not():
    rng = np.random.default_rng(6)
    data = people([(start + np.arange(6)) % N_ITEMS for start in rng.integers(0, N_ITEMS, 400)])
    shuffled = replace(data, times=rng.permuted(data.times.reshape(-1, 6), axis=1).reshape(-1))
    means, deviations = [], []
    for one in (data, shuffled):
        total, half_squares, halves = one.total(evidence(one.total(ASKED).floats())).floats()
        means.append(total / (2 * halves))
        deviations.append(np.sqrt(2 * half_squares) / (2 * halves))
    assert means[0] > 0.5 > 10 * deviations[0]
    assert abs(means[1]) < 4 * deviations[1]


def test_times_that_coincide_or_are_missing_say_nothing():
    data = some()
    at_once, without = replace(data, times=np.zeros_like(data.times)), replace(data, times=None, listed=None)
    for one in (at_once, without):
        assert not one.total(evidence(one.total(ASKED).floats() + 0.1)).floats().any()
    assert data.total(evidence(data.total(ASKED).floats())).floats()[2] > 0


def test_somebody_reaches_the_declared_bound():
    """The twin declares 1, which is exceeded."""
    flat = CoOccurrence(n_items=3, top=np.arange(3), weight=np.ones(3), near=0.5, apart=0.0, back=0)
    alone = people([np.array([0, 1, 2])], n_items=3)
    pairs = 1e6 * alone.total(flat).floats()
    total = alone.total(evidence(pairs, np.ones(3), flat)).floats()
    assert np.linalg.norm(total) == pytest.approx(EVIDENCE_LENGTH, abs=1e-5)
    assert 1 < np.linalg.norm(total) <= EVIDENCE_LENGTH


def test_the_declared_bound_is_none_by_rounding_only():
    """The twin is the root as it comes out in double precision: its square is below 3/2."""
    assert Fraction(EVIDENCE_LENGTH) ** 2 > Fraction(3, 2) > Fraction(math.sqrt(1.5)) ** 2


def test_only_the_latest_interactions_of_a_long_history_are_read():
    size = LATEST + 8
    asked = CoOccurrence(n_items=size, top=np.arange(size), weight=np.ones(size), near=0.9, apart=0.2, back=4)
    alone, pairs = people([np.arange(size)], n_items=size), np.random.default_rng(7).normal(size=(size, size))
    early, late = pairs.copy(), pairs.copy()
    early[:8], early[:, :8] = 5.0, 5.0
    late[-8:], late[:, -8:] = 5.0, 5.0
    first, same, other = (
        alone.total(evidence(one, np.ones(size), asked)).floats() for one in (pairs, early, late)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)
