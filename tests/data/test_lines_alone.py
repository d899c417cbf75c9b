"""A line is read by itself: no other line's quotes, letters or place in the file change it."""

import gzip
import io
import zipfile

import numpy as np
import pytest

import discreet
from discreet.data.block_sizes import other_block_sizes
from discreet.data.reading.blocks import MARK
from discreet.data.reading.text import split_fields
from discreet.data.schema import Schema, stateless
from discreet.sources.sharding import PieceReader, make_shards
from discreet.sources.shards import open_shards
from discreet.testing import refuses

FACTS = {"low": 1.0, "high": 5.0}
OWN = [f"u{k},i{k % 5},{k % 5 + 1}" for k in range(60)]


def cells(data, without=("zoe",)):
    people, items = data.users.id_at(data.rows()).tolist(), data.catalog.id_at(data.items).tolist()
    return sorted(
        row for row in zip(people, items, data.values.tolist(), strict=True) if row[0] not in without
    )


@pytest.mark.few(16)
@pytest.mark.parametrize(
    "odd",
    [
        '"a\\"b",i1,3',
        'zoe,"i1,3',
        'zoe,i1"x,3',
        '"zoe""",i1,3',
        '"zoe"x,i1,3',
        "zoe,'i1,3",
        'zoe,"i1"",3',
        '"""',
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "::"])
@pytest.mark.parametrize("escape", [None, "\\"])
def test_two_odd_lines_do_not_swallow_what_is_between_them(tmp_path, odd, delimiter, escape):
    path = tmp_path / "a.csv"
    lines = [line.replace(",", delimiter) for line in OWN]
    path.write_text("user,item,rating\n".replace(",", delimiter) + "\n".join(lines))
    plain = cells(discreet.read(path, escape=escape, **FACTS))
    odd = odd.replace(",", delimiter)
    middle = [lines[0], odd, *lines[1:50], odd, *lines[50:]]
    path.write_text("user,item,rating\n".replace(",", delimiter) + "\n".join(middle))
    found = discreet.read(path, escape=escape, skip_bad_lines=True, duplicates="last", **FACTS)
    own = {one[0] for one in plain}
    assert [row for row in cells(found) if row[0] in own] == plain


def test_one_users_quotes_do_not_make_rows_of_several_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating\n" + "\n".join(['zoe,"i1', *OWN, 'i2",3']))
    with refuses("wrong-fields", line=63):
        discreet.read(path, **FACTS)
    assert discreet.read(path, skip_bad_lines=True, **FACTS).n_ratings == len(OWN)
    # Two users with such fields: a file of reviews.
    path.write_text('user,item,text,rating\na,i1,"one\ntwo",3\nb,i1,"one,\n\ntwo",4\nc,i2,none,5\n')
    data = discreet.read(path, **FACTS)
    assert data.n_ratings == 3 and data.schema.multiline and "multiline" in data.schema.guessed


def test_a_quote_inside_a_field_is_a_letter(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('user,item,rating\nann,7" single,3\nbob,tea,4\n')
    assert sorted(discreet.read(path).catalog.ids.tolist()) == ['7" single', "tea"]


@pytest.mark.parametrize(
    "encoding", ["iso-2022-jp", "utf-7", "hz", "shift_jis", "gb18030", "iso2022_kr", "utf-32", "idna"]
)
def test_encodings_with_state_are_rejected(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating\nann,tea,3\n")
    with refuses("encoding-with-state", encoding=encoding):
        discreet.read(path, encoding=encoding)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "latin-1", "cp1252", "koi8-r", "utf-16-le", "utf-16-be", "utf-16", "cp037"]
)
@pytest.mark.parametrize("block", [4, 1 << 22])
def test_letters_do_not_depend_on_blocks_or_on_other_lines(tmp_path, encoding, block):
    letters = "пж" if encoding == "koi8-r" else "éü"
    # In UTF-16 the first of these letters has a byte that is a line feed elsewhere.
    letters += "\u0a0a\u010a\U0001f600" if encoding.startswith("utf") else ""
    path = tmp_path / "a.csv"
    text = "user,item,rating\n" + "".join(f"{letters}{k},x{letters},{k % 5 + 1}\n" for k in range(20))
    path.write_bytes(text.encode(encoding))
    with other_block_sizes(text=block):
        alone = cells(discreet.read(path, encoding=encoding, **FACTS))
    assert len(alone) == 20 and all(one[0].startswith(letters) for one in alone)
    if encoding.startswith("utf-16-"):
        raw = text.encode(encoding) + "zoe".encode(encoding) + b"\xd8\xd8\n\n\xdc\xdc" + "\n".encode(encoding)
        path.write_bytes(raw + text.encode(encoding).split("\n".encode(encoding), 1)[1])
        with other_block_sizes(text=block):
            again = discreet.read(path, encoding=encoding, skip_bad_lines=True, duplicates="last", **FACTS)
        own = {one[0] for one in alone}
        assert [one for one in cells(again) if one[0] in own] == alone


@pytest.mark.parametrize("delimiter", [",", "\t", " ", "::", "§"])
@pytest.mark.parametrize("comment", ["", "#"])
def test_a_line_is_split_as_it_is_alone(delimiter, comment):
    draw = np.random.default_rng(5)
    schema = Schema(delimiter=delimiter, comment=comment, escape="\\")
    letters = [b"a", b"b7", delimiter.encode(), b" ", b"\t", b"\r", b"#", b":", b"\xc2", "é".encode(), MARK]
    usual = delimiter.join("xyz").encode()
    unquoted = lines = 0
    for round_ in range(40):
        chosen = [*letters, b'"', b"\\", b"\xff", b"\0"][: 11 if round_ < 20 else None]
        block = [
            b"".join(chosen[k] for k in draw.integers(0, len(chosen), draw.integers(0, 9))) for _ in range(60)
        ]
        block = [usual if draw.random() < 0.2 else line for line in block]
        alone = [fields for line in block for fields in split_fields(b'"\n' + line, schema)[1:]]
        assert split_fields(b'"\n' + b"\n".join(block), schema)[1:] == alone
        for line in block if round_ < 20 else ():
            plain = split_fields(line, schema)
            assert split_fields(b'"\n' + line, schema)[1:] == plain
            unquoted += len(plain) > 0 and plain[0] is not None
        lines += len(alone)
    assert lines > 1000 and unquoted > 500


def test_names_of_encodings():
    assert stateless("windows-1252") == "cp1252" and stateless("UTF8") == "utf-8"


@pytest.mark.parametrize(
    "first",
    ["#zoe,i1,3", "# user,item,rating", '{"zoe": 1}', "<html>", "1:", "\ufeffx,i1,3", '"', "a;b;c;d;e"],
)
@pytest.mark.parametrize("size", [100, 200])
def test_pieces_of_a_file_have_one_layout(tmp_path, first, size):
    """A line of one user at the beginning of a piece does not change how the piece is read."""
    path = tmp_path / "a.csv"
    rows = [line.replace("u", "#u") if k % 3 == 0 else line for k, line in enumerate(OWN)]
    found = []
    for lines in (["a,i1,3", *rows], ["a,i1,3", *rows[:20], first, first, *rows[20:]]):
        path.write_text("\n".join(lines) + "\n")
        reader = PieceReader(wishes=_skipping())
        with other_block_sizes(piece=size):
            parts = [reader.read(piece) for piece in reader.pieces(path)]
        assert len(parts) > 2
        users = [one for part in parts for one in part.users.to_list()]
        items = [one for part in parts for one in part.items.to_list()]
        own = {line.split(",")[0] for line in rows}
        found.append([pair for pair in zip(users, items, strict=True) if pair[0] in own])
    assert found[0] == found[1] and len(found[0]) == len(OWN)


def _skipping():
    from discreet.data.guessing import Wishes

    return Wishes.taken_from({"skip_bad_lines": True})


def test_packed_files_and_zip_archives_read_alike(tmp_path):
    text = ("user,item,rating\n" + "\n".join(OWN)).encode()
    (tmp_path / "a.csv").write_bytes(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("ratings.csv", text)
    found = [cells(discreet.read(tmp_path / name)) for name in ("a.csv", "a.csv.gz", "a.zip")]
    assert found[0] == found[1] == found[2]


def test_a_packed_file_with_another_name_is_described(tmp_path):
    text = ("user,item,rating\n" + "\n".join(OWN)).encode()
    (tmp_path / "a.csv").write_bytes(text)
    plain = discreet.read(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(gzip.compress(text))
    (tmp_path / "a.csv.gz").write_bytes(text)
    for name, packed in {"a.csv": "gzip", "a.csv.gz": "none"}.items():
        data = discreet.read(tmp_path / name)
        assert cells(data) == cells(plain) and data.schema.packed == packed
        assert "packed" in data.schema.guessed and "packed" not in plain.schema.guessed
        assert cells(discreet.read(tmp_path / name, schema=data.schema)) == cells(plain)
    with refuses("other-format"):
        discreet.read(tmp_path / "a.csv", schema=plain.schema)


DECLARED = Schema(
    header=False,
    columns=("user", "item", "rating"),
    user="user",
    item="item",
    rating="rating",
    bad_rows="drop",
    off_scale="clip",
)


@pytest.mark.parametrize("first", [b"PAR1,i1,3", b"SQLite format 3\x00,i1", b"zo,i1,3,DUCK", b"\x1f\x8b,i"])
@pytest.mark.parametrize("form", [{}, {"layout": "movielens"}])
def test_a_first_row_does_not_decide_what_a_file_is(tmp_path, first, form):
    rows = b"".join(f"{k},{k % 5},{k % 5 + 1}\n".encode() for k in range(20))
    options = {"skip_bad_lines": True} if form else {"schema": DECLARED}
    rows = rows.replace(b",", b"::").replace(b"\n", b"::5\n") if form else rows
    path = tmp_path / ("ratings.dat" if form else "ratings.csv")
    path.write_bytes(rows)
    plain = cells(discreet.read(path, **form, **options, **FACTS))
    path.write_bytes(first + b"\n" + rows)
    assert cells(discreet.read(path, **form, **options, **FACTS), without=("PAR1",)) == plain


def test_the_rows_of_one_user_are_not_an_archive_around_the_others(tmp_path):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("a.csv", "zoe,i1,3")
    whole, path = archive.getvalue(), tmp_path / "a.csv"
    directory = whole.index(b"PK\x01\x02")
    path.write_bytes(whole[:directory] + b"\n" + "\n".join(OWN).encode() + b"\n" + whole[directory:])
    assert len(cells(discreet.read(path, schema=DECLARED, **FACTS), without=())) == len(OWN)


@pytest.mark.parametrize("rule", ["clip", "drop"])
def test_a_rating_between_the_steps_rejects_no_file(tmp_path, rule):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*OWN, "zoe,i1,3.3", "zoe,i2,9", "zoe,i3,-1.5"]))
    schema = DECLARED.changed(off_scale=rule)
    found = cells(discreet.read(path, schema=schema, step=1.0, **FACTS), without=())
    assert [row for row in found if row[0] != "zoe"] == sorted((u, i, float(r)) for u, i, r in _own())
    own = [row[1:] for row in found if row[0] == "zoe"]
    assert own == ([("i1", 3.0), ("i2", 5.0), ("i3", 1.0)] if rule == "clip" else [])
    folder = tmp_path / "shards"
    make_shards([path], folder, reader=PieceReader(schema=schema), step=1.0, **FACTS)
    assert open_shards(folder).n_ratings == len(found)


def _own():
    return (line.split(",") for line in OWN)


def test_a_schema_of_text_without_columns_is_rejected(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating\n" + "\n".join(OWN))
    with refuses("no-column"):
        discreet.read(path, schema=Schema(user="user", item="item", rating="rating"))


def test_a_schema_reads_what_it_describes(tmp_path):
    path, form = tmp_path / "a.csv", tmp_path / "a.toml"
    path.write_text(
        "user;item;stars;when\n007;tea;3,5;01.02.2024\nbob;jam;4;13.02.2024\nann;jam;4;14.02.2024\n"
    )
    first = discreet.read(path, columns={"rating": "stars", "time": "when"}, **FACTS)
    assert first.schema.date_order == "day-first" and "delimiter" in first.schema.guessed
    first.schema.write(form)
    assert Schema.read(form) == first.schema
    again = discreet.read(path, schema=form)
    assert cells(again) == cells(first) and again.times.tolist() == first.times.tolist()
    assert again.schema == first.schema
    # A row that is no row is dropped under the schema's rule; other rows stay as they are.
    path.write_text(path.read_text() + 'zoe;"tea;3;4\nzoe;x\nzoe;tea;3;02/03/04\n')
    dropped = discreet.read(path, schema=first.schema.with_fields(bad_rows="drop"))
    assert cells(dropped) == cells(first)


def test_ids_of_a_declared_type_are_rows_or_not_each_by_itself(tmp_path):
    path = tmp_path / "a.csv"
    names = ("user", "item", "rating")
    schema = Schema(columns=names, user="user", item="item", rating="rating", user_type="integer")
    path.write_text("user,item,rating\n7,a,3\n007,a,3\nzoe,a,3\n8,b,4\n")
    data = discreet.read(path, schema=schema, **FACTS)
    assert data.users.ids.tolist() == [7, 8] and data.schema.guessed == ()
