"""Scores by group: activity, popularity, and columns of tables, with and without noise."""

import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from discreet import Biases, Popularity, UserFactorization
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.data.splits import leave_one_out, random_split
from discreet.evaluation import Evaluation, evaluate, render_report
from discreet.evaluation.groups import Grouping
from discreet.evaluation.results import KeptEvaluations
from discreet.evaluation.scoring import measure
from discreet.sources.sharding import make_shards
from discreet.sources.shards import open_shards
from discreet.testing import refuses


@pytest.fixture(scope="module")
def data():
    return popularity_skewed(n_users=120, n_items=60, mean_per_user=20)


def users(data, **columns):
    return pl.DataFrame({"user": data.users.ids, **columns})


def test_groups_of_users_and_items_divide_the_held_out_rows(data):
    split = random_split(data, 0.2, 0)
    lengths = np.diff(split.train.indptr)[split.test.rows()]
    quarters = Grouping(by="activity").of(split.train, split.test)
    assert len(quarters) == 4
    assert np.array_equal(
        sum(flags.astype(int) for flags in quarters.values()), np.ones(split.test.n_ratings)
    )
    ends = [(lengths[flags].min(), lengths[flags].max()) for flags in quarters.values()]
    assert all(most < least for (_, most), (least, _) in pairwise(ends))
    counts = np.bincount(split.train.items, minlength=data.n_items)[split.test.items]
    thirds = Grouping(by="popularity").of(split.train, split.test)
    means = [counts[flags].mean() for flags in thirds.values()]
    assert means == sorted(means, reverse=True)
    assert sum(flags.sum() for flags in thirds.values()) == split.test.n_ratings


def test_each_group_is_scored_on_its_own_rows_with_and_without_noise(data):
    table = users(data, club=["red" if row % 3 else "blue" for row in range(data.n_users)])
    found = evaluate(
        Biases(epsilon=1), data, metrics="rmse", split="random:0.2", by="club", user_features=table, repeat=2
    )
    assert list(found.groups) == ["blue", "red"]
    whole = sum(group.held_out * np.square(group.metrics["rmse"].values) for group in found.groups.values())
    rows = sum(group.held_out for group in found.groups.values())
    assert np.sqrt(whole / rows) == pytest.approx(found.metrics["rmse"].values, rel=0.02)
    for group in found.groups.values():
        assert group.lost("rmse") == pytest.approx(
            group.metrics["rmse"].mean / group.without_noise["rmse"].mean - 1
        )


def test_of_a_hit_rate_the_loss_is_what_is_missing(data):
    split = leave_one_out(data, 0)
    found = evaluate(Popularity(epsilon=0.1), data, split=split, metrics="hr@10", by="popularity")
    for name, flags in Grouping(by="popularity").of(split.train, split.test).items():
        plain = Popularity(epsilon=math.inf).fit(split.train, random=PrivacyRandom.simulate(0))
        exact = measure(plain, split.train, split.test.where(flags), "hr@10")["hr@10"]
        group = found.groups[name]
        assert group.without_noise["hr@10"].mean == exact
        assert group.held_out == flags.sum()
        if exact:
            assert group.lost("hr@10") == pytest.approx(1 - group.metrics["hr@10"].mean / exact)


def test_lists_of_words_put_an_item_into_several_groups(data):
    genres = ["drama|war" if item % 2 else "drama" for item in range(data.n_items)]
    table = pl.DataFrame({"item": data.catalog.ids, "genres": genres})
    found = Grouping(by="genres", item_features=table).of(data, data)
    assert found["drama"].all()
    assert np.array_equal(found["war"], data.items % 2 == 1)


def test_rare_values_are_one_group(data):
    found = Grouping(by="town", user_features=users(data, town=[f"t{row % 40}" for row in range(120)]))
    groups = found.of(data, data)
    assert len(groups) == 13
    assert list(groups)[-1] == "others"


def test_without_noise_nothing_is_compared(data):
    found = evaluate(UserFactorization(epsilon=math.inf), data, metrics="rmse", by="activity")
    assert all(group.lost("rmse") is None for group in found.groups.values())


def test_groups_are_kept_and_shown(data, tmp_path):
    found = evaluate(Biases(epsilon=1), data, metrics="rmse", by="activity")
    KeptEvaluations(tmp_path / "kept").add("one", found)
    again = KeptEvaluations(tmp_path / "kept").get("one")
    assert isinstance(again, Evaluation)
    assert again.groups == found.groups
    shown = render_report([found], title="Groups")
    assert all(name in shown for name in found.groups)


def test_a_column_needs_a_table_that_has_it(data):
    with refuses("groups-need-table", column="age"):
        evaluate(Biases(epsilon=1), data, metrics="rmse", by="age")
    with refuses("unknown-choice", name="by"):
        evaluate(Biases(epsilon=1), data, metrics="rmse", by="age", user_features=users(data, club=[1] * 120))


def test_shards_have_no_groups(data, tmp_path):
    table = pl.DataFrame({"user": data.rows(), "item": data.items, "rating": data.values})
    table.write_parquet(tmp_path / "ratings.parquet")
    make_shards([tmp_path / "ratings.parquet"], tmp_path / "shards", n_shards=2, low=1, high=5)
    with refuses("metric-does-not-fit"):
        evaluate(Biases(epsilon=1), open_shards(tmp_path / "shards"), metrics="rmse", by="activity")
