"""The generator of large data for benchmarks: exact sizes, proportions, and equal files."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from discreet.data.reading.readers import read
from discreet.testing import refuses

_FILE = Path(__file__).parents[1] / "benchmarks" / "large_data.py"
_SPEC = importlib.util.spec_from_file_location("large_data", _FILE)
large_data = sys.modules["large_data"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(large_data)
LargeShape, large, write_large = large_data.LargeShape, large_data.large, large_data.write_large


def _sorted_without_repeats(data):
    rises = np.diff(data.items) > 0
    starts = data.indptr[1:-1]
    rises[starts[(starts > 0) & (starts < data.n_ratings)] - 1] = True
    return bool(rises.all()) and data.items.min() >= 0 and data.items.max() < data.n_items


@pytest.fixture(scope="module")
def shape():
    return LargeShape.of(200_000)


def test_large_has_exactly_the_ratings_asked_for(shape, monkeypatch):
    monkeypatch.setattr(large_data, "_BLOCK", 7_000)
    data = large(shape)
    assert (data.n_users, data.n_items, data.n_ratings) == (shape.n_users, shape.n_items, 200_000)
    assert np.diff(data.indptr).min() >= 1
    assert _sorted_without_repeats(data)
    assert set(np.unique(data.values).tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.thorough
def test_large_is_skewed_and_people_agree_in_crowds(shape):
    data = large(shape)
    counts = np.sort(np.bincount(data.items, minlength=data.n_items))[::-1]
    assert counts[: data.n_items // 10].sum() > 0.2 * data.n_ratings
    residual = (
        data.values - np.bincount(data.rows(), data.values)[data.rows()] / np.diff(data.indptr)[data.rows()]
    )
    spectrum = np.linalg.svd(data.with_values(residual).to_scipy().toarray(), compute_uv=False)
    assert spectrum[0] > 2 * spectrum[20]


def test_large_shape_keeps_the_proportions_of_a_film_service():
    top = LargeShape.of(100_000_000)
    assert (top.n_users, top.n_items) == (480_000, 17_770)
    assert LargeShape.of(1_000_000).n_users == 4_800
    billion = LargeShape.of(10**9)
    assert (billion.n_users, billion.n_items) == (2_000_000, 100_000)
    assert all(LargeShape.of(n_ratings).n_ratings == n_ratings for n_ratings in (1_000, 2_000, 5_000, 15_000))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_written_file_holds_the_same_ratings(kind, shape, tmp_path):
    path = write_large(tmp_path / f"ratings.{kind}", shape, seed=6)
    frame = pl.read_parquet(path) if kind == "parquet" else pl.read_csv(path)
    data = large(shape, seed=6)
    assert frame.columns == ["user", "item", "rating"]
    assert np.array_equal(frame["user"].to_numpy(), data.rows())
    assert np.array_equal(frame["item"].to_numpy(), data.items)
    assert np.array_equal(frame["rating"].to_numpy().astype(np.float32), data.values)


def test_large_refuses_other_files_crowded_shapes_and_missing_folders(shape, tmp_path):
    with refuses("broken-rule", name="path", value="ratings.txt"):
        write_large(tmp_path / "ratings.txt", shape)
    with refuses("broken-rule", name="n_ratings", value=90):
        LargeShape(n_users=10, n_items=10, n_ratings=90)
    with refuses("cannot-write"):
        write_large(tmp_path / "nowhere" / "ratings.csv", shape)


def test_a_log_has_the_same_ratings_in_the_order_of_time_in_many_files(shape, tmp_path, monkeypatch):
    monkeypatch.setattr(large_data, "_BLOCK", 30_000)
    monkeypatch.setattr(large_data, "_FILE_ROWS", 2_000)
    folder = large_data.write_log(tmp_path / "log", shape, seed=6)
    files = [pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))]
    assert len(files) > 16 and all(file["time"].is_sorted() for file in files)
    assert sum(file["user"].n_unique() for file in files) > 1.5 * shape.n_users
    log = pl.concat(files).sort("user", "item")
    whole = pl.read_parquet(write_large(tmp_path / "rows.parquet", shape, seed=6, times=True))
    assert log.equals(whole.sort("user", "item"))


def test_times_leave_the_ratings_as_they_are(shape, tmp_path):
    plain = read(write_large(tmp_path / "plain.parquet", shape, seed=6), low=1, high=5)
    timed = read(write_large(tmp_path / "timed.parquet", shape, seed=6, times=True), low=1, high=5)
    assert plain.times is None and timed.times is not None
    np.testing.assert_array_equal(plain.items, timed.items)
    np.testing.assert_array_equal(plain.values, timed.values)
    assert np.unique(timed.times).size > 0.9 * timed.n_ratings and (np.diff(timed.times) < 0).any()
