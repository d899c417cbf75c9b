"""MLflow stores the model file, gives it back whole, and its server answers what `recommend` answers."""

import json
import math
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import discreet
from discreet.core.checks import DataError
from discreet.models.mlflow_flavor import answer_row, load_mlflow, log_mlflow, save_mlflow
from ports import free_port
from toy import toy_interactions


@pytest.fixture(scope="module")
def model():
    return discreet.UserFactorization(epsilon=3.0, feedback="implicit").fit(toy_interactions(n_users=300))


def test_a_row_is_answered_as_recommend_does(model):
    history = model.catalog.ids[:4].tolist()
    expected = model.recommend(history, 5)
    assert answer_row(model, {"history": json.dumps(history), "k": 5})["items"] == [
        one for one, _ in expected
    ]
    assert len(answer_row(model, {"history": "[]", "k": math.nan})["items"]) == 10
    for wrong in ("", "[" * 100_000, None):
        with pytest.raises(DataError, match="JSON text"):
            answer_row(model, {"history": wrong})


@pytest.mark.filterwarnings("default")
def test_mlflow_gives_the_model_back_and_answers(model, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    pandas = pytest.importorskip("pandas")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    with mlflow.start_run():
        logged = log_mlflow(model)
    again = load_mlflow(logged.model_uri)
    assert again.guarantee == model.guarantee
    save_mlflow(model, tmp_path / "shop")
    served = mlflow.pyfunc.load_model(str(tmp_path / "shop"))
    history = model.catalog.ids[:4].tolist()
    found = served.predict(pandas.DataFrame({"history": [json.dumps(history)], "k": [5]}))
    assert found[0]["items"] == [item for item, _ in model.recommend(history, 5)]
    assert "epsilon" in served.metadata.metadata["guarantee"]


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
        url = f"http://127.0.0.1:{port}/invocations"
        found = answered(url, {"dataframe_records": rows}, within=300, process=process)["predictions"]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=300)
    for history, answer in zip(histories, found, strict=True):
        assert answer["items"] == [item for item, _ in model.recommend(history, 5)]
    assert found[0] != found[1]
