"""Write the files of a Feast feature repository: items with vectors and times, and their definitions.

Feast itself is not needed to write them. Items alone are stored: a user's vector is made from the history
that the user brings, and is never a feature here.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.exports import Later

if TYPE_CHECKING:
    import polars as pl

    from discreet.export.vector_stores import VectorTable
else:
    pl = Later("polars")

ITEMS, STORE, DEFINITIONS = "items.parquet", "feature_store.yaml", "features.py"
# What `feast apply` and `materialize` keep next to our files.
_KEPT = ("registry.db", "online.db", "online.db-wal", "online.db-shm")
#: All files of a repository that Feast used.
FEAST_FILES = frozenset({ITEMS, STORE, DEFINITIONS, *_KEPT, "__pycache__"})

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
