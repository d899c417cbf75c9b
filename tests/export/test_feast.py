"""A feature repository for Feast: its layout, and the vectors that Feast itself gives back."""

import ast
import json
import math
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.data.vocabulary import Vocabulary
from discreet.export.items import DEFINITIONS, ITEMS, STORE, export_items, write_feast
from discreet.export.vector_stores import VectorTable
from discreet.models.answers import item_matrix
from discreet.testing import refuses
from toy import toy_interactions


@pytest.fixture(scope="module")
def model():
    data = toy_interactions(n_users=200, n_items=40)
    return discreet.UserFactorization(epsilon=3.0, feedback="implicit").fit(data)


def tagged(folder):
    """Return the tags that the definitions give, read without running them."""
    tree = ast.parse((folder / DEFINITIONS).read_text(encoding="utf8"))
    return next(
        ast.literal_eval(word.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "tags"
    )


def test_the_repository_has_keys_times_and_features(model, tmp_path):
    before = datetime.now(UTC)
    export_items(model, tmp_path / "shop", "feast")
    table = pl.read_parquet(tmp_path / "shop" / ITEMS)
    assert table.columns == ["item", "event_timestamp", "vector"]
    assert table["item"].to_list() == model.catalog.ids.tolist()
    assert table["vector"].dtype == pl.List(pl.Float32) and table["event_timestamp"].n_unique() == 1
    assert before <= table["event_timestamp"][0] <= datetime.now(UTC)
    np.testing.assert_array_equal(np.array(table["vector"].to_list(), np.float32), item_matrix(model))
    tags = tagged(tmp_path / "shop")
    assert tags["epsilon"] == "3.0" and tags["unit"] == "user" and tags["model"] == "user-factorization"
    assert json.loads((tmp_path / "shop" / "label.json").read_text())["guarantee"]["epsilon"] == 3.0
    assert 'project: "items"' in (tmp_path / "shop" / STORE).read_text()


def test_vectors_have_an_end_so_that_feast_looks_back_to_it(model, tmp_path):
    """Feast begins a year ago where there is none, and an older export would not be read."""
    export_items(model, tmp_path / "shop", "feast")
    (days,) = re.findall(r"ttl=timedelta\(days=(\d+)\)", (tmp_path / "shop" / DEFINITIONS).read_text())
    assert int(days) >= 3650


def test_a_newer_export_keeps_the_stores_of_the_repository(model, tmp_path):
    folder = tmp_path / "shop"
    export_items(model, folder, "feast")
    (folder / STORE).write_text("project: mine\n")
    (folder / "online.db").write_bytes(b"rows")
    before = pl.read_parquet(folder / ITEMS)["event_timestamp"][0]
    export_items(model, folder, "feast", force=True)
    assert (folder / STORE).read_text() == "project: mine\n" and (
        folder / "online.db"
    ).read_bytes() == b"rows"
    assert pl.read_parquet(folder / ITEMS)["event_timestamp"][0] > before


def test_texts_of_a_model_are_data_and_no_code(tmp_path):
    evil = "x'''\"\"\"\\\nimport os  # "
    table = VectorTable(
        catalog=Vocabulary.of([evil, "b"]),
        vectors=np.ones((2, 3), np.float32),
        label={"model": evil, "guarantee": {"epsilon": evil}},
    )
    write_feast(table, tmp_path)
    assert tagged(tmp_path) == {"model": evil, "epsilon": evil}
    with refuses("bad-store-name", value="x'''\"\"\"\\\nimport os  # "):
        VectorTable(catalog=table.catalog, vectors=table.vectors, label={}, name=evil)


def materialize(folder):
    """Run the commands of the documentation, at a time after the export's."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    for step in (("apply",), ("materialize-incremental", now)):
        command = [Path(sys.executable).parent / "feast", *step]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("texts", [False, True])
def test_feast_serves_the_vectors(tmp_path, model, texts):
    feast = pytest.importorskip("feast", reason="Feast is not installed")
    if texts:
        data = discreet.from_frame(
            pl.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": list("abbcac")}), implicit=True
        )
        model, other = (
            discreet.ImplicitAls(factors=2, alpha=10.0, regularization=one).fit(data) for one in (1.0, 2.0)
        )
    else:
        data = toy_interactions(n_users=200, n_items=40)
        other = discreet.UserFactorization(epsilon=3.0, feedback="implicit").fit(data)
    assert not np.array_equal(item_matrix(model), item_matrix(other))
    folder = tmp_path / "shop"
    export_items(model, folder, "feast", name="shop_items")
    materialize(folder)
    # A refit replaces the files in the repository, and Feast takes up what is new.
    export_items(other, folder, "feast", name="shop_items", force=True)
    materialize(folder)
    store = feast.FeatureStore(str(folder))
    view = store.get_feature_view("shop_items")
    promised = model.guarantee.epsilon
    assert view.tags["epsilon"] == ("inf" if math.isinf(promised) else str(promised))
    ids = model.catalog.ids.tolist()
    rows = [{"item": one} for one in reversed(ids)]
    found = store.get_online_features(["shop_items:vector"], rows).to_dict()
    np.testing.assert_array_equal(np.array(found["vector"][::-1], np.float32), item_matrix(other))
    assert found["item"] == ids[::-1]
