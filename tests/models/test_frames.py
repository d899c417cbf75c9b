"""Data frames with any column names, at every door of Python; and ratings that nobody reads."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet
from assumption_examples import conditions, stated
from discreet.core.checks import DataError
from discreet.core.errors import most_similar
from discreet.data.facts import SCALE
from discreet.evaluation.private import evaluate_privately, fit_and_evaluate
from discreet.models.answers import SimilarItem
from discreet.models.private_catalog import PrivateScale
from discreet.privacy.guarantee import Fact, Kind
from discreet.report.guarantee_wording import condition_text
from discreet.testing import refuses
from toy import toy_interactions

NAMED = {"user": "who", "item": "what", "rating": "stars"}
CLICKS = {"user": "who", "item": "what"}


@pytest.fixture(scope="module")
def frame():
    data = toy_interactions(seed=5)
    ids = [f"i{item:03}" for item in data.items.tolist()]
    return pl.DataFrame({"who": data.rows(), "what": ids, "stars": data.values})


@pytest.mark.parametrize("kind", [pl.DataFrame, lambda frame: pd.DataFrame(frame.to_dict(as_series=False))])
def test_columns_are_named_where_the_frame_is_given(frame, kind):
    given = kind(frame)
    model = discreet.Biases(epsilon=math.inf).fit(given, columns=NAMED)
    assert len(model.catalog) == frame["what"].n_unique()
    own = kind(frame.filter(pl.col("who") == 3))
    listed = model.recommend(own, 3, columns=NAMED)
    assert listed == model.recommend(dict(zip(own["what"], own["stars"], strict=True)), 3)
    assert (
        model.recommend(
            kind(frame.filter(pl.col("who") == 3).drop("who")), 3, columns={**NAMED, "user": None}
        )
        == listed
    )
    every = model.recommend_all(given, 3, columns=NAMED)
    assert list(every["who"])[:3] == [0, 0, 0] and type(every) is type(given)
    assert model.explain(own, "i000", columns=NAMED).item == "i000"
    found = discreet.evaluate(discreet.Biases(epsilon=math.inf), given, columns=NAMED)
    same = discreet.evaluate(discreet.Biases(epsilon=math.inf), discreet.from_frame(given, columns=NAMED))
    assert found.metrics == same.metrics and list(found.metrics) == ["rmse"]
    both = [discreet.Biases(epsilon=math.inf), discreet.Popularity(epsilon=math.inf)]
    compared = discreet.compare(both, given, columns=NAMED)
    assert list(compared[0].metrics) == ["rmse", "ndcg@10", "hr@10"]
    assert list(compared[1].metrics) == ["ndcg@10", "hr@10"]


@pytest.mark.parametrize("learn", ["fit", "evaluate", "compare"])
def test_facts_are_declared_where_the_frame_is_given(frame, learn):
    estimator = discreet.Biases(epsilon=9.0)
    calls = {
        "fit": estimator.fit,
        "evaluate": lambda data, **how: discreet.evaluate(estimator, data, **how),
        "compare": lambda data, **how: discreet.compare([estimator], data, **how)[0],
    }
    found = calls[learn](frame, columns=NAMED, low=1, high=10, catalog=sorted(set(frame["what"])))
    assert found.guarantee.conditions == ()
    assert stated(found.guarantee)[Kind.DECLARED, Fact.SCALE] == {"low": 1.0, "high": 10.0, "step": None}
    assert conditions(calls[learn](frame, columns=NAMED, low=1, high=10).guarantee) == [Fact.CATALOG]
    with refuses("unknown-argument", argument="hihg"):
        calls[learn](frame, columns=NAMED, hihg=5)
    with refuses("unknown-argument", argument="colums"):
        calls[learn](frame, colums=NAMED)
    with refuses("columns-unused", argument="low", found="Interactions"):
        calls[learn](discreet.from_frame(frame, columns=NAMED), low=1)


def test_a_misspelled_fact_is_never_taken_from_the_data(frame):
    with refuses("unknown-argument", argument="lo"):
        discreet.from_frame(frame, columns=NAMED, lo=1, high=5)


def test_who_asks_for_implicit_is_told_the_setting_that_estimators_have(frame):
    clicks = discreet.from_frame(frame, columns=CLICKS, implicit=True)
    calls = [
        ("scale-too-small", lambda: discreet.UserFactorization(epsilon=1.0, delta=1e-6).fit(clicks)),
        ("unknown-setting", lambda: discreet.UserFactorization(implicit=True)),
        ("unknown-argument", lambda: discreet.UserFactorization(epsilon=1.0).fit(frame, implicit=True)),
    ]
    for code, call in calls:
        with refuses(code) as refused:
            call()
        assert 'feedback="implicit"' in str(refused.value)
    # What they name works; models without the setting are not told of it.
    discreet.UserFactorization(feedback="implicit", epsilon=1.0, delta=1e-6).fit(clicks)
    with refuses("unknown-setting") as refused:
        discreet.Biases(implicit=True)
    assert "feedback" not in str(refused.value)


def test_unknown_settings_are_refused_with_a_suggestion():
    with refuses("unknown-setting", model="biases", setting="eps"):
        discreet.Biases(eps=1)
    with refuses("unknown-setting", model="biases", setting="q"):
        discreet.Biases(epsilon=1, q=2)
    with refuses("keywords-only", function="Biases"):
        discreet.Biases(1.0)
    estimator = discreet.Biases(epsilon=1.0)
    assert pickle.loads(pickle.dumps(estimator)) == copy.deepcopy(estimator) == estimator


def test_several_people_are_never_read_as_one(frame):
    model = discreet.Biases(epsilon=math.inf).fit(frame, columns=NAMED)
    with refuses("one-user-needed", users=150):
        model.recommend(frame, columns=NAMED)
    with refuses("no-column", column="nobody", role="user", columns=("who", "what", "stars"), spare=True):
        model.recommend(frame, columns={**NAMED, "user": "nobody"})
    for history in ({"i000": 4.0}, discreet.from_frame(frame.head(1), columns=NAMED)):
        with refuses("columns-unused", argument="columns"):
            model.recommend(history, columns=NAMED)
    with refuses("columns-unused", argument="columns", found="Interactions"):
        discreet.Biases(epsilon=1.0).fit(discreet.from_frame(frame, columns=NAMED), columns=NAMED)


LISTS = (discreet.UserFactorization(epsilon=9.0, feedback="implicit"), discreet.Popularity(epsilon=9.0))


@pytest.mark.few(1)
@pytest.mark.parametrize("estimator", [*LISTS, discreet.UserFactorization(epsilon=9.0, purpose="lists")])
def test_a_scale_that_nobody_reads_is_neither_public_nor_kept(frame, estimator):
    """Where repeated events are counted, the largest count is somebody's: it may not be in a release."""
    again = pl.concat([frame, *[frame.head(1)] * 8])
    counted = discreet.from_frame(again, columns=CLICKS, implicit=True, duplicates="count")
    assert counted.facts.high == 9.0 and SCALE in counted.facts.from_file
    for data in (counted, discreet.from_frame(frame, columns=NAMED)):
        model = estimator.fit(data)
        assert conditions(model.guarantee) == [Fact.CATALOG]
        assert (model.facts.low, model.facts.high, model.facts.step) == (1.0, 1.0, None)
        score = evaluate_privately(model, data, epsilon=9.0)
        together = fit_and_evaluate([estimator], data)
        assert Fact.SCALE not in {*conditions(score.guarantee), *conditions(together.guarantee)}
    with refuses("scale-unused"):
        estimator.fit(counted, select_scale=PrivateScale(epsilon=0.1))
    # The twin: a model of ratings reads the scale, and says so.
    twin = discreet.Biases(epsilon=9.0).fit(counted)
    assert Fact.SCALE in conditions(twin.guarantee) and twin.facts.high == 9.0


def test_ratings_are_gone_before_a_model_of_lists_sees_the_data(frame):
    data = discreet.from_frame(frame, columns=NAMED)
    for estimator in LISTS:
        left = estimator.without_unread(data)
        assert np.all(left.values == 1.0) and left.n_ratings == data.n_ratings
        assert estimator.without_unread(left) is left
    assert discreet.Biases(epsilon=1.0).without_unread(data) is data


def test_unknown_items_are_named_with_those_most_like_them(frame):
    model = discreet.Popularity(epsilon=math.inf).fit(frame, columns=CLICKS)
    for asked, nearest in (("I001", "i001"), ("i0001", "i001"), ("zzz", None)):
        with refuses("unknown-item", item=asked) as refused:
            model.explain(["i000"], asked)
        assert next(iter(refused.value.near), None) == nearest
    titled = dataclasses.replace(
        model, public={"title": tuple(f"Dune {k}" for k in range(len(model.catalog)))}
    )
    with refuses("unknown-item", item="dune 7", near=("i007 (Dune 7)",), example="i000", of=40):
        titled.explain(["i000"], "dune 7")
    with pytest.raises(DataError) as refused:
        model.explain(["i000"], "x" * 10_000)
    assert len(str(refused.value)) < 300


def test_an_abbreviation_is_recognized():
    words = ("user-factorization", "biases", "popularity")
    assert most_similar("usr-fact", words) == "user-factorization"
    assert most_similar("pop", words) == "popularity"
    assert most_similar("xq", words) is most_similar("ur", words) is most_similar("", words) is None


def test_a_frame_has_a_name_in_the_ledger_and_says_what_was_taken_from_it(frame, tmp_path, caplog):
    ledger = discreet.Ledger.open(tmp_path / "ledger.db", allow_unbudgeted=True)
    estimator = discreet.Biases(epsilon=1.0)
    model = estimator.fit(frame, columns=NAMED, ledger=ledger, name="cheese")
    assert list(ledger.datasets()) == ["cheese"]
    assert conditions(model.guarantee) == [Fact.CATALOG, Fact.SCALE]
    clause = condition_text(model.guarantee.conditions)
    assert clause in caplog.text and clause in repr(model)
    caplog.clear()
    estimator.fit(discreet.from_frame(frame, columns=NAMED, low=1, high=5))
    assert not caplog.text


def test_entries_of_lists_have_names_and_titles(frame):
    model = discreet.Biases(epsilon=math.inf).fit(frame, columns=NAMED)
    texts = tuple(f"<Film> {item}" for item in model.catalog.ids.tolist())
    model = dataclasses.replace(model, public={"name": texts})
    listed = model.recommend({"i000": 5.0}, 3)
    best = listed[0]
    assert (best.item, best.score) == tuple(best) and best.title == f"<Film> {best.item}"
    assert pickle.loads(pickle.dumps(best)).title == best.title and f"title={best.title!r}" in repr(best)
    assert listed.to_frame().columns == ["rank", "item", "title", "score", "expected_stars"]
    assert "&lt;Film&gt;" in listed._repr_html_()
    near = SimilarItem("i001", 0.5, None, "Heat")
    assert (near.item, near.similarity) == tuple(near) and repr(near) == "('i001', 0.5, title='Heat')"


ORDERED = {"ann": ["i003", "i001", "i004"], "cat": [], "dan": ["i007"]}
UNORDERED = {3: {"i002": 1.0, "i005": 1.0}, 1: {}, 2: {"i009"}}


@pytest.mark.parametrize("histories", [ORDERED, UNORDERED], ids=["ordered", "unordered"])
@pytest.mark.parametrize("estimator", [discreet.MarkovChain(), discreet.Popularity(epsilon=math.inf)])
def test_histories_of_many_may_be_written_down(frame, estimator, histories):
    """Each list is the one that `recommend` makes."""
    model = estimator.fit(frame.with_row_index("time"), columns=CLICKS)
    found = model.recommend_all(histories, 5)
    assert found["user"].unique(maintain_order=True).to_list() == list(histories)
    for user, history in histories.items():
        alone = model.recommend(history, 5)
        assert found.filter(user=user)["item"].to_list() == [one.item for one in alone]
        assert found.filter(user=user)["score"].to_list() == pytest.approx([one.score for one in alone])
    numbered = model.recommend_all(list(histories.values()), 5)
    assert numbered["user"].unique().sort().to_list() == [0, 1, 2]
    assert numbered["item"].to_list() == found["item"].to_list()


def test_written_histories_keep_their_ratings_and_are_checked(frame):
    model = discreet.Biases(epsilon=math.inf).fit(frame, columns=NAMED)
    rated = {1: {"i000": 5.0, "i001": 1.0}, 2: {"i002": 2.0}}
    found = model.recommend_all(rated, 4)
    for user, history in rated.items():
        stars = [one.expected_stars for one in model.recommend(history, 4)]
        assert found.filter(user=user)["expected_stars"].to_list() == pytest.approx(stars)
    assert model.recommend_all({1: {"i000": 5.0, "odd": 1.0}}, 4, ignore_unknown=True).height == 4
    for histories, code in (
        ({1: {"odd": 5.0}}, "unknown-items"),
        ({1: ["i000"]}, "ratings-needed"),
        ({1: {"i000": 50.0}}, "off-scale"),
        ({1: {"i000": math.nan}}, "off-scale"),
        ({}, "no-histories"),
        ({1: {"i000": 5.0}, 2: [("i001", 4.0)]}, "mixed-orders"),
    ):
        with refuses(code):
            model.recommend_all(histories)
    for histories in ({"i000": 5.0}, ["i000"]):
        with pytest.raises(DataError):
            model.recommend_all(histories)
    with refuses("columns-unused", argument="columns", found="dict"):
        model.recommend_all(rated, columns=NAMED)


def test_titles_come_from_files_and_frames_and_stand_in_every_list(frame, tmp_path):
    model = discreet.Popularity(epsilon=math.inf).fit(frame, columns=CLICKS)
    items = model.catalog.ids.tolist()[1:]
    titles = pl.DataFrame({"id": items, "title": [f"Film {item}" for item in items], "year": 1999})
    titles.write_csv(tmp_path / "titles.csv")
    from_file = model.with_titles(tmp_path / "titles.csv")
    tagged = titles.to_pandas().assign(tags=[["a", "b"]] * len(items))
    for table in (titles, titles.to_arrow(), titles.lazy(), tagged[["id", "title", "year"]]):
        assert model.with_titles(table).public == from_file.public
    assert model.with_titles(tagged).titles(items[:1])[items[0]]["tags"] == "a, b"
    lists = from_file.recommend_all(frame, columns=CLICKS, k=len(model.catalog), exclude_seen=False)
    expected = [None if item not in items else f"Film {item}" for item in lists["item"]]
    assert lists["title"].to_list() == expected and None in expected
    assert "title" not in model.recommend_all(frame, columns=CLICKS).columns
    with refuses("public-table-wrong", why="columns"):
        model.with_titles(titles.select("id"))
    with refuses("public-table-wrong", why="foreign"):
        model.with_titles(pl.DataFrame({"id": ["odd"], "title": ["x"]}))
