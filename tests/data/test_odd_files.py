"""Files as people have them: each oddity is read, or named with its line and what to do about it."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import discreet
from assumption_examples import stated
from discreet.core.checks import DataError
from discreet.privacy.guarantee import Fact, Kind
from discreet.testing import refuses

PLAIN = "user,item,rating\nann,tea,3\nbob,jam,4\nbob,tea,5\n"


def cells(data):
    people, items = data.users.id_at(data.rows()).tolist(), data.catalog.id_at(data.items).tolist()
    return sorted(zip(people, items, data.values.tolist(), strict=True))


def written(tmp_path, text, encoding="utf-8", name="odd.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


ODD = {
    "blank lines": PLAIN.replace("\nbob,jam", "\n\nbob,jam"),
    "lines of blanks": PLAIN.replace("\nbob,jam", "\n   \nbob,jam"),
    "a trailing blank line": PLAIN + "\n\n",
    "blank lines before the header": "\n\n" + PLAIN,
    "remarks": "# written by hand\n" + PLAIN.replace("\nbob,jam", "\n# bob\nbob,jam"),
    "a header behind a remark sign": "# " + PLAIN,
    "windows lines": PLAIN.replace("\n", "\r\n") + "\r\n",
    "a mark of byte order": "\ufeff" + PLAIN,
    "decimal commas": PLAIN.replace(",", ";").replace("3\n", "3,0\n").replace("4\n", "4,00\n"),
    "plural names": PLAIN.replace("user,item,rating", "users,items,ratings"),
    "padded ids": PLAIN.replace("bob", " bob ").replace("tea", "tea  "),
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_read_as_if_it_were_plain(tmp_path, text):
    assert cells(discreet.read(written(tmp_path, text))) == cells(
        discreet.read(written(tmp_path, PLAIN, name="plain.csv"))
    )


BOOKS = "".join(f"p{k},title {k % 7},{k % 5 + 1}\n" for k in range(40))
ESCAPED = r'p1,"a \"fine, odd\" book",2' + "\n"
BROKEN = "user,item,rating\n" + BOOKS + ESCAPED + BOOKS.replace("p", "q") + ESCAPED.replace("p1", "p2")


def test_an_escaped_quote_is_named_skipped_or_read(tmp_path, caplog):
    path = written(tmp_path, BROKEN)
    with refuses("wrong-quotes", path="odd.csv", line=42, count=2):
        discreet.read(path)
    with caplog.at_level(logging.WARNING, "discreet"):
        skipped = discreet.read(path, skip_bad_lines=True)
    assert skipped.n_ratings == 80 and "2 of 82 rows" in caplog.text and "fine" not in caplog.text
    whole = discreet.read(path, escape="\\")
    assert whole.n_ratings == 82 and 'a "fine, odd" book' in whole.catalog.ids.tolist()


UNREADABLE = {
    "text": "eve,tea,great,5\n",
    "no rating": "eve,tea,,5\n",
    "infinite": "eve,tea,inf,5\n",
    "no item": "eve,,3,5\n",
    "no user": ",tea,3,5\n",
    "no time": "eve,tea,3,\n",
    "no date": "eve,tea,3,yesterday\n",
}


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_line_that_lacks_something_is_refused_or_left_out(tmp_path, caplog, line):
    good = "user,item,rating,time\n" + "".join(f"p{k},title {k % 7},{k % 5 + 1},{k}\n" for k in range(40))
    path = written(tmp_path, good + line)
    with pytest.raises(DataError) as caught:
        discreet.read(path)
    assert caught.value.code in ("bad-values", "unreadable-values")
    assert (caught.value.count, caught.value.of, caught.value.line) == (1, 41, 42)
    with caplog.at_level(logging.WARNING, "discreet"):
        skipped = discreet.read(path, skip_bad_lines=True)
    assert "1 of 41 rows" in caplog.text and "eve" not in caplog.text
    plain = discreet.read(written(tmp_path, good, name="plain.csv"))
    assert cells(skipped) == cells(plain) and skipped.times.tolist() == plain.times.tolist()


def test_a_json_line_without_a_number_is_left_out(tmp_path, caplog):
    lines = [
        '{"user": "ann", "item": "tea", "rating": 3}',
        '{"user": "eve", "item": "tea", "rating": "good"}',
    ]
    path = written(tmp_path, "\n".join([*lines, '{"user": "bob", "item": "jam"}']), name="odd.jsonl")
    with caplog.at_level(logging.WARNING, "discreet"):
        columns = {"user": "user", "item": "item", "rating": "rating", "time": None}
        assert cells(discreet.read(path, columns=columns, skip_bad_lines=True)) == [("ann", "tea", 3.0)]
    assert "2 of 3 rows" in caplog.text


SEPARATED = {
    "decimal commas": "u1;tea;4,5;2026-01-01\nu2;jam;3,0;2026-01-02\nu3;tea;3;2026-01-03\n",
    "commas in names": "ann, b;tea, green;4;2026-01-01\nbob, c;jam;3;2026-01-02\n",
    "bars in names": "ann,black|green|white tea|herbs,4,7\nbob,jam|marmalade|gum|paste,3,8\n",
    "blanks": "ann 1,black tea in bags,4,2026-01-01 10:00:00\nbob 2,jam in big jars,3,2026-01-02 11:00:00\n",
    "a bad line": "u1;tea;4,5;7\nu2;jam;3,0;8\n" * 20 + "u3;tea\n",
}


@pytest.mark.parametrize("text", SEPARATED.values(), ids=SEPARATED.keys())
def test_the_separator_is_the_mark_that_makes_most_fields(tmp_path, text):
    data = discreet.read(written(tmp_path, text), skip_bad_lines=True, duplicates="last")
    assert data.times is not None and data.n_ratings == len(set(text.splitlines()) - {"u3;tea"})


def test_somebody_elses_bad_line_changes_nothing(tmp_path):
    plain = discreet.read(written(tmp_path, "user,item,rating\n" + BOOKS, name="plain.csv"))
    broken = discreet.read(written(tmp_path, BROKEN), skip_bad_lines=True)
    assert set(cells(plain)) <= set(cells(broken))


def test_encodings_delimiters_quotes_and_comments(tmp_path):
    latin = written(tmp_path, PLAIN.replace("ann", "zoé"), "latin-1")
    with refuses("not-text", path="odd.csv", line=2, encoding="UTF-8"):
        discreet.read(latin)
    assert "zoé" in discreet.read(latin, encoding="latin-1").users.ids.tolist()
    with refuses("unknown-encoding", encoding="klingon"):
        discreet.read(latin, encoding="klingon")
    bars = written(tmp_path, PLAIN.replace(",", "^"))
    assert cells(discreet.read(bars, delimiter="^")) == cells(discreet.read(written(tmp_path, PLAIN)))
    ticks = written(tmp_path, PLAIN.replace("tea", "'green, tea'"))
    assert "green, tea" in discreet.read(ticks, quote="'").catalog.ids.tolist()
    inches = written(tmp_path, PLAIN.replace("tea", '"9 inch'))
    assert '"9 inch' in discreet.read(inches, quote="none").catalog.ids.tolist()
    marked = written(tmp_path, PLAIN + "% the end, so far\n")
    assert discreet.read(marked, comment="%").n_ratings == 3
    with refuses("broken-rule", name="delimiter", value="~~"):
        discreet.read(marked, delimiter="~~")


def test_thousands_are_not_decimals(tmp_path):
    path = written(tmp_path, "user;item;plays\na;x;1,234\na;y;3\nb;x;2\n")
    with refuses("unreadable-values", count=1, of=3, role="rating"):
        discreet.read(path)


def test_many_columns_are_not_listed_whole(tmp_path):
    path = written(
        tmp_path, ",".join(["item", *(f"c{k}" for k in range(299))]) + "\n" + ",".join(["x"] * 300) + "\n"
    )
    with refuses("roles-missing", roles=("user", "rating")) as caught:
        discreet.read(path)
    assert "c12" not in str(caught.value)


def test_parquet_pads_like_text(tmp_path):
    table = pl.DataFrame({"user": [" a", "a ", "b"], "item": ["x", "y ", " x"], "rating": [1, 2, 3]})
    table.write_parquet(tmp_path / "r.parquet")
    table.write_csv(tmp_path / "r.csv")
    assert cells(discreet.read(tmp_path / "r.parquet")) == cells(discreet.read(tmp_path / "r.csv"))


def test_means_of_repeated_ratings_keep_a_declared_scale(tmp_path):
    path = written(tmp_path, "user,item,rating\na,x,3\na,x,4\nb,x,5\nb,y,1\n")
    data = discreet.read(path, duplicates="mean", low=1, high=5, step=1)
    assert ("a", "x", 3.5) in cells(data) and data.facts.step is None
    off = written(tmp_path, "user,item,rating\na,x,3.3\na,x,4\nb,y,1\n")
    with refuses("off-declared-scale", count=1, of=3, low=1.0, high=5.0, step=1.0):
        discreet.read(off, duplicates="mean", low=1, high=5, step=1)


def test_zeros_are_pointed_out_and_left_out_when_told(tmp_path, caplog):
    rows = "".join(f"u{k},i{k % 9},{0 if k % 3 else k % 10 + 1}\n" for k in range(90))
    path = written(tmp_path, "user,item,rating\n" + rows)
    with caplog.at_level(logging.WARNING, "discreet"):
        assert discreet.read(path).n_ratings == 90
        assert "--zeros missing" in caplog.text
        caplog.clear()
        left = discreet.read(path, zeros="missing")
        discreet.read(path, low=0, high=10)
    assert left.n_ratings == 30 and left.facts.low == 1 and caplog.text == ""


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": lambda columns: pl.DataFrame(columns).lazy(),
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_fit_takes_a_frame(make):
    rng = np.random.default_rng(0)
    columns = {"user": np.repeat(np.arange(30), 5), "item": np.tile(np.arange(5), 30)}
    frame = make({**columns, "rating": rng.integers(1, 6, 150).astype(float)})
    model = discreet.Biases(epsilon=1.0).fit(frame)
    assert len(model.catalog) == 5 and (Kind.TAKEN, Fact.CATALOG) in stated(model.guarantee)
    assert len(discreet.Popularity(epsilon=1.0).fit(make(columns)).catalog) == 5


def test_fit_takes_a_path_a_matrix_and_nothing_else(tmp_path):
    path = written(tmp_path, PLAIN)
    assert len(discreet.Biases(epsilon=1.0).fit(path).catalog) == 2
    matrix = sp.csr_matrix(np.array([[1.0, 2.0], [3.0, 0.0]]))
    assert len(discreet.Biases(epsilon=1.0).fit(matrix).catalog) == 2
    for wrong in (None, 7, [["secret", "tea", 3]], {"secret": 1}):
        with refuses("wrong-kind", name="data") as caught:
            discreet.Biases(epsilon=1.0).fit(wrong)
        assert "secret" not in str(caught.value)


def test_a_frame_that_does_not_fit_is_not_quoted():
    for frame in (pa.table({"a": ["secret"], "b": [1]}), pl.DataFrame({"a": ["secret"], "b": [1]})):
        with pytest.raises(DataError) as caught:
            discreet.from_frame(frame)
        assert "secret" not in str(caught.value)
