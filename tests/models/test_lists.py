"""Lists for many people are the lists each would get alone; limits, unknown items, reasons and ids."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.checks import DataError
from discreet.core.errors import CallOfAnotherLibrary
from discreet.models.lists import best_places, diversified
from discreet.models.scorers.interactions import InteractionScorer
from discreet.testing import refuses
from toy import toy_interactions


@pytest.fixture(scope="module")
def data():
    return toy_interactions(seed=4)


@pytest.fixture(scope="module", params=["Biases", "UserFactorization", "Popularity", "ItemNeighbors"])
def model(request, data):
    kind = getattr(discreet, request.param)
    return kind(epsilon=8.0).fit(data, random=discreet.PrivacyRandom.simulate(1))


def history(data, row):
    span = slice(int(data.indptr[row]), int(data.indptr[row + 1]))
    return dict(zip(data.catalog.id_at(data.items[span]).tolist(), data.values[span].tolist(), strict=True))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "limits", [{}, {"exclude_seen": False}, {"exclude": ["item 03", "item 07"]}], ids=str
)
def test_many_lists_are_the_lists_of_each(model, data, limits, monkeypatch):
    monkeypatch.setattr("discreet.models.lists._SCORES_AT_ONCE", 7 * data.n_items)
    lists = model.recommend_all(data, 5, **limits)
    stars = ["expected_stars"] if model.scorer.predicts_stars else []
    assert lists.columns == ["user", "rank", "item", "score", *stars]
    for row in (0, 6, 7, 149):
        mine = lists.filter(pl.col("user") == row)
        alone = model.recommend(history(data, row), 5, **limits)
        assert mine["item"].to_list() == [item for item, _ in alone]
        np.testing.assert_allclose(mine["score"], [score for _, score in alone], rtol=1e-5)
        if stars:
            np.testing.assert_allclose(mine["expected_stars"], [one.stars for one in alone], rtol=1e-5)
        assert mine["score"].is_sorted(descending=True)
        assert mine["rank"].to_list() == [1, 2, 3, 4, 5]


def test_best_places_sort_as_a_stable_sort_of_all_would():
    rng = np.random.default_rng(0)
    worth = rng.integers(0, 4, (50, 30)).astype(float)
    worth[:, :3] = -np.inf
    for k in (1, 5, 29, 30, 99):
        assert (best_places(worth, k) == np.argsort(-worth, axis=1, kind="stable")[:, :k]).all()


def test_limits_keep_to_the_catalog(model, data):
    wanted = ["item 01", "item 02", "item 03"]
    found = model.recommend(history(data, 0), among=wanted, exclude=["item 02"], exclude_seen=False)
    assert {item for item, _ in found} == {"item 01", "item 03"}
    with refuses("unknown-items", count=1, of=2, where="among"):
        model.recommend(history(data, 0), among=["item 01", "a secret"])
    with refuses("not-a-list", name="exclude"):
        model.recommend(history(data, 0), exclude="item 01")


def test_unknown_items_are_refused_or_left_out(model, data):
    person = {**history(data, 0), "never heard of": 3.0}
    with refuses("unknown-items", count=1, of=13, where="history"):
        model.recommend(person)
    assert model.recommend(person, ignore_unknown=True) == model.recommend(history(data, 0))
    frame = pl.DataFrame({"user": ["a"] * 13, "item": list(person), "rating": list(person.values())})
    with refuses("unknown-items", count=1, of=13, where="histories"):
        model.recommend_all(frame)
    lists = model.recommend_all(frame, 3, ignore_unknown=True)
    assert lists["item"].to_list() == [item for item, _ in model.recommend(history(data, 0), 3)]


def test_people_may_come_as_a_file_or_a_frame(model, data, tmp_path):
    rows = data.rows()
    frame = pl.DataFrame(
        {"user": rows, "item": data.catalog.id_at(data.items).tolist(), "rating": data.values}
    )
    frame.write_csv(tmp_path / "all.csv")
    whole = model.recommend_all(data, 3)
    for source in (frame, frame.to_pandas(), tmp_path / "all.csv"):
        found = model.recommend_all(source, 3)
        assert found["item"].to_list() == whole["item"].to_list()


def test_predictions_by_id(model, data):
    person = history(data, 5)
    found = model.predict_items(person, ["item 01", "item 00"])
    rows = np.zeros(2, dtype=np.int64)
    expected = model.predict(model._person(person), rows, data.catalog.index_of(["item 01", "item 00"]))
    assert list(found) == ["item 01", "item 00"] and list(found.values()) == expected.tolist()
    with refuses("unknown-items", count=1, of=1, where="request"):
        model.predict_items(person, ["a secret"])


def test_reasons_are_what_the_lead_over_the_reference_loses(data):
    model = discreet.UserFactorization(epsilon=8.0).fit(data, random=discreet.PrivacyRandom.simulate(1))
    person = history(data, 0)
    reasons = model.explain(person, "item 01")
    assert {item for item, _ in reasons} == set(person)
    assert [weight for _, weight in reasons] == sorted((weight for _, weight in reasons), reverse=True)
    item, weight = reasons[0]
    less = {other: value for other, value in person.items() if other != item}
    one = np.zeros(1, dtype=np.int64)
    full, rest = (model.worth(model._person(told), one)[0].astype(float) for told in (person, less))
    place, lower = int(data.catalog.index_of(["item 01"])[0]), np.argsort(-full, kind="stable")[20:]
    lost = full[place] - full[lower].mean() - (rest[place] - rest[lower].mean())
    assert weight == pytest.approx(lost, abs=1e-6)
    rows = reasons.to_frame()
    assert rows.columns == ["kind", "of", "adds"] and rows.height == len(reasons.parts) + len(person)
    assert "item 01" in repr(reasons) and len(repr(reasons)) < 150 and "own item" in reasons._repr_html_()
    with refuses("unknown-item", item="a secret", near=(), example="item 00", of=40):
        model.explain(person, "a secret")


def test_a_model_says_what_it_is_in_one_line(data, snapshot):
    model = discreet.Biases(epsilon=2.0).fit(data)
    snapshot(repr(model))
    simulated = discreet.Biases(epsilon=2.0).fit(data, random=discreet.PrivacyRandom.simulate(1))
    assert "not private" in repr(simulated)


@pytest.fixture(scope="module")
def by_order(data):
    """Return a model whose lists depend on the order of choices, and choices of which two have one time."""
    fitted = discreet.Popularity(epsilon=8.0).fit(data, random=discreet.PrivacyRandom.simulate(1))
    factors = np.random.default_rng(3).standard_normal((data.n_items, 4))
    scorer = InteractionScorer.of(np.ones(data.n_items), factors, {})
    times = {"item 03": 30, "item 11": 10, "item 20": 20, "item 07": 20, "item 36": 5}
    return dataclasses.replace(fitted, scorer=scorer), times


def test_a_list_is_read_oldest_first_and_only_tables_have_equal_times(by_order):
    model, times = by_order
    rows = [{"item": item, "time": time} for item, time in times.items()]
    by_time = model.recommend(rows)
    assert model.recommend(rows[::-1]) == by_time
    dates = [{**row, "time": f"2001-02-{row['time']:02d}"} for row in rows if row["time"] < 29]
    assert model.recommend(dates) == model.recommend([row for row in rows if row["time"] < 29])
    frame = pl.DataFrame(rows)
    assert model.recommend(frame) == model.recommend(frame.to_pandas()) == by_time
    many = pl.concat([frame.with_columns(user=pl.lit(name)) for name in ("b", "a")])
    assert model.recommend_all(many).filter(user="a")["item"].to_list() == [item for item, _ in by_time]
    oldest_first = sorted(times, key=times.get)
    listed = model.recommend(oldest_first)
    assert listed != by_time and listed != model.recommend(oldest_first[::-1])
    for other in ([(item, 4.0) for item in oldest_first], np.array(oldest_first), pl.Series(oldest_first)):
        assert model.recommend(other) == listed
    assert model.recommend([{"item": item} for item in oldest_first]) == listed
    assert model.recommend([oldest_first[-1], *oldest_first]) == listed


def test_mappings_sets_and_tables_without_times_have_no_order(by_order):
    model, times = by_order
    plain = model.recommend(set(times))
    assert plain != model.recommend(list(times))
    mapping = dict.fromkeys(times, 3.0)
    table = pl.DataFrame({"item": list(times)})
    for other in (mapping, dict(reversed(mapping.items())), mapping.keys(), frozenset(times), table):
        assert model.recommend(other) == plain


@pytest.mark.parametrize(
    "history",
    [
        7,
        "item 03",
        ["item 03", ("item 07", 3.0)],
        [("item 03", 3.0, 1)],
        [{"item": "item 03"}, {"item": "item 07", "time": 3}],
        [{"item": "item 03", "when": 3}],
        [{"item": "item 03", "time": 3}, {"item": "item 07", "time": "soon"}],
        [{"item": "item 03", "time": None}],
        [("item 03", "good")],
        pl.DataFrame({"user": [1, 2], "item": ["item 03", "item 03"]}),
    ],
)
def test_other_histories_are_refused_in_a_sentence(by_order, history):
    with pytest.raises((DataError, CallOfAnotherLibrary)) as told:
        by_order[0].recommend(history)
    assert "soon" not in str(told.value) and "item 03" not in str(told.value)


def test_a_diversified_list_weighs_worth_against_half_of_one_plus_the_cosine():
    """Worth 1, 0.9, 0.5 and 0; the second is like the first, the third at a right angle, the last opposed."""
    worth, vectors = np.array([10.0, 9.0, 5.0, 0.0]), np.array([[1.0, 0], [2, 0], [0, 3], [-1, 0]])
    items, values = diversified(worth, vectors, 4, 0.5)
    # After the first: 0.45 - 0.5, 0.25 - 0.25 and 0 - 0. Then 0.45 - 0.5, and what is left -0.25.
    assert items.tolist() == [0, 2, 1, 3]
    np.testing.assert_allclose(values, [0.5, 0.0, -0.05, -0.25])
    items, values = diversified(worth, vectors, 2, 0.2)
    assert items.tolist() == [0, 1]
    np.testing.assert_allclose(values, [0.8, 0.8 * 0.9 - 0.2])
