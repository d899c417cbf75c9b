"""JSON lines and layouts that are read by name: what is read, what is refused, and what a message shows."""

import gzip
import json
import logging
import random
import tracemalloc

import numpy as np
import pytest

from discreet.core.checks import DiscreetError
from discreet.data.block_sizes import other_block_sizes
from discreet.data.errors import TooManyRows, UnpacksToTooMuch
from discreet.data.reading.readers import read
from discreet.testing import refuses
from fuzz.mutations import bytes_of

RATED = [(7, 1, 3, "2005-09-06"), (8, 1, 5, "2004-01-01"), (7, 2, 1, "2005-01-01"), (9, 3, 4, "2005-01-02")]
NETFLIX = "1:\n7,3,2005-09-06\n8,5,2004-01-01\n2:\n7,1,2005-01-01\n3:\n9,4,2005-01-02\n"
MOVIELENS = "".join(f"{u}\t{i}\t{r}\t88125094{u}\n" for u, i, r, _ in RATED)
RECBOLE = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + MOVIELENS
LIGHTGCN = "7 1 2\n8 1\n9 3\n10\n"
SASREC = "7 2\n8 1\n7 1\n9 3\n"
LINES = "".join(
    json.dumps({"user": u, "item": str(i), "rating": r, "time": f"{day}T00:00:00+00:00", "more": {"a": [1]}})
    + "\n"
    for u, i, r, day in RATED
)
# Name of the layout, the file's name, the text of a sound file.
SOUND = [
    ("netflix", "combined_data_1.txt", NETFLIX),
    ("movielens", "u.data", MOVIELENS),
    ("recbole", "ml.inter", RECBOLE),
    ("lightgcn", "train.txt", LIGHTGCN),
    ("sasrec", "ml-1m.txt", SASREC),
    (None, "events.jsonl", LINES),
]


def written(folder, name, text, packed=False):
    path = folder / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("layout", "name", "text"), SOUND)
def test_a_sound_file_is_read(tmp_path, layout, name, text, packed):
    path = written(tmp_path, name, text, packed)
    pairs = {(7, 1), (8, 1), (7, 2), (9, 3)}
    for windows in (False, True):
        if windows and not packed:
            path.write_bytes(text.replace("\n", "\r\n").encode())
        data = read(path, layout=layout)
        users, items = data.users.id_at(data.rows()), data.catalog.id_at(data.items)
        assert set(zip(map(int, users), map(int, items), strict=True)) == pairs
        rated = layout not in ("lightgcn", "sasrec")
        assert data.values.tolist() == ([3, 1, 5, 4] if rated else [1] * 4)
        assert (data.times is None) is (layout == "lightgcn")


def test_netflix_declares_its_scale_and_reads_days(tmp_path):
    data = read(written(tmp_path, "mv_0000001.txt", NETFLIX), layout="netflix")
    assert (data.facts.low, data.facts.high, data.facts.step) == (1, 5, 1)
    assert "scale" not in data.facts.from_file
    assert data.times.tolist()[0] == 1125964800
    bare = read(tmp_path / "mv_0000001.txt", layout="netflix", implicit=True, columns={"time": None})
    assert bare.times is None and bare.has_one_value


def test_a_folder_of_netflix_files_is_read_as_one(tmp_path):
    for item, lines in {1: "7,3,2005-09-06\n8,5,2004-01-01\n", 2: "7,1,2005-01-01\n"}.items():
        written(tmp_path, f"mv_{item:07}.txt", f"{item}:\n{lines}")
    written(tmp_path, "probe.txt", "1:\n7\n")
    assert read(tmp_path, layout="netflix").n_ratings == 3
    with refuses("none-of-layout", layout="lightgcn"):
        read(tmp_path, layout="lightgcn")


@pytest.mark.parametrize(("layout", "name", "text"), SOUND)
def test_blocks_make_no_difference(tmp_path, layout, name, text):
    path = written(tmp_path, name, text)
    whole = read(path, layout=layout)
    with other_block_sizes(text=3):
        parts = read(path, layout=layout)
    for field in ("indptr", "items", "values", "times"):
        assert np.array_equal(getattr(whole, field), getattr(parts, field), equal_nan=False)
    assert whole.users.ids.tolist() == parts.users.ids.tolist()


def test_the_order_of_a_person_does_not_depend_on_others(tmp_path):
    together = read(written(tmp_path, "a.txt", SASREC), layout="sasrec")
    alone = read(written(tmp_path, "b.txt", "7 2\n7 1\n"), layout="sasrec")
    assert together.times.tolist()[:2] == alone.times.tolist() == [1, 0]


SECRET = "s3cret"
BAD = [
    ("netflix", "7,3,2005-09-06\n", "other-shape", {"line": 1}),
    ("netflix", f"1:\n{SECRET},3,2005-09-06\n", "other-shape", {"line": 2}),
    ("netflix", "1:\n7,6,2005-09-06\n", "other-shape", {"line": 2}),
    ("netflix", "1:\n7,3,2005-13-06\n", "other-shape", {"line": 2}),
    ("netflix", "1:\n007,3,2005-09-06\n", "other-shape", {"line": 2}),
    ("lightgcn", f"7 1 2\n8 {SECRET}\n", "other-shape", {"line": 2}),
    ("lightgcn", "7,1,2\n", "other-shape", {"line": 1}),
    ("lightgcn", "7\n8\n", "empty-data", {}),
    ("sasrec", f"7 1\n\n8 {SECRET}\n", "other-shape", {"line": 3}),
    ("sasrec", "7 1 5\n", "other-shape", {"line": 1}),
    ("recbole", f"user_id\titem_id\trating\n{SECRET}\t1\t2\n", "other-layout", {"layout": "recbole"}),
    ("recbole", "user_id:token,item_id:token,rating:float\n1,1,2\n", "other-layout", {"layout": "recbole"}),
    ("movielens", f"1\t{SECRET}\t3\n", "other-layout", {"layout": "movielens"}),
    ("movielens", "user,item,rating,time\n1,2,3,4\n", "other-layout", {"layout": "movielens"}),
    (None, LINES + f'{{"user": "{SECRET}"}}\n', "bad-values", {"line": 5, "what": "item IDs"}),
    (None, LINES + f'{{"user": 1, "item": ["{SECRET}"], "rating": 1}}\n', "other-shape", {"line": 5}),
    (None, LINES + f"{SECRET}\n", "other-shape", {"line": 5}),
    (None, f'[{{"user": "{SECRET}"}}]', "not-a-table", {"found": "json"}),
    (None, f"{{'user': '{SECRET}', 'item': 1}}\n", "not-a-table", {"found": "python"}),
    (None, f"<html><p>{SECRET}, 2</p>", "not-a-table", {"found": "xml"}),
    (None, NETFLIX, "not-a-table", {"found": "netflix"}),
    (None, "{}\n{}\n", "nothing-to-read", {"found": "objects"}),
]


@pytest.mark.parametrize(("layout", "text", "code", "facts"), BAD)
def test_what_does_not_look_like_its_layout_is_refused(tmp_path, layout, text, code, facts):
    path = written(tmp_path, "odd.txt", text)
    with refuses(code, **facts) as caught:
        read(path, layout=layout)
    assert SECRET not in str(caught.value) and "\n" not in str(caught.value)


def test_bad_lines_are_left_out_each_by_itself(tmp_path):
    path = written(tmp_path, "a.jsonl", LINES + 'oh\n{"user": 1, "item": NaN}\n{"user": 5}\n')
    named = {role: role for role in ("user", "item", "rating", "time")}
    assert read(path, columns=named, skip_bad_lines=True).n_ratings == 4
    path = written(tmp_path, "train.txt", LIGHTGCN + "x y\n")
    assert read(path, layout="lightgcn", skip_bad_lines=True).n_ratings == 4
    # Without its item's line a rating would be another item's.
    with refuses("lines-needed", layout="netflix"):
        read(written(tmp_path, "mv.txt", NETFLIX), layout="netflix", skip_bad_lines=True)


def test_json_numbers_and_texts_are_the_same_ids(tmp_path):
    lines = ['{"user": 1, "item": "i"}', '{"user": "1", "item": "j"}']
    data = read(written(tmp_path, "a.jsonl", "\n".join(lines)), implicit=True)
    assert data.users.ids.tolist() == [1] and data.catalog.ids.tolist() == ["i", "j"]
    data = read(
        written(tmp_path, "b.jsonl", "\n".join([*lines, '{"user": "x", "item": "i"}'])), implicit=True
    )
    assert data.users.ids.tolist() == ["1", "x"]


def test_a_line_of_json_is_never_read_together_with_another(tmp_path):
    # Joined by commas both pairs would be a list of objects.
    for lines in (
        ['{"user": 1, "item": 1}, {"user": 2, "item": 2}', '{"user": 3, "item": 3}'],
        ['{"user": 1, "item": 1, "more": "', '"}', '{"user": 3, "item": 3}'],
    ):
        text = '{"user": 9, "item": 9}\n' + "\n".join(lines)
        with refuses("other-shape", line=2):
            read(written(tmp_path, "a.jsonl", text), implicit=True)
        how = {"columns": {"user": "user", "item": "item", "time": None}, "skip_bad_lines": True}
        assert read(tmp_path / "a.jsonl", implicit=True, **how).users.ids.tolist() == [3, 9]


@pytest.mark.parametrize("odd", ["[1]", '{"a": 1}', "null", "123456789012345678901234567890"])
def test_ids_of_json_are_texts_or_numbers(tmp_path, odd):
    text = '{"user": "[REC]", "item": "{x}"}\n'
    data = read(written(tmp_path, "a.jsonl", text), implicit=True)
    assert data.users.ids.tolist() == ["[REC]"]
    with refuses("bad-values" if odd == "null" else "other-shape", line=2):
        read(written(tmp_path, "a.jsonl", text + f'{{"user": {odd}, "item": 1}}'), implicit=True)


def test_settings_that_make_no_sense(tmp_path):
    path = written(tmp_path, "a.txt", SASREC)
    with refuses("unknown-choice", name="layout", value="nothing"):
        read(path, layout="nothing")
    with refuses("declared-by-layout", layout="sasrec", names=("user",)):
        read(path, layout="sasrec", columns={"user": "who"})
    with refuses("roles-needed", layout="sasrec"):
        read(path, layout="sasrec", columns={"user": None})
    with refuses("declared-by-layout", layout="sasrec", names=("delimiter",)):
        read(path, layout="sasrec", delimiter=";")


@pytest.mark.few(2)
@pytest.mark.parametrize(("layout", "name", "text"), SOUND)
def test_hostile_files_get_one_sentence(tmp_path, layout, name, text):
    chance = random.Random(7)
    path = tmp_path / name
    for _ in range(60):
        path.write_bytes(bytes_of(text.encode(), chance))
        try:
            read(path, layout=layout)
        except DiscreetError as error:
            assert "\n" not in str(error)


@pytest.mark.few(1)
@pytest.mark.parametrize(("layout", "name", "text"), SOUND)
def test_a_bomb_and_an_endless_line_cost_little(tmp_path, layout, name, text):
    path = tmp_path / f"{name}.gz"
    with gzip.open(path, "wb", 9) as file:
        file.write(text.encode())
        for _ in range(80):
            file.write(b"\n" * (1 << 20))
    tracemalloc.start()
    with pytest.raises((UnpacksToTooMuch, TooManyRows)):
        read(path, layout=layout)
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


def test_lists_of_items_are_answered_with_the_name_of_their_layout(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0 3 5 8\n1 2\n2 5 8 9 11 12\n")
    with refuses("nothing-to-read", found="lists"):
        read(path, implicit=True)
    assert read(path, layout="lightgcn").n_ratings == 9
    # The twin: rows of one length are a table.
    path.write_text("0 3 5\n1 2 4\n2 5 1\n")
    assert read(path).n_ratings == 3


def test_files_that_need_a_layout_say_so(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "discreet"):
        read(written(tmp_path, "a.txt", SASREC), implicit=True, duplicates="last")
    assert "--layout sasrec" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "discreet"):
        read(written(tmp_path, "b.csv", "7,1\n8,2\n"), implicit=True)
    assert "sasrec" not in caplog.text
    folder = tmp_path / "prize"
    folder.mkdir()
    for name in ("mv_1.txt", "mv_2.txt"):
        written(folder, name, NETFLIX)
    with refuses("folder-without-tables", netflix=True):
        read(folder)
