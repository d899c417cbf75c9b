"""One model from every engine: memory, shards, DuckDB, Dask and Spark, on users of every odd kind."""

import hashlib
import math
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from command_line import rejected
from discreet.cli.options.declared import Reading, opened, plan_of
from discreet.core.checks import FileError, ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import QUERY
from discreet.model_settings import estimator
from discreet.sources.duckdb_export import export_table
from discreet.sources.sharding import make_shards

N_ITEMS = 40


def odd_rows(*, times):
    """Return users with one row, more rows than the cap, repeated items, and text or large IDs."""
    rng = np.random.default_rng(7)
    rows = []
    for user in range(400):
        count = 1 if user % 9 == 0 else 30 if user % 11 == 0 else int(rng.integers(2, 14))
        items = rng.choice(N_ITEMS, count, replace=user % 5 == 0)
        rows += [
            (user * 10**12, int(item), int(rng.integers(1, 6)), int(at)) for at, item in enumerate(items)
        ]
    order = rng.permutation(len(rows))
    table = pl.DataFrame([rows[at] for at in order], ["user", "item", "rating", "time"], orient="row")
    return table if times else table.drop("time")


@pytest.fixture(scope="module", params=[True, False], ids=["times", "no times"])
def table(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    rows = odd_rows(times=request.param)
    rows.write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.fixture(scope="module")
def database(table):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `duckdb`")
    file = table.parent / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM read_parquet('{table}')")
    return file


READING = Reading(duplicates="last", max_per_user=12, people=400)


@contextmanager
def on(source, engine=None, reading=READING):
    with opened(str(source), reading, None, engine, lambda *_: None) as data:
        yield data


def digest(data, name, epsilon):
    settings = {"purpose": "ratings"} if name == "user-factorization" else {}
    fitted = estimator(name, {"epsilon": epsilon, **settings}).fit(data, random=PrivacyRandom.simulate(3))
    # What is assumed of a query isn't part of the model.
    facts = replace(fitted.facts, reading=tuple(one for one in fitted.facts.reading if one != QUERY))
    whole = hashlib.sha256(repr(facts).encode())
    for part, array in sorted(fitted.scorer.arrays().items()):
        whole.update(part.encode() + np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


MODELS = [("biases", 2.0), ("user-factorization", 8.0), ("user-factorization", math.inf)]


@pytest.fixture(scope="module")
def expected(table):
    with on(table) as data:
        return [digest(data, *model) for model in MODELS]


@pytest.mark.few(1)
def test_shards_and_memory_learn_one_model(table, expected, tmp_path):
    reader, declared = plan_of(READING)
    make_shards([table], tmp_path / "shards", reader=reader, n_shards=3, name="rows", **declared)
    with on(tmp_path / "shards", reading=Reading()) as data:
        assert [digest(data, *model) for model in MODELS] == expected


@pytest.mark.parametrize("query", ["rows", "main.rows", "SELECT * FROM rows;"])
def test_a_table_of_duckdb_and_memory_learn_one_model(database, expected, query):
    models = MODELS if query == "rows" else MODELS[:1]
    with on(query, f"duckdb:{database}") as data:
        assert [digest(data, *model) for model in models] == expected[: len(models)]
        assert (QUERY in data.facts.reading) == query.startswith("SELECT")


def test_one_row_more_shows(database, expected):
    """The twin: other rows are another model."""
    with on("SELECT * FROM rows WHERE item <> 3 OR rating < 5", f"duckdb:{database}") as data:
        assert digest(data, *MODELS[0]) != expected[0]


def test_nothing_of_the_rows_is_left_behind(database, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with on("rows", f"duckdb:{database}"):
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("address", "query"),
    [
        ("duckdb:{file}", "nothing"),
        ("duckdb:{file}", "SELECT nothing FROM rows"),
        ("duckdb:{file}", "SELECT CAST('secret' AS INTEGER)"),
        ("duckdb:{file}", "SELECT 1); DROP TABLE rows; SELECT (1"),
        ("duckdb:{file}.not", "rows"),
        ("duckdb:{parquet}", "rows"),
    ],
)
def test_a_query_that_fails_names_no_value(database, table, tmp_path, address, query):
    with pytest.raises(FileError) as found:
        export_table(address.format(file=database, parquet=table), query, tmp_path / "out.parquet")
    assert "secret" not in str(found.value).replace(query, "")


def test_an_address_without_a_path_is_rejected(tmp_path):
    with pytest.raises(ParameterError):
        export_table("duckdb:", "rows", tmp_path / "out.parquet")


@pytest.mark.slow
def test_dask_and_memory_learn_one_model(table, expected, tmp_path):
    pytest.importorskip("distributed", reason="needs the extra `distributed`")
    reader, declared = plan_of(READING)
    make_shards([table], tmp_path / "shards", reader=reader, n_shards=5, name="rows", **declared)
    with on(tmp_path / "shards", "dask://local", Reading()) as data:
        assert [digest(data, *model) for model in MODELS] == expected


@pytest.mark.slow
def test_spark_and_memory_learn_one_model(table, expected):
    pytest.importorskip("pyspark", reason="needs the extra `spark`, and Java")
    with on(table.parent, "spark://local") as data:
        assert [digest(data, *model) for model in MODELS] == expected


def test_lists_from_a_table_are_those_of_its_rows(table, database, tmp_path, monkeypatch, discreet):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    model = tmp_path / "m.discreet"
    with on(table) as data:
        estimator("user-factorization", {"epsilon": 8.0, "purpose": "ratings"}).fit(data).save(model)
    read, asked = {}, ["--all", "--force", "--out"]
    for name, source in {"file": [table], "table": ["rows", "--on", f"duckdb:{database}"]}.items():
        out = tmp_path / f"{name}.parquet"
        assert discreet("recommend", model, *source, *asked, out)[0] == 0
        read[name] = pl.read_parquet(out).sort("user", "rank").select("user", "rank", "item")
    assert read["table"].equals(read["file"]) and len(read["file"]) > 3_000
    rejected(
        discreet("recommend", model, "rows", "--on", f"duckdb:{database}", *asked, tmp_path / "a.csv"),
        "wrong-form",
        option="--out",
    )
