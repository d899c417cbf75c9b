"""Write item vectors for vector stores, and make the vector of a person that finds the same list there.

A vector of an item ends in its bias and a filling that makes all vectors equally long; one of a person ends
in 1 and 0. So their inner product is the score that `recommend` sorts by, and the nearest items by distance
or by angle are the same ones: indexes of graphs find neighbors well, and largest products badly. All numbers
of items are released already: writing them costs nothing. Weights between items are no vectors: they are left
out, and the label says so.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.core.arrays import Singles
from discreet.core.checks import FileError, ParameterError, one_of
from discreet.core.exports import Later

if TYPE_CHECKING:
    import polars as pl

    from discreet.data.interactions import Interactions
    from discreet.models.fitted import FittedModel
else:
    pl = Later("polars")

TARGETS = ("parquet", "faiss", "hnswlib")
ITEMS, LABEL, INDEX = "items.parquet", "label.json", "items.index"
# Links of each item, and candidates looked at while it is added: twice the usual, to agree with exact search.
_LINKS, _CANDIDATES = 32, 400


def item_matrix(model: FittedModel) -> Singles:
    """Return a vector for each item of the catalog: factors, bias, filling.

    Raises:
        ParameterError: The order of this model's lists is no inner product.
    """
    linear = model.scorer.search_parts()
    if linear is None:
        raise ParameterError(
            f"Lists of {model.name} are not ordered by inner products, so no vector store can find them. "
            "Fit user-factorization on implicit feedback, or implicit-als."
        )
    factors, bias = linear
    vectors = np.column_stack([factors, bias])
    squares = (vectors**2).sum(axis=1)
    return np.column_stack([vectors, np.sqrt(squares.max() - squares)]).astype(np.float32)


def search_vectors(model: FittedModel, people: Interactions) -> Singles:
    """Return the vector of each person to search with; it is as private as the person's history."""
    item_matrix(model)
    own = model.scorer.fold_in(people)
    return np.column_stack([own, np.ones(len(own)), np.zeros(len(own))]).astype(np.float32)


def export_items(model: FittedModel, out: Path, to: str) -> None:
    """Write a folder: the items with their vectors, the label, and an index of `to` if that is one.

    Positions in an index are rows of `items.parquet`.
    """
    one_of("to", to, TARGETS)
    vectors = item_matrix(model)
    if out.exists():
        raise FileError(f"{out} exists already and was left as it is. Name a folder that does not.")
    if not out.absolute().parent.is_dir():
        raise FileError(f"{out} cannot be written: its folder does not exist.")
    aside = Path(tempfile.mkdtemp(dir=out.absolute().parent, prefix=".discreet-"))
    try:
        _write(model, vectors, aside, to)
        aside.chmod(0o755)
        aside.rename(out)
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write(model: FittedModel, vectors: Singles, folder: Path, to: str) -> None:
    ids = model.catalog.ids.tolist()
    kind = pl.Array(pl.Float32, vectors.shape[1])
    table = pl.DataFrame({"item": ids, "vector": pl.Series(vectors, dtype=kind)})
    table.write_parquet(folder / ITEMS)
    label = {"model": model.name, "guarantee": model.guarantee.to_json()}
    if left_out := model.scorer.search_leaves_out:
        label["leaves_out"] = left_out
    (folder / LABEL).write_text(json.dumps(label, indent=1), encoding="utf-8")
    if to == "faiss":
        faiss = _library("faiss", "faiss-cpu")
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        faiss.write_index(index, str(folder / INDEX))
    if to == "hnswlib":
        found = _library("hnswlib", "hnswlib").Index(space="l2", dim=vectors.shape[1])
        found.init_index(max_elements=len(vectors), M=_LINKS, ef_construction=_CANDIDATES)
        found.add_items(vectors, np.arange(len(vectors)))
        found.save_index(str(folder / INDEX))


def _library(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ParameterError(f"This needs {name}. Install it with `pip install {package}`.") from error
