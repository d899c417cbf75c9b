"""Write the item vectors of a model for vector stores, or as a Feast feature repository.

Feast itself is not needed to write its files. Items alone are stored: a user's vector is made from the
history that the user brings, and is never a feature here.
"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.core import filled_folder, one_of
from discreet.core.exports import pl
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
from discreet.models import item_matrix

if TYPE_CHECKING:
    from discreet.models import FittedModel


TARGETS = ("parquet", "faiss", "hnswlib", "pgvector", "qdrant", "feast", "onnx")
ITEMS, LABEL, INDEX = "items.parquet", "label.json", "items.index"
STORE, DEFINITIONS = "feature_store.yaml", "features.py"
# What `feast apply` and `materialize` keep next to our files.
_KEPT = ("registry.db", "online.db", "online.db-wal", "online.db-shm")
#: All files of a repository that Feast used.
FEAST_FILES = frozenset({ITEMS, STORE, DEFINITIONS, *_KEPT, "__pycache__"})
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


_STORE = """\
project: "{name}"
provider: local
registry: registry.db
online_store:
  type: sqlite
  path: online.db
offline_store:
  type: file
entity_key_serialization_version: 3
"""

# Texts that come from a model stand in it as Python literals.
_DEFINITIONS = '''\
"""Features of items, written by discreet. Run `feast apply` here."""

from datetime import timedelta
from pathlib import Path

from feast import Entity, FeatureView, Field, FileSource, ValueType
from feast.types import Array, Float32

item = Entity(name="item", join_keys=["item"], value_type=ValueType.{kind})
source = FileSource(
    name={source!r},
    path=str(Path(__file__).resolve().parent / {items!r}),
    timestamp_field="event_timestamp",
)
view = FeatureView(
    name={name!r},
    entities=[item],
    # Vectors count until others replace them. Without an end Feast would look back for a year only.
    ttl=timedelta(days=3650),
    schema=[Field(name="vector", dtype=Array(Float32))],
    source=source,
    tags={tags!r},
)
'''


def write_feast(table: VectorTable, folder: Path) -> None:
    """Write the table with entity keys and times, the store's settings, and the definitions."""
    ids = pl.Series("item", table.catalog.ids.tolist())
    whole = ids.dtype.is_integer()
    now = datetime.now(UTC)
    pl.DataFrame(
        {
            "item": ids if whole else ids.cast(pl.String),
            "event_timestamp": pl.Series([now] * len(ids), dtype=pl.Datetime("us", "UTC")),
            # A list and not an array of fixed length, which Feast does not read.
            "vector": pl.Series(
                table.vectors, dtype=pl.Array(pl.Float32, table.vectors.shape[1])
            ).arr.to_list(),
        }
    ).write_parquet(folder / ITEMS)
    (folder / STORE).write_text(_STORE.format(name=table.name), encoding="utf-8")
    (folder / DEFINITIONS).write_text(
        _DEFINITIONS.format(
            kind="INT64" if whole else "STRING",
            name=table.name,
            source=f"{table.name}_file",
            items=ITEMS,
            tags=_tags(table),
        ),
        encoding="utf-8",
    )


def keep_stores(old: Path, new: Path) -> None:
    """Take over what a repository has of its own: settings of its stores, registry and online store."""
    for name in (STORE, *_KEPT):
        if (old / name).is_file():
            shutil.copy2(old / name, new / name)


def _tags(table: VectorTable) -> dict[str, str]:
    """Return the guarantee as tags, which Feast shows; the whole label is next to them."""
    promise = table.label["guarantee"]
    named = ("epsilon", "delta", "unit", "trust", "basis")
    return {"model": str(table.label["model"]), **{key: str(promise[key]) for key in named if key in promise}}
