"""Histories that are drawn: lengths, popularity, co-occurrence, order and ratings."""

import numpy as np
import pytest

from discreet.synthesis import making
from discreet.synthesis.making import LengthSource, Sampler, calibrated

ITEMS, USERS = 60, 600


def release(strength=1.0):
    """Return popularity that falls from item to item, and embeddings in two groups of items."""
    popularity = 1.0 / np.arange(1, ITEMS + 1)
    vectors = np.zeros((ITEMS, 2))
    vectors[::2, 0] = strength
    vectors[1::2, 1] = strength
    return popularity, vectors


def drawn(sampler, lengths, seed=0):
    items = [block.items for block in sampler.draw(lengths, np.random.default_rng(seed))]
    return np.split(np.concatenate(items), np.cumsum(lengths)[:-1])


def lengths_of(users=USERS):
    return np.random.default_rng(5).integers(1, 13, users)


def votes_of(histories):
    votes = np.zeros(ITEMS)
    for one in histories:
        votes[one] += len(one) ** -0.5
    return votes / votes.sum()


@pytest.mark.parametrize("ordered", [False, True])
def test_histories_have_their_lengths_and_no_item_twice(ordered, monkeypatch):
    monkeypatch.setattr(making, "_SCORES", 50 * ITEMS)
    sampler = Sampler.of(*release(), ordered=ordered)
    lengths = np.append(lengths_of(), [ITEMS, ITEMS - 1])
    histories = drawn(sampler, lengths)
    assert [len(one) for one in histories] == lengths.tolist()
    assert all(len(set(one)) == len(one) for one in histories)
    assert sorted(histories[-2]) == list(range(ITEMS))
    again = drawn(sampler, lengths)
    assert all(np.array_equal(one, two) for one, two in zip(histories, again, strict=True))
    assert not all(np.array_equal(*pair) for pair in zip(histories, drawn(sampler, lengths, 1), strict=True))


def test_items_are_as_popular_as_released():
    popularity, vectors = release(2.0)
    plain, lengths = Sampler.of(popularity, vectors, ordered=False), lengths_of(3000)
    fitted = calibrated(plain, popularity, lengths, np.random.default_rng(1))
    target = popularity / popularity.sum()
    apart = [np.abs(votes_of(drawn(one, lengths)) - target).sum() / 2 for one in (fitted, plain)]
    assert apart[0] < 0.08
    # The twin: without calibration popularity is wrong.
    assert apart[1] > 2 * apart[0]


def in_one_group(histories):
    """Return the mean share of a history that lies in its larger group of items."""
    return np.mean([max(np.mean(one % 2), 1 - np.mean(one % 2)) for one in histories if len(one) > 5])


def test_items_with_near_embeddings_meet():
    lengths = lengths_of()
    together = in_one_group(drawn(Sampler.of(*release(1.5), ordered=False), lengths))
    # The twin: embeddings of no length draw by popularity alone.
    apart = in_one_group(drawn(Sampler.of(*release(0.0), ordered=False), lengths))
    assert together > apart + 0.08


def agreeing(histories, first, second):
    return np.mean([one[first] % 2 == one[second] % 2 for one in histories])


def test_an_order_keeps_near_items_near(monkeypatch):
    monkeypatch.setattr(making, "_STRETCH", 4)
    monkeypatch.setattr(making, "DRIFTING", 0.9)
    lengths = np.full(4000, 16)
    flat = np.ones(ITEMS), release(2.0)[1]
    histories = drawn(Sampler.of(*flat, ordered=True), lengths)
    assert agreeing(histories, 0, 1) > agreeing(histories, 0, 15) + 0.05
    # The twin: without an order all items of a history are as near.
    mixed = drawn(Sampler.of(*flat, ordered=False), lengths)
    assert abs(agreeing(mixed, 0, 1) - agreeing(mixed, 0, 15)) < 0.04


def test_lengths_come_from_the_release_or_are_declared():
    random = np.random.default_rng(0)
    released = LengthSource(counts=np.array([0.0, 0.0, 30.0, 10.0]), mean=20, longest=5)
    found = released.draw(4000, random)
    assert set(found) == {3, 4, 5} and np.mean(found == 3) == pytest.approx(0.75, abs=0.03)
    declared = LengthSource.of(None, 30, 1000)
    assert np.mean(declared.draw(20_000, random)) == pytest.approx(30, rel=0.05)
    assert not declared.is_released and "declared" in declared.sentence()
    assert LengthSource.of(None, None, 7).draw(50, random).max() <= 7
