"""Parties declare items between two releases: all see the same catalog, and what was answered stays."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.data.vocabulary import Vocabulary
from discreet.federated import InProcess, Keeper, OwnNoise, SharedNoise
from discreet.federated.wire import decode, encode
from discreet.follow import FollowAgreement, FollowCoordinator, FollowParty, FollowSettings, RatingColumns
from followed_years import ITEMS, STARS

NAMES = ("north", "east", "south")
OWN = FollowAgreement(
    run="spring", settings=FollowSettings(releases=6, epsilon=2.0), facts=STARS, noise=OwnNoise()
)
SHARED = replace(OWN, noise=SharedNoise(parties=3, missing=1))
NEW = Vocabulary.of(["new"])
WIDER = Vocabulary.of([*ITEMS.ids.tolist(), "new"])


def rows(release):
    return RatingColumns(users=["ann", "bob"], items=["new", "i1"], values=[5, 4])


def parties(folder, agreement, supply=rows, items=ITEMS, names=NAMES):
    masked = agreement.noise.masked
    keeper = Keeper(roster=list(names), least=agreement.noise.least_parties) if masked else None
    found = {
        name: FollowParty.start(name, folder / name, items, agreement, supply, keeper=keeper)
        for name in names
    }
    return found, keeper


def reason(party, question):
    return decode(party.answer(encode(question))).fields.get("reason")


@pytest.mark.parametrize("agreement", [OWN, SHARED], ids=["own noise", "shared noise"])
def test_what_was_answered_is_answered_by_the_same_bytes_after_items_were_declared(tmp_path, agreement):
    found, _ = parties(tmp_path, agreement)
    north, question = found["north"], encode(agreement.question(0, ITEMS))
    before = north.answer(question)
    assert decode(before).kind == "release" and decode(before).arrays["counts"].size == len(ITEMS)
    north.declare(NEW)
    assert north.answer(question) == before
    # The next release is for the wider catalog, and no question can go back behind that.
    assert reason(north, agreement.question(1, ITEMS)) == "wrong names"
    assert decode(north.answer(encode(agreement.question(1, WIDER)))).arrays["counts"].size == len(WIDER)
    assert reason(north, agreement.question(1, ITEMS)) == "wrong names"
    assert reason(north, agreement.question(0, Vocabulary.of(["i1"]))) == "wrong names"
    assert north.answer(question) == before


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("at_start", "more"), [([1, 2, 3], [4]), ([1, 2, 3], ["x"]), (["a", "b"], [7]), (["1", "2"], ["007"])]
)
def test_numbers_and_text_may_be_declared_in_any_order(tmp_path, at_start, more):
    catalog = Vocabulary.of(at_start)
    agreed = replace(OWN, facts=replace(STARS, n_items=len(catalog)))
    found, _ = parties(tmp_path, agreed, items=catalog, names=("north", "east"))
    coordinator = FollowCoordinator(
        agreed,
        InProcess({name: party.answer for name, party in found.items()}),
        parties=list(found),
        catalog=catalog,
    )
    coordinator.release()
    question = encode(agreed.question(0, catalog))
    before = found["north"].answer(question)
    for member in (coordinator, *found.values()):
        member.declare(Vocabulary.of(more))
        # Once more is the same.
        member.declare(Vocabulary.of([*more, at_start[0]]))
    together = coordinator.release()
    assert together.counted == ("north", "east") and not together.left_out
    assert together.model.catalog.ids.tolist()[-1] in (more[0], str(more[0]))
    assert found["north"].answer(question) == before


def test_items_that_are_declared_while_a_release_is_made_decline_it(tmp_path):
    """A question is read before new ratings are; a release for other items would answer another one."""

    def declaring(release):
        found["north"].declare(NEW)
        return rows(release)

    found, _ = parties(tmp_path, OWN, declaring, names=("north",))
    north = found["north"]
    assert reason(north, OWN.question(0, ITEMS)) == "wrong names"
    assert len(north._year.read().releases) == 0
    answer = decode(north.answer(encode(OWN.question(0, WIDER))))
    assert answer.arrays["counts"].size == len(WIDER) and len(north._year.read().releases) == 1


def test_a_release_that_another_process_made_for_other_items_is_no_answer(tmp_path):
    """While new ratings are read, another process may declare items and make the release for them."""

    def overtaken(release):
        other = FollowParty("north", tmp_path / "north", OWN, rows)
        other.declare(NEW)
        assert decode(other.answer(encode(OWN.question(release, WIDER)))).kind == "release"
        return rows(release)

    found, _ = parties(tmp_path, OWN, overtaken, names=("north",))
    assert reason(found["north"], OWN.question(0, ITEMS)) == "wrong names"
    assert len(found["north"]._year.read().releases) == 1


def test_a_new_item_counts_from_the_release_after_it_was_declared(tmp_path):
    found, _ = parties(tmp_path, OWN, names=("north",))
    north = found["north"]
    north.answer(encode(OWN.question(0, ITEMS)))
    north.declare(NEW)
    later = decode(north.answer(encode(OWN.question(0, WIDER)))).arrays
    # No noise was drawn for it then, and nothing entered.
    assert later["counts"][-1] == later["values"][-1] == 0 and np.any(later["counts"][:-1])
