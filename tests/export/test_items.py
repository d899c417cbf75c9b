"""Exported vectors find the lists that `recommend` makes, in every target."""

import dataclasses
import json
import math

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.export.items import INDEX, ITEMS, LABEL, export_items
from discreet.models.answers import item_matrix, search_vectors
from discreet.testing import refuses
from toy import toy_interactions


@pytest.fixture(scope="module")
def data():
    return toy_interactions(n_users=300, n_items=120)


KINDS = {
    "user-factorization": lambda: discreet.UserFactorization(epsilon=math.inf, feedback="implicit"),
    "private": lambda: discreet.UserFactorization(epsilon=3.0, feedback="implicit"),
    "implicit-als": lambda: discreet.ImplicitAls(factors=8, alpha=10.0, regularization=1.0),
}


def without_pairs(model):
    """Return the model without weights between items."""
    if "blend" not in model.scorer.constants:
        return model
    return dataclasses.replace(model, scorer=model.scorer.with_parts(blend=0.0))


def by_product(vectors, wanted):
    return np.argsort(-(wanted @ vectors.T), axis=1, kind="stable")[:, :10]


def by_faiss(folder, wanted):
    faiss = pytest.importorskip("faiss")
    return faiss.read_index(str(folder / INDEX)).search(wanted, 10)[1]


def by_hnswlib(folder, wanted):
    hnswlib = pytest.importorskip("hnswlib")
    index = hnswlib.Index(space="l2", dim=wanted.shape[1])
    index.load_index(str(folder / INDEX))
    index.set_ef(200)
    return index.knn_query(wanted, k=10)[0].astype(int)


def agreement(places, worth):
    """Return the share of listed items that belong to the best ten; items of equal worth are as good."""
    least = -np.sort(-worth, axis=1)[:, 9:10]
    return np.mean(np.take_along_axis(worth, places, axis=1) >= least - 1e-4)


@pytest.mark.parametrize("to", ["parquet", "faiss", "hnswlib"])
@pytest.mark.parametrize("kind", KINDS)
def test_lists_from_an_index_are_ours(tmp_path, data, kind, to):
    if to != "parquet":
        pytest.importorskip(to)
    model = KINDS[kind]().fit(data, random=discreet.PrivacyRandom.simulate(1))
    export_items(model, tmp_path / "shop", to)
    table = pl.read_parquet(tmp_path / "shop" / ITEMS)
    wanted = search_vectors(model, data)
    read = {"faiss": by_faiss, "hnswlib": by_hnswlib}
    places = (
        read[to](tmp_path / "shop", wanted) if to in read else by_product(table["vector"].to_numpy(), wanted)
    )
    # Weights between items are no vectors; the label says that they are left out.
    label = json.loads((tmp_path / "shop" / LABEL).read_text())
    paired = model.scorer.settings().get("blend", 0) > 0
    assert ("leaves_out" in label) == paired
    # With noise it depends on the draw whether they are worth it.
    assert kind == "private" or paired == (kind == "user-factorization")
    worth = without_pairs(model).worth(data, np.arange(data.n_users))
    assert agreement(places, worth) >= 0.99
    # The twin: vectors that belong to the next item find other lists.
    other = by_product(np.roll(table["vector"].to_numpy(), 1, axis=0), wanted)
    assert agreement(other, worth) < 0.9
    assert table["item"].to_list() == model.catalog.ids.tolist()
    assert label["guarantee"] == model.guarantee.to_json()


def test_a_person_finds_their_own_list(data):
    model = KINDS["user-factorization"]().fit(data)
    history = model.catalog.ids[:4].tolist()
    scores = item_matrix(model) @ model.search_vector(history)
    for item, score in without_pairs(model).recommend(history, k=10):
        assert math.isclose(scores[model.catalog.index_of([item])[0]], score, rel_tol=1e-4, abs_tol=1e-4)


def test_what_cannot_be_exported_is_refused(tmp_path, data):
    with refuses("not-searchable", model="biases"):
        export_items(discreet.Biases(epsilon=1.0).fit(data), tmp_path / "shop", "parquet")
    model = KINDS["implicit-als"]().fit(data)
    with refuses("unknown-choice", name="to"):
        export_items(model, tmp_path / "shop", "nothing")
    (tmp_path / "there").mkdir()
    with refuses("file-exists", replaceable=True):
        export_items(model, tmp_path / "there", "parquet")
    with refuses("cannot-write"):
        export_items(model, tmp_path / "no" / "shop", "parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]


def titled(model):
    """Return the model with titles and words, as a public table brings them; one item has none."""
    count = len(model.catalog)
    public = {"title": tuple(f"Film {n}" for n in range(count)), "item": ("",) + ("drama",) * (count - 1)}
    return dataclasses.replace(model, public=public)


@pytest.mark.parametrize("to", ["parquet", "faiss", "hnswlib", "feast", "onnx"])
def test_an_export_replaces_an_export_by_force(tmp_path, data, to):
    needs = {"faiss": "faiss", "hnswlib": "hnswlib", "onnx": "onnx"}
    if to in needs:
        pytest.importorskip(needs[to])
    model, out = KINDS["private"]().fit(data), tmp_path / "shop"
    export_items(model, out, to)
    before = (out / LABEL).read_bytes()
    with refuses("file-exists", replaceable=True):
        export_items(model, out, to)
    other = KINDS["user-factorization"]().fit(data)
    export_items(other, out, to, force=True)
    assert json.loads((out / LABEL).read_text())["guarantee"] == other.guarantee.to_json()
    assert before != (out / LABEL).read_bytes()
    (out / "diary.txt").write_text("dear diary")
    with refuses("not-ours"):
        export_items(model, out, to, force=True)
    assert (out / "diary.txt").read_text() == "dear diary"
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


def test_force_never_replaces_what_is_no_export(tmp_path, data):
    model = KINDS["private"]().fit(data)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("dear diary")
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("empty", "file", "link"):
        with refuses("not-ours"):
            export_items(model, tmp_path / name, "parquet", force=True)
    assert (tmp_path / "file").read_text() == "dear diary" and (tmp_path / "empty").is_dir()


def test_an_export_that_fails_leaves_the_old_one(tmp_path, data, monkeypatch):
    model, out = KINDS["private"]().fit(data), tmp_path / "shop"
    export_items(model, out, "parquet")
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("discreet.export.items._write", full)
    with refuses("cannot-write"):
        export_items(model, out, "parquet", force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


def test_titles_go_along(tmp_path, data):
    model = titled(KINDS["private"]().fit(data))
    export_items(model, tmp_path / "shop", "parquet")
    table = pl.read_parquet(tmp_path / "shop" / ITEMS)
    assert table.columns == ["item", "vector", "title", "item_"]
    assert table["title"].to_list() == list(model.public["title"])
    assert table["item_"].to_list() == [None] + ["drama"] * (table.height - 1)
