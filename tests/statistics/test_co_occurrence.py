"""Co-occurrences: equal to plain algebra, of norm 1, and the work of one user's row alone."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.data.interactions import Interactions
from discreet.statistics.co_occurrence import CoOccurrence
from discreet.testing import refuses
from toy import toy_interactions

TOP = np.arange(0, 30, 2)
WEIGHT = np.random.default_rng(0).uniform(0.1, 2, TOP.size)


def pairs(near=0.8, apart=0.3, weight=WEIGHT, back=6):
    return CoOccurrence(n_items=30, top=TOP, weight=weight, near=near, apart=apart, back=back)


def timed(seed=7) -> Interactions:
    """Return choices of 40 people at times of which some coincide."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(30, rng.integers(1, 12), replace=False) for _ in range(40)]
    people = np.repeat(np.arange(40), [one.size for one in chosen])
    times = rng.integers(0, 6, people.size)
    items = np.concatenate(chosen)
    return Interactions.from_arrays(people, items, times=times, n_items=30, low=1, high=1, name="timed")


def by_hand(items, times, near, apart, back):
    """Return one user's matrix: every pair by itself, the distance counted in distinct times."""
    moments = np.unique(times)
    matrix = np.zeros((TOP.size, TOP.size))
    for i, at in zip(items, times, strict=True):
        for j, then in zip(items, times, strict=True):
            if i != j and i % 2 == 0 and j % 2 == 0:
                steps = abs(np.searchsorted(moments, at) - np.searchsorted(moments, then))
                factor = apart + (1 - apart) * near**steps
                factor *= 1.0 if at < then else back / 16 if at > then else (1 + back / 16) / 2
                matrix[i // 2, j // 2] = WEIGHT[i // 2] * WEIGHT[j // 2] * factor
    length = np.linalg.norm(matrix)
    return matrix / length if length else matrix


@pytest.mark.parametrize(
    ("near", "apart", "back"), [(0.8, 0.3, 4), (0.5, 0.0, 0), (1.0, 0.4, 7), (0.0, 1.0, 16), (1.0, 1.0, 3)]
)
def test_pairs_equal_plain_algebra(near, apart, back):
    data = timed()
    for person in range(data.n_users):
        alone = data.select_users(np.arange(data.n_users) == person)
        summed = alone.total(pairs(near, apart, back=back)).floats()
        np.testing.assert_allclose(summed, by_hand(alone.items, alone.times, near, apart, back), atol=3e-6)


def test_everybody_with_a_pair_has_length_one():
    data = timed()
    lengths = []
    for person in range(data.n_users):
        alone = data.select_users(np.arange(data.n_users) == person)
        lengths.append(np.linalg.norm(alone.total(pairs()).floats()))
        assert (lengths[-1] > 0.999) == (np.count_nonzero(alone.items % 2 == 0) > 1)
        assert lengths[-1] <= 1
    # Some have a pair and some have none, or the equality above would be easy.
    assert min(lengths) == 0 < max(lengths)


@pytest.mark.parametrize("person", [0, 33])
def test_one_person_moves_the_sum_by_exactly_their_own_pairs(person):
    data = timed()
    keep = np.arange(data.n_users) != person
    alone = data.select_users(~keep).total(pairs()).floats()
    without = data.select_users(keep).total(pairs()).floats()
    np.testing.assert_array_equal(data.total(pairs()).floats() - without, alone)
    assert not np.array_equal(alone, alone.T)


@pytest.mark.parametrize("sums", [1, 30, 64, 1000])
@pytest.mark.parametrize("times", [True, False])
def test_the_height_of_tiles_does_not_matter(sums, times, monkeypatch):
    data = timed() if times else replace(timed(), times=None, listed=None)
    whole = data.total(pairs()).floats()
    monkeypatch.setattr("discreet.statistics.pair_tiles._SUMS_PER_TILE", sums)
    np.testing.assert_array_equal(data.total(pairs()).floats(), whole)


@pytest.mark.parametrize("at", [[0, 1], [0, 0]])
def test_more_users_than_32_bits_hold_add_up(at):
    """300 users with one and the same pair: a sum of 32 bits would end after 128 of them."""
    users = 300
    people, items = np.repeat(np.arange(users), 2), np.tile([4, 8], users)
    data = Interactions.from_arrays(
        people, items, times=np.tile(at, users), n_items=30, low=1, high=1, name="alike"
    )
    alone = data.select_users(np.arange(users) == 0).total(pairs()).floats()
    assert alone.max() > 0.5
    np.testing.assert_array_equal(data.total(pairs()).floats(), users * alone)


def test_pairs_have_no_direction_at_one_time_without_times_and_if_both_directions_weigh_alike():
    """The twin weighs directions differently: its matrix is not symmetric."""
    data = timed()
    at_once = replace(data, times=np.zeros_like(data.times))
    without = replace(data, times=None, listed=None)
    np.testing.assert_array_equal(at_once.total(pairs()).floats(), without.total(pairs()).floats())
    for summed in (at_once.total(pairs()), without.total(pairs()), data.total(pairs(back=16))):
        np.testing.assert_array_equal(summed.floats(), summed.floats().T)
    twin = data.total(pairs(back=4)).floats()
    assert np.abs(twin - twin.T).max() > 0.1


def test_without_times_all_pairs_count_alike():
    data = toy_interactions(seed=7)
    top = np.arange(data.n_items)
    even = {"n_items": data.n_items, "top": top, "weight": np.ones(top.size)}
    summed = data.total(CoOccurrence(**even, near=0.5, apart=0.1, back=3)).floats()
    alike = data.total(CoOccurrence(**even, near=1.0, apart=1.0, back=16)).floats()
    np.testing.assert_allclose(summed, alike, atol=1e-5)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf, -1.0])
def test_weights_that_cannot_be_meant_are_refused(weight):
    with refuses("domain", name="weight"):
        pairs(weight=np.full(TOP.size, weight))


def test_weights_that_cannot_be_scaled_add_nothing():
    assert not timed().total(pairs(weight=np.zeros(TOP.size))).floats().any()


@pytest.mark.parametrize("size", [1e-300, 1e-80, 1e150, 1e300])
def test_weights_of_any_size_tell_the_same(size):
    np.testing.assert_allclose(
        timed().total(pairs(weight=WEIGHT * size)).floats(), timed().total(pairs()).floats(), atol=3e-6
    )


@pytest.mark.few(14)
@pytest.mark.parametrize("near", [0.0, 5e-324, 1.5e-162, 2.72e-162, 1e-100, 1e-50, 0.5, 1.0])
@pytest.mark.parametrize("apart", [0.0, 5e-324, 1.5e-162, 1e-100, 1e-50, 0.3, 1.0])
def test_nobody_is_longer_than_one_where_squares_vanish(near, apart):
    """Squares of these weights and parts are too small for a float: a length from them would be short."""
    for weight in ((1e3, 1e-3, 1e3), (1e9, 1e-9, 1e9), (1.0, 1e-160, 1e-162), (1e150, 1e-162, 1.5e-162)):
        given = {"n_items": 3, "top": np.arange(3), "weight": np.array(weight), "near": near, "apart": apart}
        for times in ([0, 1, 2], [0, 0, 1], [5, 5, 5]):
            one = Interactions.from_arrays([0, 0, 0], [0, 1, 2], times=times, n_items=3, low=1, high=1)
            for back in (0, 5, 16):
                assert np.linalg.norm(one.total(CoOccurrence(**given, back=back)).floats()) <= 1


@pytest.mark.parametrize("back", [-1, 17, 0.5, True])
def test_another_weight_of_the_direction_back_is_refused(back):
    with refuses("domain", name="back", shape=False):
        pairs(back=back)
