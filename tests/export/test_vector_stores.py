"""PostgreSQL with pgvector and Qdrant find the lists that `recommend` makes, from real servers and files."""

import json
import math
import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.data.vocabulary import Vocabulary
from discreet.export.items import export_items, load_items
from discreet.export.vector_stores import QDRANT, SQL, VectorTable, write_pgvector
from discreet.models.answers import item_matrix
from discreet.testing import refuses
from service.servers import Postgresql, pgvector_programs, postgresql_programs
from toy import toy_interactions

K, PEOPLE = 10, 40


@pytest.fixture(scope="module")
def data():
    return toy_interactions(n_users=300, n_items=120)


@pytest.fixture(scope="module")
def model(data):
    return discreet.UserFactorization(epsilon=3.0, feedback="implicit").fit(data)


@pytest.fixture(scope="module")
def weighted(data):
    """Return a model without noise, whose lists follow weights between items."""
    model = discreet.UserFactorization(epsilon=math.inf, feedback="implicit").fit(data)
    assert model.scorer.following
    return model


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="the extra `pgvector` is not installed")
    programs = pgvector_programs() or postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed; `make browser` brings it")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = Postgresql(folder, programs).start()
        yield server
        server.stop()


@pytest.fixture(scope="module")
def database(server):
    if pgvector_programs() is None:
        pytest.skip("pgvector is not installed; `make test-systems` brings it")
    return server


def histories(model, data):
    """Return what some people of the data have seen, oldest first."""
    rows = [data.items[data.indptr[row] : data.indptr[row + 1]] for row in range(PEOPLE)]
    return [model.catalog.id_at(row).tolist() for row in rows]


def agreement(model, data, search):
    """Return the share of `recommend`'s items that come from `search(vector, count)` and `rerank`."""
    found = 0
    for seen in histories(model, data):
        theirs = model.rerank(seen, search(model.search_vector(seen), K + len(seen)), K)
        found += len({item for item, _ in model.recommend(seen, k=K)} & {item for item, _ in theirs})
    return found / (PEOPLE * K)


def exact_search(model):
    vectors, ids = item_matrix(model), model.catalog.ids
    return lambda vector, count: ids[np.argsort(-(vectors @ vector), kind="stable")[:count]].tolist()


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["model", "weighted"])
def test_a_list_is_complete_from_an_exact_search(request, name, data):
    model = request.getfixturevalue(name)
    search = exact_search(model)
    for seen in histories(model, data):
        same_list(
            model.recommend(seen, k=K), model.rerank(seen, search(model.search_vector(seen), K + len(seen)))
        )
    # The twin: lists of vectors alone are others where weights between items count.
    alone = [search(model.search_vector(seen), K) for seen in histories(model, data)[:5]]
    ours = [model.recommend(seen, k=K, exclude_seen=False) for seen in histories(model, data)[:5]]
    if name == "weighted":
        assert [[item for item, _ in one] for one in ours] != alone


def test_reranking_refuses_what_it_does_not_know(model):
    with refuses("unknown-items", count=1, of=2, where="found"):
        model.rerank([], [model.catalog.ids[0], "a stranger"])
    with refuses("out-of-range", name="k", value=0, least=1):
        model.rerank([], [], k=0)


def by_sql(connection, table="items"):
    connection.execute("SET hnsw.ef_search = 200")

    def search(vector, count):
        rows = connection.execute(
            f"SELECT item FROM {table} ORDER BY vector <#> %s::vector LIMIT %s",
            (json.dumps(vector.tolist()), count),
        )
        return [item for (item,) in rows]

    return search


def test_lists_of_a_database_are_ours(model, data, database):
    psycopg = pytest.importorskip("psycopg")
    url = database.fresh()
    load_items(model, url, "pgvector")
    with psycopg.connect(url) as connection:
        # With so few items the planner reads them all; the index is what a shop uses.
        connection.execute("SET enable_seqscan = off")
        search = by_sql(connection)
        assert agreement(model, data, search) >= 0.99
        # The twin: a search by the farthest items is caught.
        assert set(search(model.search_vector([]), K)) != set(search(-model.search_vector([]), K))
        asked = json.dumps(model.search_vector([]).tolist())
        plan = connection.execute(
            f"EXPLAIN SELECT item FROM items ORDER BY vector <#> '{asked}'::vector LIMIT 5"
        ).fetchall()
        assert "items_vector_idx" in str(plan)
        (said,) = connection.execute("SELECT obj_description('items'::regclass)").fetchone()
        assert json.loads(said)["guarantee"] == model.guarantee.to_json()


def recipe(name):
    """Return the function that the documentation shows for a store."""
    text = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text(encoding="utf8")
    block = next(
        one for one in re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if name in one
    )
    names = {}
    exec(block, names)
    return names["recommend"]


def same_list(ours, theirs):
    assert [item for item, _ in ours] == [item for item, _ in theirs]
    assert np.allclose([score for _, score in ours], [score for _, score in theirs], rtol=1e-4, atol=1e-4)


def test_the_recipe_of_the_documentation_gives_our_list_from_a_database(model, database):
    psycopg = pytest.importorskip("psycopg")
    url, history = database.fresh(), model.catalog.ids[3:9].tolist()
    load_items(model, url, "pgvector")
    with psycopg.connect(url) as connection:
        same_list(model.recommend(history, k=K), recipe("# pgvector")(model, history, connection))


@pytest.mark.parametrize("to", ["faiss", "hnswlib"])
def test_the_recipes_of_the_documentation_give_our_list_from_an_index(tmp_path, model, to):
    pytest.importorskip(to, reason="the extra `vectors` is not installed")
    export_items(model, tmp_path / "shop", to)
    history = model.catalog.ids[3:9].tolist()
    same_list(model.recommend(history, k=K), recipe(f"# {to}")(model, history, tmp_path / "shop", K))


def test_the_recipe_of_the_documentation_gives_our_list_from_a_collection(tmp_path, model):
    qdrant = pytest.importorskip("qdrant_client", reason="the extra `qdrant` is not installed")
    export_items(model, tmp_path / "shop", "qdrant")
    client = qdrant.QdrantClient(path=str(tmp_path / "shop" / QDRANT))
    history = model.catalog.ids[3:9].tolist()
    same_list(model.recommend(history, k=K), recipe("# qdrant")(model, history, client))
    client.close()


def run_script(url, script):
    """Run a script as the documentation says, with psql as it comes; return its status."""
    programs = pgvector_programs() or postgresql_programs()
    command = [programs / "psql", "--quiet", "--no-psqlrc", url, "--file", script]
    return subprocess.run(list(map(str, command)), check=False, capture_output=True).returncode


def test_the_script_makes_the_same_table(tmp_path, model, data, database):
    psycopg = pytest.importorskip("psycopg")
    export_items(model, tmp_path / "shop", "pgvector", name="films")
    url = database.fresh()
    assert run_script(url, tmp_path / "shop" / SQL) == 0
    with psycopg.connect(url) as connection:
        assert agreement(model, data, by_sql(connection, "films")) >= 0.99


def hostile_script(folder):
    """Write the script of a catalog with an id that is SQL for whoever reads it as such."""
    ids = ["film", "; ROLLBACK; CREATE TABLE stolen AS SELECT current_user; --"]
    table = VectorTable(catalog=Vocabulary.of(ids), vectors=np.ones((2, 2), dtype=np.float32), label={})
    write_pgvector(table, folder)
    return folder / SQL


def test_a_script_stops_at_its_first_error_by_itself(tmp_path):
    assert hostile_script(tmp_path).read_text().startswith("\\set ON_ERROR_STOP on\n")


def test_an_id_is_never_a_statement(tmp_path, server):
    psycopg = pytest.importorskip("psycopg")
    script, url = hostile_script(tmp_path), server.fresh()

    def is_stolen():
        with psycopg.connect(url) as connection:
            return connection.execute("SELECT to_regclass('stolen') IS NOT NULL").fetchone()[0]

    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE items (item text)")
    assert run_script(url, script) != 0 and not is_stolen()
    # The twin: without its first line the script goes on, and psql reads the id as a statement.
    script.write_text(script.read_text().partition("\n")[2])
    run_script(url, script)
    assert is_stolen()


def test_odd_ids_come_back_as_they_were(tmp_path, database):
    psycopg = pytest.importorskip("psycopg")
    odd = ["a\tb", "back\\slash", "line\nend", "\\.", "it's", 'say "x"', "\r", "\\N", "ü'; DROP TABLE x; --"]
    vectors = np.random.default_rng(1).normal(size=(len(odd), 3)).astype(np.float32)
    table = VectorTable(catalog=Vocabulary.of(odd), vectors=vectors, label={"it's": "\\ a label"})
    write_pgvector(table, tmp_path)
    url = database.fresh()
    assert run_script(url, tmp_path / SQL) == 0
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT item, vector::text FROM items ORDER BY place").fetchall()
        (said,) = connection.execute("SELECT obj_description('items'::regclass)").fetchone()
    assert [item for item, _ in rows] == odd
    # Single precision survives the text.
    assert np.array_equal(np.array([json.loads(text) for _, text in rows], dtype=np.float32), vectors)
    assert json.loads(said) == {"it's": "\\ a label"}


def test_a_database_that_cannot_be_filled_says_so(model, database):
    psycopg = pytest.importorskip("psycopg")
    url = database.fresh()
    load_items(model, url, "pgvector")
    with refuses("table-exists"):
        load_items(model, url, "pgvector")
    load_items(model, url, "pgvector", name="more")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM more").fetchone() == (len(model.catalog),)
        connection.execute("CREATE ROLE guest LOGIN")
    with refuses("store-unusable"):
        load_items(model, url.replace("discreet@", "guest@"), "pgvector", name="third")
    for wrong in ("postgresql://discreet:secret@127.0.0.1:9/none", "secret"):
        with refuses("store-unusable") as refused:
            load_items(model, wrong, "pgvector")
        assert "secret" not in str(refused.value)


def test_force_replaces_a_table_of_ours_and_keeps_its_readers(model, weighted, database):
    psycopg = pytest.importorskip("psycopg")
    url = database.fresh()
    load_items(model, url, "pgvector", force=True)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON items TO reader")
    load_items(weighted, url, "pgvector", force=True)
    with psycopg.connect(url.replace("discreet@", "reader@")) as connection:
        (said,) = connection.execute("SELECT obj_description('items'::regclass)").fetchone()
        assert json.loads(said)["guarantee"] == weighted.guarantee.to_json()
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (len(model.catalog),)
        names = connection.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'items'").fetchall()
        assert {name for (name,) in names} == {"items_pkey", "items_item_key", "items_vector_idx"}
        (left,) = connection.execute("SELECT to_regclass('items_next')").fetchone()
        assert left is None


def test_force_leaves_tables_of_others(model, database):
    psycopg = pytest.importorskip("psycopg")
    url = database.fresh()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE items (item text)")
        connection.execute("INSERT INTO items VALUES ('mine')")
    with refuses("not-our-table"):
        load_items(model, url, "pgvector", force=True)
    load_items(model, url, "pgvector", name="films")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE films_next (item text)")
    with refuses("table-exists"):
        load_items(model, url, "pgvector", name="films", force=True)
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE films_next")
        rows = connection.execute("SELECT item FROM items").fetchall()
        assert rows == [("mine",)]
        connection.execute("CREATE VIEW shown AS SELECT item FROM films")
    with refuses("table-in-use"):
        load_items(model, url, "pgvector", name="films", force=True)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM shown").fetchone() == (len(model.catalog),)


def test_titles_are_columns_of_the_table(database, tmp_path):
    psycopg = pytest.importorskip("psycopg")
    odd = ("tab\there", "", "\\N", "it's; --")
    table = VectorTable(
        catalog=Vocabulary.of([1, 2, 3, 4]),
        vectors=np.ones((4, 2), dtype=np.float32),
        label={},
        public={"title": odd, 'a "b"; --': odd, "vector": odd},
    )
    write_pgvector(table, tmp_path)
    url = database.fresh()
    assert run_script(url, tmp_path / SQL) == 0
    with psycopg.connect(url) as connection:
        rows = connection.execute('SELECT title, vector_, "a ""b""; --" FROM items ORDER BY place')
        assert rows.fetchall() == [(text or None,) * 3 for text in odd]


def test_what_no_store_takes_is_refused(model, tmp_path):
    with refuses("bad-store-name"):
        load_items(model, "postgresql://", "pgvector", name='x"; DROP TABLE y; --')
    with refuses("unknown-choice", name="to"):
        load_items(model, "postgresql://", "faiss")
    nul = VectorTable(catalog=Vocabulary.of(["a\0b"]), vectors=np.ones((1, 2), dtype=np.float32), label={})
    with refuses("nul-in-id"):
        write_pgvector(nul, tmp_path)


def test_lists_of_a_collection_are_ours(tmp_path, model, data):
    qdrant = pytest.importorskip("qdrant_client", reason="the extra `qdrant` is not installed")
    export_items(model, tmp_path / "shop", "qdrant")
    client = qdrant.QdrantClient(path=str(tmp_path / "shop" / QDRANT))

    def search(vector, count):
        points = client.query_points("items", query=vector.tolist(), limit=count).points
        return [point.payload["item"] for point in points]

    assert agreement(model, data, search) >= 0.99
    assert agreement(model, data, lambda vector, count: search(-vector, count)) < 0.9
    client.close()


@pytest.fixture
def qdrant_server(tmp_path, monkeypatch):
    """Let an address mean a folder: Qdrant's local mode answers for a server."""
    qdrant = pytest.importorskip("qdrant_client", reason="the extra `qdrant` is not installed")
    local = qdrant.QdrantClient

    def connect(url=None, **options):
        return local(path=str(tmp_path / "server"))

    monkeypatch.setattr(qdrant, "QdrantClient", connect)
    return connect


def test_force_makes_a_collection_of_ours_anew(model, weighted, qdrant_server):
    titles = tuple(f"Film {place}" for place in range(len(model.catalog)))
    load_items(replace(model, public={"title": titles}), "http://here", "qdrant", force=True)
    with refuses("table-exists"):
        load_items(weighted, "http://here", "qdrant")
    client = qdrant_server()
    (point,) = client.retrieve("items", [3])
    assert point.payload == {"item": model.catalog.ids[3], "title": "Film 3"}
    client.close()
    load_items(weighted, "http://here", "qdrant", force=True)
    client = qdrant_server()
    assert client.count("items").count == len(weighted.catalog)
    label = json.loads(client.get_collection("items").config.metadata["label"])
    assert label["guarantee"] == weighted.guarantee.to_json()
    client.close()


def test_force_leaves_collections_of_others(model, qdrant_server):
    from qdrant_client.models import Distance, VectorParams

    client = qdrant_server()
    client.create_collection("items", vectors_config=VectorParams(size=2, distance=Distance.DOT))
    client.close()
    with refuses("not-our-table"):
        load_items(model, "http://here", "qdrant", force=True)
    client = qdrant_server()
    assert client.collection_exists("items")
    client.close()


def test_a_server_that_is_not_there_says_so(model):
    pytest.importorskip("qdrant_client", reason="the extra `qdrant` is not installed")
    for wrong in ("http://127.0.0.1:9", "secret address"):
        with refuses("store-unusable") as refused:
            load_items(model, wrong, "qdrant")
        assert "secret" not in str(refused.value)
