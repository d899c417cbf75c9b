"""Fit the same generated ratings in memory, from shards on disk, and on a Dask cluster of two workers.

    python benchmarks/distributed.py --json                              one and ten million
    python benchmarks/distributed.py --json --millions 1,10,100
    python benchmarks/distributed.py --json --millions 400 --ways shards --model biases
    python benchmarks/distributed.py --json --files 20 --millions 100    only cut files into shards
    python benchmarks/distributed.py --json --millions 100 --ways dask --folder kept      one way at a time

Ratings are generated shard by shard (beyond a hundred million the same ratings come again, of other
people): whatever their number, memory is that of one shard. Every way runs in a
process of its own, on one thread (the cluster: two workers with one thread each), after a small fit has
compiled the loops. `cpu_seconds` count the driver and the workers, `peak_mb` is the most memory that the
process (the cluster: a worker) held, `fingerprint` is a digest of all arrays, `equal` says whether it is
that of the first way, `decisions` say what the fit found worth learning.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import resource
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import harness
import numpy as np

RATINGS_PER_SHARD = 4_000_000
# So many shards have ratings of their own: a hundred million.
DISTINCT = 25
WAYS = ("memory", "shards", "dask")


def generate(folder: Path, n_ratings: int) -> None:
    """Write a folder of shards, one shard in memory at a time."""
    from discreet.data.bounding import hash_ids
    from discreet.data.facts import PublicFacts
    from discreet.data.vocabulary import Vocabulary
    from discreet.sources.manifest import CATALOG, Manifest, digest, shard_of_hash, write_ids
    from discreet.testing.large_data import LargeShape

    whole = LargeShape.of(n_ratings)
    count = max(-(-n_ratings // RATINGS_PER_SHARD), 2)
    # As many people in each shard, so that shards beyond the first ones can share ratings with other people.
    each = whole.n_users // count
    home = shard_of_hash(hash_ids(Vocabulary.range(round(1.1 * whole.n_users) + 100 * count)), count)
    order = np.argsort(home, kind="stable")
    starts = np.searchsorted(home[order], np.arange(count))
    shape = LargeShape(n_users=each, n_items=whole.n_items, n_ratings=n_ratings // count)
    records = [
        write_shard(folder, number, np.sort(order[start : start + each]), shape)
        for number, start in enumerate(starts)
    ]
    write_ids(Vocabulary.range(whole.n_items).series, folder / CATALOG)
    Manifest(
        name=f"generated {n_ratings}",
        facts=PublicFacts(n_items=whole.n_items, low=1, high=5, step=1, n_users=whole.n_users),
        text_ids=False,
        has_times=False,
        has_one_value=False,
        catalog_digest=digest(folder / CATALOG),
        shards=tuple(records),
    ).write(folder)


def write_shard(folder: Path, number: int, people, shape):
    """Generate the ratings of some people; after `DISTINCT` shards the same ratings come again."""
    import polars as pl

    from discreet.sources.manifest import ShardRecord, digest, shard_folder, write_ids
    from discreet.sources.shards import INDPTR, ITEMS, PEOPLE, VALUES
    from discreet.testing.large_data import large

    place, first = shard_folder(folder, number), shard_folder(folder, number % DISTINCT)
    place.mkdir(parents=True)
    if number < DISTINCT:
        data = large(shape, seed=number)
        for name, array in ((INDPTR, data.indptr), (ITEMS, data.items), (VALUES, data.values)):
            np.save(place / name, array)
    else:
        for name in (INDPTR, ITEMS, VALUES):
            os.link(first / name, place / name)
    write_ids(pl.Series("id", people.astype(np.int64)), place / PEOPLE)
    digests = {name: digest(place / name) for name in (INDPTR, ITEMS, VALUES, PEOPLE)}
    return ShardRecord(people=len(people), ratings=shape.n_ratings, digests=digests)


def in_memory(folder: Path):
    """Return all shards as interactions in memory."""
    import polars as pl

    from discreet.data.vocabulary import Vocabulary
    from discreet.sources.shards import open_shards

    shards = open_shards(folder)
    items = np.empty(shards.n_ratings, np.int32)
    values = np.empty(shards.n_ratings, np.float32)
    starts, users, done = [np.zeros(1, np.int64)], [], 0
    for number in range(shards.n_shards):
        one = shards.shard(number)
        here = slice(done, done + one.n_ratings)
        items[here], values[here] = one.items, one.values
        starts.append(one.indptr[1:] + done)
        users.append(one.users.series)
        done = here.stop
    return dataclasses.replace(
        one, indptr=np.concatenate(starts), items=items, values=values, users=Vocabulary(pl.concat(users))
    )


def fingerprint(model) -> str:
    total = hashlib.sha256()
    for name, array in sorted(model.scorer.arrays().items()):
        total.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def fit(way: str, folder: Path, model: str, epsilon: float, toy: bool) -> dict[str, object]:
    """Fit in one way; the noise is simulated, so that the ways can be compared."""
    from discreet.sources.cluster import on_cluster
    from discreet.sources.connection import connected
    from discreet.sources.shards import open_shards

    if not toy:
        warm_up(model, epsilon)
    if way != "dask":
        return measured(model, epsilon, in_memory(folder) if way == "memory" else open_shards(folder))
    with connected("dask://local", workers=2) as client:
        client.run(warm_up, model, epsilon)
        before = sum(client.run(time.process_time).values())
        found = measured(model, epsilon, on_cluster(open_shards(folder), client))
        found["cpu_seconds"] += sum(client.run(time.process_time).values()) - before
        found["peak_mb"] = max(client.run(peak_mb).values())
        return found


def measured(model: str, epsilon: float, source) -> dict[str, object]:
    from discreet.core.randomness import PrivacyRandom
    from discreet.recipes import estimator

    start, cpu = time.perf_counter(), time.process_time()
    fitted = estimator(model, {"epsilon": epsilon}).fit(source, random=PrivacyRandom.simulate(1))
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "fingerprint": fingerprint(fitted),
        "decisions": fitted.scorer.explain(),
    }


def warm_up(model: str, epsilon: float) -> None:
    from discreet.recipes import estimator
    from discreet.testing.large_data import LargeShape, large

    small = large(LargeShape(n_users=500, n_items=300, n_ratings=20_000))
    estimator(model, {"epsilon": epsilon}).fit(small)
    estimator(model, {"epsilon": np.inf}).fit(small)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def shard_files(folder: Path, n_ratings: int, n_files: int, toy: bool) -> dict[str, object]:
    """Write files in which nobody's rows stand together, then measure cutting them into shards."""
    harness.in_own_process(write_files, folder, n_ratings, n_files, toy=toy)
    return harness.in_own_process(cut_files, folder, toy=toy)


def write_files(folder: Path, n_ratings: int, n_files: int) -> None:
    import polars as pl

    from discreet.testing.large_data import LargeShape, large

    whole = LargeShape.of(n_ratings)
    items, ratings = whole.n_items // n_files, n_ratings // n_files
    # A tenth of the people, or as many as it takes to leave three cells of four empty.
    people = min(max(whole.n_users // 10, -(-4 * ratings // items)), whole.n_users)
    shape = LargeShape(n_users=people, n_items=items, n_ratings=ratings)
    data = large(shape)
    rows = data.rows()
    for number in range(n_files):
        # Every file has items of its own; every person is in several files.
        order = np.random.default_rng(number).permutation(data.n_ratings)
        pl.DataFrame(
            {
                "user": rows[order] + np.int32(number * (whole.n_users - shape.n_users) // n_files),
                "item": data.items[order] + np.int32(number * shape.n_items),
                "rating": data.values[order],
            }
        ).write_parquet(folder / f"part-{number:03d}.parquet")


def cut_files(folder: Path) -> dict[str, object]:
    from discreet.sources.sharding import make_shards

    start, cpu = time.perf_counter(), time.process_time()
    made = make_shards(sorted(folder.glob("*.parquet")), folder / "shards", low=1.0, high=5.0, step=1.0)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "ratings": made.ratings,
        "shards": len(made.shards),
    }


def compare(sizes: list[str], ways: list[str], asked: argparse.Namespace) -> dict[str, object]:
    model, epsilon, toy = asked.model, asked.epsilon, asked.toy
    found: dict[str, dict[str, dict[str, object]]] = {way: {} for way in ways}
    for size in sizes:
        with ready(size, asked.folder, toy) as folder:
            for way in ways:
                found[way][size] = harness.in_own_process(fit, way, folder, model, epsilon, toy, toy=toy)
                print(way, size, found[way][size], file=sys.stderr)
        first = found[ways[0]][size]["fingerprint"]
        for way in ways:
            found[way][size]["equal"] = found[way][size]["fingerprint"] == first
    return {"model": model, "epsilon": epsilon, "ways": found}


@contextmanager
def ready(size: str, place: str | None, toy: bool):
    """Yield a folder of so many million ratings; in a place that was named it is kept, and used again."""
    with tempfile.TemporaryDirectory() if place is None else nullcontext(Path(place) / size) as chosen:
        folder = Path(chosen)
        if not (folder / "manifest.json").exists():
            harness.in_own_process(generate, folder, round(float(size) * 1e6), toy=toy)
        yield folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", default="1,10", help="sizes in millions of ratings")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--model", default="user-factorization")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--files", type=int, help="cut so many files into shards instead of fitting")
    parser.add_argument("--folder", help="keep the generated shards here, and use them again")
    asked = harness.options(parser, toy={"millions": "0.02", "ways": "memory,shards"})
    if not asked.toy:
        for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = "1"
    if asked.files:
        result = {"files": asked.files, "sharding": {}}
        for size in asked.millions.split(","):
            with tempfile.TemporaryDirectory(dir=asked.folder) as place:
                n_ratings = round(float(size) * 1e6)
                result["sharding"][size] = shard_files(Path(place), n_ratings, asked.files, asked.toy)
    else:
        result = compare(asked.millions.split(","), asked.ways.split(","), asked)
    harness.tell(result, asked.json, lambda found: print(json.dumps(found, indent=2)))


if __name__ == "__main__":
    main()
