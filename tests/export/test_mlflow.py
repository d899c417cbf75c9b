"""MLflow stores the model file, gives it back whole, and its server answers what `recommend` answers."""

import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import polars as pl
import pytest

import discreet
from discreet.export.mlflow import answer_row, load_mlflow, log_mlflow, promise_tags, save_mlflow
from ports import free_port
from toy import toy_interactions


@pytest.fixture(scope="module")
def model():
    return discreet.UserFactorization(epsilon=3.0, feedback="implicit").fit(toy_interactions(n_users=300))


def items_of(listed):
    return [item for item, _ in listed]


def test_a_row_is_answered_as_recommend_does(model):
    history = model.catalog.ids[:4].tolist()
    answer = answer_row(model, {"history": json.dumps(history), "k": 5})
    assert answer["items"] == items_of(model.recommend(history, 5)) and answer.keys() == {"items", "scores"}
    for missing in ({}, {"k": None}, {"k": math.nan}):
        assert len(answer_row(model, {"history": "[]", **missing})["items"]) == 10
    assert len(answer_row(model, {"history": "[]", "k": 3.0})["items"]) == 3


def test_items_that_are_not_known_are_left_out(model):
    history = model.catalog.ids[:4].tolist()
    found = answer_row(model, {"history": json.dumps([*history, 987654321]), "k": 5})
    assert found == answer_row(model, {"history": json.dumps(history), "k": 5})


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"history": ""}, "JSON text"),
        ({"history": "[" * 100_000}, "JSON text"),
        ({"history": None}, "JSON text"),
        ({}, "JSON text"),
        ({"history": "7"}, ""),
        ({"history": "[{}]"}, ""),
        ({"history": "[[1, 2, 3, 4, 5]]"}, ""),
        ({"history": "[]", "k": 0}, "at least 1"),
        ({"history": "[]", "k": 2.5}, "whole number from 1"),
        ({"history": "[]", "k": math.inf}, "whole number from 1"),
        ({"history": "[]", "k": "many"}, "whole number from 1"),
    ],
)
def test_a_row_that_cannot_be_answered_says_why(model, row, why):
    answer = answer_row(model, row)
    assert answer["items"] == [] and answer["scores"] == [] and why in answer["error"]


def test_titles_come_along(model):
    titles = tuple(f"Film {place}" for place in range(len(model.catalog)))
    answer = answer_row(dataclasses.replace(model, public={"title": titles}), {"history": "[]", "k": 3})
    places = model.catalog.index_of(answer["items"]).tolist()
    assert answer["titles"] == [titles[place] for place in places]


def test_tags_say_what_is_promised(model):
    tags = promise_tags(model)
    assert tags == {
        "discreet.model": "user-factorization",
        "discreet.private": "true",
        "discreet.epsilon": "3",
        "discreet.delta": f"{model.guarantee.delta:g}",
        "discreet.unit": "user",
    }
    data = toy_interactions(n_users=50)
    bare = promise_tags(discreet.UserFactorization(epsilon=math.inf, feedback="implicit").fit(data))
    assert bare["discreet.private"] == "false" and "discreet.epsilon" not in bare


@pytest.fixture
def tracking(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    return mlflow


@pytest.mark.filterwarnings("default")
def test_mlflow_gives_the_model_back_and_runs_are_found_by_its_promise(model, tracking):
    with tracking.start_run():
        logged = log_mlflow(model, tags={"shop": "north"})
    again = load_mlflow(logged.model_uri)
    assert again.guarantee == model.guarantee
    for wanted, count in (("true", 1), ("false", 0)):
        found = tracking.search_runs(filter_string=f"tags.`discreet.private` = '{wanted}'")
        assert len(found) == count
    assert tracking.get_logged_model(logged.model_id).tags["shop"] == "north"


@pytest.mark.filterwarnings("default")
def test_the_example_of_the_documentation_runs(model, tracking, tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text(encoding="utf8")
    (block,) = [
        one for one in re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "# mlflow" in one
    ]
    model.save(tmp_path / "shop.discreet")
    names = {}
    exec(block, names)
    assert len(names["private"]) == 1 and (tmp_path / "shop" / "MLmodel").is_file()


@pytest.mark.parametrize("kind", ["implicit", "ratings", "texts"])
def test_storing_gives_no_warning_of_ours(model, tmp_path, caplog, kind):
    pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    if kind == "ratings":
        model = discreet.Biases(epsilon=1.0).fit(toy_interactions(n_users=50))
    if kind == "texts":
        rows = pl.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": list("abbcac")})
        model = discreet.Popularity(epsilon=1.0).fit(discreet.from_frame(rows, implicit=True))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        save_mlflow(model, tmp_path / "shop")
    ours = [str(one.message) for one in said if one.category is UserWarning]
    assert not ours and not [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert not list((tmp_path / "shop").glob("*.pkl"))


@pytest.mark.filterwarnings("default")
def test_mlflow_answers_a_batch_of_all_kinds(model, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    pandas = pytest.importorskip("pandas")
    save_mlflow(model, tmp_path / "shop")
    served = mlflow.pyfunc.load_model(str(tmp_path / "shop"))
    history = model.catalog.ids[:4].tolist()
    text, expected = json.dumps(history), items_of(model.recommend(history, 5))
    rows = [
        {"history": text, "k": 5},
        {"history": text},
        {"history": json.dumps([*history, 987654321]), "k": 5},
        {"history": "nonsense", "k": 5},
    ]
    found = served.predict(pandas.DataFrame(rows))
    assert found[0]["items"] == found[2]["items"] == expected and len(found[1]["items"]) == 10
    assert found[3]["items"] == [] and "JSON text" in found[3]["error"]
    (whole,) = served.predict(pandas.DataFrame([{"history": text, "k": 5}]))
    assert whole["items"] == expected, "a column of whole numbers"
    (plain,) = served.predict(pandas.DataFrame([{"history": text}]))
    assert plain["items"] == found[1]["items"]
    assert "epsilon" in served.metadata.metadata["guarantee"]
    assert served.metadata.signature.outputs.input_names() == ["items", "scores", "error"]


def answered(url, body, *, within, process):
    """Return the server's answer to a request, once it runs."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    end = time.monotonic() + within
    while True:
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError) as error:
            early = isinstance(error, urllib.error.HTTPError)
            assert not early and process.poll() is None and time.monotonic() < end, error
            time.sleep(1)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_server_of_mlflow_answers(model, tmp_path):
    pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    save_mlflow(model, tmp_path / "shop")
    port = free_port()
    command = [Path(sys.executable).parent / "mlflow", "models", "serve", "-m", tmp_path / "shop"]
    command += ["--env-manager", "local", "--port", str(port)]
    # MLflow starts another process; both are in a group of their own, which is ended at the end.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PATH": path}, start_new_session=True
    )
    try:
        histories = [model.catalog.ids[:4].tolist(), model.catalog.ids[5:7].tolist()]
        rows = [{"history": json.dumps(history), "k": 5} for history in histories]
        rows += [{"history": "[987654321]"}]
        url = f"http://127.0.0.1:{port}/invocations"
        found = answered(url, {"dataframe_records": rows}, within=300, process=process)["predictions"]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=300)
    assert found[2]["items"] == items_of(model.recommend([], 10))
    for history, answer in zip(histories, found[:2], strict=True):
        assert answer["items"] == [item for item, _ in model.recommend(history, 5)]
    assert found[0] != found[1]
