"""MLflow stores the model file, gives it back whole, and its server answers what `recommend` answers."""

import json
import math

import pytest

import discreet
from discreet.core.checks import DataError
from discreet.models.mlflow_flavor import answer_row, load_mlflow, log_mlflow, save_mlflow
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
