"""Log a model to MLflow, load it back, and serve it with `mlflow models serve` (extra `mlflow`).

MLflow stores the model file itself, so its label travels with it, and the guarantee as metadata and tags. A
request has a row for each user: `history`, the JSON text that `POST /recommend` of our own service takes,
and perhaps `k`. As there, a row that can't be answered states why and loses no other. Histories pass through
MLflow's server, which may log them; ours does not.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core import WrongKind, integer, shown
from discreet.core.checks import DiscreetError
from discreet.export.vector_stores import library
from discreet.models import BadHistoryText, load

if TYPE_CHECKING:
    from discreet.models import FittedModel

_EXTRA = "discreet[mlflow]"
_FILE, _K, _MOST = "model.discreet", 10, 1000
# MLflow keeps this file and runs it where the model is served, so nothing is pickled.
_CODE = '''\
"""Answer for a model of discreet, with a list for each row."""

from pathlib import Path

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

from discreet.export.mlflow import answer_row
from discreet.models.storage import load


class Recommender(PythonModel):
    def load_context(self, context):
        self.model = load(Path(context.artifacts["model"]))

    def predict(self, context, model_input: pd.DataFrame, params=None):
        return [answer_row(self.model, row) for row in model_input.to_dict("records")]


set_model(Recommender())
'''


def log_mlflow(model: FittedModel, name: str = "model", **options: Any) -> Any:
    """Log a model to the active run of MLflow; `options` are those of `mlflow.pyfunc.log_model`.

    The run gets tags: `discreet.model`, `.private`, `.epsilon`, `.delta` and `.unit`.
    """
    mlflow = library("mlflow", _EXTRA)
    tags = promise_tags(model)
    with tempfile.TemporaryDirectory() as folder:
        parts = _parts(model, Path(folder), mlflow)
        kept = {**options, "tags": {**tags, **options.get("tags", {})}}
        found = mlflow.pyfunc.log_model(name=name, **parts, **kept)
    if mlflow.active_run() is not None:
        mlflow.set_tags(tags)
    return found


def save_mlflow(model: FittedModel, path: str | Path) -> None:
    """Write the folder that `mlflow models serve -m FOLDER --env-manager local` reads."""
    mlflow = library("mlflow", _EXTRA)
    with tempfile.TemporaryDirectory() as folder:
        mlflow.pyfunc.save_model(path=str(path), **_parts(model, Path(folder), mlflow))


def load_mlflow(address: str | Path) -> FittedModel:
    """Return the model itself from a folder or an address of MLflow, such as `runs:/ID/model`."""
    artifacts = library("mlflow.artifacts", _EXTRA)
    found = Path(artifacts.download_artifacts(artifact_uri=str(address)))
    return load(found / "artifacts" / _FILE)


def promise_tags(model: FittedModel) -> dict[str, str]:
    """Return the guarantee as tags to filter runs by; without a guarantee it has no epsilon."""
    promise = model.guarantee
    bounded = promise.is_private
    amount = {"epsilon": f"{promise.epsilon:g}", "delta": f"{promise.delta:g}"} if bounded else {}
    private = str(bounded and not promise.simulated).lower()
    said = {"model": model.name, "private": private, **amount, "unit": promise.unit.value}
    return {f"discreet.{name}": value for name, value in said.items()}


def _parts(model: FittedModel, folder: Path, mlflow: Any) -> dict[str, Any]:
    """Return what MLflow stores: the file, the code that answers for it, the signature, the guarantee."""
    file, code = folder / _FILE, folder / "recommender.py"
    model.save(file)
    code.write_text(_CODE, encoding="utf-8")
    promise = model.guarantee
    return {
        "python_model": str(code),
        "artifacts": {"model": str(file)},
        "signature": _signature(model, mlflow),
        "input_example": library("pandas", _EXTRA).DataFrame([_example(model)]),
        "pip_requirements": [f"discreet=={metadata.version('discreet')}"],
        "metadata": {"promise": promise.sentence(), "guarantee": json.dumps(promise.to_json())},
    }


def _signature(model: FittedModel, mlflow: Any) -> Any:
    schema = library("mlflow.types.schema", _EXTRA)
    column, kinds, several = schema.ColSpec, schema.DataType, schema.Array
    items = several(kinds.string if model.catalog.is_text else kinds.long)
    # A column of `k` is of whole numbers, or of floats where some rows have none.
    asked = [column(kinds.string, "history"), column(schema.AnyType(), "k", required=False)]
    answered = [
        column(items, "items"),
        column(several(kinds.double), "scores"),
        *([column(several(kinds.string), "titles")] if model.public else []),
        column(kinds.string, "error", required=False),
    ]
    return mlflow.models.ModelSignature(inputs=schema.Schema(asked), outputs=schema.Schema(answered))


def _example(model: FittedModel) -> dict[str, Any]:
    """Return a row that this model answers, made from its own catalog."""
    ids = model.catalog.ids[:2].tolist()
    rated = [[item, float(model.facts.high)] for item in ids]
    return {"history": json.dumps(rated if model.scorer.needs_ratings else ids), "k": float(_K)}


def answer_row(model: FittedModel, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the list of one user, or an empty one with the reason in `error`."""
    try:
        found: Iterable[Any] = model.recommend(_history(row), _length(row), ignore_unknown=True)
        error = {}
    except DiscreetError as refused:
        found, error = (), {"error": str(refused)}
    listed = list(found)
    titles = {"titles": [one.title or "" for one in listed]} if model.public else {}
    scores = [float(one.score) for one in listed]
    return {"items": [one.item for one in listed], "scores": scores, **titles, **error}


def _history(row: Mapping[str, Any]) -> Any:
    """Return a history from JSON text; items that the model does not know are skipped later."""
    try:
        history = json.loads(row["history"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadHistoryText() from None
    if isinstance(history, list):
        return [tuple(one) if isinstance(one, list) else one for one in history]
    return history


def _length(row: Mapping[str, Any]) -> int:
    asked = row.get("k")
    if asked is None or (isinstance(asked, float) and math.isnan(asked)):
        return _K
    if not isinstance(asked, int | float) or asked != asked // 1:
        raise WrongKind(name="k", kind=f"a whole number from 1 to {_MOST:,}", found=shown(asked))
    return integer("k", int(asked), least=1, most=_MOST)
