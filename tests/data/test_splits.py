"""Splits part ratings, lose none, and keep people and catalog."""

import os
from pathlib import Path

import numpy as np
import pytest

from discreet.core.checks import DataError, ParameterError
from discreet.data import Interactions, read
from discreet.data.splits import given, kfold, leave_one_out, parse_split, random_split, time_split
from discreet.testing import refuses

needs_data = pytest.mark.skipif("DISCREET_DATA" not in os.environ, reason="DISCREET_DATA names no folder")


def some(n_users=30, per_user=8, n_items=20, seed=1, times=False):
    draw = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), per_user)
    items = np.concatenate([draw.permutation(n_items)[:per_user] for _ in range(n_users)])
    order = draw.permutation(users.size)
    stamps = draw.integers(0, 4, users.size) if times else None
    return Interactions.from_arrays(users[order], items[order], draw.integers(1, 6, users.size), stamps)


def keys(data):
    return set((data.rows().astype(np.int64) * data.n_items + data.items).tolist())


def parted(split, data):
    assert split.train.users is data.users and split.test.catalog is data.catalog
    assert keys(split.train).isdisjoint(keys(split.test))
    return keys(split.train) | keys(split.test) == keys(data)


def test_a_random_split_parts_all_ratings_and_a_seed_repeats_it():
    data = some()
    split, again, other = (random_split(data, 0.25, seed) for seed in (3, 3, 4))
    assert parted(split, data) and split.test.n_ratings == 60
    assert keys(split.test) == keys(again.test) != keys(other.test)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 2, float("nan")])
def test_fractions_that_leave_nothing_are_refused(fraction):
    with pytest.raises(ParameterError):
        random_split(some(), fraction, 0)


def test_too_few_ratings_are_refused():
    one = Interactions.from_arrays([1], [1], [1])
    for attempt in (lambda: random_split(one, 0.5, 0), lambda: kfold(one, 2, 0), lambda: leave_one_out(one)):
        with pytest.raises(DataError):
            attempt()


@pytest.mark.parametrize("k", [2, 7])
def test_folds_are_disjoint_even_and_cover_everything(k):
    data = some()
    splits = list(kfold(data, k, 5))
    assert all(parted(split, data) for split in splits)
    sizes = [split.test.n_ratings for split in splits]
    assert sum(sizes) == data.n_ratings and max(sizes) - min(sizes) <= 1
    assert set().union(*(keys(split.test) for split in splits)) == keys(data)


def held_out(data, seed=0):
    test = leave_one_out(data, seed).test
    ids = test.users.id_at(test.rows()).tolist(), test.catalog.id_at(test.items).tolist()
    return dict(zip(*ids, strict=True))


def test_the_latest_is_left_out_and_of_equals_the_last_listed():
    users, items = [1, 1, 1, 2, 2, 2, 3], [30, 10, 20, 30, 20, 10, 10]
    times = [5, 9, 9, 7, 7, 6, 1]
    assert held_out(Interactions.from_arrays(users, items, times=times)) == {1: 20, 2: 20}


def test_without_times_one_of_each_person_is_drawn_and_a_seed_repeats_it():
    data = some()
    assert held_out(data, 3) == held_out(data, 3) != held_out(data, 4)
    assert len(held_out(data)) == data.n_users and parted(leave_one_out(data), data)
    lonely = Interactions.from_arrays([1, 2, 2, 4], [10, 10, 20, 20])
    assert set(held_out(lonely)) == {2}


@pytest.mark.parametrize("time", [None, 17.0])
def test_without_an_order_in_time_every_place_in_a_row_is_equally_likely(time):
    """Four ratings a person in the order of items; Hoeffding's bound keeps both errors below 1e-9."""
    n_people = 20_000
    bound = np.sqrt(np.log(2 * 4 / 1e-9) / (2 * n_people))
    assert bound < 0.05
    users, items = np.repeat(np.arange(n_people), 4), np.tile(np.arange(4), n_people)
    times = None if time is None else np.full(items.size, time)
    hidden = leave_one_out(Interactions.from_arrays(users, items, times=times), 7).test.items
    shares = np.bincount(hidden, minlength=4) / n_people
    assert np.abs(shares - 0.25).max() < bound
    # The twin hides the first listed, which in a file sorted by item is always the same item.
    twin = np.bincount(np.zeros(n_people, dtype=int), minlength=4) / n_people
    assert np.abs(twin - 0.25).max() > bound


def test_leave_one_out_agrees_with_a_plain_loop():
    data = some(times=True)
    expected = {}
    for row in range(data.n_users):
        span = range(data.indptr[row], data.indptr[row + 1])
        best = max(span, key=lambda k: (data.times[k], data.listed[k]))
        expected[row] = int(data.catalog.id_at(data.items[best]))
    assert held_out(data) == expected
    assert parted(leave_one_out(data), data)


def test_one_moment_cuts_everybodys_ratings():
    times = [1, 2, 3, 4, 5, 5, 5, 6, 7, 8]
    data = Interactions.from_arrays([1, 1, 1, 1, 2, 2, 2, 2, 3, 3], [1, 2, 3, 4] * 2 + [1, 2], times=times)
    split = time_split(data, 0.3)
    assert parted(split, data) and sorted(split.test.times.tolist()) == [6, 7, 8]
    # A cut through a moment is moved to its nearer end.
    assert time_split(data, 0.4).test.n_ratings == 3
    assert time_split(data, 0.55).test.n_ratings == 6
    assert time_split(data, 0.999).train.n_ratings == 1
    assert next(parse_split("time:0.3").splits(data, 9)).test.n_ratings == 3


def test_what_has_no_times_is_not_split_by_time():
    with refuses("split-needs-times"):
        time_split(some(), 0.1)
    with refuses("too-few-to-split", why="moment"):
        time_split(Interactions.from_arrays([1, 1], [1, 2], times=[3, 3]), 0.1)
    with refuses("broken-rule", name="fraction", value=1.0):
        time_split(some(times=True), 1.0)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.base").write_text("1\t10\t3\n1\t20\t4\n2\t10\t5\n")
    (tmp_path / "a.test").write_text("1\t30\t2\n3\t10\t1\n")
    return tmp_path


def test_given_files_share_people_and_catalog(files):
    for split in (given("a.base", "a.test", folder=files), given(files / "a.base", files / "a.test")):
        assert (split.train.n_ratings, split.test.n_ratings) == (3, 2)
        assert split.train.users.ids.tolist() == [1, 2, 3] and split.test.catalog.ids.tolist() == [10, 20, 30]
        assert split.train.facts == split.test.facts and split.train.facts.low == 1
        assert split.test.values.tolist() == [2, 1]


def test_given_files_that_cannot_be_are_refused(files):
    with refuses("no-files"):
        given("b.base", "a.test", folder=files)
    with refuses("given-split-wrong", count=3, of=3, why="shared"):
        given("a.base", "a.base", folder=files)
    (files / "twice.test").write_text("1\t30\t2\n1\t30\t1\n")
    with refuses("given-split-wrong", count=1, why="repeated"):
        given("a.base", "twice.test", folder=files)


@pytest.mark.parametrize(("rule", "kept"), [("first", 2), ("last", 1), ("mean", 1.5)])
@pytest.mark.parametrize("tester", [1, 3])
def test_repeats_in_given_files_follow_the_rule_for_duplicates(files, rule, kept, tester):
    """Also where the rows of both files together are sorted already."""
    (files / "twice.base").write_text("1\t10\t2\n1\t10\t1\n1\t20\t4\n")
    (files / "twice.test").write_text(f"{tester}\t30\t2\n{tester}\t30\t1\n")
    split = given("twice.base", "twice.test", folder=files, duplicates=rule, low=1, high=5)
    assert split.train.values.tolist() == [kept, 4] and split.test.values.tolist() == [kept]
    assert split.test.catalog.id_at(split.test.items).tolist() == [30]


def test_hidden_interactions_that_a_user_has_are_counted_and_not_tested(files, caplog):
    (files / "more.test").write_text("1\t30\t2\n1\t20\t5\n3\t10\t1\n1\t30\t2\n")
    split = given("a.base", "more.test", folder=files, implicit=True, duplicates="last")
    assert (split.train.n_ratings, split.test.n_ratings) == (3, 2)
    assert split.test.catalog.id_at(split.test.items).tolist() == [30, 10]
    assert [one.args for one in caplog.records] == [("1", "4")]
    with refuses("given-split-wrong", count=1, of=4, why="shared"):
        given("a.base", "more.test", folder=files, duplicates="last")
    with refuses("too-few-to-split", why="empty"):
        given("a.base", "a.base", folder=files, implicit=True)


def test_a_plan_is_read_from_words_and_carried_out(files):
    data = some()
    assert [split.test.n_ratings for split in parse_split("random:0.25").splits(data, 1)] == [60]
    assert len(list(parse_split(" kfold:4 ").splits(data, 1))) == 4
    assert next(parse_split("leave-one-out").splits(data, 1)).test.n_ratings == 30
    whole = Interactions.from_arrays([1, 1, 2, 1, 3, 4], [10, 20, 10, 30, 10, 40], [3, 4, 5, 2, 1, 1])
    split = next(parse_split("given:a.base,a.test").splits(whole, 1, folder=files))
    assert split.train.users is whole.users and split.test.n_ratings == 2


def test_test_rows_about_items_that_were_not_declared_are_counted_and_skipped(files, caplog):
    plan, base = parse_split("given:a.base,a.test"), files / "a.base"
    split = next(plan.splits(read(base, low=1, high=5), 1, folder=files))
    assert (split.train.n_ratings, split.test.n_ratings) == (3, 1)
    assert [one.args for one in caplog.records] == [("1", "2")]
    # The twins: a declared catalog is kept to, and ids that are written in another way are reported.
    with refuses("not-declared", count=1):
        next(plan.splits(read(base, catalog=[10, 20], low=1, high=5), 1, folder=files))
    (files / "a.test").write_text("1\t300\t2\n3\t100\t1\n")
    with refuses("not-declared", count=2):
        next(plan.splits(read(base, low=1, high=5), 1, folder=files))


def test_skipped_training_rows_leave_the_test_rows_hidden(files):
    few = read(files / "a.test", catalog=[10, 30], low=1, high=5)
    split = next(parse_split("given:a.base,a.test").splits(few, 1, folder=files, drop_unknown=True))
    assert (split.train.n_ratings, split.test.n_ratings) == (2, 2)


@pytest.fixture
def events(tmp_path):
    """Events of one shop: all of them, and the same parted into two files."""
    rows = ["ann,tea,view", "ann,jam,buy", "bob,tea,buy", "bob,jam,view", "cat,tea,buy"]
    later = ["ann,ham,buy", "bob,ham,view", "cat,jam,buy", "cat,jam,buy"]
    for name, part in (("all", [*rows, *later]), ("train", rows), ("test", later)):
        (tmp_path / f"{name}.csv").write_text("\n".join(["who,what,event", *part]) + "\n")
    # The same columns in another order.
    turned = ["event,what,who", *(",".join(reversed(row.split(","))) for row in later)]
    (tmp_path / "turned.csv").write_text("\n".join(turned) + "\n")
    return tmp_path


def pairs(data):
    users, items = data.users.id_at(data.rows()), data.catalog.id_at(data.items)
    return dict(zip(zip(users.tolist(), items.tolist(), strict=True), data.values.tolist(), strict=True))


@pytest.mark.parametrize("test", ["test.csv", "turned.csv"])
@pytest.mark.parametrize("declared", [False, True])
def test_given_files_follow_the_conditions_weights_and_removals_of_the_data(events, test, declared):
    plan = parse_split(f"given:train.csv,{test}")

    def parted_like(**options):
        data = read(events / "all.csv", columns={"user": "who", "item": "what"}, implicit=True, **options)
        if declared:
            schema = data.schema
            data = read(events / "all.csv", implicit=True, schema=schema, duplicates=schema.duplicates)
        return data, lambda data: next(
            plan.splits(data, 1, folder=events, columns={"user": "who", "item": "what"})
        )

    data, split = parted_like(only="event=buy", duplicates="last")
    assert pairs(split(data).train) == {("ann", "jam"): 1, ("bob", "tea"): 1, ("cat", "tea"): 1}
    assert pairs(split(data).test) == {("ann", "ham"): 1, ("cat", "jam"): 1}
    data, split = parted_like(weights="event=view:1,buy:5", duplicates="count")
    weighed = split(data)
    assert weighed.train.facts == data.facts and weighed.train.facts.weights
    assert pairs(weighed.train)["ann", "tea"] == 1 and pairs(weighed.train)["ann", "jam"] == 5
    assert pairs(weighed.test) == {("ann", "ham"): 5, ("bob", "ham"): 1, ("cat", "jam"): 10}
    data, split = parted_like(duplicates="last")
    fewer = split(data.without_people(["ann"]).without_people(iter(["bob"])))
    assert {user for user, _ in pairs(fewer.train) | pairs(fewer.test)} == {"cat"}
    # The twin: without a removal all are read.
    assert {user for user, _ in pairs(split(data).train)} == {"ann", "bob", "cat"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "random:2",
        "random:x",
        "kfold:1",
        "kfold:2.5",
        "leave-one-out:3",
        "time:1",
        "given:a",
        "given:a,b,c",
        "x:1,2",
    ],
)
def test_other_words_are_refused(text):
    with refuses("broken-rule", name="split", value=text):
        parse_split(text)


@needs_data
def test_the_published_splits_of_movielens_come_back_whole():
    folder = Path(os.environ["DISCREET_DATA"]) / "ml-100k"
    split = given("u1.base", "u1.test", folder=folder, low=1, high=5, step=1, n_items=1682)
    assert (split.train.n_ratings, split.test.n_ratings) == (80_000, 20_000)
    assert (split.train.n_users, split.train.n_items) == (943, 1682)
    assert np.unique(split.test.rows()).size == 459


def test_a_split_needs_no_number_and_says_in_words_what_it_holds_out(snapshot):
    for text, same in (("random", "random:0.1"), ("time", "time:0.1"), ("kfold", "kfold:10")):
        assert parse_split(text) == parse_split(same)
    texts = ("random:0.25", "time", "kfold:5", "given:a.csv,b.csv", "time:2026-01-31")
    snapshot("\n".join(parse_split(text).held_out(timed=True) for text in texts))
