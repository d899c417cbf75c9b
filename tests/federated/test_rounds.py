"""Rounds end whatever parties do, go on after a crash, and give what one holder of all data would get."""

import json
import math
import struct
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.core.randomness import PrivacyRandom
from discreet.federated.errors import FederationError, TooFewAnswers
from discreet.federated.party import Party
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.transport import InProcess
from discreet.federated.wire import Message, decode, encode
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from federation import RUN, coordinator, keeper_of, members, shared_sums, toy_parts, train

DATA, PARTS = toy_parts()
LOUD = SummedStatistics(epsilon=math.inf)
QUIET = SummedStatistics(epsilon=30.0, delta=1e-5)
SHARED = shared_sums(DATA, delta=1e-5)


def scores(model):
    return model.scores(DATA, np.arange(DATA.n_users))


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_without_noise_parties_get_exactly_the_model_of_all_data(rounds, masked):
    protocol = shared_sums(DATA, math.inf, rounds=rounds) if masked else replace(LOUD, rounds=rounds)
    outcome = train(protocol, PARTS, DATA)
    whole = ImplicitObjective(epsilon=math.inf, rounds=rounds).fit(DATA)
    assert np.array_equal(scores(outcome.model), scores(whole))
    assert not outcome.model.guarantee.is_private


def test_one_party_alone_is_the_private_model_up_to_its_noise():
    outcome = train(QUIET, {"p0": DATA}, DATA)
    central = ImplicitObjective(epsilon=30.0, delta=1e-5).fit(DATA, random=PrivacyRandom.simulate(0))
    (votes,) = [one for one in central.releases if one.statistic == "ProfileVotes"]
    assert outcome.rounds[0].result.noise["votes"] == float(votes.scale)


def test_own_noise_adds_up_and_shared_noise_stays():
    alone = math.sqrt(QUIET.planned("votes")["votes"].variance)
    own = train(QUIET, PARTS, DATA).rounds[0].result.noise["votes"]
    shared = train(SHARED, PARTS, DATA).rounds[0].result.noise["total"]
    assert math.isclose(own, 2 * alone)
    assert math.isclose(shared, alone * math.sqrt(4 / 3), rel_tol=1e-6)


def test_the_model_carries_the_weakest_promise_and_is_saved(tmp_path):
    parties = members(PARTS, QUIET)
    parties["p1"] = Party(
        "p1", PARTS["p1"], replace(QUIET, epsilon=31.0), run=RUN, random=PrivacyRandom.simulate(1)
    )
    endpoints = {name: party.answer for name, party in parties.items()}
    agreed = coordinator(QUIET, endpoints, DATA.catalog, promises={"p1": (31.0, 1e-5)})
    outcome = agreed.train(DATA.facts)
    assert outcome.model.guarantee.epsilon == 31.0 and not outcome.left_out
    assert outcome.model.guarantee.simulated
    outcome.model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    assert np.array_equal(scores(again), scores(outcome.model))
    assert again.guarantee == outcome.model.guarantee


def test_little_budget_buys_a_recount():
    outcome = train(replace(QUIET, epsilon=0.1), PARTS, DATA)
    assert [entry.result.kind for entry in outcome.rounds] == ["votes", "recount"]
    assert np.isfinite(scores(outcome.model)).all()


def test_pure_promises_work_over_parties():
    outcome = train(SummedStatistics(epsilon=30.0, delta=0.0), PARTS, DATA)
    assert outcome.model.guarantee.delta == 0


def honest(name="p1", protocol=QUIET):
    return members(PARTS, protocol)[name].answer


def altered(**changes):
    endpoint = honest()
    return lambda raw: encode(replace(decode(endpoint(raw)), **changes))


def with_arrays(change):
    endpoint = honest()

    def answer(raw):
        message = decode(endpoint(raw))
        return encode(replace(message, arrays={n: change(a.copy()) for n, a in message.arrays.items()}))

    return answer


def poisoned(value):
    def change(array):
        array.flat[0] = value
        return array

    return with_arrays(change)


def with_fields(**changes):
    endpoint = honest()

    def answer(raw):
        message = decode(endpoint(raw))
        return encode(replace(message, fields={**message.fields, **changes}))

    return answer


def other_version(raw):
    answer = bytearray(honest()(raw))
    answer[4] = 9
    return bytes(answer)


def crash(raw):
    raise RuntimeError("gone")


MISBEHAVIOR = {
    "silent": crash,
    "malformed": lambda raw: b"rubbish",
    "oversized": lambda raw: struct.pack("<4sBIQ", b"DFED", 1, 5, 2**50),
    "wrong version": other_version,
    "wrong run": altered(run="another"),
    "wrong round": altered(step=77),
    "wrong kind": altered(kind="recipes"),
    "wrong sender": altered(sender="p0"),
    "wrong shape": with_arrays(lambda array: array[:-1]),
    "not finite": poisoned(np.nan),
    "out of range": poisoned(1e300),
    "declined": lambda raw: encode(Message(kind="declined", run=RUN, step=0, sender="p1")),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("reason", MISBEHAVIOR)
def test_a_party_that_misbehaves_is_left_out_and_counted(reason):
    outcome = train(QUIET, PARTS, DATA, replaced={"p1": MISBEHAVIOR[reason]})
    assert outcome.left_out == {reason: 3}
    assert all(entry.counted == ("p0", "p2", "p3") for entry in outcome.rounds)
    fewer = {name: part for name, part in PARTS.items() if name != "p1"}
    assert np.array_equal(scores(outcome.model), scores(train(QUIET, fewer, DATA).model))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "endpoint",
    [
        with_fields(**{"noise votes": -1.0, "noise moment": -1.0, "noise gram": -1.0}),
        with_fields(epsilon="much"),
        with_fields(delta=2.0),
        with_fields(simulated=0),
        with_arrays(lambda array: array.astype(np.int64)),
    ],
)
def test_false_labels_are_left_out(endpoint):
    outcome = train(QUIET, PARTS, DATA, replaced={"p1": endpoint})
    assert sum(outcome.left_out.values()) == 3


class Chaotic(InProcess):
    """Deliver answers of all parties but the last twice, first an old one; and messages of a stranger."""

    def __init__(self, endpoints):
        super().__init__(endpoints)
        self.old = {}

    def ask(self, question, parties, seconds):
        for name, raw in super().ask(question, parties, seconds):
            if name in self.old:
                yield name, self.old[name]
            self.old[name] = raw
            yield "stranger", raw
            yield name, raw
            yield name, raw


def test_late_and_repeated_answers_and_strangers_change_nothing():
    endpoints = {name: party.answer for name, party in members(PARTS, QUIET).items()}
    outcome = coordinator(QUIET, endpoints, DATA.catalog, transport=Chaotic(endpoints)).train(DATA.facts)
    assert outcome.left_out == {}
    # The last party's second answer of each round comes after the round has ended.
    assert outcome.refused == {"wrong sender": 12, "twice": 9, "wrong round": 8}
    assert np.array_equal(scores(outcome.model), scores(train(QUIET, PARTS, DATA).model))


def test_a_late_answer_without_a_good_one_leaves_the_party_out():
    endpoint = honest()
    kept = []

    def late(raw):
        kept.append(endpoint(raw))
        return kept[max(len(kept) - 2, 0)]

    outcome = train(QUIET, PARTS, DATA, replaced={"p1": late})
    assert outcome.left_out == {"wrong round": 2}
    assert [len(entry.counted) for entry in outcome.rounds] == [4, 3, 3]


def test_too_few_parties_stop_the_run_and_it_resumes(tmp_path):
    parties = members(PARTS, QUIET)
    endpoints = {name: party.answer for name, party in parties.items()}
    broken = endpoints | dict.fromkeys(("p1", "p2"), crash)
    options = {"least": 3, "state": tmp_path / "state"}
    first = coordinator(QUIET, broken, DATA.catalog, **options)
    with refuses("too-few-answers", of=4, what="step 0", least=3, absent=("p1", "p2")):
        first.train(DATA.facts)
    first._journal.close()
    outcome = coordinator(QUIET, endpoints, DATA.catalog, **options).train(DATA.facts)
    assert outcome.left_out == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("protocol", [QUIET, SHARED], ids=["own noise", "shared noise"])
@pytest.mark.parametrize("calls", [2, 5, 6, 11])
def test_a_crash_anywhere_is_survived_and_not_paid_twice(tmp_path, protocol, calls):
    """Coordinator and parties die at some answer and start again from their files."""

    class Crash(BaseException):
        pass

    def started(left):
        noise = PrivacyRandom.simulate(0)
        members = {}
        for name, part in PARTS.items():
            ledger = Ledger.open(tmp_path / f"{name}.ledger")
            member = Party(
                name,
                part,
                protocol,
                run=RUN,
                random=noise.spawn(name),
                keeper=keeper,
                ledger=ledger,
                state=tmp_path / f"{name}.state",
            )

            def answer(raw, member=member):
                if left[0] == 0:
                    raise Crash
                left[0] -= 1
                return member.answer(raw)

            members[name] = answer
        return coordinator(protocol, members, DATA.catalog, keeper=keeper, state=tmp_path / "state")

    keeper = keeper_of(protocol, PARTS)
    with pytest.raises(Crash):
        started([calls]).train(DATA.facts)
    outcome = started([-1]).train(DATA.facts)
    assert [len(entry.counted) for entry in outcome.rounds] == [4] * (4 if protocol is SHARED else 3)
    for name in PARTS:
        ledger = Ledger.open(tmp_path / f"{name}.ledger")
        assert len(ledger.entries()) == 1
        assert ledger.spent(DATA.name).epsilon == 30.0
    assert started([0]).train(DATA.facts).model.guarantee == outcome.model.guarantee


def test_a_sum_revealed_before_a_crash_is_the_one_that_counts(tmp_path):
    keeper = keeper_of(SHARED, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, SHARED, keeper=keeper).items()}

    def dying(raw):
        reply = keeper(raw)
        if decode(reply).kind == "masks":
            raise FederationError("died after the masks were revealed")
        return reply

    with pytest.raises(FederationError, match="died"):
        absent = endpoints | {"p3": crash}
        coordinator(SHARED, absent, DATA.catalog, keeper=dying, state=tmp_path / "s").train(DATA.facts)
    resumed = coordinator(SHARED, endpoints, DATA.catalog, keeper=keeper, state=tmp_path / "s")
    outcome = resumed.train(DATA.facts)
    assert outcome.rounds[0].left_out == {"p3": "without mask"}
    assert [len(entry.counted) for entry in outcome.rounds] == [3, 4, 4, 4]


def test_a_party_without_a_mask_is_left_out_of_shared_noise():
    keeper = keeper_of(SHARED, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, SHARED, keeper=keeper).items()}
    elsewhere = keeper_of(SHARED, PARTS)
    endpoints["p1"] = members(PARTS, SHARED, keeper=elsewhere)["p1"].answer
    outcome = coordinator(SHARED, endpoints, DATA.catalog, keeper=keeper).train(DATA.facts)
    assert outcome.left_out == {"without mask": 4}
    endpoints["p2"] = crash
    with pytest.raises(TooFewAnswers):
        coordinator(SHARED, endpoints, DATA.catalog, keeper=keeper_of(SHARED, PARTS)).train(DATA.facts)


def test_questions_depend_on_what_was_told_alone():
    rounds = train(QUIET, PARTS, DATA).rounds
    results = [entry.result for entry in rounds]
    for done in range(3):
        first, second = (QUIET.question(results[:done], DATA.n_items) for _ in range(2))
        assert first.kind == rounds[done].result.kind
        assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
    assert QUIET.question(results, DATA.n_items) is None


def test_averaged_items_go_on_without_a_party():
    outcome = train(AveragedItems(epsilon=30.0, delta=1e-5), PARTS, DATA, replaced={"p2": crash})
    assert outcome.left_out == {"silent": 4}
    assert np.isfinite(scores(outcome.model)).all()


def clustered(n_users=300, n_items=60, per_user=12, seed=3):
    """Return choices of two groups of people, each mostly of its own half of the items."""
    from discreet.data.facts import PublicFacts
    from discreet.data.interactions import Interactions

    rng = np.random.default_rng(seed)
    users, items = [], []
    for user in range(n_users):
        weights = np.where(np.arange(n_items) % 2 == user % 2, 5.0, 1.0)
        chosen = rng.choice(n_items, per_user, replace=False, p=weights / weights.sum())
        users += [user] * per_user
        items += chosen.tolist()
    facts = PublicFacts(n_items=n_items, low=1, high=1)
    return Interactions.from_arrays(users, items, facts=facts, name="clustered", n_items=n_items)


def agreement(table, columns):
    """Return how often a person's own group of items scores above the other, on average."""
    own = (np.arange(table.shape[0])[:, None] % 2) == (columns % 2)
    table = table - table.mean(axis=0)
    return float(np.mean((table * np.where(own, 1, -1)).sum(axis=1) > 0))


@pytest.mark.few(1)
@pytest.mark.parametrize(("epsilon", "least"), [(math.inf, 0.95), (30.0, 0.75)])
def test_averaged_items_find_the_groups(epsilon, least):
    data = clustered(n_users=600)
    owner = np.arange(data.n_users) // 2 % 3
    parts = {f"p{k}": data.select_users(np.flatnonzero(owner == k)) for k in range(3)}
    protocol = AveragedItems(epsilon=epsilon, delta=1e-5, rounds=4, factors=2)
    model = train(protocol, parts, data).model
    assert agreement(model.scores(data, np.arange(data.n_users)), np.arange(data.n_items)) > least


@pytest.mark.few(1)
@pytest.mark.parametrize(("epsilon", "least"), [(math.inf, 0.95), (30.0, 0.7)])
def test_averaged_users_find_the_groups_across_parties(epsilon, least):
    data = clustered()
    columns = [np.flatnonzero(np.arange(data.n_items) // 2 % 3 == k) for k in range(3)]
    parts = {f"p{k}": data.select_items(columns[k]) for k in range(3)}
    protocol = AveragedUsers(epsilon=epsilon, delta=1e-5, rounds=4, factors=2)
    parties = members(parts, protocol)
    leader = coordinator(protocol, {n: p.answer for n, p in parties.items()}, data.users)
    with refuses("use-run-rounds"):
        leader.train(data.facts)
    rounds = leader.run_rounds()
    profiles = protocol.profiles([entry.result for entry in rounds], data.n_users)
    table = parties["p0"].tune(profiles).scores(profiles)
    assert agreement(table, columns[0]) > least


def test_people_are_tuned_locally():
    outcome = train(LOUD, PARTS, DATA)
    party = members(PARTS, LOUD)["p0"]
    own = party.profiles(outcome.model.scorer)
    assert own.shape == (PARTS["p0"].n_users, outcome.model.scorer.item_factors.shape[1])


def test_a_party_with_another_catalog_is_left_out():
    turned = PARTS["p1"].select_items(np.arange(DATA.n_items)[::-1])
    outcome = train(QUIET, PARTS | {"p1": turned}, DATA)
    assert outcome.left_out == {"declined": 3}


def test_wrong_arguments():
    with refuses("broken-rule", name="parties"):
        coordinator(QUIET, {}, DATA.catalog)
    with refuses("broken-rule", name="keeper"):
        coordinator(SHARED, {"p0": crash}, DATA.catalog)
    with refuses("out-of-range", name="least", value=2, least=1, most=1):
        coordinator(QUIET, {"p0": crash}, DATA.catalog, least=2)
    facts = replace(DATA.facts, n_items=7)
    with refuses("broken-rule", name="facts.n_items", value=7):
        coordinator(QUIET, {"p0": crash}, DATA.catalog).train(facts)


def test_progress_is_reported_without_data():
    seen = []
    endpoints = {name: party.answer for name, party in members(PARTS, QUIET).items()}
    coordinator(QUIET, endpoints, DATA.catalog).train(DATA.facts, lambda *step: seen.append(step))
    assert [done for _, done, _ in seen] == [1, 2, 3]
    assert json.dumps(seen)
