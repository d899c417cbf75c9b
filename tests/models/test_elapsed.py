"""Lists by elapsed time: after a pause, popularity counts more; without a stated time, nothing changes."""

import dataclasses

import numpy as np
import pytest

from discreet.core.checks import DataError, ParameterError
from discreet.data.schema import Schema
from discreet.data.splits import date_split, leave_one_out, time_split
from discreet.export.bundle.folder import device_file
from discreet.export.onnx_graph import graph_of
from discreet.models.scorers.interactions import damped, missed_steps
from discreet.models.storage import load
from discreet.service.recommend_app import answering_app
from models_on_devices import MODELS, paired
from service.node import device_lists, needs_node
from service.servers import InProcess, ask_json
from toy import toy_interactions

DAY, START = 86400, 1_700_000_000
LATER = START + 400 * DAY


@pytest.fixture(scope="module")
def data():
    plain = toy_interactions(n_users=200, n_items=60)
    rng = np.random.default_rng(0)
    times = START + rng.permutation(plain.n_ratings) * 40
    return dataclasses.replace(plain, times=times, listed=None)


@pytest.fixture(scope="module")
def model(data):
    return paired(MODELS["interactions"](data))


def rows_of(model, data, row):
    own = data.span(row, row + 1)
    ids = model.catalog.id_at(own.items).tolist()
    return [{"item": item, "time": time} for item, time in zip(ids, own.times.tolist(), strict=True)]


def items_of(listed):
    return [one[0] for one in listed]


def test_steps_are_counted_in_the_users_own_gaps(data):
    """(now - last) / (10 usual gaps) - 1, from 0 to 30, where a gap is (last - first + 1 day) / n."""
    one = data.span(0, 1)
    times = START + np.arange(one.n_ratings) * DAY
    one = dataclasses.replace(one, times=times)
    usual = (times[-1] - times[0] + DAY) / one.n_ratings
    for gaps, steps in ((0, 0), (10, 0), (25, 1.5), (310, 30), (10**6, 30), (-50, 0)):
        assert missed_steps(one.at(float(times[-1] + gaps * usual)))[0] == pytest.approx(steps)
    assert damped(0.4, np.array([0.0, 3.0])).tolist() == [0.4, 0.2]


@pytest.mark.parametrize("unit", [10**3, 10**6, 10**9])
def test_every_unit_of_epoch_times_gives_the_same_steps(data, unit):
    finer = dataclasses.replace(data, times=data.times * unit)
    steps = missed_steps(data.at(START + 3.0 * DAY))
    assert np.allclose(steps, missed_steps(finer.at(START + 3.0 * DAY))) and steps.max() > 0


def test_positions_and_missing_times_have_no_elapsed_time(data, model):
    places = dataclasses.replace(data, times=np.arange(data.n_ratings))
    assert not missed_steps(places.at(LATER)).any()
    assert not missed_steps(dataclasses.replace(data, times=None, listed=None).at(LATER)).any()
    assert not missed_steps(data).any()
    declared = dataclasses.replace(data, schema=Schema(time="t", time_format="position"))
    assert declared.at(LATER).now is None and missed_steps(data.at(LATER)).any()
    # A model that was fitted on positions does not take them for times, either.
    strict = dataclasses.replace(model, schema=Schema(time="t", time_format="position"))
    rows = rows_of(model, data, 3)
    assert strict.recommend(rows, now=LATER) == strict.recommend(rows) == model.recommend(rows)
    assert model.recommend(rows, now=LATER) != model.recommend(rows)


def test_users_without_a_history_get_the_most_popular_items(model):
    ranked = np.argsort(-model.scorer.popularity, kind="stable")[:20]
    for now in (None, LATER):
        assert items_of(model.recommend([], 20, now=now)) == model.catalog.id_at(ranked).tolist()


def test_a_pause_brings_lists_nearer_to_popularity(data, model):
    popular = set(items_of(model.recommend([], 10)))
    rows = [rows_of(model, data, row) for row in range(30)]
    at_once, later = (
        sum(len(popular & set(items_of(model.recommend(one, now=now)))) for one in rows)
        for now in (START + data.n_ratings * 40, LATER)
    )
    assert later > at_once


@pytest.mark.few(2)
@pytest.mark.parametrize("now", [LATER, LATER * 1000, "2024-12-18T22:13:20", None])
def test_all_ways_to_a_list_agree(data, model, now, tmp_path):
    """For one user, for many in compiled loops, from a search by vectors, and from a loaded file."""
    model.save(tmp_path / "m.discreet")
    again, many = load(tmp_path / "m.discreet"), model.recommend_all(data, 5, now=now)
    for row in (0, 7, 19):
        history = rows_of(model, data, row)
        alone = items_of(model.recommend(history, 5, now=now))
        user = data.users.id_at([row]).tolist()[0]
        assert many.filter(many["user"] == user)["item"].to_list() == alone
        assert items_of(again.recommend(history, 5, now=now)) == alone
        every = model.catalog.ids.tolist()
        assert items_of(model.rerank(history, every, 5, now=now)) == alone
        found = model.explain(history, alone[0], now=now)
        assert found.rank == 1 and found.score == model.recommend(history, 1, now=now)[0].score


def test_a_moment_that_is_none_is_rejected(model):
    for wrong in ("yesterday", float("nan"), float("inf")):
        with pytest.raises((ParameterError, DataError)):
            model.recommend([], now=wrong)


@needs_node
def test_a_device_makes_the_same_lists(data, model):
    asked = [(rows_of(model, data, row), {"k": 8, "now": now}) for row in range(6) for now in (LATER, None)]
    found = device_lists(device_file(model), model.catalog.ids.tolist(), asked)
    for listed, (history, options) in zip(found, asked, strict=True):
        wanted = model.recommend(history, 8, now=options["now"])
        assert [one["item"] for one in listed] == items_of(wanted)
        assert np.allclose([one["score"] for one in listed], [score for _, score in wanted], atol=1e-5)


def test_a_graph_takes_missed_steps(data, model):
    pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = onnxruntime.InferenceSession(graph_of(model), providers=["CPUExecutionProvider"])
    row = data.span(3, 4).at(LATER)
    items = row.items[np.argsort(row.times)][None].astype(np.int64)
    flags = {name: np.array([True]) for name in ("ordered", "exclude_seen")}
    given = {"items": items, "k": np.array([5]), **flags}
    for steps, now in ((missed_steps(row)[:, None], LATER), (None, None)):
        more = {} if steps is None else {"missed_steps": steps}
        places, *_ = session.run(None, given | more)
        wanted = items_of(model.recommend(rows_of(model, data, 3), 5, now=now))
        assert model.catalog.id_at(places[0]).tolist() == wanted


def test_a_time_split_asks_at_the_cut(data):
    parts = time_split(data, 0.2)
    assert parts.train.now == parts.train.times.max() and parts.test.now is None
    assert date_split(data, "2023-11-15").train.now == 1_700_006_400
    places = dataclasses.replace(data, times=np.arange(data.n_ratings))
    assert time_split(places, 0.2).train.now is None and leave_one_out(data).train.now is None


def test_the_service_uses_its_clock_or_the_stated_time(data, model, tmp_path):
    model.save(tmp_path / "m.discreet")
    history = rows_of(model, data, 3)
    with InProcess(answering_app(tmp_path / "m.discreet")) as service:

        def listed(**stated):
            status, answer = ask_json(f"{service.url}/recommend", {"history": history, "k": 10, **stated})
            assert status == 200, answer
            return [one["item"] for one in answer["items"]]

        assert listed(now=START) == items_of(model.recommend(history))
        assert listed() == listed(now="2026-01-31T12:00") == items_of(model.recommend(history, now=LATER))
        assert listed() != listed(now=START)
        wrong = {"history": history, "now": "yesterday"}
        assert ask_json(f"{service.url}/recommend", wrong)[0] == 422
