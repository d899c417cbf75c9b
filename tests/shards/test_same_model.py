"""One process, shards on disk and a cluster give the same model to the last bit."""

import dataclasses
import os
import shutil
import signal
import threading
from contextlib import contextmanager
from functools import cache

import numpy as np
import polars as pl
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.model_settings import MODELS, estimator
from discreet.models.lists import Wanted
from discreet.privacy.guarantee import Trust, Unit
from discreet.sources import cluster
from discreet.sources.cluster import Whereabouts, connected, differences, fan_in, fingerprint, on_cluster
from discreet.sources.errors import UnknownEngine
from discreet.sources.lists import write_lists
from discreet.sources.shards import open_shards
from discreet.statistics.counts import ItemVotes, UserCount
from discreet.testing import refuses

VARIANTS = {
    "user-factorization choices": ("user-factorization", {"feedback": "implicit"}),
    "user-factorization lists": ("user-factorization", {"purpose": "lists"}),
    "user-factorization ratings": ("user-factorization", {"purpose": "ratings"}),
    "frank-wolfe oja": ("frank-wolfe", {"solver": "oja", "rounds": 2}),
    "implicit-objective pure": ("implicit-objective", {"delta": 0.0}),
    "popularity pure": ("popularity", {"delta": 0.0}),
}


def user_level(data):
    """Return every estimator that promises something about whole people, and those with other settings."""
    found = dict(VARIANTS)
    for name in MODELS:
        promise = estimator(name, {"epsilon": 4.0}).promise(data.facts) if _is_private(name) else None
        if promise is not None and promise.unit is Unit.USER and promise.trust is Trust.JOINT:
            found[name] = (name, {})
    return found


def _is_private(name):
    from discreet.model_settings import is_never_private

    return not is_never_private(name)


def arrays_of(recipe, source):
    name, settings = recipe
    chosen = estimator(name, {"epsilon": 4.0, **settings})
    return chosen.fit(source, random=PrivacyRandom.simulate(5)).scorer.arrays()


@pytest.fixture(scope="module")
def in_memory(user_data):
    """Return what a recipe learns in one process, once."""
    return cache(lambda name: arrays_of(user_level(user_data)[name], user_data))


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name], other[name]), name


def names_of(user_data, *, from_sums):
    chosen = user_level(user_data)
    return {
        name: recipe
        for name, recipe in chosen.items()
        if (estimator(recipe[0], {"epsilon": 4.0, **recipe[1]}).rows_needed() is None) == from_sums
    }


@pytest.mark.thorough
@pytest.mark.parametrize("n_shards", [3, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 8))])
def test_every_estimator_learns_the_same_from_shards(user_data, in_memory, shard_folders, n_shards):
    learned = names_of(user_data, from_sums=True)
    assert {"biases", "popularity", "user-factorization", "covariance-svd", "frank-wolfe"} <= learned.keys()
    for name, recipe in learned.items():
        assert_same(arrays_of(recipe, open_shards(shard_folders[n_shards])), in_memory(name))


def test_estimators_that_need_rows_say_so(user_data, shard_folders):
    refusing = names_of(user_data, from_sums=False)
    assert "projected-gradient" in refusing
    for recipe in refusing.values():
        with refuses("rows-needed", model="projected-gradient"):
            arrays_of(recipe, open_shards(shard_folders[3]))


def test_a_folder_is_named_by_its_path(user_data, shard_folders):
    # One of many shards and the only one: their sums are the same, as for every statistic in its contract.
    for path in (*shard_folders.values(), str(shard_folders[3])):
        assert_same(arrays_of(("biases", {}), path), arrays_of(("biases", {}), user_data))


def test_somebody_more_shows(user_data, shard_folders):
    """The twin: with one person less the arrays are others."""
    fewer = user_data.select_users(np.arange(1, user_data.n_users))
    memory, less = (arrays_of(("biases", {}), one) for one in (user_data, fewer))
    assert any(not np.array_equal(memory[name], less[name]) for name in memory)


@contextmanager
def two_workers():
    """Yield a client of a cluster of its own, once both workers are there."""
    pytest.importorskip("distributed", reason="needs the extra `distributed`")
    with connected("dask://local", workers=2) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture(scope="module")
def client():
    """Share one cluster among the tests that leave its workers alone."""
    with two_workers() as found:
        yield found


def test_every_estimator_learns_the_same_on_a_cluster(user_data, in_memory, shard_folders, client):
    source = on_cluster(open_shards(shard_folders[3]), client)
    for name, recipe in names_of(user_data, from_sums=True).items():
        assert_same(arrays_of(recipe, source), in_memory(name))


def test_a_cluster_makes_the_same_lists(user_data, shard_folders, client, tmp_path):
    model = estimator("user-factorization", {"epsilon": 4.0}).fit(user_data)
    shards, tables = open_shards(shard_folders[8]), []
    on_cluster(shards, client)
    for who in (None, client):
        seen = []
        told = dataclasses.replace(shards, report=lambda done, total, seen=seen: seen.append((done, total)))
        write_lists(model, told, tmp_path / "lists.parquet", Wanted(k=4, rank_by="stars"), client=who)
        tables.append(pl.read_parquet(tmp_path / "lists.parquet"))
        assert seen == [(done, 8) for done in range(1, 9)]
    assert tables[0].equals(tables[1]) and tables[0].height == 4 * 900
    memory = model.recommend_all(user_data, 4, rank_by="stars").sort("user", "rank")
    assert tables[0].sort("user", "rank")["item"].equals(memory["item"])


@pytest.mark.thorough
def test_a_hostile_shard_is_a_sentence_also_in_lists(user_data, shard_folders, client, tmp_path):
    shutil.copytree(shard_folders[3], tmp_path / "copy")
    model = estimator("popularity", {"epsilon": 4.0}).fit(user_data)
    values = tmp_path / "copy" / "shards" / "00001" / "values.npy"
    values.write_bytes(values.read_bytes()[:-4] + b"\0\0\0\0")
    for who in (None, client):
        with refuses("shards-damaged"):
            write_lists(model, open_shards(tmp_path / "copy"), tmp_path / "x.parquet", Wanted(), client=who)
    assert not (tmp_path / "x.parquet").exists()


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(user_data, shard_folders):
    killed = threading.Event()
    recipe = ("user-factorization", {})
    with two_workers() as client:
        victim = next(iter(client.run(os.getpid).values()))

        def kill_once(done, total):
            if not killed.is_set():
                killed.set()
                os.kill(victim, signal.SIGKILL)

        shards = dataclasses.replace(open_shards(shard_folders[8]), report=kill_once)
        assert_same(arrays_of(recipe, on_cluster(shards, client)), arrays_of(recipe, user_data))
    assert killed.is_set()


def test_a_mixed_cluster_is_refused(shard_folders, client, monkeypatch):
    shards = open_shards(shard_folders[3])
    monkeypatch.setattr(cluster, "differences", lambda theirs: ["numba", "processor"])
    with refuses("workers-differ", count=2, of=2):
        on_cluster(shards, client)


def test_a_worker_that_joins_later_and_differs_is_refused(shard_folders):
    """The check before a fit cannot see it, so every task looks again."""
    shards = open_shards(shard_folders[3])
    assert differences(fingerprint()) == []
    other = {**fingerprint(), "numba": "0.1"}
    assert differences(other) == ["numba"]
    with refuses("workers-differ", count=1, of=1, names=("numba",)):
        cluster.sum_of_shards(Whereabouts.of(shards), shards.facts, [0], UserCount(), other)


def test_a_hostile_shard_is_a_sentence_also_from_a_cluster(user_data, client, tmp_path):
    from discreet.sources.sharding import make_shards
    from shard_files import declared, files_of

    make_shards(files_of(user_data, tmp_path), tmp_path / "out", n_shards=2, **declared(user_data))
    source = on_cluster(open_shards(tmp_path / "out"), client)
    values = tmp_path / "out" / "shards" / "00001" / "values.npy"
    values.write_bytes(values.read_bytes()[:-4] + b"\0\0\0\0")
    with refuses("shards-damaged"):
        arrays_of(("biases", {}), source)


def test_large_sums_are_added_in_pairs():
    assert fan_in(UserCount()) == 8
    assert fan_in(ItemVotes(n_items=10**8, norm="l2")) == 2


def test_no_cluster_and_a_wrong_address_are_sentences():
    with pytest.raises(UnknownEngine), connected("spark://here"):
        pass
