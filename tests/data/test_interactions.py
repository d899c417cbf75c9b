"""Interactions keep what came, in order, and bound a person by that person's own row."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.checks import DataError, ParameterError
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.data.bounding import clip_to_scale, hash_ids
from discreet.testing import refuses


def small(**options):
    users = ["bob", "ann", "bob", "cat", "ann"]
    items = [30, 10, 20, 10, 30]
    return Interactions.from_arrays(users, items, [3, 1, 2, 5, 4], **options)


def cells(data):
    ids = data.users.id_at(data.rows()).tolist(), data.catalog.id_at(data.items).tolist()
    return dict(zip(zip(*ids, strict=True), data.values.tolist(), strict=True))


pairs = st.dictionaries(
    st.tuples(st.integers(-5, 12), st.integers(0, 9)), st.integers(1, 5), min_size=1, max_size=40
).flatmap(lambda table: st.permutations(list(table.items())))


@given(pairs)
def test_every_rating_comes_back_in_order_whatever_the_order_it_came_in(table):
    users, items = ([pair[axis] for pair, _ in table] for axis in (0, 1))
    data = Interactions.from_arrays(users, items, [value for _, value in table])
    assert cells(data) == {pair: float(value) for pair, value in table}
    assert data.indptr.dtype == np.int64 and data.items.dtype == np.int32 and data.values.dtype == np.float32
    keys = data.rows().astype(np.int64) * data.n_items + data.items
    assert np.all(np.diff(keys) > 0)
    listed = np.arange(data.n_ratings) if data.listed is None else data.listed
    assert [users[k] for k in listed] == data.users.id_at(data.rows()).tolist()


@given(pairs)
def test_the_twin_by_item_is_the_transpose(table):
    data = Interactions.from_arrays(
        [u for (u, _), _ in table], [i for (_, i), _ in table], [v for _, v in table]
    )
    twin = data.by_item
    dense = sp.csc_array((twin.values, twin.users, twin.indptr), shape=(data.n_users, data.n_items)).toarray()
    assert np.array_equal(dense, data.to_scipy().toarray())
    assert np.array_equal(data.values[twin.order], twin.values)
    assert np.array_equal(data.rows()[twin.order], twin.users)
    assert data.by_item is twin


def test_arrays_are_read_only_and_the_object_is_frozen():
    data = small(times=[1, 2, 3, 4, 5])
    for array in (data.indptr, data.items, data.values, data.times, data.listed, data.by_item.users):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        data.name = "other"


def test_a_caller_keeps_the_right_to_write_to_its_own_arrays():
    values = np.array([1.0, 2.0], dtype=np.float32)
    Interactions.from_arrays([0, 1], [0, 1], values)
    values[0] = 5
    assert values[0] == 5


def test_facts_not_declared_are_named_and_people_are_not_counted():
    facts = small().facts
    assert facts.from_file == ("n_items", "scale")
    assert (facts.n_items, facts.low, facts.high, facts.step, facts.n_users) == (3, 1.0, 5.0, 1.0, None)
    assert facts.max_per_user is None
    assert [fact for kind, fact, _ in facts.statements() if kind == "taken"] == ["catalog", "scale"]


def test_declared_facts_are_not_named():
    facts = small(low=0, high=5, step=1, n_users=10, catalog=Vocabulary.of([10, 20, 30, 40])).facts
    assert facts.from_file == () and facts.n_items == 4
    assert {kind for kind, _, _ in facts.statements()} == {"declared"}


def test_facts_survive_json():
    facts = PublicFacts(n_items=7, low=-10, high=10, max_per_user=3, n_users=64, from_file=("n_items",))
    assert PublicFacts.from_json(facts.to_json()) == facts
    with refuses("damaged-facts"):
        PublicFacts.from_json({"n_items": 3})


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_items": 0},
        {"n_items": 3, "low": 2, "high": 1},
        {"n_items": 3, "step": 0},
        {"n_items": 3, "max_per_user": 0},
        {"n_items": 3, "high": float("inf")},
        {"n_items": 3, "from_file": ("age",)},
    ],
)
def test_facts_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError):
        PublicFacts(**wrong)


def test_a_declared_number_of_items_stands_for_a_range():
    assert Interactions.from_arrays([1, 2], [0, 3], n_items=5).catalog == Vocabulary.range(5)
    assert Interactions.from_arrays([1, 2], [1, 5], n_items=5).catalog == Vocabulary.range(5, 1)
    facts = PublicFacts(n_items=5)
    assert Interactions.from_arrays([1, 2], [1, 2], [3, 4], facts=facts).n_items == 5
    with refuses("other-number-of-items", declared=5, items=2):
        Interactions.from_arrays([1, 2], [10, 20], n_items=5)
    with refuses("other-number-of-items", declared=5, items=2):
        Interactions.from_arrays([1, 2], ["a", "b"], n_items=5)


def test_without_values_every_rating_is_one():
    data = Interactions.from_arrays([1, 2], [3, 4])
    assert data.values.tolist() == [1, 1]
    assert (data.facts.low, data.facts.high) == (1, 1) and "scale" not in data.facts.from_file


def test_an_empty_history_is_legal_when_the_catalog_is_declared():
    catalog = Vocabulary.of(["a", "b"])
    data = Interactions.from_arrays([], [], [], catalog=catalog, people=Vocabulary.of([1]), low=1, high=5)
    assert (data.n_users, data.n_items, data.n_ratings) == (1, 2, 0)
    for without in ({}, {"catalog": catalog}):
        with refuses("no-rows"):
            Interactions.from_arrays([], [], [], **without)
    assert data.bounded(1).n_ratings == 0 and data.by_item.indptr.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        (([1, 1, 1], [2, 2, 3], [1, 2, 3]), "repeated-pairs"),
        (([1, 1], [2, 3], [1, float("nan")]), "bad-values"),
        (([1, 1], [2, 3], [1, 1e39]), "bad-values"),
        (([1, 1], [2, 3], ["five", "six"]), "not-numeric"),
        (([1, 1, 2], [2, 3], [1, 2]), "other-lengths"),
        (([1, None], [2, 3], [1, 2]), "ids-missing"),
        (([1, 2], [2.5, 3], [1, 2]), "ids-missing"),
        (([1, 2], [2, 3], [1, 2], [7, None]), "bad-values"),
    ],
)
def test_bad_columns_are_refused_in_one_sentence(columns, code):
    with refuses(code) as caught:
        Interactions.from_arrays(*columns)
    assert "\n" not in str(caught.value)


def test_ratings_outside_the_scale_are_counted_and_never_quoted():
    with pytest.raises(DataError) as caught:
        Interactions.from_arrays([1, 1, 2], [1, 2, 3], [4711, 3, 4712], low=1, high=5)
    assert caught.value.facts() == {"count": 2, "of": 3, "low": 1.0, "high": 5.0, "step": None}
    assert "471" not in str(caught.value)
    with refuses("off-declared-scale", count=1, of=2, step=1.0):
        Interactions.from_arrays([1, 2], [1, 2], [3.5, 3], low=1, high=5, step=1)


def test_repeated_pairs_can_be_merged():
    columns = ([7, 8, 7, 7, 8], [1, 1, 1, 2, 1], [5, 2, 1, 4, 4], [10, 20, 5, 30, 40])
    last = Interactions.from_arrays(*columns, duplicates="last")
    mean = Interactions.from_arrays(*columns, duplicates="mean")
    assert cells(last) == {(7, 1): 5, (7, 2): 4, (8, 1): 4}
    assert cells(mean) == {(7, 1): 3, (7, 2): 4, (8, 1): 3}
    assert last.times.tolist() == mean.times.tolist() == [10, 30, 40] and last.indptr.tolist() == [0, 2, 3]
    untimed = Interactions.from_arrays(*columns[:3], duplicates="last")
    assert cells(untimed) == {(7, 1): 1, (7, 2): 4, (8, 1): 4}
    with refuses("unknown-choice", name="duplicates", value="any"):
        Interactions.from_arrays(*columns, duplicates="any")


def test_selections_keep_ids_and_values_together():
    data = small(times=[1, 2, 3, 4, 5])
    assert cells(data.where(data.values > 2)) == {("ann", 30): 4, ("bob", 30): 3, ("cat", 10): 5}
    assert data.where(data.values > 2).n_users == 3
    two = data.select_users([2, 0])
    assert two.users.ids.tolist() == ["cat", "ann"] and cells(two) == {
        ("ann", 10): 1,
        ("ann", 30): 4,
        ("cat", 10): 5,
    }
    assert cells(data.select_users(np.array([False, True, False]))) == {("bob", 20): 2, ("bob", 30): 3}
    backward = data.select_items([2, 0])
    assert backward.catalog.ids.tolist() == [30, 10] and backward.facts.n_items == 2
    assert cells(backward) == {("ann", 10): 1, ("ann", 30): 4, ("bob", 30): 3, ("cat", 10): 5}
    assert np.all(np.diff(backward.items[:2]) > 0) and backward.times.tolist() == [5, 2, 1, 4]


def test_selections_that_cannot_be_are_refused():
    data = small()
    for wrong in ([0, 0], [3], [-1], np.array([True])):
        with pytest.raises((ParameterError, DataError)):
            data.select_users(wrong)
    with pytest.raises(ParameterError):
        data.where(np.array([True]))
    with refuses("unsound-rows", rule="lengths"):
        data.with_values([1, 2])
    with pytest.raises(ParameterError):
        data.with_facts(PublicFacts(n_items=99))


def test_with_values_changes_values_only():
    data = small()
    signs = data.with_values(np.sign(data.values - 2.5), facts=replace(data.facts, low=-1, high=1, step=2))
    assert set(signs.values.tolist()) == {-1.0, 1.0} and signs.items is not None
    assert np.array_equal(signs.items, data.items) and data.values.min() == 1


def test_bounding_clips_and_never_leaves_the_scale():
    data = small().with_facts(PublicFacts(n_items=3, low=2, high=4))
    assert data.bounded().values.min() == 2 and data.bounded().values.max() == 4
    # 0.1 is not a 32-bit number; its nearest one lies above it.
    clipped = clip_to_scale(np.array([9.0, -9.0], dtype=np.float32), -0.1, 0.1)
    assert np.all(np.abs(clipped.astype(np.float64)) <= 0.1)


def test_the_smaller_cap_holds():
    data = small().with_facts(PublicFacts(n_items=3, max_per_user=1))
    assert np.diff(data.bounded(2).indptr).tolist() == [1, 1, 1]
    assert data.bounded().facts.max_per_user == 1
    assert small().bounded(2).facts.max_per_user == 2


def heavy(times=None, people=range(40), ids=str):
    users = np.repeat(list(people), 25)
    items = np.tile(np.arange(25), len(people))
    return Interactions.from_arrays([ids(u) for u in users], items, times=times, n_items=25)


def test_the_cap_keeps_the_latest():
    times = np.random.default_rng(3).permutation(1000)
    kept, data = heavy(times=times).bounded(4), heavy(times=times)
    for row in range(data.n_users):
        whole = data.times[data.indptr[row] : data.indptr[row + 1]]
        assert sorted(kept.times[kept.indptr[row] : kept.indptr[row + 1]]) == sorted(whole)[-4:]


@pytest.mark.parametrize("ties", [1, 3, 1000])
def test_the_cap_agrees_with_a_plain_loop(ties):
    draw = np.random.default_rng(ties)
    taken = draw.random((60, 25)) < 0.6
    users, items = np.nonzero(taken)
    data = Interactions.from_arrays(users, items, times=draw.integers(0, ties, users.size), n_items=25)
    kept = cells(data.bounded(7))
    for row in range(60):
        span = slice(data.indptr[row], data.indptr[row + 1])
        times = sorted(data.times[span].tolist(), reverse=True)[:7]
        mine = [pair for pair in kept if pair[0] == row]
        assert len(mine) == min(7, taken[row].sum())
        when = dict(
            zip(data.catalog.id_at(data.items[span]).tolist(), data.times[span].tolist(), strict=True)
        )
        assert sorted((when[item] for _, item in mine), reverse=True) == times


def test_a_larger_cap_only_adds():
    data = heavy()
    kept = [set(cells(data.bounded(cap))) for cap in (3, 4, 9, 25)]
    assert kept[0] < kept[1] < kept[2] < kept[3]


@pytest.mark.parametrize("ids", [int, str, lambda u: f"someone-{u}-" + "x" * (u % 7)])
@pytest.mark.parametrize("timed", [False, True])
def test_what_is_kept_of_a_person_does_not_depend_on_other_people(ids, timed):
    def kept(people):
        data = heavy(times=np.zeros(25 * len(people)) if timed else None, people=people, ids=ids).bounded(6)
        return {pair for pair in cells(data) if str(pair[0]) == str(ids(11))}

    alone = kept([11])
    assert len(alone) == 6
    assert alone == kept(range(40)) == kept([500_000, 11, 3])


def test_a_stranger_with_a_text_id_does_not_change_what_is_kept_of_others():
    """A column of numbers becomes text when one person's id is text; the cap must not notice."""

    def kept(people):
        data = heavy(people=range(3)) if people is None else heavy(people=[0, 1, 2, 3], ids=people)
        return {(str(user), item) for user, item, *_ in cells(data.bounded(6)) if str(user) in "012"}

    assert kept(None) == kept(lambda u: "bob" if u == 3 else str(u))


def test_the_hash_favors_no_item():
    data = heavy(people=range(4000)).bounded(5)
    counts = np.bincount(data.items, minlength=25)
    # Each of 4000 people keeps an item with probability 1/5; seven standard deviations.
    assert np.all(np.abs(counts - 800) < 7 * np.sqrt(4000 * 0.2 * 0.8))


def test_the_hash_is_the_one_we_published():
    assert hash_ids(Vocabulary.of([0, 1])).tolist() == [1466504191324546123, 14391278412279324496]
    narrow, wide = Vocabulary.of(["ann"]), Vocabulary.of(["ann", "a much longer name"])
    assert hash_ids(narrow)[0] == hash_ids(wide)[0] == 17993133518716845025


def test_a_vocabulary_translates_both_ways():
    numbers, words = Vocabulary.of([30, 10, 20]), Vocabulary.of(["x", "a", "é"])
    assert numbers.index_of([10, 20, 30, 40, None]).tolist() == [1, 2, 0, -1, -1]
    assert words.index_of(["é", "a", "b", None]).tolist() == [2, 1, -1, -1]
    assert numbers.index_of(["10", "ten"]).tolist() == [1, -1]
    assert Vocabulary.of(["7", "8"]).index_of([8]).tolist() == [1]
    assert numbers.id_at([2, 0]).tolist() == [20, 30] and words.id_at(2) == "é"
    assert numbers.index_of([]).tolist() == [] and 10 in numbers and 11 not in numbers
    assert numbers.ids.dtype == np.int64 and words.ids.dtype == object
    assert Vocabulary.of(words.ids) == words and hash(Vocabulary.of(words.ids)) == hash(words)
    assert Vocabulary.of([1, 2]) != Vocabulary.of(["1", "2"])


def test_a_vocabulary_refuses_repeated_and_missing_ids():
    with refuses("repeated-ids", count=1, of=3):
        Vocabulary.of([1, 2, 1])
    with refuses("ids-missing"):
        Vocabulary.of(["a", None])
    with refuses("wrong-kind", name="ids"):
        Vocabulary.of("abc")


@pytest.mark.parametrize("spread", [1, 10**12])
def test_numbering_agrees_with_numpy_for_narrow_and_wide_ranges(spread):
    ids = np.random.default_rng(5).integers(-50, 50, 500) * spread
    vocabulary, codes = Vocabulary.factorize(ids)
    expected, inverse = np.unique(ids, return_inverse=True)
    assert np.array_equal(vocabulary.ids, expected) and np.array_equal(codes, inverse)
    words, codes = Vocabulary.factorize(pl.Series(ids).cast(pl.String))
    assert np.array_equal(words.ids[codes], ids.astype(str))


def test_people_who_asked_to_be_forgotten_are_left_out():
    data = Interactions.from_arrays(["ann", "bob", "bob", "eve"], [1, 1, 2, 2], [5, 4, 3, 2])
    rest = data.without_people(["bob", "nobody"])
    assert rest.users.ids.tolist() == ["ann", "eve"] and rest.n_ratings == 2 and rest.n_items == 2
    assert data.n_ratings == 4


def test_columns_are_freed_one_by_one():
    """The twin: a column that somebody else holds stays as it is."""
    held = pl.Series([5, 3, 5], dtype=pl.Int32)
    items = pl.concat([pl.Series([2]), pl.Series([1, 1])], rechunk=False)
    columns = [held, items, pl.Series([1.0, 2.0, 3.0]), None]
    data = Interactions.from_columns(columns, name="data")
    assert columns == [] and held.to_list() == [5, 3, 5]
    assert data.items.tolist() == [0, 0, 1] and data.values.tolist() == [2.0, 3.0, 1.0]


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt16, pl.Int32, pl.UInt64])
def test_narrow_ids_are_numbered_as_wide_ones(kind):
    ids = pl.concat([pl.Series([7, 1], dtype=kind), pl.Series([7, 90], dtype=kind)], rechunk=False)
    found, codes = Vocabulary.factorize(ids)
    assert found.ids.tolist() == [1, 7, 90] and codes.tolist() == [1, 0, 1, 2]
