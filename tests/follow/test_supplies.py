"""A party's files of new ratings: every row is judged by itself, and only what is public can fail."""

import polars as pl
import pytest

from discreet.core.checks import DataError, FileError, ParameterError
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.follow.supplies import supply_from

ITEMS = Vocabulary.of(["a", "b", "c"])
STARS = PublicFacts(n_items=3, low=1, high=5)
PLAIN = "user,item,rating\nann,a,5\nbob,b,2\n"


def entered(path, *, rated=True, columns=None):
    """Return what can enter, by user and item."""
    found = supply_from(path, columns, rated=rated)(0)
    if found is None:
        return {}
    facts = STARS if rated else PublicFacts(n_items=3, low=1, high=1)
    kept = found.usable(ITEMS, facts)
    users, items = kept.users.id_at(kept.rows()), kept.catalog.id_at(kept.items)
    return {(user, item): value for user, item, value in zip(users, items, kept.values.tolist(), strict=True)}


#: One hostile row each; none may change what the others contribute.
HOSTILE = {
    "an open quotation mark": b'eve,"a,5\n',
    "too few fields": b"eve\n",
    "too many fields": b"eve,a,5,7,,,,,\n",
    "no line": b"\n",
    "nothing but commas": b",,,,,,\n",
    "not UTF-8": b"\xff\xfe,a,\xff\n",
    "a zero byte": b"eve\x00,a,5\n",
    "a return": b"eve\r,a\r,5\r\n",
    "a number that no float holds": b"eve,a," + b"9" * 500 + b"\n",
    "an undeclared item": b"eve,z,5\n",
    "a long field": b"e" * 100_000 + b",a,5\n",
    "a header again": b"user,item,rating\n",
}


@pytest.mark.parametrize("row", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("where", ["first", "between", "last"])
def test_no_row_changes_what_other_rows_are(tmp_path, row, where):
    header, *lines = PLAIN.encode().splitlines(keepends=True)
    lines.insert({"first": 0, "between": 1, "last": 2}[where], row)
    file = tmp_path / "new.csv"
    file.write_bytes(header + b"".join(lines))
    found = entered(file)
    assert found[("ann", "a")] == 5 and found[("bob", "b")] == 2
    assert len(found) <= 3 and not any(user in ("", None) for user, _ in found)


def test_a_reader_that_joins_lines_is_noticed(tmp_path):
    """The twin: where quotation marks count, one row takes all others away."""
    file = tmp_path / "new.csv"
    file.write_bytes(b'user,item,rating\neve,"a,5\nann,a,5\nbob,b,2\n')
    with pytest.raises(pl.exceptions.PolarsError):
        pl.read_csv(file, infer_schema=False, truncate_ragged_lines=True)
    assert len(entered(file)) == 3


def test_files_of_a_folder_are_read_in_order_and_what_came_first_counts(tmp_path):
    (tmp_path / "1.csv").write_text('﻿user;item;rating\n"ann";a;4,5\n')
    (tmp_path / "2.tsv").write_text("who\tbook\tstars\nann\ta\t1\n7\tb\t9\n")
    pl.DataFrame({"userId": [7, None], "item": ["c", "c"], "rating": [3, 3]}).write_parquet(
        tmp_path / "3.parquet"
    )
    (tmp_path / ".4.csv").write_text("being written")
    with pytest.raises(DataError, match="user"):
        entered(tmp_path)
    (tmp_path / "2.tsv").write_text("user\tbook\tstars\nann\ta\t1\n7\tb\t9\n")
    assert entered(tmp_path) == {("ann", "a"): 4.5, ("7", "b"): 5, ("7", "c"): 3}
    assert set(entered(tmp_path, rated=False)) == {("ann", "a"), ("7", "b"), ("7", "c")}


def test_nothing_new_is_an_empty_folder_or_a_bare_header(tmp_path):
    assert entered(tmp_path) == {}
    (tmp_path / "new.csv").write_text("user,item,rating\n")
    assert entered(tmp_path) == {}


def test_only_what_is_public_is_refused(tmp_path):
    with pytest.raises(FileError, match="no file or folder"):
        entered(tmp_path / "gone")
    (tmp_path / "notes.pdf").write_text("x")
    with pytest.raises(FileError, match="no table"):
        entered(tmp_path)
    (tmp_path / "notes.pdf").rename(tmp_path / "notes.parquet")
    with pytest.raises(FileError, match="cannot be read"):
        entered(tmp_path)
    with pytest.raises(ParameterError, match="user"):
        supply_from(tmp_path, {"user": None}, rated=True)
