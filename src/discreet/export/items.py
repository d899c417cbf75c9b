"""Write the item vectors of a model for vector stores and feature stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.checks import one_of
from discreet.core.exports import Later
from discreet.core.files import filled_folder
from discreet.export.feast import FEAST_FILES, keep_stores, write_feast
from discreet.export.vector_stores import (
    CANDIDATES,
    LINKS,
    QDRANT,
    SQL,
    VectorTable,
    library,
    load_pgvector,
    load_qdrant,
    write_pgvector,
    write_qdrant,
)
from discreet.models.vectors import item_matrix

if TYPE_CHECKING:
    import polars as pl

    from discreet.models.fitted import FittedModel
else:
    pl = Later("polars")

TARGETS = ("parquet", "faiss", "hnswlib", "pgvector", "qdrant", "feast", "onnx")
ITEMS, LABEL, INDEX = "items.parquet", "label.json", "items.index"
# All files that an export writes, and the files that Feast adds.
_WRITTEN = {ITEMS, LABEL, INDEX, SQL, QDRANT, "model.onnx", "items.json", *FEAST_FILES}
#: Targets that a running server may be filled with.
LIVE = {"pgvector": load_pgvector, "qdrant": load_qdrant}


def export_items(model: FittedModel, out: Path, to: str, *, name: str = "items", force: bool = False) -> None:
    """Write a folder: the items with their vectors, the label, and an index of `to` if that is one.

    Positions in an index are rows of `items.parquet`. To `onnx` goes no vector store but the whole way from
    histories to lists, also of models whose lists aren't inner products. `force` replaces an earlier export.
    """
    one_of("to", to, TARGETS)
    replaces = is_export if force else None
    if to == "onnx":
        from discreet.export.bundle.folder import write_graph

        write_graph(model, out, replaces=replaces)
        return
    table = item_table(model, name)
    with filled_folder(out, replaces=replaces) as folder:
        _write(table, folder, to)
        if to == "feast" and out.is_dir():
            keep_stores(out, folder)


def is_export(folder: Path) -> bool:
    """Return whether a folder is an export of ours and has nothing else in it."""
    try:
        label = json.loads((folder / LABEL).read_bytes())
        return "guarantee" in label and {path.name for path in folder.iterdir()} <= _WRITTEN
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def load_items(model: FittedModel, url: str, to: str, *, name: str = "items", force: bool = False) -> None:
    """Fill a running server: a table `name` for pgvector, a collection for Qdrant; `force` replaces ours."""
    one_of("to", to, tuple(LIVE))
    LIVE[to](item_table(model, name), url, force=force)


def item_table(model: FittedModel, name: str = "items") -> VectorTable:
    """Return what a store gets of a model."""
    label = {"model": model.name, "guarantee": model.guarantee.to_json()}
    if left_out := model.scorer.search_leaves_out:
        label["leaves_out"] = left_out
    return VectorTable(
        catalog=model.catalog, vectors=item_matrix(model), label=label, name=name, public=model.public
    )


def _write(table: VectorTable, folder: Path, to: str) -> None:
    (folder / LABEL).write_text(json.dumps(table.label, indent=1), encoding="utf-8")
    if to == "feast":
        write_feast(table, folder)
        return
    vectors, ids = table.vectors, table.catalog.ids.tolist()
    kind = pl.Array(pl.Float32, vectors.shape[1])
    texts = {name: pl.Series(column, dtype=pl.String) for name, column in table.columns().items()}
    whole = {"item": ids, "vector": pl.Series(vectors, dtype=kind), **texts}
    pl.DataFrame(whole).write_parquet(folder / ITEMS)
    if to == "faiss":
        faiss = library("faiss", "discreet[vectors]")
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        faiss.write_index(index, str(folder / INDEX))
    if to == "hnswlib":
        found = library("hnswlib", "discreet[vectors]").Index(space="l2", dim=vectors.shape[1])
        found.init_index(max_elements=len(vectors), M=LINKS, ef_construction=CANDIDATES)
        found.add_items(vectors, np.arange(len(vectors)))
        found.save_index(str(folder / INDEX))
    if to == "pgvector":
        write_pgvector(table, folder)
    if to == "qdrant":
        write_qdrant(table, folder)
