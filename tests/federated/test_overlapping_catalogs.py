"""Parties whose lists of items overlap in part learn one model of all items; hostile lists change nothing."""

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.federated import catalogs
from discreet.federated.coordinator import Coordinator
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.protocol import names_digest
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.transport import InProcess
from discreet.federated.wire import Message, Refusal, decode, encode
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.testing import refuses
from federation import RUN, keeper_of, toy_parts

DATA, PARTS = toy_parts(parties=3)
#: Each party lists items that another one does not; the middle ones are listed by all.
LISTS = {"p0": np.arange(0, 30), "p1": np.arange(10, DATA.n_items), "p2": np.arange(5, 35)}


def own_lists():
    """Return each party's people over the party's own list, in an order of its own."""
    rng = np.random.default_rng(0)
    return {name: part.select_items(rng.permutation(LISTS[name])) for name, part in PARTS.items()}


def union_of(parts):
    return catalogs.united([part.catalog for part in parts.values()])


def run_parties(protocol, parts, union, replaced=None, given=True):
    keeper, noise = keeper_of(protocol, parts), PrivacyRandom.simulate(0)
    members = {
        name: Party(
            name,
            part,
            protocol,
            run=RUN,
            random=noise.spawn(name),
            keeper=keeper,
            catalog=union if given else None,
        ).answer
        for name, part in parts.items()
    } | (replaced or {})
    coordinator = Coordinator(
        protocol,
        InProcess(members),
        parties=list(members),
        shared=union,
        run=RUN,
        keeper=keeper,
        simulated=True,
    )
    return coordinator.train(catalogs.over(parts["p0"], union).facts)


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [None, SharedNoise(parties=3, missing=1)])
def test_sums_over_parts_of_the_catalog_are_those_over_all_of_it(noise):
    """The same noise, the same people: placing them beforehand or by the party gives the same bits."""
    parts = own_lists()
    union = union_of(parts)
    facts, budget = catalogs.over(parts["p0"], union).facts, {"epsilon": 8.0, "delta": 1e-5}
    protocol = (
        protocol_for(ImplicitObjective(**budget), facts, noise) if noise else SummedStatistics(**budget)
    )
    placed = {name: catalogs.over(part, union) for name, part in parts.items()}
    own = run_parties(protocol, parts, union).model
    same = run_parties(protocol, placed, union, given=False).model
    assert own.catalog.ids.tolist() == DATA.catalog.ids.tolist()
    for name, array in own.scorer.arrays().items():
        np.testing.assert_array_equal(array, same.scorer.arrays()[name])
    assert own.guarantee == same.guarantee


def test_people_keep_what_they_chose():
    part = own_lists()["p1"]
    placed = catalogs.over(part, union_of(own_lists()))
    for row in (0, 7, part.n_users - 1):
        spans = [slice(*data.indptr[row : row + 2]) for data in (part, placed)]
        named = [
            sorted(
                zip(data.catalog.id_at(data.items[span]).tolist(), data.values[span].tolist(), strict=True)
            )
            for data, span in zip((part, placed), spans, strict=True)
        ]
        assert named[0] == named[1]
    assert placed.facts.n_items == DATA.n_items


def test_an_item_is_averaged_over_those_who_list_it():
    """What only one party lists is that party's own answer; without the list it would be shrunk threefold."""
    protocol = AveragedItems(epsilon=20.0, delta=1e-5, rounds=1, factors=2)
    answers = {}

    def overheard(name, party):
        def answer(raw):
            reply = party.answer(raw)
            answers[name] = decode(reply)
            return reply

        return answer

    parts = own_lists()
    union = union_of(parts)
    noise = PrivacyRandom.simulate(1)
    spies = {
        name: overheard(name, Party(name, part, protocol, run=RUN, random=noise.spawn(name), catalog=union))
        for name, part in parts.items()
    }
    results = run_parties(protocol, parts, union, replaced=spies).rounds[-1].result.arrays
    alone = union.index_of(DATA.catalog.id_at(LISTS["p0"][:5]))
    np.testing.assert_array_equal(results["factors"][alone], answers["p0"].arrays["factors"][alone])
    assert np.abs(results["factors"][alone]).max() > 0
    assert (
        results["listed"].tolist()
        == sum(np.isin(union.ids, part.catalog.ids).astype(float) for part in parts.values()).tolist()
    )
    for name, message in answers.items():
        absent = ~np.isin(union.ids, parts[name].catalog.ids)
        assert not message.arrays["factors"][absent].any() and not message.arrays["bias"][absent].any()


def test_an_item_whose_only_party_is_silent_comes_last():
    protocol = AveragedItems(epsilon=20.0, rounds=1, factors=2)
    totals = {
        "factors": np.ones((3, 2)),
        "places": np.ones((3, 2)),
        "bias": np.array([-4.0, 2.0, 0.0]),
        "listed": np.array([2.0, 1.0, 0.0]),
        "origin": np.ones(2),
    }
    assert protocol.combine(totals, 2)["bias"].tolist() == [-2.0, 2.0, -2.0]


@pytest.mark.few(3)
@pytest.mark.parametrize("lie", [0.5, -1.0, 1e-300, 2.0, 1e30])
def test_a_list_that_is_no_list_is_refused(lie):
    """Averages divide by how many list an item: nobody may count as a half, or as less than nothing."""
    protocol = AveragedItems(epsilon=20.0, delta=1e-5, rounds=1, factors=2)
    parts = own_lists()
    union = union_of(parts)
    honest = Party("p2", parts["p2"], protocol, run=RUN, random=PrivacyRandom.simulate(5), catalog=union)

    def hostile(raw):
        message = decode(honest.answer(raw))
        if "listed" not in message.arrays:
            return encode(message)
        arrays = {**message.arrays, "listed": np.full(len(union), lie)}
        return encode(
            Message(
                kind=message.kind,
                run=message.run,
                step=message.step,
                sender="p2",
                fields=message.fields,
                arrays=arrays,
            )
        )

    outcome = run_parties(protocol, parts, union, replaced={"p2": hostile})
    assert outcome.rounds[-1].left_out == {"p2": Refusal.OUT_OF_RANGE}
    assert all(np.isfinite(array).all() for array in outcome.model.scorer.arrays().values())


def test_items_outside_the_union_and_items_that_are_one_there_are_refused():
    part = own_lists()["p0"]
    with refuses("items-not-in-union", count=1, of=30, salted=False):
        catalogs.over(part, Vocabulary.of(part.catalog.ids[1:].tolist()))
    # Whole numbers understand "7" and "07" alike: one person's two ratings would land on one item.
    with refuses("items-merged", count=1, of=2):
        catalogs.places_in(Vocabulary.of([7, 8]), Vocabulary.of(["7", "07"]))


def test_a_list_too_long_to_answer_for_is_refused_before_it_is_united(monkeypatch):
    monkeypatch.setattr(catalogs, "MOST_ITEMS", 5)
    with refuses("too-many-items", most=5):
        catalogs.united([Vocabulary.range(4), Vocabulary.range(7)])
    with refuses("too-many-items", most=5):
        catalogs.united([Vocabulary.range(4), Vocabulary.range(4, start=2)])


def test_another_union_than_the_party_s_is_declined():
    """Same length, other names: nothing is drawn and nothing is paid."""
    parts = own_lists()
    union = union_of(parts)
    protocol = SummedStatistics(epsilon=2.0, delta=1e-5)
    member = Party("p0", parts["p0"], protocol, run=RUN, random=PrivacyRandom.simulate(0), catalog=union)
    for names in (union.ids[::-1].tolist(), [*union.ids[1:].tolist(), 10**6]):
        agreed = {"settings": protocol.settings(), "shared": names_digest(Vocabulary.of(names))}
        question = Message(kind="votes", run=RUN, step=0, sender="-", fields=agreed)
        assert decode(member.answer(encode(question))).fields["reason"] == "wrong names"


def test_names_that_hide_a_separator_are_told_apart():
    lists = (["a\0b", "c"], ["a", "b\0c"], ["a", "b", "c"])
    assert len({names_digest(Vocabulary.of(names)) for names in lists}) == 3


def test_parties_that_share_people_have_no_united_list():
    with refuses("no-united-list"):
        Party(
            "p0",
            PARTS["p0"],
            AveragedUsers(epsilon=2.0),
            run=RUN,
            random=PrivacyRandom.simulate(0),
            catalog=DATA.catalog,
        )


def test_votes_are_not_cut_to_a_list():
    part = Message(kind="votes", arrays={"votes": np.ones(3)})
    assert AveragedItems(epsilon=1.0).limited(part, np.array([0])) is part
