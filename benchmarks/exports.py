"""Whether lists from an exported index are those of `recommend`: the share of items in common, by target.

    python benchmarks/exports.py --json                          MovieLens 1M, every target that is installed
    python benchmarks/exports.py --targets pgvector,qdrant --people 100
    python benchmarks/exports.py --data gowalla --epsilons 5

Each model is exported as `discreet model export` does. For people drawn at random, an index is asked with the
vector of `model.search_vector` for ten items and as many as the person has seen, and `model.rerank` makes the
list. `same` is the share of the items of `recommend_all` that are in it, `ranks` that of places with the same
item, and `vectors_alone` the share without `rerank`.
PostgreSQL is started here, in a folder of its own; a target that is not installed is named with the reason.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import harness
import numpy as np
import polars as pl

import discreet
from discreet.core.randomness import PrivacyRandom
from discreet.export.items import INDEX, ITEMS, export_items, load_items
from discreet.export.vector_stores import QDRANT
from discreet.models.answers import reranked, search_vectors

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

K, WIDTH = 10, 200
Search = Callable[[np.ndarray, int], list]


@contextmanager
def exact(model, folder: Path) -> Iterator[Search]:
    export_items(model, folder / "shop", "parquet")
    table = pl.read_parquet(folder / "shop" / ITEMS)
    vectors, ids = table["vector"].to_numpy(), table["item"].to_numpy()
    yield lambda wanted, count: ids[np.argsort(-(vectors @ wanted), kind="stable")[:count]].tolist()


@contextmanager
def by_faiss(model, folder: Path) -> Iterator[Search]:
    import faiss

    export_items(model, folder / "shop", "faiss")
    index, ids = faiss.read_index(str(folder / "shop" / INDEX)), model.catalog.ids
    yield lambda wanted, count: ids[index.search(wanted[None, :], count)[1][0]].tolist()


@contextmanager
def by_hnswlib(model, folder: Path) -> Iterator[Search]:
    import hnswlib

    export_items(model, folder / "shop", "hnswlib")
    ids, dim = model.catalog.ids, len(model.search_vector([]))
    index = hnswlib.Index(space="l2", dim=dim)
    index.load_index(str(folder / "shop" / INDEX))

    def search(wanted: np.ndarray, count: int) -> list:
        index.set_ef(max(WIDTH, 2 * count))
        return ids[index.knn_query(wanted[None, :], k=count)[0][0].astype(int)].tolist()

    yield search


@contextmanager
def by_pgvector(model, folder: Path) -> Iterator[Search]:
    import psycopg

    from service.servers import Postgresql, pgvector_programs

    programs = pgvector_programs()
    if programs is None:
        raise ImportError("PostgreSQL with pgvector is not installed; `pip install pgserver` brings both")
    folder.chmod(0o755)
    server = Postgresql(folder, programs).start()
    try:
        url = server.fresh()
        load_items(model, url, "pgvector")
        with psycopg.connect(url) as connection:
            connection.execute("SET enable_seqscan = off")
            # Versions before 0.8 do not have it; histories beyond their 1000 candidates get what is found.
            connection.execute("SET hnsw.iterative_scan = strict_order")

            def search(wanted: np.ndarray, count: int) -> list:
                connection.execute(f"SET hnsw.ef_search = {min(1000, max(WIDTH, 2 * count))}")
                rows = connection.execute(
                    "SELECT item FROM items ORDER BY vector <#> %s::vector LIMIT %s",
                    (json.dumps(wanted.tolist()), count),
                )
                return [item for (item,) in rows]

            yield search
    finally:
        server.stop()


@contextmanager
def by_qdrant(model, folder: Path) -> Iterator[Search]:
    from qdrant_client import QdrantClient

    export_items(model, folder / "shop", "qdrant")
    client = QdrantClient(path=str(folder / "shop" / QDRANT))
    try:
        yield lambda wanted, count: [
            point.payload["item"]
            for point in client.query_points("items", query=wanted.tolist(), limit=count).points
        ]
    finally:
        client.close()


DOORS = {
    "parquet": exact,
    "faiss": by_faiss,
    "hnswlib": by_hnswlib,
    "pgvector": by_pgvector,
    "qdrant": by_qdrant,
}


def agreement(model, people, search: Search) -> dict[str, float]:
    """Return the share of recommended items that the index finds, and of places with the same item."""
    vectors = search_vectors(model, people)
    listed = model.recommend_all(people, K).partition_by("user", as_dict=True, maintain_order=True)
    same, ranks, alone, asked = 0, 0, 0, 0
    for row, name in enumerate(people.users.ids.tolist()):
        person = people.select_users(np.array([row]))
        seen = set(person.catalog.id_at(person.items).tolist())
        found = search(vectors[row], min(K + len(seen), people.n_items))
        theirs = [item for item, _ in reranked(model, person, found, K, exclude_seen=True)]
        ours = listed[(name,)]["item"].to_list()
        same += len(set(ours) & set(theirs))
        ranks += sum(a == b for a, b in zip(ours, theirs, strict=False))
        alone += len(set(ours) & set([item for item in found if item not in seen][:K]))
        asked += len(ours)
    shares = {"same": same, "ranks": ranks, "vectors_alone": alone}
    return {name: count / asked for name, count in shares.items()} | {"people": people.n_users}


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"epsilons": "inf", "people": 5, "targets": "parquet"},
        data="movielens-1m",
        epsilons="5,inf",
        people=300,
        targets=",".join(DOORS),
    )
    data = harness.ratings(options.data, toy=options.toy)
    drawn = np.random.default_rng(0).permutation(data.n_users)[: options.people]
    people = data.select_users(np.sort(drawn))
    results: dict = {}
    for epsilon in map(float, options.epsilons.split(",")):
        estimator = discreet.UserFactorization(epsilon=epsilon, delta=1e-6, feedback="implicit")
        model = estimator.fit(data, random=PrivacyRandom.simulate(0))
        for to in options.targets.split(","):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    with DOORS[to](model, Path(folder)) as search:
                        told = agreement(model, people, search)
                except (ImportError, discreet.DiscreetError) as error:
                    told = {"skipped": str(error)}
            results[f"{options.data} epsilon={epsilon:g} {to}"] = told
            harness.say(f"epsilon={epsilon:g} {to}", told)
    harness.tell(results, options)


if __name__ == "__main__":
    main()
