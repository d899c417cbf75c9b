"""Estimators over parties: the pooled model without noise, the stated noise, and who keeps the account."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.asked import Answerable, Asked
from discreet.federated.protocols.estimator_sums import EstimatorSums, protocol_for
from discreet.federated.simulation import simulate_parties
from discreet.federated.wire import Refused, decode, encode
from discreet.models.baselines.als import Als
from discreet.models.biases import Biases
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.ledger.ledger import Ledger
from discreet.statistics.counts import ItemVotes, RatingShares
from discreet.testing import refuses
from federation import coordinator, keeper_of, members, next_question, toy_parts, train

DATA, _ = toy_parts()
DATA = replace(DATA, times=np.random.default_rng(0).integers(0, 10**6, DATA.items.size))
PARTS = {f"p{k}": DATA.select_users(np.flatnonzero(np.arange(DATA.n_users) % 4 == k)) for k in range(4)}
NOISE = SharedNoise(parties=4, missing=1)
KINDS = {
    "popularity": (Popularity, {}),
    "biases": (Biases, {}),
    "recent popularity": (Popularity, {"half_life": 5.0, "now": "1970-01-02"}),
    "recent biases": (Biases, {"half_life": 5.0, "now": "1970-01-02"}),
    "recent lists": (UserFactorization, {"purpose": "lists", "half_life": 5.0, "now": "1970-01-02"}),
    "recent ratings": (UserFactorization, {"half_life": 5.0, "now": "1970-01-02"}),
    "ratings": (UserFactorization, {}),
    "choices": (UserFactorization, {"feedback": "implicit"}),
    "lists": (UserFactorization, {"purpose": "lists"}),
    "ratings alone": (UserFactorization, {"purpose": "ratings"}),
}


def protocol_of(kind, epsilon, **options):
    model, settings = KINDS[kind]
    return protocol_for(model(epsilon=epsilon, **settings, **options), DATA.facts, NOISE)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_the_model_is_that_of_all_data(kind):
    protocol = protocol_of(kind, math.inf)
    shared, pooled = train(protocol, PARTS, DATA).model, protocol.estimator.fit(DATA)
    for name, array in pooled.scorer.arrays().items():
        assert np.array_equal(shared.scorer.arrays()[name], array), name
    assert shared.scorer.settings() == pooled.scorer.settings()


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", KINDS)
def test_with_noise_every_party_pays_once_and_the_model_is_private(kind, tmp_path):
    protocol = protocol_of(kind, 8.0, delta=1e-5)
    keeper = keeper_of(protocol, PARTS)
    ledgers = {name: Ledger.open(tmp_path / name) for name in PARTS}
    parties = {
        name: members({name: part}, protocol, keeper=keeper, ledger=ledgers[name])[name]
        for name, part in PARTS.items()
    }
    endpoints = {name: party.answer for name, party in parties.items()}
    outcome = coordinator(protocol, endpoints, DATA.catalog, keeper=keeper).train(DATA.facts)
    assert outcome.left_out == {}
    assert outcome.model.guarantee.epsilon == 8.0 and outcome.model.guarantee.delta == 1e-5
    assert np.isfinite(outcome.model.scores(DATA, np.arange(5))).all()
    for ledger in ledgers.values():
        assert len(ledger.entries()) == 1
        assert ledger.recounted(DATA.name, 1e-5) <= 8.0 * (1 + 1e-6)


def test_sums_carry_the_noise_that_training_expects():
    """With all parties the deviation is that of the planned release; the least of them keep the promise."""
    protocol = protocol_of("popularity", 1.0, delta=1e-5)
    results = train(protocol, PARTS, DATA).rounds[0].result
    planned = gaussian_multiplier(protocol.planned().epsilon, 1e-5)
    assert math.isclose(results.noise["total"], planned, rel_tol=1e-6)
    assert planned * math.sqrt(3 / 4) >= gaussian_multiplier(1.0, 1e-5) * (1 - 1e-6)
    exact = DATA.total(ItemVotes(n_items=DATA.n_items, norm="l2")).floats()
    seen = np.concatenate(
        [
            train(protocol, PARTS, DATA, seed=seed).rounds[0].result.arrays["total"] - exact
            for seed in range(20)
        ]
    )
    assert abs(seen.std() / planned - 1) < 0.15


def questions(kind="ratings", epsilon=8.0):
    """Return a protocol and the questions that a run of it asked."""
    protocol = protocol_of(kind, epsilon, delta=1e-5)
    counted = []
    keeper = keeper_of(protocol, PARTS)
    parties = members(PARTS, protocol, keeper=keeper)
    endpoints = {name: party.answer for name, party in parties.items()}

    def watched(raw):
        question = decode(raw)
        if question.kind != "confirm":
            # A party without these answers would see from the chains that it is behind.
            own = {name: value for name, value in question.fields.items() if name != "chains"}
            counted.append(replace(question, fields=own))
        return endpoints["p0"](raw)

    coordinator(protocol, endpoints | {"p0": watched}, DATA.catalog, keeper=keeper).train(DATA.facts)
    return protocol, counted


def fresh_party(protocol):
    return members({"p0": PARTS["p0"]}, protocol, keeper=keeper_of(protocol, PARTS))["p0"]


def test_a_party_keeps_the_account_whatever_it_is_asked():
    """The run's own questions are answered; one more, or one with less noise, is not."""
    protocol, counted = questions()
    party = fresh_party(protocol)
    for question in counted:
        assert decode(party.answer(encode(question))).kind == "sum"
    more = replace(counted[0], step=len(counted))
    assert decode(party.answer(encode(more))).fields["reason"] == "twice"
    quieter = replace(counted[0], fields={**counted[0].fields, "sigma": counted[0].fields["sigma"] / 10})
    assert decode(fresh_party(protocol).answer(encode(quieter))).kind == "declined"
    without = replace(counted[0], fields={**counted[0].fields, "sigma": 0.0})
    assert decode(fresh_party(protocol).answer(encode(without))).kind == "declined"


def test_one_loud_question_takes_the_whole_promise():
    protocol, counted = questions("choices")
    whole = gaussian_multiplier(protocol.planned().epsilon, protocol.delta)
    party = fresh_party(protocol)
    loud = replace(counted[1], step=0, fields={**counted[1].fields, "sigma": whole})
    assert decode(party.answer(encode(loud))).kind == "sum"
    quiet = replace(counted[1], step=1, fields={**counted[1].fields, "sigma": 1e3 * whole})
    assert decode(party.answer(encode(quiet))).kind == "declined"


def hostile(question):
    """Yield questions that no honest coordinator asks."""
    fields = dict(question.fields)
    for name, values in {
        "statistic": ["ScaledMoment", "", 7],
        "part": ["other", ""],
        "sigma": [-1.0, "much", 1e300],
        "given half": [0.0, -1.0, 1e300, "x"],
        "given n_items": [10**9, -1],
        # Below 1 the constant among the factors would be longer than all of them may be.
        "given longest": [0.0, 0.5, 1 - 1e-12, 1e300],
        # Beyond 1 a sum of squares could lose its digits, and with them the bound.
        "given near": [-0.1, 1.1, 1e9],
        "given apart": [-1e9, 1.1],
    }.items():
        for own in {name, name.replace("given ", "given asked.")} & fields.keys():
            yield from (replace(question, fields={**fields, own: value}) for value in values)
    for path, array in question.arrays.items():
        name = path.removeprefix("asked.")
        # Fewer items may take part; everything else has the catalog's size, or that of another array.
        wrong = [
            array[::-1] if name == "top" else array[:-1],
            array[None],
            array.astype(np.float64) * np.nan,
            array.astype(np.uint64),
        ]
        # Weights of co-occurrences are divided by their largest, so they may have any size, but no sign.
        wrong.append(np.full_like(array, {"top": 2**40, "weight": -1.0}.get(name, 1e40)))
        wrong.append(np.zeros((2**20, 2)))
        for other in wrong:
            yield replace(question, arrays={**question.arrays, path: other})
    yield replace(question, arrays={**question.arrays, "more": np.zeros(1)})


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["ratings", "choices"])
def test_hostile_questions_are_declined_and_cost_nothing(kind):
    protocol, counted = questions(kind, epsilon=30.0)
    party, tried = fresh_party(protocol), 0
    for question in counted:
        for false in hostile(question):
            assert decode(party.answer(encode(false))).kind == "declined"
            tried += 1
    assert tried > 30
    # The whole promise is left: it is what the honest questions take.
    assert all(decode(party.answer(encode(question))).kind == "sum" for question in counted)


def test_statistics_are_written_and_read_back():
    _, counted = questions()
    for question in counted:
        asked = Answerable.of().read(question, DATA.n_items)
        again = Answerable.of().write(asked)
        assert {name: question.fields[name] for name in again.fields} == dict(again.fields)
        assert all(np.array_equal(again.arrays[name], question.arrays[name]) for name in question.arrays)
        # The exact sums are those of the statistic that was asked for.
        assert asked.statistic.over(DATA).arrays[0].any()


def test_statistics_of_single_ratings_are_not_asked():
    statistic = RatingShares(low=1.0, width=4.0)
    with refuses("statistic-not-answered"):
        Answerable.of().write(Asked(statistic, statistic.parts[0], 1.0))
    votes = ItemVotes(n_items=DATA.n_items, norm="l1")
    with pytest.raises(Refused):
        Answerable.of().read(Answerable.of().write(Asked(votes, votes.parts[0], 1.0)), DATA.n_items)


def test_models_that_see_more_than_sums_are_refused():
    with refuses("not-over-parties"):
        protocol_for(Als(epsilon=math.inf), DATA.facts, NOISE)
    with pytest.raises(ParameterError, match=r"looks at more than sums|draws noise"):
        next_question(EstimatorSums.of(Als(epsilon=math.inf), DATA.facts, NOISE), DATA.n_items)
    with refuses("broken-rule", name="delta", value=0.0):
        protocol_for(Popularity(epsilon=1.0, delta=0.0), DATA.facts, NOISE)


def test_a_party_that_is_left_out_leaves_the_promise():
    protocol = protocol_of("biases", 8.0, delta=1e-5)

    def crash(raw):
        raise RuntimeError("gone")

    outcome = train(protocol, PARTS, DATA, replaced={"p2": crash})
    assert outcome.left_out == {"silent": len(outcome.rounds)}
    assert outcome.model.guarantee.epsilon == 8.0


def test_parties_with_other_items_are_one_catalog():
    """Items that only one party has are learned from its people; the model is that of the pooled data."""
    foreign = DATA.items % 3 == 0
    owner = np.arange(DATA.n_users) % 4
    keep = ~(foreign & (owner[DATA.rows()] == 1))
    pooled = Interactions.from_arrays(
        DATA.users.id_at(DATA.rows()[keep]),
        DATA.catalog.id_at(DATA.items[keep]),
        DATA.values[keep],
        catalog=DATA.catalog,
        people=DATA.users,
        facts=DATA.facts,
        name=DATA.name,
    )
    parts = {f"p{k}": pooled.select_users(np.flatnonzero(owner == k)) for k in range(4)}
    assert not (parts["p1"].items % 3 == 0).any()
    protocol = protocol_of("ratings", math.inf)
    model = train(protocol, parts, pooled).model
    assert np.array_equal(
        model.scorer.part("item_bias"), protocol.estimator.fit(pooled).scorer.part("item_bias")
    )


def test_simulation_deals_people_out():
    protocol = protocol_of("biases", math.inf)
    outcome = simulate_parties(protocol, DATA, 4, random=PrivacyRandom.simulate(1))
    pooled = protocol.estimator.fit(DATA)
    assert np.array_equal(outcome.model.scorer.part("item_bias"), pooled.scorer.part("item_bias"))
