"""A graph for ONNX makes the lists of `recommend`, for many people at once."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.export import onnx_graph
from discreet.export.bundle.folder import bundle_files, scores_of
from discreet.export.bundle.parts import decoded
from discreet.export.items import export_items
from discreet.export.onnx_graph import graph_of
from discreet.models.scorers.interactions import InteractionScorer
from discreet.testing import refuses
from models_on_devices import MODELS, next_items, paired
from toy import toy_interactions

K = 7


@pytest.fixture(scope="module")
def runtime():
    pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    found = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    return lambda content: found.InferenceSession(content, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def data():
    """Return histories of all lengths, nobody's times equal; the first person has none."""
    plain = toy_interactions(n_users=300, n_items=120)
    return dataclasses.replace(plain, times=np.arange(plain.n_ratings)[::-1].copy(), listed=None)


def asked(people, *, rated, ordered=True, seen=True, k=K):
    """Return what the graph is given: rows of items, oldest first, filled up with -1."""
    longest = int(np.diff(people.indptr).max()) + 2
    items = np.full((people.n_users + 1, longest), -1)
    ratings = np.zeros(items.shape, dtype=np.float32)
    for row in range(people.n_users):
        cells = np.arange(*people.indptr[row : row + 2])
        cells = cells[np.argsort(people.times[cells])]
        items[row, : cells.size], ratings[row, : cells.size] = people.items[cells], people.values[cells]
    given = {"items": items, "k": [k], "ordered": [ordered], "exclude_seen": [seen]}
    return {
        name: np.asarray(value) for name, value in (given | ({"ratings": ratings} if rated else {})).items()
    }


def lists_of(model, people, *, ordered=True, seen=True, k=K):
    """Return what the library answers: places in the catalog, and a newcomer's list at the end."""
    if not ordered:
        people = dataclasses.replace(people, times=None, listed=None)
    rows = [people.select_users([row]) for row in range(people.n_users)]
    found = [model.recommend(row, k, exclude_seen=seen) for row in (*rows, [])]
    return [model.catalog.index_of([item for item, _ in one]).tolist() for one in found]


@pytest.mark.parametrize("name", MODELS)
def test_lists_are_those_of_the_library(name, data, runtime):
    model = MODELS[name](data)
    session, people = runtime(graph_of(model)), data.select_users(np.arange(25))
    rated = model.scorer.needs_ratings
    for options in ({}, {"ordered": False}, {"seen": False}, {"k": 500}):
        places, scores, every = session.run(None, asked(people, rated=rated, **options))
        listed = [row[np.isfinite(worth)].tolist() for row, worth in zip(places, scores, strict=True)]
        assert listed == lists_of(model, people, **options), options
    worth = model.worth(people, np.arange(people.n_users))
    assert every.dtype == np.float32 and np.allclose(every[:-1], worth, atol=2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_newcomer_alone_gets_the_list_of_the_library(name, data, runtime):
    """Nobody has a history, so rows of items have no length."""
    model = MODELS[name](data)
    session, rated = runtime(graph_of(model)), model.scorer.needs_ratings
    given = asked(data.select_users([1]), rated=rated)
    empty = {key: value[-1:, :0] if key in ("items", "ratings") else value for key, value in given.items()}
    places, *_ = session.run(None, empty)
    assert model.catalog.id_at(places[0]).tolist() == [item for item, _ in model.recommend([], K)]


@pytest.mark.parametrize("precision", ["float64", "int8"])
def test_weights_between_items_are_blended(precision, data, runtime, monkeypatch):
    model = MODELS["interactions"](data)
    parts, people = next_items(model), data.select_users(np.arange(25))
    monkeypatch.setattr(onnx_graph, "parts_of", lambda _: parts)
    *_, every = runtime(graph_of(model, precision=precision)).run(None, asked(people, rated=False))
    read = [decoded(part, precision) for part in parts]
    rows = [scores_of(read, people.select_users([row])) for row in range(people.n_users)]
    assert np.allclose(every[:-1], rows, atol=3e-6)
    plain = model.worth(people, np.arange(people.n_users))
    assert np.abs(every[:-1] - plain).max() > 0.1
    # A newcomer has no items that could speak.
    assert np.allclose(every[-1], model.worth(model._person([]), [0])[0], atol=1e-6)


@pytest.mark.skipif("paired" not in InteractionScorer.stored, reason="no scorer holds weights between items")
def test_lists_that_follow_weights_between_items_are_those_of_the_library(data, runtime):
    model, people = paired(MODELS["interactions"](data)), data.select_users(np.arange(25))
    places, *_ = runtime(graph_of(model)).run(None, asked(people, rated=False))
    assert places.tolist() == lists_of(model, people)


def test_a_graph_of_another_order_makes_other_lists(data, runtime):
    """The twin: the same histories, newest first."""
    model = MODELS["interactions"](data)
    people = data.select_users(np.arange(25))
    backwards = dataclasses.replace(people, times=-people.times)
    places, *_ = runtime(graph_of(model)).run(None, asked(backwards, rated=False))
    assert places.tolist() != lists_of(model, people)


@pytest.mark.parametrize("name", ["interactions", "stars", "ease"])
@pytest.mark.parametrize("precision", ["int8", "float16", "float32"])
def test_quantized_graphs_are_smaller_and_nearly_agree(name, precision, data, runtime):
    model = MODELS[name](data)
    content, people = graph_of(model, precision=precision), data.select_users(np.arange(25))
    places, *_ = runtime(content).run(None, asked(people, rated=model.scorer.needs_ratings))
    ours = lists_of(model, people)
    shared = [len(set(row) & set(own)) / K for row, own in zip(places.tolist(), ours, strict=True)]
    assert np.mean(shared) >= 0.95 and len(content) < len(graph_of(model))


def test_export_and_bundle_write_the_graph(data, runtime, tmp_path):
    model = MODELS["interactions"](data)
    export_items(model, tmp_path / "shop", "onnx")
    assert json.loads((tmp_path / "shop" / "items.json").read_text())["ids"] == model.catalog.ids.tolist()
    assert (
        json.loads((tmp_path / "shop" / "label.json").read_text())["guarantee"] == model.guarantee.to_json()
    )
    exported = runtime((tmp_path / "shop" / "model.onnx").read_bytes())
    assert exported.get_modelmeta().custom_metadata_map["label"] == model.guarantee.sentence()
    bundled = bundle_files(model, onnx=True)["model.onnx"]
    assert len(bundled) < (tmp_path / "shop" / "model.onnx").stat().st_size
    with refuses("file-exists"):
        export_items(model, tmp_path / "shop", "onnx")


def test_without_the_extra_it_is_named(data, monkeypatch, tmp_path):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(onnx_graph, "import_module", missing)
    model = discreet.Popularity(epsilon=1.0).fit(data)
    with refuses("extra-missing", package="onnx", extra="discreet[onnx]"):
        export_items(model, tmp_path / "shop", "onnx")
    assert not (tmp_path / "shop").exists()


def test_the_recipe_of_the_documentation_gives_our_list(runtime, tmp_path):
    data = toy_interactions(n_users=80, n_items=30).without_ratings()
    model = discreet.UserFactorization(epsilon=5.0, feedback="implicit").fit(
        data, random=discreet.PrivacyRandom.simulate(1)
    )
    export_items(model, tmp_path / "graph", "onnx")
    text = (Path(__file__).parents[2] / "docs" / "on_device.md").read_text(encoding="utf8")
    names = {}
    exec(text.split("```py\n# onnxruntime\n")[1].split("```")[0], names)
    history = model.catalog.ids[3:9].tolist()
    wanted = [one.item for one in model.recommend(history, K)]
    assert names["recommend"](history, tmp_path / "graph", K) == wanted
