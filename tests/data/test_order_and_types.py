"""The order in which rows were sorted, and the common type of a container, change nothing for other users."""

import math
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet.core.checks import DataError, DiscreetError
from discreet.data import encoding
from discreet.data.block_sizes import other_block_sizes
from discreet.data.encoding import exact_sums
from discreet.data.inputs import accept_history
from discreet.data.interactions import Interactions
from discreet.data.reading.readers import from_frame

FACTS = {"low": 0.0, "high": 5.0}
NANO = 1_700_000_000_000_000_001


def cells(data, without=()):
    """Return what is stored of each user, to the last bit."""
    times = np.zeros(data.n_ratings, np.int64) if data.times is None else data.times
    rows = zip(
        map(str, data.users.id_at(data.rows()).tolist()),
        map(str, data.catalog.id_at(data.items).tolist()),
        data.values.view(np.int32).tolist(),
        times.tolist(),
        strict=True,
    )
    return sorted(row for row in rows if row[0] not in without)


def sums_in_order(values, starts):
    """The twin: doubles, added in the order in which they are listed."""
    return np.add.reduceat(values.astype(np.float64), starts)


def shuffled_sums_agree(sums, draw, runs=300):
    values = [
        draw.choice([1e17, -1e17, 5.0, 0.25, 1e-30, -3.0, 0.0], draw.integers(1, 7)) for _ in range(runs)
    ]
    starts = np.cumsum([0, *(run.size for run in values[:-1])])
    found = sums(np.concatenate(values).astype(np.float32), starts)
    again = sums(np.concatenate([draw.permutation(run) for run in values]).astype(np.float32), starts)
    return np.array_equal(found, again)


def test_a_sum_does_not_depend_on_the_order():
    assert shuffled_sums_agree(exact_sums, np.random.default_rng(1))
    assert not shuffled_sums_agree(sums_in_order, np.random.default_rng(1))


def test_a_sum_is_rounded_once():
    draw = np.random.default_rng(2)
    values = (draw.standard_normal(5000) * 10.0 ** draw.integers(-30, 30, 5000)).astype(np.float32)
    starts = np.flatnonzero(draw.random(5000) < 0.3)
    starts[0] = 0
    expected = [math.fsum(part.astype(float)) for part in np.split(values, starts[1:])]
    assert exact_sums(values, starts).tolist() == expected


# On both sides of 4,096 rows, sorted and not: these are sorted in different ways.
@pytest.mark.parametrize("how", ["count", "mean"])
@pytest.mark.parametrize("strangers", [1, 4096, 5000])
@pytest.mark.parametrize("first", [True, False])
def test_a_strangers_rows_do_not_change_other_users_sums(how, strangers, first):
    draw = np.random.default_rng(3)
    users, rows = 20, 60
    own = pl.DataFrame(
        {
            "user": np.repeat([f"u{k}" for k in range(users)], rows),
            "item": draw.choice(["i0", "i1", "i2"], users * rows),
            "weight": draw.choice([1e17, 5.0, -1e17, 2.0, 0.5], users * rows),
        }
    )
    odd = pl.DataFrame(
        {
            "user": ["zoe"] * strangers,
            "item": [f"i{k % 7}" for k in range(strangers)],
            "weight": [1.0] * strangers,
        }
    )
    options = {"columns": {"weight": "weight"}, "duplicates": how, "low": -1e20, "high": 1e20}
    options["catalog"] = [f"i{k}" for k in range(7)]
    alone = cells(from_frame(own, **options))
    both = pl.concat([odd, own] if first else [own, odd])
    assert cells(from_frame(both, **options), without={"zoe"}) == alone


CONTAINERS = {
    "list": list,
    "objects": lambda times: np.array(times, dtype=object),
    "pandas": lambda times: pd.Series(times, dtype=object),
}
STRANGERS = [1.5, 7, "1.5", "2020-01-01", datetime(2020, 1, 1, tzinfo=UTC), date(2020, 1, 1), np.float32(2.5)]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("stranger", STRANGERS, ids=repr)
def test_a_strangers_time_does_not_round_other_users_times(container, stranger):
    own = [NANO, NANO + 1, NANO + 2, NANO + 3]
    found = []
    for users, times in ((["a", "a", "b", "b"], own), (["a", "a", "b", "b", "zoe"], [*own, stranger])):
        items = [f"i{k % 2}" for k in range(len(users))]
        moments = CONTAINERS[container](times)
        try:
            if container == "pandas":
                frame = pd.DataFrame({"user": users, "item": items, "rating": 4.0, "time": moments})
                data = from_frame(frame, **FACTS)
            else:
                data = Interactions.from_arrays(users, items, [4.0] * len(users), moments, **FACTS)
        except DataError as refused:
            assert str(stranger) not in str(refused) and isinstance(stranger, str | date)
            return
        found.append(cells(data, without={"zoe"}))
    assert found[0] == found[1]


@pytest.mark.parametrize("stranger", ["secret", None, 2**70, float("nan"), b"secret", ["secret"], 1 + 2j])
@pytest.mark.parametrize("role", ["user", "item", "rating", "time"])
def test_no_error_quotes_a_record(role, stranger):
    columns = {"user": ["a", "b"], "item": ["i", "j"], "rating": [3.5, 4], "time": [123456, 234567]}
    columns[role] = [columns[role][0], stranger]
    calls = (
        lambda: Interactions.from_arrays(*columns.values(), **FACTS),
        lambda: from_frame(
            pd.DataFrame({name: pd.Series(one, dtype=object) for name, one in columns.items()}), **FACTS
        ),
    )
    for call in calls:
        try:
            call()
        except DiscreetError as refused:
            chain = [refused]
            while (
                chain[-1].__cause__ or (None if chain[-1].__suppress_context__ else chain[-1].__context__)
            ) is not None:
                chain.append(chain[-1].__cause__ or chain[-1].__context__)
            shown = " ".join(map(str, chain))
            assert "secret" not in shown and str(2**70) not in shown and "123456" not in shown


def test_times_of_a_history_are_read_one_by_one():
    rows = [{"item": "a", "time": NANO}, {"item": "b", "time": 1.5}, {"item": "c", "time": "2020-01-01"}]
    assert accept_history(rows).times.tolist() == [NANO, 1, 1577836800]


@pytest.mark.parametrize("bits", [63, 0])
@pytest.mark.parametrize("count", [0, 1, 7, (1 << 16) + 3])
def test_sorting_keeps_the_order_of_repeated_pairs(bits, count):
    draw = np.random.default_rng(count)
    rows, items = draw.integers(0, 40, count, np.int32), draw.integers(0, 9, count, np.int32)
    with other_block_sizes(key_bits=bits):
        starts, found, order = encoding.by_person_and_item(rows.copy(), items.copy(), 40, 9)
    expected = np.lexsort((items, rows))
    assert (np.arange(count) if order is None else order).tolist() == expected.tolist()
    assert found.tolist() == items[expected].tolist() and np.diff(starts).sum() == count
    assert encoding.by_person_and_item(rows[expected], items[expected], 40, 9)[2] is None
