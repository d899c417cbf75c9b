"""Write item vectors for vector stores, and make the vector of a user that finds the same list there.

A vector of an item ends in its bias and a filling that makes all vectors equally long; one of a user ends
in 1 and 0. So their inner product is the score that `recommend` sorts by, and the nearest items by distance
or by angle are the same ones: indexes of graphs find neighbors well, and largest products badly. All numbers
of items are released already: writing them costs nothing. Weights between items aren't vectors. They stay in
the model, which adds them to what a search found (`reranked`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Floats, Singles
from discreet.core.checks import integer, one_of
from discreet.core.exports import Later
from discreet.core.files import filled_folder
from discreet.models.answers import titles_in_order
from discreet.models.errors import NotSearchable
from discreet.models.feast_files import FEAST_FILES, keep_stores, write_feast
from discreet.models.listings import ListedItem, Listing
from discreet.models.lists import item_places
from discreet.models.vector_stores import (
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

if TYPE_CHECKING:
    import polars as pl

    from discreet.data.interactions import Interactions
    from discreet.models.fitted import FittedModel
    from discreet.models.histories import ItemId
else:
    pl = Later("polars")

TARGETS = ("parquet", "faiss", "hnswlib", "pgvector", "qdrant", "feast", "onnx")
ITEMS, LABEL, INDEX = "items.parquet", "label.json", "items.index"
# All that an export writes, and what Feast adds to it.
_WRITTEN = {ITEMS, LABEL, INDEX, SQL, QDRANT, "model.onnx", "items.json", *FEAST_FILES}
#: Targets that a running server may be filled with.
LIVE = {"pgvector": load_pgvector, "qdrant": load_qdrant}


def item_matrix(model: FittedModel) -> Singles:
    """Return a vector for each item of the catalog: factors, bias, filling.

    Raises:
        ParameterError: The order of this model's lists isn't an inner product.
    """
    factors, bias = _search_parts(model)
    vectors = np.column_stack([factors, bias])
    squares = (vectors**2).sum(axis=1)
    return np.column_stack([vectors, np.sqrt(squares.max() - squares)]).astype(np.float32)


def _search_parts(model: FittedModel) -> tuple[Floats, Floats]:
    linear = model.scorer.search_parts()
    if linear is None:
        raise NotSearchable(model=model.name)
    return linear


def search_vectors(model: FittedModel, people: Interactions) -> Singles:
    """Return the vector of each user to search with; it is as private as the user's history."""
    _search_parts(model)
    own = model.scorer.fold_in(people)
    return np.column_stack([own, np.ones(len(own)), np.zeros(len(own))]).astype(np.float32)


def reranked(
    model: FittedModel, person: Interactions, found: Iterable[ItemId], k: int, *, exclude_seen: bool
) -> Listing[ListedItem]:
    """Return one user's `k` best items, of those that a search found and those that weights bring in."""
    integer("k", k, least=1)
    _search_parts(model)
    items, scores = model.scorer.rescored(person, np.unique(item_places(model, found, "found")))
    if exclude_seen:
        kept = ~np.isin(items, person.items)
        items, scores = items[kept], scores[kept]
    # Ties are broken as in `recommend`: by place in the catalog.
    best = np.lexsort((items, -scores))[:k]
    stars = model.scorer.expected_stars(person, np.zeros(best.size, dtype=np.int64), items[best])
    ids = model.catalog.id_at(items[best]).tolist()
    columns = (
        ids,
        scores[best].tolist(),
        [None] * best.size if stars is None else stars.tolist(),
        titles_in_order(model, ids),
    )
    return Listing(ListedItem(*one) for one in zip(*columns, strict=True))


def export_items(model: FittedModel, out: Path, to: str, *, name: str = "items", force: bool = False) -> None:
    """Write a folder: the items with their vectors, the label, and an index of `to` if that is one.

    Positions in an index are rows of `items.parquet`. To `onnx` goes no vector store but the whole way from
    histories to lists, also of models whose lists aren't inner products. `force` replaces an earlier export.
    """
    one_of("to", to, TARGETS)
    replaces = is_export if force else None
    if to == "onnx":
        from discreet.models.bundle.folder import write_graph

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
