"""Log a model to MLflow, load it back, and serve it with `mlflow models serve` (extra `mlflow`).

MLflow stores the model file itself, so its label travels with it, and the promise as metadata. A request has
a row for each person: `history`, the JSON text that `POST /recommend` of our own service takes, and perhaps
`k`. Histories pass through MLflow's server, which may log them; ours does not.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core.checks import DataError
from discreet.models.storage import load
from discreet.models.vector_stores import library

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel

_FILE, _K = "model.discreet", 10


def log_mlflow(model: FittedModel, name: str = "model", **options: Any) -> Any:
    """Log a model to the active run of MLflow; `options` are those of `mlflow.pyfunc.log_model`."""
    return _stored(model, lambda pyfunc, parts: pyfunc.log_model(name=name, **parts, **options))


def save_mlflow(model: FittedModel, path: str | Path) -> None:
    """Write the folder that `mlflow models serve -m FOLDER` reads."""
    _stored(model, lambda pyfunc, parts: pyfunc.save_model(path=str(path), **parts))


def load_mlflow(address: str | Path) -> FittedModel:
    """Return the model itself from a folder or an address of MLflow, such as `runs:/ID/model`."""
    artifacts = library("mlflow.artifacts", "discreet[mlflow]")
    found = Path(artifacts.download_artifacts(artifact_uri=str(address)))
    return load(found / "artifacts" / _FILE)


def _stored(model: FittedModel, store: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # MLflow warns of type hints of its own, and of ours, where the signature says what a request holds.
        warnings.filterwarnings("ignore", message="(?i).*(type hint|input example)", category=UserWarning)
        pyfunc = library("mlflow.pyfunc", "discreet[mlflow]")
        file = Path(folder) / _FILE
        model.save(file)
        return store(pyfunc, _parts(model, file, library("mlflow", "discreet[mlflow]")))


def _parts(model: FittedModel, file: Path, mlflow: Any) -> dict[str, Any]:
    schema = library("mlflow.types", "discreet[mlflow]")
    columns = [
        schema.ColSpec(schema.DataType.string, "history"),
        schema.ColSpec(schema.DataType.long, "k", required=False),
    ]
    promise = model.guarantee
    return {
        "python_model": _served()(),
        "artifacts": {"model": str(file)},
        "signature": mlflow.models.ModelSignature(inputs=schema.Schema(columns)),
        "pip_requirements": [f"discreet=={metadata.version('discreet')}"],
        "metadata": {"promise": promise.sentence(), "guarantee": json.dumps(promise.to_json())},
    }


def _served() -> Any:
    """Return the class that MLflow stores; it needs MLflow's own, which is loaded only when used."""
    pyfunc = library("mlflow.pyfunc", "discreet[mlflow]")

    class Recommender(pyfunc.PythonModel):  # type: ignore[misc, name-defined]
        """Answer for a model file with a list for each row."""

        def load_context(self, context: Any) -> None:
            """Read the model file."""
            self.model = load(Path(context.artifacts["model"]))

        def predict(self, context: Any, model_input: Any, params: Any = None) -> list[dict[str, Any]]:
            """Return items and scores for each row, best first."""
            rows = model_input.to_dict("records")
            return [answer_row(self.model, row) for row in rows]

    return Recommender


def answer_row(model: FittedModel, row: dict[str, Any]) -> dict[str, Any]:
    """Return the list of one person; a history is JSON text."""
    try:
        history = json.loads(row["history"])
    except (ValueError, TypeError, RecursionError):
        raise DataError('A history is JSON text, such as "[7, 3]" or "[[7, 4.0], [3, 5.0]]".') from None
    if isinstance(history, list):
        history = [tuple(one) if isinstance(one, list) else one for one in history]
    asked = row.get("k")
    found = model.recommend(history, _K if asked is None or asked != asked else int(asked))
    return {"items": [one[0] for one in found], "scores": [float(one[1]) for one in found]}
