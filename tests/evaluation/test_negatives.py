"""Sampled items: never met, distinct, uniform, repeatable."""

import numpy as np

from discreet.data.interactions import Interactions
from discreet.evaluation import list_scores as module
from discreet.evaluation.list_scores import sample_negatives
from discreet.testing import refuses


def split(n_users, n_items, density, seed):
    generator = np.random.default_rng(seed)
    rows, items = np.nonzero(generator.random((n_users, n_items)) < density)
    people = np.arange(n_users)
    catalog = np.arange(n_items)
    data = Interactions.from_arrays(
        np.concatenate((people, rows)),
        np.concatenate((np.zeros(n_users, dtype=np.int64), items)),
        n_items=n_items,
        duplicates="last",
    )
    assert data.n_items == catalog.size
    held_out = generator.random(data.n_ratings) < 0.3
    return data, data.where(~held_out), data.where(held_out)


def test_sampled_items_are_distinct_and_unmet():
    data, train, test = split(80, 60, 0.3, seed=0)
    met = data.to_scipy().toarray() > 0
    people = np.flatnonzero(np.diff(test.indptr))
    drawn = sample_negatives(train, test, people, 12, seed=1)
    assert drawn.shape == (people.size, 12)
    assert not met[people[:, None], drawn].any()
    assert all(np.unique(row).size == 12 for row in drawn)


def test_everything_unmet_is_drawn_when_just_enough_is_left():
    data = Interactions.from_arrays([1, 1, 2], [0, 3, 4], n_items=5)
    train, test = data.where(np.array([True, False, True])), data.where(np.array([False, True, False]))
    assert sorted(sample_negatives(train, test, np.array([0]), 3, seed=0)[0].tolist()) == [1, 2, 4]
    with refuses("too-few-to-sample", users=1, of=1, count=4):
        sample_negatives(train, test, np.array([0]), 4, seed=0)


def test_draws_repeat_by_seed_and_differ_by_run():
    _, train, test = split(30, 50, 0.2, seed=2)
    people = np.arange(30)
    first = sample_negatives(train, test, people, 9, seed=5)
    assert (first == sample_negatives(train, test, people, 9, seed=5)).all()
    assert (first != sample_negatives(train, test, people, 9, seed=6)).any()
    assert (first != sample_negatives(train, test, people, 9, seed=5, run=1)).any()


def test_groups_of_people_are_served_alike(monkeypatch):
    data, train, test = split(30, 50, 0.2, seed=3)
    monkeypatch.setattr(module, "_GROUP", 7)
    drawn = sample_negatives(train, test, np.arange(30), 9, seed=5)
    assert not (data.to_scipy().toarray() > 0)[np.arange(30)[:, None], drawn].any()


def shares_of_pairs(pairs):
    return np.bincount(np.sort(pairs, axis=1) @ np.array([5, 1]), minlength=25) / len(pairs)


def test_every_set_of_unmet_items_is_equally_likely():
    """Two of five: ten sets. Hoeffding's bound keeps the errors of this and its twin below 1e-9."""
    n_people = 130_000
    bound = np.sqrt(np.log(2 * 10 / 1e-9) / (2 * n_people))
    assert 2 * bound < 0.02
    shares = shares_of_pairs(module._distinct_below(np.full(n_people, 5), 2, np.random.default_rng(0)))
    assert np.abs(shares[shares > 0] - 0.1).max() < bound
    assert np.count_nonzero(shares) == 10
    # The twin moves a number that is taken to its neighbor: neighbors get 0.12, others 0.08.
    first, second = np.random.default_rng(1).integers(0, 5, size=(2, n_people))
    moved = np.where(second == first, (second + 1) % 5, second)
    twin = shares_of_pairs(np.stack((first, moved), axis=1))
    assert np.abs(twin[twin > 0] - 0.1).max() > bound
