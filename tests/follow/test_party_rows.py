"""What one user's rows hold never changes what others contribute to a party, nor that there is a release."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from assumption_examples import stated
from discreet.core.checks import DataError
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions, refuse_unsound
from discreet.data.vocabulary import Vocabulary
from discreet.federated import OwnNoise
from discreet.federated.wire import decode, encode
from discreet.follow import FollowAgreement, FollowParty, FollowSettings, RatingColumns
from discreet.follow import entries as entry_book
from discreet.follow.batches import batches, check_source
from discreet.follow.settings import RELEASE_BITS, Pace
from discreet.follow.state import opened
from discreet.follow.year import make_release, read_year
from discreet.privacy.guarantee import Fact, Kind
from discreet.testing import refuses
from followed_years import CHOICES, ITEMS, STARS, Recorder, batch

GREEDY = FollowSettings(releases=2, epsilon=2.0, pace=Pace(start=1.0, reserve=0.0))
OTHERS = [(f"u{k}", f"i{k % 3}", 5) for k in range(40)]
# What one user's rows may hold, each of which a reader of whole tables refuses.
BAD = {
    "NaN": [("m", "i4", math.nan)],
    "infinite": [("m", "i4", math.inf)],
    "no value": [("m", "i4", None)],
    "text for a value": [("m", "i4", "five")],
    "beyond the scale": [("m", "i4", 6)],
    "far beyond the scale": [("m", "i4", 10**400)],
    "off the steps": [("m", "i4", 4.5)],
    "a pair twice": [("m", "i4", 5), ("m", "i4", 1)],
    "an unknown item": [("m", "i99", 5)],
    "no item": [("m", None, 5)],
    "an item of another type": [("m", 1.5, 5)],
    "no user": [(None, "i4", 5)],
    "a user that is no text": [("\ud800", "i4", 5)],
    "a user too long to write": [(10**5000, "i4", 5)],
}
# What such a reader takes as text, if other ids are text.
ODD = {"a fraction": (1.5, "i4", 5), "a number beyond 64 bits": (2**70, "i4", 5), "a truth": (True, "i4", 5)}


def released(path, supply, facts=STARS, cls=FollowParty):
    """Return the exact numbers of a party's first release, or None if it declined."""
    agreement = FollowAgreement(run="spring", settings=GREEDY, facts=facts, noise=OwnNoise())
    recording = Recorder()
    random = PrivacyRandom.recorded(1, recording)
    party = cls.start("north", path, ITEMS, agreement, lambda release: supply(), random=random)
    answer = decode(party.answer(encode(agreement.question(0, ITEMS))))
    return np.concatenate(recording.given) if answer.kind == "release" else None


def length(here, there):
    return math.sqrt(sum(int(x) ** 2 for x in here - there)) / 2**RELEASE_BITS


def columns(rows):
    users, items, values = (list(column) for column in zip(*rows, strict=True))
    return RatingColumns(users=users, items=items, values=values)


def read(rows):
    """Read a whole table, as a reader does that refuses what is wrong in it."""
    users, items, values = (list(column) for column in zip(*rows, strict=True))
    return Interactions.from_arrays(users, items, values, facts=STARS, catalog=ITEMS)


class Falling(FollowParty):
    """The twin: make a release without anything new if entering fails, as was done once."""

    def _draw(self, question):
        try:
            check_source(self._supply(question.step))
            return super()._draw(question)
        except Exception:
            with opened(self.path, writing=True) as state:
                make_release(state, read_year(state), [], self._random)
            return self._kept(question)


@pytest.mark.few(4)
@pytest.mark.parametrize("rows", BAD.values(), ids=BAD)
def test_a_bad_row_of_columns_moves_a_release_by_one_user_at_most(tmp_path, rows):
    with_rows = released(tmp_path / "a", lambda: columns([*OTHERS, *rows]))
    without = released(tmp_path / "b", lambda: columns(OTHERS))
    assert length(with_rows, without) <= 1
    # Others are there: their sums are far longer than one user's.
    assert length(without, 0 * without) > 3
    # The twin: a reader that refuses the table, and a release without it.
    with pytest.raises((DataError, OverflowError, ValueError)):
        read([*OTHERS, *rows])
    fallen = released(tmp_path / "c", lambda: read([*OTHERS, *rows]), cls=Falling)
    assert length(fallen, without) > 3


@pytest.mark.parametrize("row", ODD.values(), ids=ODD)
def test_an_odd_user_moves_a_release_by_one_user_at_most(tmp_path, row):
    without = released(tmp_path / "b", lambda: columns(OTHERS))
    assert length(released(tmp_path / "a", lambda: columns([*OTHERS, row])), without) <= 1
    # The twin: more than one user moves it further.
    two = [*OTHERS, *(("m", "i4", 5), ("n", "i4", 5))]
    assert length(released(tmp_path / "c", lambda: columns(two)), without) > 1


def built(users, indptr, items, values):
    return Interactions(
        indptr=np.array(indptr),
        items=np.array(items),
        values=np.array(values),
        users=Vocabulary.of(users),
        catalog=ITEMS,
        facts=STARS,
    )


UNSOUND = {
    "NaN": ([4], [math.nan]),
    "infinite": ([4], [-math.inf]),
    "an item below the catalog": ([-1], [5]),
    "an item beyond the catalog": ([12], [5]),
    "a pair twice": ([4, 4], [5, 1]),
    "items out of order": ([5, 4], [5, 1]),
}


@pytest.mark.parametrize(("items", "values"), UNSOUND.values(), ids=UNSOUND)
def test_an_unsound_row_of_interactions_moves_a_release_by_one_user_at_most(tmp_path, items, values):
    sound = [k % 3 for k in range(40)]
    users = [f"u{k}" for k in range(40)]
    start = list(range(41))
    mine = built([*users, "m"], [*start, 40 + len(items)], [*sound, *items], [5.0] * 40 + values)
    theirs = built(users, start, sound, [5.0] * 40)
    with pytest.raises(DataError):
        refuse_unsound(mine)
    with_rows, without = (
        released(tmp_path / name, lambda one=one: one) for name, one in (("a", mine), ("b", theirs))
    )
    assert length(with_rows, without) <= 1 and length(without, 0 * without) > 3
    assert length(released(tmp_path / "c", lambda: mine, cls=Falling), without) > 3


def test_good_rows_enter_as_those_of_a_table(tmp_path):
    rows = [*OTHERS, ("u1", "i7", 2), ("u2", "i8", 1)]
    expected = released(tmp_path / "table", lambda: batch(rows)).tolist()
    users, items, values = (list(column) for column in zip(*rows, strict=True))
    # The type of a column, which one row decides, changes nothing.
    kinds = {
        "lists": (users, items, values),
        "text": (pl.Series(users), pl.Series(items), pl.Series([str(one) for one in values])),
        "arrays": (np.array(users), np.array(items, dtype=object), np.array(values)),
        "categories": (pl.Series(users, dtype=pl.Categorical), pl.Series(items), pl.Series(values)),
    }
    for name, (one, two, three) in kinds.items():
        given = RatingColumns(users=one, items=two, values=three)
        assert released(tmp_path / name, lambda given=given: given).tolist() == expected
    numbers = Vocabulary.of(list(range(5)))
    for ids in ([7, 8], [7.0, 8.0, 8.5][:2], np.array([7, 8]), pl.Series([7.0, 8.0]), ["7", "8"]):
        kept = RatingColumns(users=ids, items=[1, 9], values=[3, 3]).usable(
            numbers, replace(STARS, n_items=5)
        )
        assert kept.users.ids.tolist() == ["7"] and kept.catalog.ids[kept.items].tolist() == ["1"]
    chosen = [(one, two, 1) for one, two, _ in rows]
    given = RatingColumns(users=users, items=items)
    assert (
        released(tmp_path / "chosen", lambda: given, CHOICES).tolist()
        == released(tmp_path / "chosen too", lambda: batch(chosen, CHOICES), CHOICES).tolist()
    )


def test_only_what_is_public_of_columns_is_refused():
    with refuses("values-needed"):
        RatingColumns(users=["a"], items=["i1"]).usable(ITEMS, STARS)
    with refuses("values-needed"):
        RatingColumns(users=["a"], items=["i1"], values=[1, 2]).usable(ITEMS, STARS)
    with refuses("wrong-column-type", column="user ids", found="Boolean"):
        RatingColumns(users=pl.Series([True]), items=["i1"], values=[1]).usable(ITEMS, STARS)
    assert not RatingColumns(users=[], items=[], values=[]).usable(ITEMS, STARS).n_ratings


@pytest.mark.parametrize("ends", [(0, 1e39), (-1e39, 0)])
def test_a_scale_beyond_what_ratings_can_hold_is_not_agreed_on(tmp_path, ends):
    """One user's rating would decide whether all can be held, and so whether there is an answer."""
    low, high = ends
    wide = replace(STARS, low=low, high=high, step=None)
    far = RatingColumns(users=["m"], items=["i1"], values=[low or high])
    with pytest.raises(DataError), np.errstate(over="ignore"):
        far.usable(ITEMS, wide)
    with refuses("broken-rule"):
        FollowAgreement(run="spring", settings=GREEDY, facts=wide, noise=OwnNoise())
    # The twin: the widest scale that is held is agreed on, and its ends are released.
    widest = replace(wide, low=np.finfo(np.float32).min, high=np.finfo(np.float32).max)
    rows = [("m", "i1", 1e300), ("n", "i1", -1e300)]
    assert released(tmp_path / "a", lambda: columns(rows), widest) is not None


def test_a_source_that_cannot_be_read_is_declined_until_it_can_be(tmp_path):
    """A failure draws and enters nothing; a release without what is new is never made."""
    agreement = FollowAgreement(run="spring", settings=GREEDY, facts=STARS, noise=OwnNoise())
    away = [True]

    def supply(release):
        if away:
            raise OSError("the disk is away")
        return batch(OTHERS)

    party = FollowParty.start("north", tmp_path / "a", ITEMS, agreement, supply)
    question = encode(agreement.question(0, ITEMS))
    assert decode(party.answer(question)).fields == {"reason": "declined"}
    with opened(party.path, writing=False) as state:
        found = read_year(state)
        assert not found.releases and not state.user_ids()
    assert (Kind.PARTY, Fact.READABLE) in stated(found.promise)
    away.clear()
    assert decode(party.answer(question)).kind == "release"
    with opened(party.path, writing=False) as state:
        assert len(state.user_ids()) == 40


def test_too_many_users_are_declined_not_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(entry_book, "MOST_USERS", 39)
    assert released(tmp_path / "a", lambda: batch(OTHERS)) is None
    assert released(tmp_path / "b", lambda: batch(OTHERS[:39])) is not None


def test_a_batch_leaves_out_single_rows(tmp_path):
    data = built(["a", "b"], [0, 2, 3], [1, -3, 2], [math.nan, 5, 4])
    (one,) = batches(data, ITEMS, STARS)
    assert (one.users.tolist(), one.items.tolist(), one.values.tolist()) == ([1], [2], [0.5])
    assert one.undeclared == 0
