"""A party pays once, answers each step once and only within its promise, and resumes after a crash."""

import dataclasses
import math
from contextlib import closing

import numpy as np
import pytest

from assumption_examples import stated
from discreet.core.randomness import PrivacyRandom
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers
from discreet.federated.protocols.protocol import names_digest
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.wire import Message, Refusal, decode, encode
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.guarantee import Basis, Fact, Guarantee, Kind, Neighbors, Trust, Unit
from discreet.privacy.ledger.chain import Anchor
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.session import Session
from discreet.statistics.profiles import ProfiledItems
from discreet.testing import refuses
from discreet.testing.estimator_contract import Transcript
from federation import RUN, keeper_of, next_question, shared_sums, toy_parts

DATA, PARTS = toy_parts()
PROTOCOL = SummedStatistics(epsilon=2.0, delta=1e-5)


def party(protocol=PROTOCOL, **options):
    options.setdefault("random", PrivacyRandom.simulate(0))
    return Party("p0", PARTS["p0"], protocol, run=RUN, **options)


def question(kind="votes", step=0, run=RUN, protocol=PROTOCOL, fields=None, **arrays):
    agreed = {"settings": protocol.settings(), "shared": names_digest(DATA.catalog)}
    fields = agreed | (fields or {})
    return encode(Message(kind=kind, run=run, step=step, sender="-", fields=fields, arrays=arrays))


def moment(items=(0, 1, 2), item_weights=None, step=1):
    item_weights = np.ones(DATA.n_items) if item_weights is None else item_weights
    return question("moment", step, items=np.array(items, dtype=np.int64), item_weights=item_weights)


def terms(step=2, factors=2, fields=None, **changes):
    n = DATA.n_items
    arrays = {
        "vectors": np.ones((n, factors)),
        "squares": np.ones(n),
        "growth": np.zeros(0),
        "center": np.zeros(factors),
        "scale": np.ones(factors),
        "item_weights": np.ones(n),
    }
    fields = {"clip": 2.0, "count_part": 1.0, "factors": factors} | (fields or {})
    return question("terms", step, fields=fields, **(arrays | changes))


def reason(raw):
    message = decode(raw)
    return message.fields["reason"] if message.kind == "declined" else None


def test_the_run_is_paid_for_once_and_before_the_first_answer():
    ledger = Ledger.in_memory()
    member = party(ledger=ledger)
    assert ledger.entries() == []
    for raw in (question(), moment(), terms()):
        assert reason(member.answer(raw)) is None
    (entry,) = ledger.entries(DATA.name)
    assert (entry.guarantee.epsilon, entry.guarantee.delta) == (2.0, 1e-5)
    # One Gaussian release stands for all of them: together they cost no more.
    assert len(entry.events) == 1
    assert ledger.recounted(DATA.name, 1e-5) <= 2.0 * (1 + 1e-6)
    assert ledger.recounted(DATA.name, 1e-5) <= 2.0 * (1 + 1e-9)


def test_whoever_asks_again_gets_the_same_bytes():
    member = party()
    first = member.answer(question())
    assert member.answer(question()) == first
    assert reason(member.answer(moment(step=0))) == "twice"


def test_all_answers_together_cost_at_most_the_budget():
    """A question is metered by its price, whatever its kind and in whatever order."""
    member = party()
    for raw in (question(), moment(), terms()):
        assert reason(member.answer(raw)) is None
    others = (question(step=4), moment(step=5), question("recount", step=6), terms(step=7))
    assert [reason(member.answer(raw)) for raw in others] == ["twice"] * 4
    other = party()
    assert reason(other.answer(question("recount", step=1))) is None
    assert reason(other.answer(moment(step=2))) == reason(other.answer(terms(step=3))) == "twice"
    greedy, price = party(), member.protocol.price(decode(question()))
    answered = [reason(greedy.answer(question(step=step))) for step in range(int(1 / price) + 2)]
    assert answered == [None] * int(1 / price) + ["twice"] * 2


def test_a_draw_that_an_earlier_version_kept_without_a_price_costs_what_its_kind_costs(tmp_path):
    """Earlier versions wrote the price 0 and counted kinds."""
    member = party(state=tmp_path / "state")
    member.answer(question("recount", step=0))
    real = Party._drawn

    def forgotten(self, asked):
        for message in self._own():
            if message.kind == "drawing":
                message.fields["price"] = "0"
        return real(self, asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Party, "_drawn", forgotten)
        assert reason(member.answer(moment(step=1))) == "twice"


def test_an_answer_cannot_spend_more_than_its_price(monkeypatch):
    """A protocol that releases more than its question's price gets an error, and no answer leaves."""
    real = SummedStatistics.answer

    def greedy(self, session, asked):
        real(self, session, asked)
        return real(self, session, asked)

    member = party()
    monkeypatch.setattr(SummedStatistics, "answer", greedy)
    assert reason(member.answer(question())) == "declined"


def test_a_party_without_budget_declines_and_tells_nothing():
    ledger = Ledger.in_memory()
    budget = Guarantee(
        epsilon=1.0,
        delta=1e-5,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        basis=Basis.PROVED,
    )
    ledger.set_budget(DATA.name, budget)
    assert reason(party(ledger=ledger).answer(question())) == "declined"
    assert ledger.entries() == []


NAN, BIG = np.full(DATA.n_items, np.nan), np.full(DATA.n_items, 1e30)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"rubbish", "malformed"),
        (question(run="another"), "wrong run"),
        (question(protocol=SummedStatistics(epsilon=2.0, rounds=2)), "wrong version"),
        (question(protocol=AveragedItems(epsilon=2.0)), "wrong version"),
        (question(fields={"shared": names_digest(DATA.users)}), "wrong names"),
        (question("everything"), "wrong kind"),
        (question("moment", 1), "wrong shape"),
        (moment(items=(0, 0)), "out of range"),
        (moment(items=(-1, 2)), "out of range"),
        (moment(items=(DATA.n_items,)), "out of range"),
        (moment(items=()), "out of range"),
        (moment(item_weights=NAN), "out of range"),
        (moment(item_weights=BIG), "out of range"),
        (moment(item_weights=np.zeros(DATA.n_items)), "out of range"),
        (moment(item_weights=np.ones(3)), "wrong shape"),
        (terms(fields={"factors": 3}), "wrong shape"),
        (terms(fields={"factors": 10**6}), "out of range"),
        (terms(fields={"clip": 0.0}), None),
        (terms(item_weights=np.zeros(DATA.n_items)), "out of range"),
        (terms(squares=-np.ones(DATA.n_items)), "out of range"),
        (terms(squares=NAN), "not finite"),
        (terms(scale=np.full(2, 1e12)), "out of range"),
        (terms(growth=np.ones(1)), "wrong shape"),
        (terms(extra=np.ones(1)), "wrong shape"),
    ],
)
def test_questions_of_strangers_are_declined_and_cost_nothing(raw, expected):
    ledger = Ledger.in_memory()
    member = party(ledger=ledger)
    if expected is not None:
        assert reason(member.answer(raw)) == expected
        assert ledger.entries() == []
    else:
        assert reason(member.answer(raw)) == Refusal.OUT_OF_RANGE


def test_after_a_crash_nothing_is_paid_or_drawn_twice(tmp_path):
    ledger, state = Ledger.open(tmp_path / "ledger"), tmp_path / "state"
    first = party(ledger=ledger, state=state).answer(question())
    again = party(ledger=ledger, state=state, random=PrivacyRandom.simulate(1))
    assert again.answer(question()) == first
    assert reason(again.answer(moment())) is None
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"protocol": dataclasses.replace(PROTOCOL, epsilon=30.0)},
        {"protocol": dataclasses.replace(PROTOCOL, delta=1e-2)},
        {"random": None},
    ],
    ids=["epsilon", "delta", "real noise"],
)
def test_a_run_goes_on_only_with_what_it_began_with(tmp_path, other):
    """What was paid for is what began; a resumed party may not answer the rest with less noise."""
    ledger, state = Ledger.open(tmp_path / "ledger"), tmp_path / "state"
    assert reason(party(ledger=ledger, state=state).answer(question())) is None
    assert reason(party(ledger=ledger, state=state, **other).answer(moment())) == "declined"
    assert reason(party(ledger=ledger, state=state).answer(moment())) is None
    assert len(ledger.entries()) == 1


def test_a_ledger_that_was_paid_otherwise_is_not_believed(tmp_path):
    state, paid_less = tmp_path / "state", Ledger.in_memory()
    assert reason(party(state=state).answer(question())) is None
    less = dataclasses.replace(PROTOCOL, epsilon=0.1)
    assert reason(party(less, ledger=paid_less).answer(question(protocol=less))) is None
    assert reason(party(state=state, ledger=paid_less).answer(moment())) == "behind"


def test_a_party_that_lost_its_state_does_not_answer_a_paid_run_again(tmp_path):
    ledger, state = Ledger.open(tmp_path / "ledger"), tmp_path / "state"
    party(ledger=ledger, state=state).answer(question())
    state.unlink()
    assert reason(party(ledger=ledger, state=state).answer(question())) == "behind"
    assert len(ledger.entries()) == 1


def test_a_crash_between_beginning_and_paying_is_paid_on_resuming(tmp_path):
    class Crash(BaseException):
        pass

    class Broken:
        def entries(self, dataset):
            return []

        def anchor(self, chain):
            return Anchor()

        def spend(self, *_, **__):
            raise Crash

    state, ledger = tmp_path / "state", Ledger.open(tmp_path / "ledger")
    with pytest.raises(Crash):
        party(ledger=Broken(), state=state).answer(question())
    assert reason(party(ledger=ledger, state=state).answer(question())) is None
    assert len(ledger.entries()) == 1


def answered(protocol, data, asked, random):
    """Return what a party that was asked for nothing else answers."""
    session = protocol.session(data, random, protocol.price(asked))
    return protocol.answer(session, asked).arrays


def test_answers_carry_the_noise_of_the_plan():
    """Two noises of one statistic differ by twice the variance; a plan for twice epsilon does not fit."""
    random, asked = PrivacyRandom.simulate(0), decode(question())
    answers = [answered(PROTOCOL, PARTS["p0"], asked, random)["votes"] for _ in range(200)]
    spread = float(np.std(answers, axis=0).mean())
    sigma = PROTOCOL.own_deviations(asked)["votes"]
    assert abs(spread / sigma - 1) < 0.1
    bold = SummedStatistics(epsilon=4.0, delta=1e-5).own_deviations(asked)["votes"]
    assert abs(spread / bold - 1) > 0.3


@pytest.mark.parametrize("person", [0, 57])
@pytest.mark.parametrize("raw", [question(), moment(), terms()], ids=["votes", "moment", "terms"])
def test_one_person_moves_what_a_party_sums_by_at_most_one(person, raw):
    loud = SummedStatistics(epsilon=math.inf)
    asked = decode(raw)
    data = PARTS["p0"]
    without = data.select_users(np.delete(np.arange(data.n_users), person))
    both = [answered(loud, part, asked, PrivacyRandom.simulate(0)) for part in (data, without)]
    for name in both[0]:
        moved = both[0][name] - both[1][name]
        if name in ("moment", "gram"):
            # Entries off the diagonal stand for two of the matrix.
            size = (math.isqrt(8 * moved.size + 1) - 1) // 2
            twice = np.where(np.eye(size, dtype=bool)[np.triu_indices(size)], 1.0, 2.0)
            assert 0 < np.sum(twice * moved**2) <= 1
        else:
            assert 0 < np.linalg.norm(moved) <= 1


def test_one_person_moves_shared_profiles_by_at_most_one():
    protocol = AveragedUsers(epsilon=math.inf, factors=3)
    profiles = protocol.profiles([], DATA.n_users)
    from discreet.federated.protocols.averaged_users import _unit_places

    silenced = DATA.where(DATA.rows() != 5)
    placed = ProfiledItems(n_items=DATA.n_items, profiles=100 * profiles)
    moved = DATA.total(placed).floats() - silenced.total(placed).floats()
    assert 0.9 < np.linalg.norm(moved) <= 1
    items = np.random.default_rng(0).standard_normal((DATA.n_items, 3))
    moved = _unit_places(DATA, items) - _unit_places(silenced, items)
    assert np.flatnonzero(np.abs(moved).sum(axis=1)).tolist() == [5]
    assert 0.9 < np.linalg.norm(moved) <= 1


@pytest.mark.parametrize(
    "protocol",
    [
        SummedStatistics(epsilon=1.0, delta=1e-6, rounds=3),
        SummedStatistics(epsilon=1.0, delta=0.0),
        AveragedItems(epsilon=1.0, delta=1e-6),
        AveragedUsers(epsilon=1.0, delta=1e-6, rounds=4),
    ],
    ids=lambda protocol: f"{protocol.name}-{protocol.delta}",
)
def test_what_a_run_releases_costs_no_more_than_promised(protocol):
    from discreet.privacy.accounting.accountant import epsilon_at

    promise = protocol.promise(DATA.facts)
    assert (promise.epsilon, promise.delta) == (1.0, protocol.delta)
    assert epsilon_at(protocol.events(), promise.delta) <= 1.0 * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_events_cover_every_way_to_divide_the_budget(delta):
    """A coordinator may ask for votes ten times, or for what an honest run asks."""
    protocol = SummedStatistics(epsilon=1.0, delta=delta)
    most = epsilon_at([*protocol.events()] * 20, 1e-3)
    for route in (["votes", "moment", "terms"], ["votes", "recount"], ["votes"] * 10):
        events = [noise.event() for kind in route for noise in protocol.planned(kind).values()]
        assert epsilon_at(events * 20, 1e-3) <= most * (1 + 1e-9)
    # The twin: one release more is not covered.
    more = [noise.event() for kind in ["votes"] * 12 for noise in protocol.planned(kind).values()]
    assert epsilon_at(more, 1e-6) > epsilon_at([*protocol.events()], 1e-6) * (1 if delta else 0.9)


def test_promises_say_what_they_assume():
    shared = shared_sums(DATA, 1.0)
    assert (Kind.PARTY, Fact.COLLUSION) in stated(shared.promise(DATA.facts))
    assert (Kind.PARTY, Fact.COLLUSION) not in stated(PROTOCOL.promise(DATA.facts))
    assert party().promise.simulated
    assert party(random=PrivacyRandom.from_os(), ledger=Ledger.in_memory()).promise.is_private
    with refuses("broken-rule", name="keeper"):
        party(shared)
    with refuses("broken-rule", name="delta", value=0.0):
        shared_sums(DATA, 1.0, delta=0.0)
    with refuses("broken-rule", name="noise"):
        SummedStatistics(epsilon=1.0, noise=SharedNoise(parties=4))


def first_question(protocol):
    asked = next_question(protocol, DATA.n_items)
    return question(asked.kind, protocol=protocol, fields=asked.fields, **asked.arrays)


def test_a_masked_answer_says_nothing_alone_and_is_repeated_as_it_was(tmp_path):
    protocol = shared_sums(DATA, math.inf)
    keeper = keeper_of(protocol, PARTS)
    raw = first_question(protocol)
    member = party(protocol, keeper=keeper, state=tmp_path / "state")
    first = member.answer(raw)
    sent = decode(first).arrays["total"]
    assert abs(np.unpackbits(sent.view(np.uint8)).mean() - 0.5) < 0.05
    member.close()
    assert party(protocol, keeper=keeper, state=tmp_path / "state").answer(raw) == first


def test_a_party_whose_keeper_is_gone_sends_nothing():
    from discreet.federated.errors import FederationError

    def gone(raw):
        raise FederationError("The keeper of masks cannot be reached.")

    protocol = shared_sums(DATA, 1.0)
    assert reason(party(protocol, keeper=gone).answer(first_question(protocol))) == "declined"


def test_items_are_tuned_once_and_only_where_people_are_shared(tmp_path):
    protocol = AveragedUsers(epsilon=1.0, factors=3)
    ledger = Ledger.in_memory()
    profiles = protocol.profiles([], PARTS["p0"].n_users)
    member = party(protocol, state=tmp_path / "state", ledger=ledger)
    first = member.tune(profiles)
    member.close()
    again = party(protocol, state=tmp_path / "state", ledger=ledger, random=PrivacyRandom.from_os())
    assert np.array_equal(again.tune(profiles).factors, first.factors)
    assert len(ledger.entries()) == 1
    with refuses("nothing-to-tune"):
        party().tune(profiles)


@pytest.mark.parametrize("protocol", [PROTOCOL, shared_sums(DATA)], ids=["own noise", "shared noise"])
def test_what_a_party_sends_follows_from_its_releases(protocol, monkeypatch):
    """A party with other users that gets the same releases must send the same; the twin gets its own."""
    with closing(protocol.begin(DATA.n_items)) as run:
        asked = run.question()
    first = question(asked.kind, protocol=protocol, fields=dict(asked.fields), **asked.arrays)
    questions = [first, first, question("nonsense", 1, protocol=protocol), b"junk"]

    def sent(name):
        keeper, random = keeper_of(protocol, PARTS), PrivacyRandom.simulate(0)
        member = Party("p0", PARTS[name], protocol, run=RUN, random=random, keeper=keeper)
        return [member.answer(raw) for raw in questions]

    assert decode(sent("p0")[0]).kind == asked.kind and sent("p0")[0] != sent("p1")[0]
    transcript = Transcript()
    for name in ("_drawn", "release_share"):
        monkeypatch.setattr(Session, name, transcript.around(getattr(Session, name)))
    here = sent("p0")
    transcript.replay()
    assert here == sent("p1")
