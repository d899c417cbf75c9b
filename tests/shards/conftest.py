"""Folders of shards, made from files in which a person's rows stand anywhere."""

import dataclasses

import pytest

from discreet.sources.sharding import make_shards
from shard_files import declared, files_of
from toy import toy_interactions


@pytest.fixture(scope="session")
def user_data():
    """Return enough people for factors, and a cap that takes ratings from all of them."""
    data = toy_interactions(n_users=900, n_items=30, per_user=12, seed=2)
    return data.with_facts(dataclasses.replace(data.facts, max_per_user=11))


@pytest.fixture(scope="session")
def shard_folders(user_data, tmp_path_factory):
    """Return folders of the same people, by how many shards they have."""
    folder = tmp_path_factory.mktemp("shards")
    files = files_of(user_data, folder)
    made = {}
    for count in (1, 3, 8):
        made[count] = folder / f"of {count}"
        make_shards(files, made[count], n_shards=count, name="toy", **declared(user_data))
    return made
