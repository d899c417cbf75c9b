"""Shards in an object store: fetched once, checked by digest before they are used, mapped from the cache."""

import builtins

import numpy as np
import pytest

from discreet.sources.object_stores import ObjectStore, is_address
from discreet.sources.shards import is_shard_folder, open_shards
from discreet.statistics.counts import UserCount
from discreet.testing import refuses
from shards.test_same_model import arrays_of, assert_same

fsspec = pytest.importorskip("fsspec", reason="needs the extra `stores`")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "discreet" / "shards"


@pytest.fixture
def store(shard_folders, cache):
    """Return a store in memory that holds a folder of three shards."""
    memory = fsspec.filesystem("memory")
    memory.put(str(shard_folders[3]), "/shop", recursive=True)
    yield memory
    memory.rm("/", recursive=True)


def test_a_model_from_a_store_is_the_same(user_data, store, cache):
    assert is_shard_folder("memory://shop") and not is_shard_folder("memory://other")
    assert_same(arrays_of(("biases", {}), "memory://shop"), arrays_of(("biases", {}), user_data))
    (mirror,) = cache.iterdir()
    assert mirror.stat().st_mode & 0o077 == 0
    values = mirror / "shards" / "00001" / "values.npy"
    assert values.exists() and values.stat().st_mode & 0o077 == 0


def test_what_was_fetched_is_not_fetched_again(store, monkeypatch):
    open_shards("memory://shop").total(UserCount())
    read = []
    honest = ObjectStore._copy
    monkeypatch.setattr(ObjectStore, "_copy", lambda self, *rest: read.append(rest[0]) or honest(self, *rest))
    assert open_shards("memory://shop").total(UserCount()).people == 900
    assert read == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-4] + b"\1\0\0\0",
        lambda content: content + bytes(1 << 14),
        lambda content: content[:50],
    ],
)
def test_a_file_that_was_changed_never_reaches_the_cache(store, cache, spoil):
    name = "/shop/shards/00001/items.npy"
    store.pipe(name, spoil(store.cat(name)))
    with refuses("shards-damaged"):
        open_shards("memory://shop").total(UserCount())
    left = [file.name for file in cache.rglob("*") if file.parent.name == "00001"]
    assert "items.npy" not in left and not any(name.startswith(".") for name in left)


def test_a_file_that_was_changed_in_the_cache_is_refused(store, cache):
    open_shards("memory://shop").shard(0)
    (values,) = cache.glob("*/shards/00000/values.npy")
    values.write_bytes(values.read_bytes()[:-4] + b"\0\0\0\0")
    with refuses("shards-damaged"):
        open_shards("memory://shop").shard(0)


def test_what_is_missing_is_a_sentence(store, monkeypatch):
    store.rm("/shop/shards/00002/items.npy")
    with refuses("file-unreadable"):
        open_shards("memory://shop").total(UserCount())
    with refuses("file-unreadable"):
        open_shards("memory://nowhere")
    with refuses("file-unreadable"):
        open_shards("joy://shop")
    honest = builtins.__import__

    def without(name, *rest):
        if name.startswith("fsspec"):
            raise ImportError(name)
        return honest(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with refuses("extra-missing", package="fsspec", extra="discreet[stores]"):
        is_shard_folder("s3://bucket/shop")


@pytest.mark.slow
def test_workers_read_a_store_each_for_itself(user_data, shard_folders, cache):
    pytest.importorskip("distributed", reason="needs the extra `distributed`")
    from discreet.sources.cluster import connected, on_cluster

    with connected("dask://local", workers=2) as client:
        source = on_cluster(open_shards(f"file://{shard_folders[8]}"), client)
        assert_same(arrays_of(("biases", {}), source), arrays_of(("biases", {}), user_data))
    assert len(list(cache.glob("*/shards/*/items.npy"))) == 8
    assert all(np.load(file).dtype == np.int32 for file in cache.glob("*/shards/*/items.npy"))


@pytest.mark.parametrize("address", ["postgresql://me@host/db::orders", "postgres://me@host/db", "shop.db"])
def test_a_database_is_not_an_object_store(address):
    assert not is_address(address)
    assert is_address("s3://bucket/folder")
