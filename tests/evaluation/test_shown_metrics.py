"""Diversity and calibration: worked by hand, and asked for through the doors that people use."""

import math

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import evaluate_privately, from_frame
from discreet.data.item_tables import item_words
from discreet.data.splits import leave_one_out
from discreet.evaluation import evaluate, measure
from discreet.evaluation import shown_metrics as shown
from discreet.evaluation.ranking_metrics import among_first, listed
from discreet.evaluation.scoring import ranking_references
from discreet.testing import refuses
from toy import toy_interactions

ASKED = "diversity@5,calibration@5"
CONTENT = "content-diversity@5,content-calibration@5"


@pytest.fixture(scope="module")
def data():
    return toy_interactions()


def small():
    """Four users, four items: a and b always together, c and d alone."""
    return from_frame(
        pl.DataFrame({"user": [1, 1, 2, 2, 3, 4], "item": ["a", "b", "a", "b", "c", "d"]}), implicit=True
    )


def places(data, *items):
    return [int(data.catalog.index_of([item])[0]) if item else -1 for item in items]


def test_diversity_is_the_mean_distance_of_two_items():
    data = small()
    context = shown.ListContext(data)
    lists = np.array([places(data, "a", "b", ""), places(data, "a", "c", "d"), places(data, "a", "b", "c")])
    found = shown.diversity(lists, np.arange(3), context)
    # Cosines: a with b is 1, all others 0.
    np.testing.assert_allclose(found, [0.0, 1.0, 1 - 1 / 3], atol=1e-12)
    assert np.isnan(shown.diversity(np.array([places(data, "a", "")]), np.arange(1), context)).all()


def test_calibration_is_the_divergence_of_steck():
    data = small()
    table = pl.DataFrame({"item": ["a", "b", "c", "d"], "genre": ["war", "war", "war|love", "love"]})
    context = shown.ListContext(data, item_words(table, data.catalog))
    rows = data.users.index_of([1, 3])
    lists = np.array([places(data, "c", "d"), places(data, "c", "d")])
    found = shown.content_calibration(lists, np.asarray(rows), context)
    # The first has war alone and gets a quarter of it; the second has both and gets 1/4 and 3/4.
    one = math.log(1 / (0.99 * 0.25 + 0.01))
    two = 0.5 * math.log(0.5 / (0.99 * 0.25 + 0.005)) + 0.5 * math.log(0.5 / (0.99 * 0.75 + 0.005))
    np.testing.assert_allclose(found, [one, two], rtol=1e-12)
    # A list with the groups of the history has none, and one without them the most there is.
    same = shown.content_calibration(np.array([places(data, "a", "b")]), rows[:1], context)
    other = shown.content_calibration(np.array([places(data, "d", "")]), rows[:1], context)
    np.testing.assert_allclose([same[0], other[0]], [0.0, math.log(100)], atol=1e-12)


def test_groups_of_popularity_are_head_middle_and_tail():
    counts = [40, 30, 10, 10, 5, 5]
    rows = [(user, item) for item, count in enumerate(counts) for user in range(count)]
    data = from_frame(pl.DataFrame(rows, schema=["user", "item"], orient="row"), implicit=True)
    groups = shown.ListContext(data).popularity_groups.toarray().argmax(axis=1)
    order = [int(data.catalog.index_of([item])[0]) for item in range(6)]
    assert groups[order].tolist() == [0, 1, 1, 1, 2, 2]


def test_lists_that_follow_popularity_are_less_diverse_and_less_calibrated(data):
    split = leave_one_out(data)
    references = ranking_references(split.train)
    popular = measure(references["popularity"], split.train, split.test, ASKED)
    chance = measure(references["chance"], split.train, split.test, ASKED)
    assert 0 < popular["diversity@5"] < chance["diversity@5"] <= 1
    assert all(0 <= one["calibration@5"] <= math.log(100) for one in (popular, chance))
    few = measure(references["popularity"], split.train, split.test, "diversity@5:few,hr@5")
    assert set(few) == {"diversity@5:few", "hr@5"}


def test_items_are_compared_by_a_bounded_number_of_users(data, monkeypatch):
    whole = shown.ListContext(data).neighbors
    monkeypatch.setattr(shown, "_USERS", 50)
    part = shown.ListContext(data).neighbors
    assert whole.shape[1] == data.n_users and part.shape == (data.n_items, 50)
    again = shown.ListContext(data).neighbors
    assert (part != again).nnz == 0


def test_content_needs_a_table(data):
    model = discreet.Popularity(epsilon=math.inf)
    with refuses("table-needed", metric="content-diversity@5"):
        evaluate(model, data, split="leave-one-out", metrics=CONTENT)
    ids = data.catalog.ids.tolist()
    table = pl.DataFrame({"item": ids, "genre": ["war|love" if k % 3 else "love" for k in range(len(ids))]})
    found = evaluate(
        model, data, split="leave-one-out", metrics=CONTENT, item_features=table, references=True
    )
    assert 0 <= found.metrics["content-diversity@5"].mean <= 1
    # Lists of chance would be the same for everybody, so only popularity is a baseline of variety.
    assert [name.rpartition(" ")[2] for name in found.references] == ["popularity"]
    other = pl.DataFrame({"item": ["nothing", "here"], "genre": ["war", "war"]})
    with refuses("no-shared-words"):
        evaluate(model, data, split="leave-one-out", metrics=CONTENT, item_features=other)


def test_they_have_no_private_form_and_none_for_sampled_items(data):
    released = discreet.Popularity(epsilon=1.0).fit(data)
    for name in (*ASKED.split(","), *CONTENT.split(",")):
        with refuses("metric-does-not-fit", subject="private scores"):
            evaluate_privately(released, data, epsilon=1.0, metric=name)
        with refuses("unknown-metric"):
            measure(released, data, data, f"{name}:99")


def test_marked_items_are_listed_in_catalog_order():
    scores = np.array([[3, 1, 3, 2], [-np.inf, 5, -np.inf, -np.inf]], dtype=np.float32)
    assert listed(among_first(scores, 2), 2).tolist() == [[0, 2], [1, -1]]
