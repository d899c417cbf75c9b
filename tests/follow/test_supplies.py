"""A party's files of new ratings: every row is judged by itself, and only what is public can fail."""

import csv
import io
import math

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assumption_examples import stated
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.federated import OwnNoise
from discreet.federated.wire import decode, encode
from discreet.follow import FollowAgreement, FollowParty, FollowSettings, RatingColumns
from discreet.follow.settings import ONCE, RELEASE_BITS
from discreet.follow.supplies import supply_from
from discreet.privacy.guarantee import Fact, Kind
from discreet.testing import refuses
from followed_years import Recorder

ITEMS = Vocabulary.of(["a", "b", "c"])
STARS = PublicFacts(n_items=3, low=1, high=5)
YEAR = FollowAgreement(
    run="spring",
    settings=FollowSettings(releases=1, epsilon=2.0, pace=ONCE),
    facts=STARS,
    noise=OwnNoise(),
)
HONEST = [(f"u{k}", "abc"[k % 3], 1 + k % 5, "fine") for k in range(30)]


def entered(path, *, rated=True, columns=None):
    """Return what can enter, by user and item."""
    found = supply_from(path, columns, rated=rated)(0)
    if found is None:
        return {}
    facts = STARS if rated else PublicFacts(n_items=3, low=1, high=1)
    kept = found.usable(ITEMS, facts)
    users, items = kept.users.id_at(kept.rows()), kept.catalog.id_at(kept.items)
    return {(user, item): value for user, item, value in zip(users, items, kept.values.tolist(), strict=True)}


def written(file, rows, *, names=("user", "item", "rating", "review")):
    """Write rows as a Parquet file whose columns are text."""
    columns = [pa.array([str(one) for one in column]) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), file)
    return file


def released(state, supply):
    """Return the exact numbers of a party's first release."""
    recording = Recorder()
    party = FollowParty.start(
        "north", state, ITEMS, YEAR, supply, random=PrivacyRandom.recorded(1, recording)
    )
    assert decode(party.answer(encode(YEAR.question(0, ITEMS)))).kind == "release"
    return np.concatenate(recording.given)


def length(here, there):
    return math.sqrt(sum(int(x) ** 2 for x in here - there)) / 2**RELEASE_BITS


FORGED = "\n".join(f"forged{k},b,5," for k in range(50))
#: One user's row each, whose text holds what means something in a text file, beside another user's row.
HOSTILE = {
    "rows in a review": (("eve", "a", 5, f"nice\n{FORGED}\n"), ("ann", "b", 1, "")),
    "rows in a name": ((f"eve\n{FORGED}", "a", 5, ""), ("ann", "b", 1, "")),
    "a separator in a name": (("ann,b", "b", 5, ""), ("ann", "b", 1, "")),
    "a quotation mark in a name": (('ann"', "b", 5, ""), ("ann", "b", 1, "")),
    "an open quotation mark": (('"eve', "a", 5, ""), ("ann", "b", 1, "")),
    "a return": (("ann\r\nann", "b", 5, ""), ("ann", "b", 1, "")),
    "a zero byte": (("ann\x00", "b", 5, ""), ("ann", "b", 1, "")),
    "what stands for bytes that are no text": (("ann\ufffd", "b", 5, ""), ("ann", "b", 1, "")),
    "a number that no float holds": (("eve", "a", "9" * 500, ""), ("ann", "b", 1, "")),
    "no number": (("eve", "a", "five", ""), ("ann", "b", 1, "")),
    "an undeclared item": (("eve", "z", 5, ""), ("ann", "b", 1, "")),
    "a long name": (("e" * 100_000, "a", 5, ""), ("ann", "b", 1, "")),
}


@pytest.mark.few(4)
@pytest.mark.parametrize(("row", "other"), HOSTILE.values(), ids=HOSTILE.keys())
def test_no_row_changes_what_other_rows_are(tmp_path, row, other):
    """One user's row moves the sums by at most 1, and all rows of others enter beside it."""
    without = released(
        tmp_path / "a", supply_from(written(tmp_path / "a.parquet", [*HONEST, other]), None, rated=True)
    )
    mixed = written(tmp_path / "b.parquet", [row, *HONEST, other])
    assert length(released(tmp_path / "b", supply_from(mixed, None, rated=True)), without) <= 1
    found = entered(mixed)
    assert found[("ann", "b")] == 1 and found.items() >= entered(tmp_path / "a.parquet").items()
    assert len(found) <= len(HONEST) + 2


def cut_at_lines(path):
    """Read a text file line by line, each cut at its commas, whatever its quotation marks join."""
    lines = path.read_text().split("\n")[1:]
    rows = [[field.strip('" \r') for field in line.split(",")] + [None] * 3 for line in lines]
    users, items, values = zip(*(row[:3] for row in rows), strict=True)
    return RatingColumns(users=list(users), items=list(items), values=list(values))


def as_text(file, rows):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([("user", "item", "rating", "review"), *rows])
    file.write_text(text.getvalue())
    return file


@pytest.mark.parametrize(
    ("case", "least"), [("rows in a review", 5), ("rows in a name", 5), ("a quotation mark in a name", 1.4)]
)
def test_a_reader_of_text_lets_one_user_move_the_sums_further(tmp_path, case, least):
    """The twin, and why text files are refused: their rows are not what was written."""
    row, other = HOSTILE[case]
    few = as_text(tmp_path / "few.csv", [*HONEST, other])
    more = as_text(tmp_path / "more.csv", [row, *HONEST, other])
    here = released(tmp_path / "a", lambda release: cut_at_lines(few))
    there = released(tmp_path / "b", lambda release: cut_at_lines(more))
    assert length(here, there) > least


@pytest.mark.parametrize("name", ["new.csv", "new.tsv", "new.txt", "new.jsonl", "new.parquet.gz", "notes"])
def test_what_is_not_parquet_is_refused_by_its_name(tmp_path, name):
    as_text(tmp_path / name, HONEST)
    for path in (tmp_path / name, tmp_path):
        with refuses("not-parquet") as refused:
            entered(path)
        assert name in str(refused.value)


def test_the_command_that_is_named_makes_a_file_that_is_read(tmp_path):
    as_text(tmp_path / "week.csv", [*HONEST, ("007", "a", "4,5", 'say "hi"\nto all')])
    pl.read_csv(tmp_path / "week.csv", infer_schema=False).write_parquet(tmp_path / "week.parquet")
    found = entered(tmp_path / "week.parquet")
    assert len(found) == 31 and found[("007", "a")] == 4.5


def test_files_of_a_folder_are_read_in_order_and_what_came_first_counts(tmp_path):
    pl.DataFrame({"user": ["ann"], "item": ["a"], "rating": ["4,5"]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"who": ["ann", "7"], "book": ["a", "b"], "stars": [1, 9]}).write_parquet(
        tmp_path / "2[*].PARQUET"
    )
    pl.DataFrame({"userId": [7, None], "item": ["c", "c"], "rating": [3, 3]}).write_parquet(
        tmp_path / "3.parquet"
    )
    (tmp_path / ".4.parquet").write_text("being written")
    with refuses("roles-missing", roles=("user",), columns=("who", "book", "stars")):
        entered(tmp_path)
    pl.DataFrame({"user": ["ann", "7"], "book": ["a", "b"], "stars": [1, 9]}).write_parquet(
        tmp_path / "2[*].PARQUET"
    )
    assert entered(tmp_path) == {("ann", "a"): 4.5, ("7", "b"): 5, ("7", "c"): 3}
    assert set(entered(tmp_path, rated=False)) == {("ann", "a"), ("7", "b"), ("7", "c")}


def test_nothing_new_is_an_empty_folder_or_a_file_without_rows(tmp_path):
    assert entered(tmp_path) == {}
    types = {"user": pl.String, "item": pl.String, "rating": pl.Float64}
    pl.DataFrame(schema=types).write_parquet(tmp_path / "new.parquet")
    assert entered(tmp_path) == {}


def test_bytes_that_are_no_text_are_left_out_by_themselves(tmp_path):
    """In columns of bytes; in columns of text the format forbids them, and a file is refused as a whole."""
    names, file = [b"ann", b"Andr\xe9", b"Andr\xe8", None], tmp_path / "new.parquet"
    table = {
        "user": pa.array(names, pa.binary()),
        "item": ["a", "a", "a", "b"],
        "rating": [b"5"] * 3 + [b"\xff"],
    }
    pq.write_table(pa.table(table), file)
    assert entered(file) == {("ann", "a"): 5}
    table["user"] = pa.Array.from_buffers(pa.string(), 4, table["user"].buffers(), null_count=1)
    pq.write_table(pa.table(table), file)
    with refuses("not-parquet"):
        entered(file)
    assert (Kind.PARTY, Fact.UNICODE) in stated(YEAR.promise())


def test_only_what_is_public_is_refused(tmp_path):
    with refuses("file-unreadable"):
        entered(tmp_path / "gone")
    (tmp_path / "notes.parquet").write_text("x")
    with refuses("not-parquet"):
        entered(tmp_path)
    with refuses("broken-rule", name="columns"):
        supply_from(tmp_path, {"user": None}, rated=True)
    # A date that Python cannot hold would end the program, so that a row would decide; a type is public.
    for moment in (0, 2**62):
        dates = pl.Series([moment]).cast(pl.Datetime("ms"))
        table = pl.DataFrame({"user": ["ann"], "item": ["a"], "rating": dates})
        table.write_parquet(tmp_path / "notes.parquet")
        with refuses("wrong-column-type", column="ratings"):
            entered(tmp_path)
