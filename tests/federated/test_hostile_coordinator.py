"""What a hostile coordinator tried once, with real noise: each attack is refused, or learns nothing."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np
import pytest

from discreet.core.arrays import Floats
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.protocol import names_digest
from discreet.federated.transport import InProcess
from discreet.federated.wire import Message, Refusal, decode, encode
from discreet.model_settings import MODELS
from discreet.models.baselines.als import Als
from discreet.models.biases import Biases
from discreet.models.estimator import Estimator, joint_promise
from discreet.models.local import LocalEstimator
from discreet.models.popularity import Popularity
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.papers.frank_wolfe.covariance_svd import CovarianceSvd
from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe
from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.ledger.ledger import Ledger
from discreet.statistics.domain import Length, Number, Numbers
from discreet.statistics.statistic import Part, Statistic
from discreet.testing import refuses
from federation import RUN, coordinator, keeper_of, members, next_question, toy_parts, train

ITEMS = 12
FACTS = PublicFacts(n_items=ITEMS, low=1.0, high=5.0)
NOISE = SharedNoise(parties=3, missing=1)
PROTOCOL = protocol_for(Biases(epsilon=0.1, delta=1e-6), FACTS, NOISE)
WHOLE = gaussian_multiplier(PROTOCOL.planned().epsilon, 1e-6) * (1 + 1e-9)


def people(*rows):
    cells = [(user, item, value) for user, row in enumerate(rows) for item, value in row.items()]
    users, items, values = map(np.array, zip(*cells, strict=True))
    catalog = Vocabulary.range(ITEMS)
    return Interactions.from_arrays(users, items, values, catalog=catalog, facts=FACTS, name="shop")


FEW = [{0: 4.0, 1: 2.0, 3: 5.0}, {1: 1.0, 2: 3.0}]


def real_party(data, ledger=None):
    names = ["p0", "p1", "p2"]
    return Party(
        "p0",
        data,
        PROTOCOL,
        run=RUN,
        ledger=ledger or Ledger.in_memory(),
        random=PrivacyRandom.from_os(),
        keeper=Keeper(roster=names, least=2),
    )


def question(statistic, part, numbers, arrays, sigma=WHOLE, step=0, **more):
    fields = {
        "statistic": statistic,
        "part": part,
        "sigma": sigma,
        **{f"given {name}": value for name, value in numbers.items()},
        "settings": PROTOCOL.settings(),
        "shared": names_digest(Vocabulary.range(ITEMS)),
        **more,
    }
    return Message(kind="sum", run=RUN, step=step, sender="coordinator", fields=fields, arrays=arrays)


def singular(loud=1e9, weak=1e-9):
    """Ask for a moment whose equations only people with the last item cannot solve."""
    features = np.ones((ITEMS, 2))
    features[-1] = loud
    arrays = {
        "top": np.arange(ITEMS),
        "item_weights": np.ones(ITEMS),
        "offsets": np.zeros(ITEMS),
        "features": features,
        "ridge": np.full(2, weak),
    }
    return question("ResidualMoment", "moment", {"middle": 3.0, "half": 2.0}, arrays)


def vectors(longest=2.0, factors=2, **more):
    arrays = {
        "features": np.ones((ITEMS, factors)),
        "offsets": np.zeros(ITEMS),
        "ridge": np.ones(factors),
        "scale": np.ones(factors),
        "item_weights": np.ones(ITEMS),
    }
    numbers = {"middle": 3.0, "half": 2.0, "longest": longest, "count_part": 0.2}
    return question("ItemVectors", "vectors", numbers, arrays, **more)


def replied(party, asked):
    return decode(party.answer(encode(asked)))


@pytest.mark.few(6)
@pytest.mark.parametrize("loud", [1e6, 1e8, 1e9, 1e15, 1e30])
@pytest.mark.parametrize("weak", [1e-9, 1e-30])
def test_a_row_that_cannot_be_solved_refuses_nothing(loud, weak):
    """Number 1: until this version the second answer was a refusal, without noise and without a price."""
    for rows in (FEW, [*FEW, {0: 3.0, ITEMS - 1: 5.0}], [*FEW, {ITEMS - 1: 1.0}]):
        party = real_party(people(*rows))
        assert replied(party, singular(loud, weak)).kind == "sum"


@pytest.mark.parametrize("longest", [1e-6, 0.5, math.nextafter(1.0, 0.0), 0.0, -1.0])
def test_factors_shorter_than_their_constant_cannot_be_asked_for(longest):
    """Number 2: a person's norm was 1 / longest, and a row was read through noise for norm 1."""
    ledger = Ledger.in_memory()
    assert (
        replied(real_party(people(*FEW), ledger), vectors(longest)).fields["reason"] == Refusal.OUT_OF_RANGE
    )
    assert not ledger.entries()
    assert replied(real_party(people(*FEW)), vectors(1.0)).kind == "sum"


@pytest.mark.parametrize("name", ["bound", "price", "cost", "noise total", "given bound", "given more"])
def test_a_question_cannot_name_its_price(name):
    """Number 3: with a bound of 1e-12 a question worth epsilon 69 was booked as 0.1."""
    ledger = Ledger.in_memory()
    asked = vectors(sigma=1e-3 * WHOLE, **{name: 1e-12})
    assert replied(real_party(people(*FEW), ledger), asked).fields["reason"] == "unknown field"
    # Too little noise for the budget, and far too little.
    for noise in (0.1 * WHOLE, 1e-3 * WHOLE):
        asked = vectors(sigma=noise)
        assert replied(real_party(people(*FEW), ledger), asked).fields["reason"] == "twice"
    assert not ledger.entries()


def test_sides_of_length_zero_cannot_be_asked_for():
    """Number 5: a compiled loop wrote outside of its array."""
    assert replied(real_party(people(*FEW)), vectors(factors=0)).fields["reason"] == "wrong shape"


def test_a_draw_that_fails_is_journaled_and_charged(monkeypatch):
    ledger = Ledger.in_memory()
    party = real_party(people(*FEW), ledger)

    def broken(*_):
        raise RuntimeError("no memory is left")

    asked = vectors(sigma=10 * WHOLE)
    with monkeypatch.context() as patched:
        patched.setattr(type(PROTOCOL), "answer", broken)
        assert replied(party, asked).fields["reason"] == "declined"
    assert len(ledger.entries()) == 1
    assert [message.kind for message in party._journal.messages] == ["begun", "drawing", "failed"]
    # Nothing more is answered in this run: whether a draw fails can be seen once at most.
    for step in (0, 1):
        assert replied(party, vectors(sigma=10 * WHOLE, step=step)).fields["reason"] == "declined"


def test_a_draw_that_a_crash_ended_is_charged_and_drawn_again_for_the_same_question_only(
    tmp_path, monkeypatch
):
    class Crash(BaseException):
        pass

    def crash(*_):
        raise Crash

    def started(name="s"):
        keeper = Keeper(roster=["p0", "p1", "p2"], least=2)
        return members({"p0": people(*FEW)}, PROTOCOL, keeper=keeper, state=tmp_path / name)["p0"]

    dear, other = vectors(), vectors(longest=3.0)
    for attempt in range(3):
        party = started()
        with monkeypatch.context() as patched, pytest.raises(Crash):
            patched.setattr(type(PROTOCOL), "answer", crash)
            party.answer(encode(dear))
        assert replied(party, other).fields["reason"] == "twice"
        assert replied(party, vectors(step=1)).fields["reason"] == "twice"
        party.close()
        if attempt == 1:
            (tmp_path / "copy").write_bytes((tmp_path / "s").read_bytes())
            party = started("copy")
            assert replied(party, dear).kind == "sum"
            party.close()
    party = started()
    assert replied(party, dear).fields["reason"] == "declined"
    party.close()


DATA, PARTS = toy_parts()
SHARED = SharedNoise(parties=4, missing=1)


@pytest.mark.parametrize("declared", [None, 400])
def test_a_key_that_does_not_match_its_mask_leaves_out_its_party_by_name(declared):
    """Number 9: counts of 3e10 from 400 people, and a model."""
    facts = replace(DATA.facts, n_users=declared)
    protocol = protocol_for(Popularity(epsilon=8.0), facts, SHARED)
    keeper = keeper_of(protocol, PARTS)

    def other_key(raw):
        message = decode(raw)
        changed = {**message.fields, "key": "00" * 32} if message.kind == "key" else message.fields
        return keeper(encode(replace(message, fields=changed)))

    parties = members(PARTS, protocol, keeper=keeper)
    parties["p3"] = members({"p3": PARTS["p3"]}, protocol, keeper=other_key)["p3"]
    endpoints = {name: party.answer for name, party in parties.items()}
    outcome = coordinator(protocol, endpoints, DATA.catalog, keeper=keeper).train(facts)
    assert all(entry.left_out == {"p3": "without mask"} for entry in outcome.rounds)
    counts = outcome.rounds[0].result.arrays["total"]
    assert np.abs(counts).max() < 1000


@pytest.mark.parametrize("declared", [None, 400])
def test_sums_that_nobody_can_give_end_the_run_with_a_sentence(declared):
    """A party that lies about both its mask and its key: nothing is published."""
    facts = replace(DATA.facts, n_users=declared)
    protocol = protocol_for(Popularity(epsilon=8.0), facts, SHARED)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    honest = endpoints["p3"]

    def garbage(raw):
        answer = decode(honest(raw))
        if answer.kind == "confirm":
            return encode(answer)
        noise = np.random.default_rng(1).integers(0, 2**63, answer.arrays["total"].size, dtype=np.uint64)
        return encode(replace(answer, arrays={"total": answer.arrays["total"] + noise}))

    with refuses("impossible-sum", what="step 0", suspects=("p0", "p1", "p2", "p3")):
        coordinator(protocol, endpoints | {"p3": garbage}, DATA.catalog, keeper=keeper).train(facts)


def below(raw, honest):
    answer = decode(honest(raw))
    if answer.kind == "confirm":
        return encode(answer)
    less = answer.arrays["total"] - np.uint64(10**6 << 28)
    return encode(replace(answer, arrays={"total": less}))


def test_counts_below_zero_end_the_run():
    protocol = protocol_for(Popularity(epsilon=8.0), DATA.facts, SHARED)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    honest = endpoints["p3"]
    endpoints["p3"] = lambda raw: below(raw, honest)
    with refuses("impossible-sum"):
        coordinator(protocol, endpoints, DATA.catalog, keeper=keeper).train(DATA.facts)


@dataclass(frozen=True, eq=False, kw_only=True)
class WeighedVotes(Statistic):
    """Sum people's votes for what they chose, weighed by `pull`: w q_i with w = 1 / sqrt(sum_i q_i^2)."""

    n_items: Annotated[int, Length("n")]
    item_weights: Annotated[Floats, Numbers(("n",), 1e-3, 1e3)]
    part: Annotated[float, Number(0.5, 1.0)]

    @property
    def parts(self):
        return (Part("votes", (self.n_items,), nonnegative=True),)

    def _add(self, block, sums):
        item_weights = self.item_weights[block.items]
        block.add_by_item(self.part * item_weights * block.unit_weights(item_weights**2), sums[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign(Estimator):
    """Learn popularity in two steps, with a statistic that the library does not know."""

    name: ClassVar[str] = "foreign"
    feedback = "implicit"
    statistics: ClassVar[tuple[type[Statistic], ...]] = (WeighedVotes,)

    epsilon: float
    delta: float = 1e-6

    def promise(self, facts):
        return joint_promise(self, facts, "proofs/federated.md")

    def rows_needed(self):
        return None

    def _train(self, session, progress):
        item_weights = np.ones(session.n_items)
        for part in session.gaussian().rounds(2):
            votes = WeighedVotes(n_items=session.n_items, item_weights=item_weights, part=0.9)
            results = part.release(votes, Fraction(1)).values
            item_weights = np.clip(1 / np.maximum(results, 1.0), 1e-3, 1e3)
        return InteractionScorer.of(np.maximum(results, 1e-9), np.zeros((session.n_items, 0)), {})


FEDERATED = {
    "popularity": (Popularity, {}),
    "biases": (Biases, {}),
    "user-factorization": (UserFactorization, {}),
    "user-factorization implicit": (UserFactorization, {"feedback": "implicit"}),
    "implicit-objective": (ImplicitObjective, {"rounds": 2}),
    "implicit-objective symmetric": (ImplicitObjective, {"loss": "symmetric"}),
    "covariance-svd": (CovarianceSvd, {"factors": 3}),
    "frank-wolfe": (FrankWolfe, {"rounds": 2}),
    "frank-wolfe oja": (FrankWolfe, {"rounds": 2, "solver": "oja", "steps": 3}),
    "frank-wolfe-printed": (PrintedFrankWolfe, {"rounds": 2}),
    "frank-wolfe-printed oja": (PrintedFrankWolfe, {"rounds": 2, "solver": "oja", "steps": 2}),
    "foreign": (Foreign, {}),
}


def test_every_model_that_learns_from_sums_is_federated_here():
    from_sums = {
        name
        for name, kind in MODELS.items()
        if not issubclass(kind, LocalEstimator) and kind(epsilon=math.inf).rows_needed() is None
    }
    assert from_sums == {name.split()[0] for name in FEDERATED} - {"foreign"}


@pytest.mark.few(2, "foreign")
@pytest.mark.parametrize("kind", FEDERATED)
def test_without_noise_parties_learn_the_model_of_all_data(kind):
    model, settings = FEDERATED[kind]
    estimator = model(epsilon=math.inf, **settings)
    pooled = estimator.fit(DATA)
    shared = train(protocol_for(estimator, DATA.facts, SHARED), PARTS, DATA).model
    for name, array in pooled.scorer.arrays().items():
        assert np.array_equal(shared.scorer.arrays()[name], array), name


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", FEDERATED)
def test_with_noise_every_party_answers_within_its_promise(kind):
    model, settings = FEDERATED[kind]
    protocol = protocol_for(model(epsilon=4.0, **settings), DATA.facts, SHARED)
    outcome = train(protocol, PARTS, DATA)
    assert outcome.left_out == {} and outcome.model.guarantee.epsilon == 4.0


def test_models_that_need_rows_say_for_what():
    with refuses("not-over-parties", model="als"):
        protocol_for(Als(epsilon=math.inf), DATA.facts, SHARED)
    with refuses("not-over-parties"):
        protocol_for(ImplicitObjective(epsilon=1.0, delta=0.0, importance_sampling=True), DATA.facts, SHARED)


def test_a_foreign_statistic_is_answered_only_where_it_was_agreed_on():
    protocol = protocol_for(Foreign(epsilon=1.0), DATA.facts, SHARED)
    asked = next_question(protocol, DATA.n_items)
    protocol.shapes(asked, DATA.n_items)
    with pytest.raises(Exception, match="wrong kind"):
        PROTOCOL.shapes(asked, DATA.n_items)


def test_old_runs_of_retired_protocols_get_a_sentence(tmp_path):
    """A journal that began with `summed-statistics` and shared noise cannot go on; its operator is told."""
    protocol = protocol_for(ImplicitObjective(epsilon=1.0), DATA.facts, SHARED)
    keeper = keeper_of(protocol, PARTS)
    party = members({"p0": PARTS["p0"]}, protocol, keeper=keeper, state=tmp_path / "s")["p0"]
    fields = {"settings": "summed-statistics {}", "promise": "epsilon=1.0, delta=1e-06, simulated=True"}
    party._journal.keep(Message(kind="begun", run=RUN, step=-1, sender="p0", fields=fields))
    with refuses("other-settings", run=RUN):
        party._pay()
    party.close()


def test_the_sentence_names_the_parties_in_the_sum():
    """The sentence of a sum that cannot be is about the parties in it, not about those left out."""
    protocol = protocol_for(Popularity(epsilon=8.0), DATA.facts, SHARED)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    honest = endpoints["p3"]
    silent = endpoints | {"p3": lambda raw: below(raw, honest)}
    del silent["p0"]
    transport = InProcess(silent)
    run = Coordinator(
        protocol,
        transport,
        parties=list(PARTS),
        shared=DATA.catalog,
        run=RUN,
        keeper=keeper,
        seconds=5,
        simulated=True,
    )
    with refuses("impossible-sum", suspects=("p1", "p2", "p3")):
        run.train(DATA.facts)
