"""Model files from strangers: one sentence or a model, never a crash, and memory by what was sent."""

import io
import json
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import discreet
from discreet.core.checks import DataError, FileError
from discreet.data.bounding import hash_ids
from discreet.data.vocabulary import Vocabulary
from discreet.models.items import checked
from discreet.models.storage import DAMAGED, is_model, read_label, unpack_arrays
from discreet.sources import shards
from discreet.testing import refuses
from fuzz.models import OLD, contents, forge, use, with_factors
from toy import toy_interactions

MEGABYTE = 1 << 20
HASHES = [
    "0x9e3779b97f4a7c15",
    "0x6d16bf441c521f6a",
    "0x23f81e0073f46ec1",
    "0x2806d0c7846e42cb",
    "0xcd022b00bcb6c5fb",
    "0x23f81e0073f46ec1",
]


def forged(tmp_path, kind, *, grown=False, **changes):
    label, arrays = contents(OLD / f"{kind}.discreet")
    if grown:
        label, arrays = with_factors(label, arrays)
    path = tmp_path / f"{kind}.discreet"
    forge(path, label, arrays | changes)
    return path


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("neighbours", {"neighbors": np.full((12, 11), 2**30, dtype=np.int32)}),
        ("neighbours", {"neighbors": np.full((12, 11), -(2**30), dtype=np.int32)}),
        ("neighbours", {"neighbor_similarities": np.zeros((12, 3), dtype=np.float32)}),
        ("profiles", {"profile_vectors": np.zeros((3, 3))}),
        ("profiles", {"profile_squares": np.zeros(2)}),
        ("profiles", {"center": np.zeros(1)}),
        ("projected-gradient", {"bases": np.zeros((2, 3))}),
        ("projected-gradient", {"ranks": np.array([2**40, 3 - 2**40])}),
        ("projected-gradient", {"ranks": np.array([1, 1])}),
        ("projected-gradient", {"ranks": np.array([], int), "bases": np.zeros((12, 0)), "kept": np.zeros(0)}),
        ("ratings", {"ridge": np.full(4, np.nan)}),
        ("one-bit", {"left": np.zeros((39, 6))}),
        ("one-bit-cells", {"cells": np.array([0, 0, 1, 2])}),
    ],
)
def test_arrays_that_do_not_fit_are_refused(kind, array, tmp_path):
    grown = kind in ("profiles", "projected-gradient", "ratings")
    use(forged(tmp_path, kind, grown=grown))
    with refuses("other-version"):
        discreet.load(forged(tmp_path, kind, grown=grown, **array))


def held(action):
    """Return the most memory that Python and numpy held during an action."""
    tracemalloc.start()
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def bomb(path, method):
    """Write a small file whose arrays unpack to 256 megabytes, packed once or, inside, once more."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", method) as archive, archive.open("a.npy", "w", force_zip64=True) as file:
        for _ in range(256):
            file.write(bytes(MEGABYTE))
    label, _ = contents(OLD / "popularity.discreet")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("label.json", json.dumps(label))
        archive.writestr("arrays.npz", inner.getvalue())


@pytest.mark.few(1)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_bomb_is_refused_before_it_is_unpacked(method, tmp_path):
    path = tmp_path / "bomb.discreet"
    bomb(path, method)

    def load():
        with pytest.raises(FileError):
            discreet.load(path)

    assert held(load) < 100 * MEGABYTE


def test_locked_deep_and_foreign_members_get_a_sentence(tmp_path):
    path = tmp_path / "m.discreet"
    raw = bytearray((OLD / "popularity.discreet").read_bytes())
    for start in (raw.index(b"PK\x03\x04") + 6, raw.index(b"PK\x01\x02") + 8):
        raw[start] |= 1
    path.write_bytes(raw)
    with refuses("not-a-model"):
        discreet.load(path)
    assert not is_model(path)
    for text in ("[" * 100_000, "9" * 5000, '{"format": "discreet-model", "version": 1}'):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("label.json", text)
            archive.writestr("arrays.npz", b"")
        with pytest.raises(FileError):
            read_label(path)


@pytest.mark.parametrize("header", [b"'''", b"(", b'{"descr":\n (', b"{'descr", b"[" * 5000, b"\xff" * 40])
def test_strange_headers_of_arrays_get_a_sentence(header, tmp_path):
    file = tmp_path / "values.npy"
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)
    file.write_bytes(raw)
    with refuses("shards-damaged", file=file):
        shards._array(file)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("popularity.npy", raw)
    with pytest.raises((DataError, *DAMAGED)):
        unpack_arrays(packed.getvalue())


def test_one_long_id_costs_its_own_length_only(tmp_path):
    names = [f"film {number}" for number in range(20_000)] + ["x" * 200_000, "a", "a\0"]
    vocabulary = Vocabulary.of(names)
    ids = [names[1], names[2], names[-1], names[-2], names[-3]]
    data = discreet.Interactions.from_arrays([1, 1, 2, 2, 3], ids, [1, 2, 3, 4, 5], catalog=vocabulary)

    def whole_way():
        discreet.Popularity(epsilon=1.0).fit(data).save(tmp_path / "m.discreet")
        model = discreet.load(tmp_path / "m.discreet")
        assert model.catalog == vocabulary
        assert len(model.recommend([names[0]], k=20_002)) == 20_002

    assert held(whole_way) < 200 * MEGABYTE


def test_the_public_hash_of_an_id_never_changes():
    texts = Vocabulary.of(["", "a", "ab", "ünï", "a long title with spaces", "a\0b"])
    found = [hex(number) for number in hash_ids(texts).tolist()]
    assert found == HASHES
    assert hash_ids(Vocabulary.of([-3, 70])).tolist() == hash_ids(Vocabulary.of(["-3", "70"])).tolist()


def test_loading_imports_one_scorer_only():
    program = f"""
import sys, discreet
discreet.load({str(OLD / "ratings.discreet")!r})
print(*[name for name in sys.modules if name.startswith("discreet")])
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # Each package may have one module with templates of errors, which imports nothing else.
    loaded = [name for name in found.stdout.split() if not name.endswith(".errors")]
    assert len(loaded) <= 70
    scorers = {name.rsplit(".", 1)[1] for name in loaded if name.startswith("discreet.models.scorers.")}
    assert scorers == {"scorer", "factors", "ranking", "similarity"}
    others = ("discreet.federated", "discreet.models.local", "discreet.papers")
    assert not [name for name in loaded if name.startswith(others)]


def test_every_kind_is_in_the_table():
    from discreet.core.registry import SCORERS
    from discreet.models.scorers.scorer import scorer_class

    assert all(scorer_class(kind).kind == kind for kind in SCORERS)


def test_the_catalog_says_where_it_comes_from(tmp_path):
    data = toy_interactions(n_users=20, n_items=6, per_user=3, seed=0)
    discreet.Popularity(epsilon=1.0).fit(data).save(tmp_path / "m.discreet")
    source = read_label(tmp_path / "m.discreet")["provenance"]["catalog"]
    expected = "taken from the data" if "n_items" in data.facts.from_file else "public"
    assert source.startswith(expected)


@pytest.mark.parametrize("column", [("Alien",), ("Alien", "Heat", "Up"), ["Alien", "Heat"], None])
def test_public_columns_are_as_long_as_the_catalog(column):
    assert checked(["title"], [("Alien", "Heat")], 2) == {"title": ("Alien", "Heat")}
    with refuses("malformed-part", part="public column"):
        checked(["title"], [column], 2)
