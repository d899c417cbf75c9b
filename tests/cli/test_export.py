"""Vectors of items for vector stores, from the command line."""

import json

import polars as pl

from command_line import one_sentence


def test_vectors_and_label_are_written(discreet, ratings, tmp_path):
    model, out = tmp_path / "m.discreet", tmp_path / "shop"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "5", "--out", model)[0] == 0
    code, shown, error = discreet("export", model, "--out", out, "--json")
    assert code == 0 and json.loads(shown)["to"] == "parquet", error
    table = pl.read_parquet(out / "items.parquet")
    assert table.columns == ["item", "vector"] and table.height == json.loads(shown)["items"]
    assert json.loads((out / "label.json").read_text())["guarantee"]["epsilon"] == 5.0
    code, shown, error = discreet("export", model, "--out", tmp_path / "again")
    assert code == 0 and "Written to" in shown, error
    one_sentence(*discreet("export", model, "--out", out))
    code, shown, error = discreet("export", model, "--out", out, "--force")
    assert code == 0 and "Written to" in shown, error


def test_what_cannot_be_exported_is_one_sentence(discreet, model, tmp_path):
    answer = discreet("export", model, "--out", tmp_path / "shop", "--to", "nothing")
    one_sentence(*answer)
    one_sentence(*discreet("export", tmp_path / "none.discreet", "--out", tmp_path / "shop"))
    assert not (tmp_path / "shop").exists()


def test_where_to_write_is_said_once(discreet, model, tmp_path):
    one_sentence(*discreet("export", model, "--to", "pgvector"))
    one_sentence(*discreet("export", model, "--to", "faiss", "--url", "http://localhost"))
    one_sentence(
        *discreet("export", model, "--to", "qdrant", "--url", "http://x", "--out", tmp_path / "shop")
    )
    assert not (tmp_path / "shop").exists()
