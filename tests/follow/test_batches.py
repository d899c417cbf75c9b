"""New ratings from shards, on a cluster or not, enter bit by bit as from one file."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.follow import Following, batches
from discreet.follow.batches import Batch
from discreet.follow.settings import WHOLE, Pace
from discreet.follow.state import opened
from discreet.follow.year import make_release, read_year
from discreet.sources.cluster import ClusterSource, connected, on_cluster
from discreet.sources.sharding import make_shards
from discreet.sources.shards import open_shards
from discreet.testing import refuses
from followed_years import ITEMS, N_ITEMS, STARS, batch, weeks, year
from shard_files import declared, files_of


class Done(NamedTuple):
    """A task that has ended."""

    value: Any

    def add_done_callback(self, callback):
        callback(self)

    def cancelled(self):
        return False

    def result(self):
        return self.value


class Worker:
    """Run what a cluster is given here and now, through bytes as a cluster would."""

    def __init__(self):
        self.given, self.cancelled = 0, 0

    def submit(self, job, *arguments, pure):
        import pickle

        self.given += 1
        done = pickle.loads(pickle.dumps(job(*pickle.loads(pickle.dumps(arguments)))))
        return Done(done)

    def cancel(self, futures):
        self.cancelled += len(futures)


def sharded(data, folder, count=7):
    (folder / "files").mkdir()
    make_shards(files_of(data, folder / "files"), folder / "folder", n_shards=count, **declared(data))
    return open_shards(folder / "folder")


def followed(folder, given, *, seed=4):
    """Return all that a year of two weeks draws and holds, and what is left of it in order."""
    folder.mkdir()
    started = year(folder)
    for number, one in enumerate(given):
        started.add(one, random=PrivacyRandom.simulate(seed + number))
    with opened(started.path, writing=False) as state:
        known = state.user_ids()
        entries = sorted(
            (release, known[user], *map(int, rest))
            for release, block in state.entries()
            for user, *rest in zip(*block, strict=True)
        )
        released = [[part.tolist() for part in one.drawn] for one in state.releases(N_ITEMS)]
        return entries, [[part.tolist() for part in one] for one in state.sums(N_ITEMS)], released


def test_shards_enter_bit_by_bit_as_a_file_does(tmp_path):
    first, second = weeks(2, users=60, each=200)
    shards, client = sharded(second, tmp_path), Worker()
    wanted = followed(tmp_path / "file", [first, second])
    assert followed(tmp_path / "shards", [first, shards]) == wanted
    assert followed(tmp_path / "cluster", [first, ClusterSource(shards=shards, client=client)]) == wanted
    assert client.given == 7
    # The twin: a shard that is read twice enters once, one that is lost is missed.
    assert followed(tmp_path / "twice", [first, second, shards])[0] == wanted[0]
    lost = shards.shard(0)
    assert followed(tmp_path / "lost", [first, second.without_people(lost.users.ids.tolist())]) != wanted


def test_one_user_in_several_batches_stays_within_a_year(tmp_path):
    """Each batch knows what earlier ones of the same release used, and which pairs entered."""
    started = year(tmp_path, pace=Pace(start=1.0, reserve=0.0))
    given = [
        Batch.of(batch([("ann", f"i{k}", 5) for k in range(start, start + 4)]), ITEMS, STARS)
        for start in (0, 2, 4)
    ]
    with opened(started.path, writing=True) as state:
        counts = make_release(state, read_year(state), given, PrivacyRandom.simulate(0)).counts
    assert (counts.entered, counts.known_pairs) == (8, 4)
    with opened(started.path, writing=False) as state:
        assert state.user_ids() == ["ann"]
        blocks = [block for _, block in state.entries()]
    pairs = np.concatenate([block.items for block in blocks])
    # Eight ratings, and the user's mean once.
    assert np.unique(pairs).size == pairs.size == 9
    squares = sum(int((block.weights.astype(np.int64) ** 2).sum()) for block in blocks)
    assert 0.99 * WHOLE < squares <= WHOLE


def test_what_fails_on_a_cluster_draws_nothing(tmp_path):
    few = year(tmp_path)
    facts = replace(STARS, n_items=1)
    wide = batch([(f"u{k}", "new", 5) for k in range(30)], facts, Vocabulary.of(["new"]))
    shards, client = sharded(wide, tmp_path), Worker()
    with refuses("undeclared-items", count=5, of=5):
        few.add(ClusterSource(shards=shards, client=client))
    assert client.given < 7 + batches._AHEAD and not Following(few.path).status().times


@pytest.mark.slow
def test_a_real_cluster_enters_the_same(tmp_path):
    data = weeks(1, users=60, each=200)[0]
    shards = sharded(data, tmp_path)
    wanted = followed(tmp_path / "file", [data])
    with connected("dask://local", workers=2) as client:
        assert followed(tmp_path / "cluster", [on_cluster(shards, client)]) == wanted
