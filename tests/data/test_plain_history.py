"""The short way of reading a history says what the long way says, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.checks import DiscreetError
from discreet.data import histories as long_way
from discreet.data.histories import read_history, read_plain_history
from discreet.data.inputs import of_row
from discreet.data.vocabulary import Vocabulary
from discreet.testing import refuses


def both(path, content, *, implicit=False, columns=None):
    path.write_bytes(content.encode())
    plain = read_plain_history(path, path.read_bytes(), columns, implicit=implicit)
    short = None if plain is None else by_item(plain)
    try:
        data = long_way._read_people(path, columns, None, implicit=implicit, alone=True)
    except DiscreetError:
        return short, None
    return short, by_item(of_row(data, 0))


def by_item(history):
    """Return ratings and times by item; as rows of a table they have no other order."""
    times = [None] * len(history.items) if history.times is None else history.times.tolist()
    return dict(zip(history.items, zip(history.ratings, times, strict=True), strict=True))


@pytest.mark.parametrize(
    "content",
    [
        "item,rating\n3,5\n7,1.5\n",
        "user,item,rating\nme,b,4\nme,a,3.25\n\nme,b,2\n",
        "me,7,4\r\nme,3,1\r\n",
        "movieId\ttitle\trating\n10\tten, or so\t0.5\n9\tnine\t3\n",
        "item;rating;time\nx;2;5\ny;-3.1234;6",
        "item;rating;time\ny;2;6\nx;2;5\ny;3;-4",
    ],
    ids=repr,
)
def test_a_plain_file_is_read_and_read_alike(tmp_path, content):
    short, long = both(tmp_path / "me.csv", content)
    assert short == long and short


@pytest.mark.parametrize(
    "content",
    [
        'item,rating\n"3",5\n',
        "item,rating\n 3,5\n",
        "item,rating\n3,0\n4,1\n",
        "item,rating\n3,4,5\n",
        "item,rating\n3,1e1\n",
        "item,rating\n3,nan\n",
        "item,rating,time\n3,5,2001-02-03\n",
        "item,rating,time\n3,5,1.5\n",
        "user,item,rating\nme,3,1\nyou,3,2\n",
        "# mine\nitem,rating\n3,5\n",
        "item,rating\n",
        "",
    ],
    ids=repr,
)
def test_what_is_not_plain_is_left_to_the_reader_of_tables(tmp_path, content):
    assert both(tmp_path / "me.csv", content)[0] is None


field = st.one_of(st.integers(-50, 50).map(str), st.text("ab 01.,-\"\u00e9'", max_size=4))


@given(rows=st.lists(st.tuples(field, field, field), min_size=1, max_size=4), implicit=st.booleans())
def test_any_file_is_read_alike_or_left(tmp_path_factory, rows, implicit):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    lines = "".join(",".join(row) + "\n" for row in rows)
    short, long = both(path, "item,rating,time\n" + lines, implicit=implicit)
    assert short is None or short == long


def test_a_list_of_items_with_blanks_needs_no_header(tmp_path):
    """The catalog shows that a line is an item, and not a row with blanks between its columns."""
    path = tmp_path / "me.txt"
    path.write_text("Wine 1\nWine 2\n")
    catalog = Vocabulary.of(["Wine 1", "Wine 2"])
    assert read_history(path, implicit=True, catalog=catalog).items == ["Wine 1", "Wine 2"]


def test_an_unknown_user_is_named_with_the_file(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("user,item\nann,tea\nbob,jam\n")
    with refuses("user-not-in-history", user="eve", file="all.csv"):
        read_history(path, user="eve", implicit=True)
