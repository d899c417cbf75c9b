"""Shards hold whole people, each once; what is not so is refused with a sentence."""

import copy
import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.checks import FileError
from discreet.data.block_sizes import other_block_sizes
from discreet.data.bounding import hash_ids
from discreet.data.vocabulary import Vocabulary
from discreet.sources import sharding
from discreet.sources import shards as shard_reading
from discreet.sources.sharding import PieceReader, make_shards
from discreet.sources.shards import digest, open_shards, read_ids, shard_of_hash
from discreet.statistics.counts import ItemVotes, UserCount
from discreet.testing import refuses
from shard_files import declared, files_of, frame_of


def test_people_are_where_their_ids_say_for_ever():
    """These numbers never change: a folder made today is read by every later version."""
    hashes = hash_ids(Vocabulary.of(["ann", "bob", "42"]))
    assert shard_of_hash(hashes, 1000).tolist() == [25, 435, 916]
    assert shard_of_hash(hash_ids(Vocabulary.of([42])), 1000).tolist() == [916]


def test_nothing_is_lost_and_nobody_is_cut(user_data, shard_folders):
    for count, folder in shard_folders.items():
        shards = open_shards(folder)
        assert (shards.n_shards, shards.n_users, shards.n_ratings) == (count, 900, user_data.n_ratings)
        # The catalog was declared when the folders were made.
        expected = dataclasses.replace(user_data.facts, from_file=(), layout=shards.facts.layout)
        assert shards.facts == dataclasses.replace(expected, reading=("readable",)) and expected.layout
        assert shards.catalog == user_data.catalog
        people = [person for number in range(count) for person in shards.shard(number).users.ids.tolist()]
        assert sorted(people) == sorted(user_data.users.ids.tolist())


def test_facts_that_are_not_declared_are_taken_from_the_files_and_say_so(user_data, tmp_path):
    files = files_of(user_data, tmp_path)
    frame_of(user_data).write_parquet(tmp_path / "all.parquet")
    make_shards(files, tmp_path / "out", n_shards=2)
    read = discreet.read(tmp_path / "all.parquet")
    shards = open_shards(tmp_path / "out")
    assert set(shards.facts.from_file) == {"scale", "n_items"} and "Parquet" in shards.facts.layout
    assert dataclasses.replace(shards.facts, layout=read.facts.layout) == read.facts
    assert shards.catalog == read.catalog and shards.name == "out"


@pytest.mark.thorough
def test_files_are_read_in_pieces_of_any_size(user_data, tmp_path, monkeypatch):
    file = tmp_path / "all.csv"
    frame_of(user_data).with_columns(item=pl.format("{}, or {}", "item", "item")).write_csv(file)
    [piece] = PieceReader().pieces(file)
    whole = PieceReader().read(piece)
    for size in (5000, 100):
        with other_block_sizes(piece=size):
            parts = PieceReader().pieces(file)
        assert len(parts) > 20
        read = [PieceReader().read(part) for part in parts]
        assert [one for part in read for one in part.users.to_list()] == whole.users.to_list()
        assert [one for part in read for one in part.items.to_list()] == whole.items.to_list()
    # Where a field has line breaks, no line is known to end a row.
    frame_of(user_data).with_columns(item=pl.format("{}, or\n{}", "item", "item")).write_csv(file)
    [piece] = PieceReader().pieces(file)
    assert len(PieceReader().read(piece).users) == user_data.n_ratings
    frame_of(user_data).write_parquet(tmp_path / "all.parquet")
    monkeypatch.setattr(sharding, "_ROWS", 1000)
    rows = [PieceReader().read(part) for part in PieceReader().pieces(tmp_path / "all.parquet")]
    assert len(rows) == 11 and sum(len(part.users) for part in rows) == user_data.n_ratings


def test_mixed_ids_become_text_and_stay_the_same_people(tmp_path):
    pl.DataFrame({"user": [1, 2, 7], "item": [1, 2, 3], "rating": [1.0, 2.0, 3.0]}).write_parquet(
        tmp_path / "a.parquet"
    )
    pl.DataFrame({"user": ["7", "x", "2"], "item": ["9", "1", "3"], "rating": [4.0, 5.0, 1.0]}).write_parquet(
        tmp_path / "b.parquet"
    )
    make_shards([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "out", n_shards=3)
    shards = open_shards(tmp_path / "out")
    assert shards.n_users == 4 and shards.catalog.is_text
    assert shards.total(UserCount()).people == 4


def test_a_run_that_was_killed_goes_on(user_data, tmp_path):
    files, out = files_of(user_data, tmp_path), tmp_path / "out"

    class Killed(BaseException):
        pass

    def stop(at):
        def progress(what, done, total):
            if (what, done) == at:
                raise Killed

        return progress

    settings = {"n_shards": 4, "name": "toy", **declared(user_data)}
    for at in (("surveying", 2), ("dealing", 1), ("sorting", 2), ("sorting", 4)):
        with pytest.raises(Killed):
            make_shards(files, out, progress=stop(at), **settings)
        with refuses("not-shards"):
            open_shards(out)
    with refuses("folder-occupied"):
        make_shards(files[:2], out, **settings)
    again = []
    make_shards(files, out, progress=lambda what, done, total: again.append(what), **settings)
    assert "surveying" not in again
    votes = ItemVotes(n_items=user_data.n_items, norm="l2")
    ours, theirs = open_shards(out).total(votes), user_data.bounded().total(votes)
    np.testing.assert_array_equal(ours.arrays[0], theirs.arrays[0])
    assert not (out / "unfinished").exists()
    with refuses("shards-finished"):
        make_shards(files, out, **settings)


def test_a_second_run_keeps_off_and_a_full_disk_is_a_sentence(user_data, tmp_path, monkeypatch):
    files, out = files_of(user_data, tmp_path), tmp_path / "out"

    def again(what, done, total):
        with refuses("shards-in-use"):
            make_shards(files, out, n_shards=2)

    make_shards(files, out, n_shards=2, progress=again)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with refuses("sharding-stopped"):
        make_shards(files, tmp_path / "other", n_shards=2)
    monkeypatch.undo()
    assert make_shards(files, tmp_path / "other", n_shards=2).ratings == user_data.n_ratings


@pytest.fixture
def folder(shard_folders, tmp_path):
    shutil.copytree(shard_folders[3], tmp_path / "copy")
    return tmp_path / "copy"


def rewrite(folder, number, **arrays):
    """Change files of a shard and the digests with them: what somebody who means harm would do."""
    place = folder / "shards" / f"{number:05d}"
    manifest = json.loads((folder / "manifest.json").read_text())
    record = manifest["shards"][number]
    for name, array in arrays.items():
        file = place / ("people.parquet" if name == "people" else f"{name}.npy")
        if name == "people":
            pl.DataFrame({"id": array}).write_parquet(file)
            record["people"] = len(array)
        else:
            np.save(file, array)
        record["digests"][file.name] = digest(file)
    record["ratings"] = int(np.load(place / "items.npy").size)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def refused(folder, *codes):
    with pytest.raises(FileError) as caught:
        open_shards(folder).total(UserCount())
    assert caught.value.code in codes


def test_a_changed_file_is_refused(folder):
    file = folder / "shards" / "00001" / "items.npy"
    file.write_bytes(file.read_bytes()[:-4] + b"\1\0\0\0")
    refused(folder, "shards-damaged")


def test_a_person_of_another_shard_is_refused(folder):
    one = open_shards(folder).shard(1)
    rewrite(folder, 0, people=one.users.series, indptr=one.indptr, items=one.items, values=one.values)
    refused(folder, "shards-damaged")


def test_a_person_who_comes_twice_is_refused(folder):
    one = open_shards(folder).shard(1)
    twice = pl.concat([one.users.series[:-1], one.users.series[:1]])
    rewrite(folder, 1, people=twice)
    refused(folder, "shards-damaged")


def wrapped(indptr):
    far = indptr.copy()
    far[1:4] = [2**63 - 1, -(2**63), -1]
    return far


def swapped(items):
    """Return the items with two neighbors of the last row changed about."""
    other = items.copy()
    other[-2:] = items[-1], items[-2]
    return other


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda shard: {"items": np.zeros_like(shard.items)},
        lambda shard: {"items": np.where(shard.items == 3, 99, shard.items).astype(np.int32)},
        lambda shard: {"items": np.where(shard.items == 3, -1, shard.items).astype(np.int32)},
        lambda shard: {"indptr": np.append(shard.indptr[:1], shard.indptr[:0:-1])},
        lambda shard: {"values": np.full_like(shard.values, np.nan)},
        lambda shard: {"values": np.append(shard.values[:-1], np.float32(np.inf))},
        # Differences of these wrap around and are all above 0.
        lambda shard: {"indptr": wrapped(shard.indptr)},
        lambda shard: {"indptr": np.where(np.arange(shard.indptr.size) == 3, -1, shard.indptr)},
        lambda shard: {"items": swapped(shard.items)},
    ],
)
@pytest.mark.parametrize("at_a_time", [5, 1 << 22])
def test_rows_that_would_tell_too_much_are_refused(folder, spoil, at_a_time, monkeypatch):
    """An item twice in a row would count twice in that person's vector."""
    monkeypatch.setattr(shard_reading, "_AT_A_TIME", at_a_time)
    shard_reading._checked.clear()
    assert open_shards(folder).total(UserCount()).people == 900
    rewrite(folder, 2, **spoil(open_shards(folder).shard(2)))
    refused(folder, "shards-damaged")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": 2}, "old-shards"),
        ({"format": "x"}, "not-shards"),
        ({"shards": []}, "shards-damaged"),
        ({"facts": {}}, "shards-damaged"),
        ({"name": "\x1b[2J"}, "shards-damaged"),
        ({"name": "x" * 201}, "shards-damaged"),
        ({"shards": {"digests": []}}, "shards-damaged"),
        ({"version": True}, "old-shards"),
        ({"catalog_digest": "0"}, "shards-damaged"),
        ({"text_ids": True}, "shards-damaged"),
    ],
)
def test_other_versions_and_damaged_manifests_are_refused(folder, change, code):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))
    refused(folder, code)


def test_arrays_of_another_kind_are_refused(folder):
    rewrite(folder, 0, values=np.array(["x"] * 5))
    refused(folder, "shards-damaged")
    (folder / "shards" / "00000" / "values.npy").write_bytes(b"no array")
    refused(folder, "shards-damaged")


def test_a_rating_twice_is_refused_or_merged_over_files(user_data, tmp_path):
    files = files_of(user_data, tmp_path)
    with refuses("repeated-pairs", count=1677, of=6765):
        make_shards([*files, files[0]], tmp_path / "out", n_shards=2, **declared(user_data))
    merged = make_shards(
        [*files, files[0]], tmp_path / "merged", n_shards=2, duplicates="last", **declared(user_data)
    )
    assert merged.ratings == user_data.n_ratings


def test_over_files_the_latest_rating_counts_not_the_last_file(tmp_path):
    for name, rating, time in (("new", 5, 200), ("old", 1, 100)):
        (tmp_path / f"{name}.csv").write_text(f"user,item,rating,time\nann,a,{rating},{time}\nbob,b,2,7\n")
    for how, kept in (("last", [5, 2]), ("first", [1, 2])):
        files = [tmp_path / "new.csv", tmp_path / "old.csv"]
        make_shards(files, tmp_path / how, n_shards=1, duplicates=how, low=1, high=5)
        assert open_shards(tmp_path / how).shard(0).values.tolist() == kept


def places(record, at=()):
    yield at
    inside = record.items() if isinstance(record, dict) else enumerate(record)
    for key, value in inside:
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))
        else:
            yield (*at, key)


ODD = [None, True, -1, 2**63, 10**30, 1.5, float("nan"), "", "../..", "9" * 5000, [], {}, [[]]]


@pytest.mark.thorough
def test_any_other_manifest_is_a_sentence_or_harmless(folder):
    """Whatever stands at any place, what comes back is a sentence, or the sum over the same people."""
    file = folder / "manifest.json"
    honest = json.loads(file.read_text())
    for where in places(honest):
        # The first shard stands for all of them.
        for odd in ODD if where[:1] != ("shards",) or where[1:2] in ((), (0,)) else ():
            changed = copy.deepcopy(honest)
            inner = changed
            for key in where[:-1]:
                inner = inner[key]
            if where:
                inner[where[-1]] = odd
            file.write_text(json.dumps(changed if where else odd))
            try:
                assert open_shards(folder).total(UserCount()).people == 900
            except FileError as error:
                assert "\n" not in str(error) and len(str(error)) < 400


def test_what_is_no_file_is_refused_and_not_waited_for(folder):
    place = folder / "shards" / "00001"
    kept = place.rename(place.with_name("kept"))
    place.mkdir()
    for name in ("people.parquet", "indptr.npy", "items.npy", "values.npy"):
        (place / name).symlink_to(kept / name)
    assert open_shards(folder).total(UserCount()).people == 900
    for odd in (os.mkfifo, lambda file: file.symlink_to("/dev/zero"), Path.mkdir):
        for file in (place / "values.npy", place / "people.parquet", folder / "catalog.parquet"):
            before = file.rename(file.with_suffix(".before"))
            odd(file)
            refused(folder, "shards-damaged", "not-shards")
            file.rmdir() if file.is_dir() else file.unlink()
            before.rename(file)
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    refused(folder, "not-shards", "shards-damaged")


def test_a_change_that_hides_its_time_is_seen(folder):
    """In one process a shard is checked once; the same size and age do not make it the same."""
    shards, file = open_shards(folder), folder / "shards" / "00001" / "values.npy"
    shards.total(UserCount())
    before = file.stat()
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\0")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with refuses("shards-damaged"):
        shards.total(UserCount())


def test_a_file_put_in_place_while_a_shard_is_checked_is_seen(folder, monkeypatch):
    """What is mapped and what is compared with the digest must be one file."""
    file = folder / "shards" / "00001" / "items.npy"
    honest = digest

    def swapping(path):
        if path == file:
            found = honest(path)
            shutil.copy(path, path.with_suffix(".other"))
            path.with_suffix(".other").replace(path)
            return found
        return honest(path)

    monkeypatch.setattr(shard_reading, "digest", swapping)
    refused(folder, "shards-damaged")


def test_a_small_file_of_very_many_ids_is_not_unpacked(folder, monkeypatch):
    """A run of one id packs a billion to a few bytes: it is refused by its count, not by memory."""
    bomb = pl.select(id=pl.repeat(7, 30_000_000, dtype=pl.Int64))
    for file in (folder / "catalog.parquet", folder / "shards" / "00000" / "people.parquet"):
        bomb.write_parquet(file)
        assert file.stat().st_size < 200_000
        monkeypatch.setattr(pl.LazyFrame, "collect", counting(pl.LazyFrame.collect))
        with refuses("shards-damaged"):
            read_ids(file, 30_000_000)
        with refuses("shards-damaged"):
            read_ids(file, 300)


def counting(collect):
    """Return `collect` for counts alone."""

    def only_counts(frame, *rest, **options):
        table = collect(frame, *rest, **options)
        assert table.height == 1
        return table

    return only_counts


def test_a_mistake_leaves_nothing_behind(tmp_path):
    path, out = tmp_path / "r.csv", tmp_path / "shards"
    path.write_text("user,item,rating\n1,a,3\n1,a,4\n2,b,5\n")
    with refuses("repeated-pairs", count=1, of=3):
        make_shards([path], out)
    assert not out.exists()
    assert make_shards([path], out, duplicates="last").name == "shards"


TRUNCATED = """
import os, sys
from pathlib import Path
from discreet.sources.shards import open_shards
from discreet.statistics.counts import UserCount

shard = open_shards(sys.argv[1]).shard(0)
before = int(shard.items.sum()), int(shard.indptr[-1])
for file in Path(sys.argv[1]).rglob("*.npy"):
    os.truncate(file, 0)
assert (int(shard.items.sum()), int(shard.indptr[-1])) == before
"""


def test_a_shard_that_becomes_shorter_during_a_sum_does_not_end_the_process(folder):
    """A mapped file that was truncated ended the process with a bus error."""
    done = subprocess.run([sys.executable, "-c", TRUNCATED, str(folder)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    with pytest.raises(FileError):
        open_shards(folder).shard(0)
