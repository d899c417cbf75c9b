"""One person more or less: nobody else's ratings are read or kept otherwise, whatever the stranger is called.

Sensitivities compare data sets with and without a person. They hold for what is learned from ratings only if
the ratings of all others are the same in both.
"""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.data.interactions import Interactions
from discreet.data.reading.readers import from_frame, from_scipy, read
from discreet.testing import refuses

FACTS = {"low": 1.0, "high": 5.0}
# More lines than the reader looks at before it settles how a file is laid out.
MANY = 9_000


def rows_of(data: Interactions, cap: int | None = None) -> Counter:
    """Return people without their names: how often each row of (item, rating) occurs."""
    kept = data.bounded(cap)
    items = [str(item) for item in kept.catalog.ids.tolist()]
    rows = Counter()
    for row in range(kept.n_users):
        span = slice(kept.indptr[row], kept.indptr[row + 1])
        pairs = zip(kept.items[span].tolist(), kept.values[span].tolist(), strict=True)
        rows[tuple(sorted((items[item], value) for item, value in pairs))] += 1
    return rows


def lines(ids, ratings=("4",)):
    """Return two ratings a person, of items that differ from person to person."""
    return [
        f"{name},{item},{ratings[place % len(ratings)]}\n"
        for place, name in enumerate(ids)
        for item in (1 + place % 40, 41 + place % 43)
    ]


def both(tmp_path, own, strangers, cap):
    """Return the rows that a stranger adds to a file, and those that disappear with them."""
    found = []
    for name, content in (("without", own), ("with", own + strangers)):
        path = tmp_path / f"{name}.csv"
        path.write_text("user,item,rating\n" + "".join(content))
        found.append(rows_of(read(path, **FACTS), cap))
    return found[1] - found[0], found[0] - found[1]


PADDED = [f"{number}" for number in range(100, MANY)] + [f"0{number}" for number in range(100, 160)]


@pytest.mark.few(1)
@pytest.mark.parametrize("cap", [None, 1])
@pytest.mark.parametrize("stranger", ["zoe", "+7", "007", " 8 8", "1.5", "-0"])
@pytest.mark.parametrize("ids", [PADDED, PADDED[: MANY - 100]], ids=["some padded", "all numbers"])
def test_a_strangers_id_does_not_change_who_others_are(tmp_path, ids, stranger, cap):
    added, gone = both(tmp_path, lines(ids), [f"{stranger},1,4\n"], cap)
    assert added == Counter({(("1", 4.0),): 1}) and not gone


def test_padded_ids_are_other_people_with_and_without_a_stranger(tmp_path):
    path = tmp_path / "padded.csv"
    path.write_text("user,item,rating\n" + "".join(lines(PADDED)))
    assert read(path, **FACTS).n_users == len(PADDED)


@pytest.mark.few(1)
@pytest.mark.parametrize("stranger", ["zoe,1,4\n", "zoe,1, 4\n"])
def test_a_stranger_does_not_change_how_ratings_are_rounded(tmp_path, stranger):
    """Read as a double first, the second of these would become another single."""
    ratings = ("1.5", "1.00000005960464477539062500000000000000000000000000000001")
    own = lines([str(number) for number in range(MANY)], ratings)
    added, gone = both(tmp_path, own, [stranger], None)
    assert added == Counter({(("1", 4.0),): 1}) and not gone


@pytest.mark.parametrize("make", [list, lambda ids: pd.Series(ids, dtype=object)], ids=["list", "pandas"])
def test_whole_numbers_with_a_point_are_the_same_people_beside_text(make):
    """The cap draws by a person's id, which must be written the same way whoever else is there."""
    own = [float(number) for number in range(300) for _ in range(3)]
    items = [f"i{place % 37}" for place in range(len(own))]

    def rows(users, items):
        frame = pd.DataFrame({"user": make(users), "item": items, "rating": 4.0})
        return rows_of(from_frame(frame, **FACTS), 1)

    without, beside = rows(own, items), rows([*own, "zoe"], [*items, "new"])
    assert beside - without == Counter({(("new", 4.0),): 1}) and not without - beside


@pytest.mark.parametrize("strangers", [[7.0], ["zoe"], [7.0, "zoe"]], ids=str)
def test_numbers_too_large_for_a_float_stay_apart_beside_one(strangers):
    own = [2**53, 2**53 + 1]
    users, items = [*strangers, *own], [f"i{place}" for place in range(len(strangers) + 2)]
    data = Interactions.from_arrays(users, items, [4.0] * len(users), **FACTS)
    assert data.n_users == len(users)


def test_a_strangers_date_does_not_change_how_others_are_read(tmp_path):
    """What 01/02/2003 means is declared or shown by a date; one more person's lines leave it so."""
    own = ["1,1,3,01/02/2003\n", "1,2,4,02/01/2003\n", "2,1,3,04/25/2004\n", "3,1,3,04/26/2004\n"]
    kept = []
    for name, content in (
        ("with", ["zoe,1,3,2003-12-31\n", "zoe,2,3,03/04/2003\n", *own]),
        ("without", own),
    ):
        path = tmp_path / f"{name}.csv"
        path.write_text("user,item,rating,time\n" + "".join(content))
        kept.append(rows_of(read(path, **FACTS), 1))
    assert not kept[1] - kept[0]


def test_ratings_of_mixed_types_are_rounded_as_if_they_were_numbers():
    ratings = [1.0000000596046448, 3.5]
    users = ["a", "b"]
    plain = from_frame(pd.DataFrame({"user": users, "item": [1, 2], "rating": ratings}), **FACTS)
    mixed = pd.DataFrame({"user": [*users, "zoe"], "item": [1, 2, 1], "rating": [*ratings, "4"]})
    assert not rows_of(plain) - rows_of(from_frame(mixed, **FACTS))


@pytest.mark.parametrize("left_out", [0, 120, 299])
def test_row_numbers_are_no_names(left_out):
    """Without one row all later ones have other numbers; what is kept of them must not notice."""
    draw = np.random.default_rng(3)
    matrix = sp.csr_matrix((draw.random((300, 20)) < 0.4) * draw.integers(1, 6, (300, 20)))
    whole = rows_of(from_scipy(matrix, **FACTS), 2)
    rest = rows_of(from_scipy(matrix[np.arange(300) != left_out], **FACTS), 2)
    assert sum((whole - rest).values()) <= 1 and not rest - whole


def test_lines_of_a_dense_table_are_no_names(tmp_path):
    draw = np.random.default_rng(4)
    ratings = np.where(draw.random((60, 100)) < 0.5, np.round(draw.uniform(-10, 10, (60, 100)), 2), 99.0)
    table = np.column_stack([(ratings != 99).sum(axis=1), ratings])
    found = []
    for name, part in (("all", table), ("rest", np.delete(table, 7, axis=0))):
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, part, fmt="%g", delimiter=",")
        found.append(rows_of(read(path), 5))
    assert sum((found[0] - found[1]).values()) == 1 and not found[1] - found[0]


@pytest.mark.parametrize("key", ["timestamp", "rating", "user_id"])
def test_a_strangers_key_leaves_nobody_out(tmp_path, key):
    """Keys of JSON lines are people's, so lines are left out only by keys that are declared."""
    own = [f'{{"user": "u{k}", "item": "i", "stars": 3}}\n' for k in range(20)]
    odd = f'{{"user": "x", "item": "i", "stars": 3, "{key}": 5}}\n'
    columns = {"user": "user", "item": "item", "rating": "stars", "time": None}
    path, kept = tmp_path / "a.jsonl", []
    for lines in (own, [odd, *own]):
        path.write_text("".join(lines))
        with refuses("keys-needed"):
            read(path, skip_bad_lines=True, columns={"rating": "stars"})
        kept.append(rows_of(read(path, columns=columns, skip_bad_lines=True, **FACTS)))
    assert not kept[0] - kept[1] and kept[0].total() == 20


def test_a_strangers_separators_do_not_change_the_layout(tmp_path):
    own = [f"{k};item{k % 3};3,5\n" for k in range(50)]
    odd = [f"x,{'a;b' * 9},{k}\n" for k in range(40)]
    path = tmp_path / "a.csv"
    path.write_text("".join(own))
    plain = rows_of(read(path, **FACTS))
    path.write_text("".join(own + odd))
    assert rows_of(read(path, skip_bad_lines=True, **FACTS)) == plain
