"""Compiled loops over rows give the bits of the plain formulas that they replace."""

import dataclasses

import numpy as np
import pytest

from discreet.statistics import statistic as blocks
from discreet.statistics.counts import ItemResiduals
from discreet.statistics.statistic import Block, to_fixed_point
from toy import toy_interactions

N_ITEMS = 30


def timed(times, n_users=90, n_items=N_ITEMS, per_user=12):
    data = toy_interactions(n_users=n_users, n_items=n_items, per_user=per_user, seed=3)
    return dataclasses.replace(data, times=np.resize(np.asarray(times, dtype=np.int64), data.n_ratings))


def plain_order(block):
    """Return what one stable sort of all entries by user and time gives."""
    times = block.data.times
    order = np.lexsort((times, block.people))
    same = np.zeros(order.size, dtype=bool)
    same[1:] = (times[order[1:]] == times[order[:-1]]) & (block.people[1:] == block.people[:-1])
    return order, same


ENDS = [np.iinfo(np.int64).min, np.iinfo(np.int64).max]
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    "times",
    [
        np.arange(5_000),
        np.arange(5_000)[::-1],
        RANDOM.integers(0, 3, 1_000),
        RANDOM.integers(-(10**12), 10**12, 1_000),
        [*ENDS, 0, *ENDS, -1],
        [ENDS[0], ENDS[0] + 5],
        [2**58, 0, -1, 2**58 - 1],
        [2**59, 0, 7],
        [7],
    ],
    ids=lambda times: str(list(times[:3])),
)
@pytest.mark.parametrize("shape", [(90, N_ITEMS, 12), (40, 200, 80)], ids=["short rows", "long rows"])
def test_rows_are_put_in_the_order_of_time(times, shape):
    data = timed(times, *shape)
    block = Block(data, 0, data.n_users)
    # Short and long rows are sorted in different ways.
    assert (block.counts.max() >= 48) == (shape[0] == 40)
    for _ in range(2):  # the second time from what was kept
        for found, expected in zip(block.in_time(), plain_order(block), strict=True):
            assert (found == expected).all()


@pytest.mark.parametrize("longer", [0, 1])
def test_orders_are_kept_up_to_the_longest_row_that_16_bits_hold(longer):
    count = (1 << 15) + longer
    times = np.random.default_rng(longer).integers(0, 1_000, count)
    data = dataclasses.replace(
        timed(times).span(0, 1),
        indptr=np.array([0, count]),
        items=np.zeros(count, dtype=np.int32),
        values=np.zeros(count, dtype=np.float32),
        times=times,
        listed=None,
    )
    block = Block(data, 0, 1)
    for _ in range(2):
        for found, expected in zip(block.in_time(), plain_order(block), strict=True):
            assert (found == expected).all()
    assert bool(blocks._orders[data]) == (longer == 0)


@pytest.mark.parametrize("bits", range(0, 40, 3))
def test_long_rows_are_ordered_whatever_the_number_of_digits(bits):
    times = np.random.default_rng(bits).integers(0, 1 << bits, 4_000, endpoint=True)
    data = timed(times, 40, 200, 80)
    block = Block(data, 0, data.n_users)
    for found, expected in zip(block.in_time(), plain_order(block), strict=True):
        assert (found == expected).all()


def test_rows_without_entries_have_no_order():
    data = timed([3, 1, 2])
    rows = np.zeros(data.n_users + 1, dtype=np.int64)
    empty = dataclasses.replace(
        data, indptr=rows, items=data.items[:0], values=data.values[:0], times=data.times[:0], listed=None
    )
    order, same = Block(empty, 0, empty.n_users).in_time()
    assert order.size == same.size == 0


def plain_residuals(statistic, block):
    return [
        np.bincount(block.items, to_fixed_point(part), N_ITEMS).astype(np.int64)
        for part in statistic.weighted(block)
    ]


@pytest.mark.parametrize("size", [1e-30, 0.3, 1e30])
def test_residuals_have_the_bits_of_the_plain_formula(size):
    data = timed([0])
    block = Block(data, 0, data.n_users)
    random = np.random.default_rng(5)
    statistic = ItemResiduals(
        middle=3.0,
        half=2.0,
        mean=0.1,
        effects=random.uniform(-size, size, N_ITEMS),
        item_weights=random.uniform(1e-30, 1.0, N_ITEMS),
        count_part=0.2,
    )
    sums = (np.zeros((2, N_ITEMS), dtype=np.int64),)
    statistic._add(block, sums)
    assert np.abs(sums[0]).max() > 0
    assert (sums[0] == plain_residuals(statistic, block)).all()
    # The twin: other effects give other sums.
    other = dataclasses.replace(statistic, effects=statistic.effects[::-1].copy(), mean=0.7)
    changed = (np.zeros((2, N_ITEMS), dtype=np.int64),)
    other._add(block, changed)
    assert (changed[0] != sums[0]).any()
