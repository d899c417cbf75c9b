"""One party that lies about everything: it is left out and named, and the run ends with the others' model."""

import threading

import numpy as np
import pytest

from discreet.data.interactions import Interactions
from discreet.federated.errors import FederationError, NotAState, StateDamaged
from discreet.federated.journal import Journal
from discreet.federated.keeper import Keeper, SumStep, ask_masks, hand_key
from discreet.federated.masks import set_token
from discreet.federated.party import Party
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers
from discreet.federated.protocols.protocol import names_digest
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.wire import Message, Refusal, decode, encode
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from federation import RUN, coordinator, keeper_of, members, shared_sums, toy_parts, train

DATA, PARTS = toy_parts()
DECLARED = SummedStatistics(epsilon=30.0, rounds=2, users=100)
ITEM_PROTOCOLS = [
    SummedStatistics(epsilon=30.0, rounds=2),
    AveragedItems(epsilon=30.0, factors=3),
    DECLARED,
]


def liar(honest, change, at=None):
    """Return an endpoint that answers as `honest` does and then changes the answer, at one step or at all."""

    def answer(raw):
        results = decode(honest(raw))
        if results.kind == "declined" or at not in (None, results.step):
            return encode(results)
        return change(results)

    return answer


def replaced(message, **parts):
    fields = {name: getattr(message, name) for name in ("kind", "run", "step", "sender", "fields", "arrays")}
    return Message(**{**fields, **parts})


def rubbish(value):
    def change(message):
        arrays = {name: np.full_like(array, value) for name, array in message.arrays.items()}
        return encode(replaced(message, arrays=arrays))

    return change


def signs(value):
    def change(message):
        arrays = {
            name: value * np.where(np.arange(array.size) % 3, 1.0, -1.0).reshape(array.shape)
            for name, array in message.arrays.items()
        }
        return encode(replaced(message, arrays=arrays))

    return change


def many_digits(message):
    return encode(replaced(message, fields={**message.fields, "epsilon": 10**400}))


def loud_noise(message):
    fields = {name: 2.0**33 if name.startswith("noise") else value for name, value in message.fields.items()}
    return encode(replaced(message, fields=fields))


LIES = [
    rubbish(2.0**50),
    rubbish(2.0**33),
    rubbish(-(2.0**33)),
    signs(2.0**33),
    signs(1e6),
    many_digits,
    loud_noise,
]


@pytest.mark.few(4)
@pytest.mark.parametrize("protocol", ITEM_PROTOCOLS, ids=["summed", "averaged", "users declared"])
# Every lie is told in the first round by default, and in later rounds by `make test-slow`.
@pytest.mark.parametrize("lie", range(len(LIES)))
@pytest.mark.parametrize("step", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, None))])
def test_a_run_ends_whatever_one_party_sends(protocol, lie, step):
    honest = members(PARTS, protocol)["p3"].answer
    outcome = train(protocol, PARTS, DATA, replaced={"p3": liar(honest, LIES[lie], step)})
    assert all(np.isfinite(array).all() for array in outcome.model.scorer.arrays().values())
    if lie in (0, 5) or protocol is DECLARED:
        reason = "wrong guarantee" if LIES[lie] is loud_noise else "out of range"
        assert outcome.rounds[step or 0].left_out == {"p3": reason}


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_shared_people_end_their_run_too(lie):
    protocol = AveragedUsers(epsilon=30.0, rounds=2)
    honest = members(PARTS_OF_ITEMS, protocol)
    endpoints = {name: party.answer for name, party in honest.items()}
    endpoints["p1"] = liar(endpoints["p1"], LIES[lie])
    rounds = coordinator(protocol, endpoints, DATA.users).run_rounds()
    assert len(rounds) == 2 and all(np.isfinite(entry.result.arrays["profiles"]).all() for entry in rounds)
    # A user's place has a length of at most 1 and noise: every lie is found.
    assert all("p1" in entry.left_out for entry in rounds)


PARTS_OF_ITEMS = {f"p{k}": DATA.select_items(np.arange(k, DATA.n_items, 2)) for k in range(2)}


def with_key(keeper, **lies):
    """Return a line to the keeper on which one party's keys are changed."""

    def line(raw):
        message = decode(raw)
        changed = {**message.fields, **lies} if message.kind == "key" else message.fields
        return keeper(encode(replaced(message, fields=changed)))

    return line


@pytest.mark.few(2)
@pytest.mark.parametrize("lies", [{"least": 1000}, {"least": 4}, {"question": "another"}, {"least": -1}])
def test_a_key_with_a_lie_leaves_out_its_party_only(lies):
    protocol = shared_sums(DATA)
    keeper = keeper_of(protocol, PARTS)
    parties = members(PARTS, protocol, keeper=keeper)
    parties["p3"] = members({"p3": PARTS["p3"]}, protocol, keeper=with_key(keeper, **lies))["p3"]
    endpoints = {name: party.answer for name, party in parties.items()}
    if lies == {"least": 4}:
        # All four are there, so that the wish is no lie until one of them is gone.
        endpoints["p2"] = lambda raw: encode(Message(kind="declined", run=RUN, step=0, sender="p2"))
        with refuses("sum-not-revealed"):
            coordinator(protocol, endpoints, DATA.catalog, keeper=keeper).train(DATA.facts)
        return
    outcome = coordinator(protocol, endpoints, DATA.catalog, keeper=keeper).train(DATA.facts)
    assert all("p3" in entry.left_out for entry in outcome.rounds)


def question(protocol, kind="votes", **parts):
    agreed = {"settings": protocol.settings(), "shared": names_digest(DATA.catalog)}
    fields = agreed | parts.pop("fields", {})
    return Message(kind=kind, run=RUN, step=0, sender="coordinator", fields=fields, **parts)


def test_a_question_that_asks_for_gigabytes_is_refused_before_it_is_paid():
    many = Interactions.from_arrays([1, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0], n_items=4000, low=1, high=5)
    protocol, ledger = SummedStatistics(epsilon=1.0), Ledger.in_memory()
    party = Party("p", many, protocol, run=RUN, ledger=ledger)
    fields = {"settings": protocol.settings(), "shared": names_digest(many.catalog)}
    arrays = {"items": np.arange(4000), "item_weights": np.ones(4000)}
    asked = Message(kind="moment", run=RUN, step=0, sender="coordinator", fields=fields, arrays=arrays)
    assert decode(party.answer(encode(asked))).fields["reason"] == "oversized"
    wide = {"vectors": np.zeros((4000, 200)), "squares": np.ones(4000), "growth": np.zeros(0)}
    wide |= {"center": np.zeros(200), "scale": np.ones(200), "item_weights": np.ones(4000)}
    more = {"factors": 200, "clip": 1.0, "count_part": 1.0}
    asked = Message(kind="terms", run=RUN, step=0, sender="coordinator", fields=fields | more, arrays=wide)
    assert decode(party.answer(encode(asked))).fields["reason"] == Refusal.OUT_OF_RANGE
    assert ledger.entries() == []


def test_threads_get_one_draw_for_one_payment():
    for _ in range(20):
        party = Party("p0", PARTS["p0"], SummedStatistics(epsilon=1.0), run=RUN, ledger=Ledger.in_memory())
        raw, found = encode(question(party.protocol)), []

        def ask(party=party, raw=raw, found=found):
            found.append(party.answer(raw))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1 and decode(found[0]).kind == "votes"


def test_a_keeper_tells_one_sum_to_threads_that_ask_for_two():
    names = ["a", "b", "c", "d"]
    for _ in range(20):
        keeper, found = Keeper(roster=names, least=2), []
        for number, name in enumerate(names):
            results = {"key": bytes([number] * 32).hex(), "question": "q", "least": 2}
            hand_key(keeper, Message(kind="key", run="r", step=0, sender=name, fields=results))

        def ask(some, keeper=keeper, found=found):
            try:
                tokens = {name: set_token(bytes([names.index(name)] * 32), "q", some) for name in some}
                results = ask_masks(keeper, SumStep("r", 0, "q"), some, 4, tokens=tokens)
            except FederationError:
                return
            if not isinstance(results, frozenset):
                found.append(tuple(some))

        threads = [threading.Thread(target=ask, args=(some,)) for some in (names, names[:2], names[1:])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1


def test_a_party_that_would_forget_its_answers_is_not_made(tmp_path):
    with refuses("no-memory"):
        Party("p0", PARTS["p0"], SummedStatistics(epsilon=1.0), run=RUN)
    Party("p0", PARTS["p0"], SummedStatistics(epsilon=1.0), run=RUN, state=tmp_path / "state").close()


def journal_of(path, count=4):
    journal = Journal(path)
    for step in range(count):
        arrays = {"votes": np.arange(5.0)}
        journal.keep(Message(kind="votes", run=RUN, step=step, sender="p", arrays=arrays))
    journal.close()
    return path.read_bytes()


def test_a_damaged_length_never_drops_a_record(tmp_path):
    path = tmp_path / "state"
    whole = journal_of(path)
    record = len(whole) // 4
    for start in range(0, len(whole), record):
        for place in range(start, start + 17):
            for bit in range(8):
                raw = bytearray(whole)
                raw[place] ^= 1 << bit
                path.write_bytes(raw)
                with pytest.raises((StateDamaged, NotAState)):
                    Journal(path)
                assert path.read_bytes() == raw


def test_a_record_cut_by_a_crash_is_still_dropped(tmp_path):
    path = tmp_path / "state"
    whole = journal_of(path)
    record = len(whole) // 4
    for length in range(3 * record, len(whole)):
        path.write_bytes(whole[:length])
        journal = Journal(path)
        assert len(journal.messages) == 3
        journal.close()


def stating(honest, **stated):
    def answer(raw):
        message = decode(honest(raw))
        known = {name: value for name, value in stated.items() if name in message.fields or name == "more"}
        return encode(replaced(message, fields={**message.fields, **known}))

    return answer


def in_earnest(protocol, keeper=None):
    """Return parties whose noise is not simulated."""
    return {
        name: Party(name, data, protocol, run=RUN, ledger=Ledger.in_memory(), keeper=keeper)
        for name, data in PARTS.items()
    }


def test_simulated_noise_is_a_guarantee_only_where_it_was_agreed_on():
    protocol = SummedStatistics(epsilon=30.0, rounds=2)
    for simulated in (False, True):
        endpoints = {name: party.answer for name, party in in_earnest(protocol).items()}
        endpoints["p3"] = members(PARTS, protocol)["p3"].answer
        outcome = coordinator(protocol, endpoints, DATA.catalog, simulated=simulated).train(DATA.facts)
        assert outcome.rounds[0].left_out == ({} if simulated else {"p3": "wrong guarantee"})
        assert outcome.model.guarantee.simulated is simulated


def test_an_answer_that_states_more_than_was_agreed_on_names_its_party():
    protocol = SummedStatistics(epsilon=30.0, rounds=2)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol).items()}
    endpoints["p3"] = stating(endpoints["p3"], more=1)
    outcome = coordinator(protocol, endpoints, DATA.catalog).train(DATA.facts)
    assert outcome.rounds[0].left_out == {"p3": "unknown field"}


@pytest.mark.parametrize("users", [None, 100])
def test_a_declared_number_of_users_bounds_what_one_party_can_send(users):
    protocol = SummedStatistics(epsilon=30.0, rounds=2, users=users)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol).items()}
    endpoints["p3"] = liar(endpoints["p3"], lambda message: rubbish(5000.0)(message), 0)
    found = coordinator(protocol, endpoints, DATA.catalog).train(DATA.facts).rounds[0].left_out
    assert found == ({} if users is None else {"p3": Refusal.OUT_OF_RANGE})


STATED = [
    {"epsilon": 1e6},
    {"epsilon": "inf"},
    {"epsilon": 29.0},
    {"delta": 0.9},
    {"delta": 0.0},
    {"epsilon": 31.0, "delta": 1e-7},
    {"simulated": True},
    {"simulated": True, "epsilon": 30},
    {"noise votes": 1.0, "noise total": 1.0},
    {"noise votes": 0.0, "noise total": 0.0},
]


@pytest.mark.few(4)
@pytest.mark.parametrize("masked", [False, True], ids=["own noise", "shared noise"])
@pytest.mark.parametrize("stated", STATED, ids=str)
def test_a_guarantee_that_was_not_agreed_on_names_its_party(stated, masked):
    protocol = shared_sums(DATA) if masked else SummedStatistics(epsilon=30.0, rounds=2)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in in_earnest(protocol, keeper).items()}
    endpoints["p3"] = stating(endpoints["p3"], **stated)
    run = coordinator(protocol, endpoints, DATA.catalog, keeper=keeper, simulated=False)
    outcome = run.train(DATA.facts)
    assert not outcome.model.guarantee.simulated
    assert outcome.rounds[0].left_out == {"p3": "wrong guarantee"}
    assert outcome.model.guarantee.epsilon == 30.0 and outcome.model.guarantee.delta == protocol.delta


def test_an_answer_to_another_question_is_not_counted():
    """A signed answer of this run and this step, to a question with other numbers, is replayed."""
    protocol = SummedStatistics(epsilon=30.0, rounds=2)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol).items()}
    honest = endpoints["p3"]

    def replays(raw):
        asked = decode(raw)
        if asked.kind != "moment":
            return honest(raw)
        twice = {**asked.arrays, "item_weights": asked.arrays["item_weights"] * 2}
        return honest(encode(replaced(asked, arrays=twice)))

    outcome = coordinator(protocol, endpoints | {"p3": replays}, DATA.catalog).train(DATA.facts)
    assert outcome.rounds[1].left_out == {"p3": "wrong question"}


def test_a_party_that_answers_and_does_not_confirm_its_sum_is_named():
    protocol = shared_sums(DATA)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    honest, silent = endpoints["p3"], [True]

    def mute(raw):
        if decode(raw).kind == "confirm" and silent[0]:
            raise OSError("gone")
        return honest(raw)

    leader = coordinator(protocol, endpoints | {"p3": mute}, DATA.catalog, keeper=keeper)
    with refuses("set-not-confirmed", parties=("p3",), step=0):
        leader.train(DATA.facts)
    silent[0] = False
    assert leader.train(DATA.facts).left_out == {}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "lie",
    [
        {"names": '["p0", "p1", "p3"]'},
        {"names": '["p3"]'},
        {"names": '["p0", "p1", "p2"]'},
        {"names": "[" * 9000},
        {"names": True},
        {"token": "0" * 32},
        {"token": "\ud800"},
        {"token": 1},
        {"question": "0" * 64},
    ],
    ids=str,
)
def test_a_lie_in_a_confirmation_names_its_party_only(lie):
    """The liar states another set, without an honest party, or what no one can read."""
    protocol = shared_sums(DATA)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    honest, lying = endpoints["p3"], [True]

    def liar(raw):
        answer = decode(honest(raw))
        told = answer.kind == "confirm" and lying[0]
        return encode(replaced(answer, fields={**answer.fields, **lie}) if told else answer)

    leader = coordinator(protocol, endpoints | {"p3": liar}, DATA.catalog, keeper=keeper)
    with refuses("set-not-confirmed", parties=("p3",), step=0):
        leader.train(DATA.facts)
    # Nothing of the lie was kept: the run continues with the truth.
    lying[0] = False
    assert leader.train(DATA.facts).left_out == {}


FIELDS = [
    "assumes",
    "chain",
    "delta",
    "epsilon",
    "key",
    "noise votes",
    "noise total",
    "question",
    "simulated",
]
ODD = [
    "[" * 9000, f"{'9' * 18}:{'f' * 32}",
    *(pytest.param(odd, marks=pytest.mark.slow) for odd in ("", "x" * 50_000, -1, 1e308, 2**62, "{}")),
]  # fmt: skip


@pytest.mark.few(6)
@pytest.mark.parametrize("masked", [False, True], ids=["own noise", "shared noise"])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:12])
def test_no_field_of_an_answer_changes_the_label_or_ends_a_run(field, odd, masked):
    """Whatever one party writes into a field, it is named or changes nothing but what is stated about it."""
    protocol = shared_sums(DATA) if masked else SummedStatistics(epsilon=30.0, rounds=1)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    endpoints["p3"] = stating(endpoints["p3"], **{field: odd})
    outcome = coordinator(protocol, endpoints, DATA.catalog, keeper=keeper).train(DATA.facts)
    assert outcome.model.guarantee.epsilon == 30.0 and outcome.model.guarantee.delta == protocol.delta
    assert all(np.isfinite(array).all() for array in outcome.model.scorer.arrays().values())
    assert {name for entry in outcome.rounds for name in entry.left_out} <= {"p3"}
