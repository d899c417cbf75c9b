"""Algorithm 1 of DPIMF over parties: as printed without a guarantee, and ours with one."""

import contextlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.cli.federation import agreed_protocol
from discreet.core.randomness import PrivacyRandom
from discreet.federated.coordinator import Coordinator
from discreet.federated.errors import CannotAverage, NoGuaranteeAsPrinted, SharedUsersAreSimulated
from discreet.federated.identity.agreement import COORDINATOR, Agreement
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.choosing import item_protocol, simulated_protocol
from discreet.federated.protocols.printed_dpimf import PrintedItems, PrintedUsers
from discreet.federated.serving.party import joining
from discreet.federated.simulation import simulate, simulate_parties, simulate_shared_users, split_items
from discreet.federated.transport import InProcess
from discreet.federated.wire import Message, Refused
from discreet.models.popularity import Popularity
from discreet.papers.dpimf.estimators import Dpimf, Dpmf, interactions_matrix
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.papers.dpimf.theory import LOSSES
from discreet.privacy.ledger.ledger import Ledger
from federation import members, toy_parts, train

DATA, PARTS = toy_parts(parties=3, n_items=30, per_user=8)
NOISE = SharedNoise(parties=3, missing=1)
SIMULATED = PrivacyRandom.simulate(0)


def alternated(model, rounds):
    """Return the items of one data owner after so many alternations from the protocol's start."""
    rows, items = interactions_matrix(DATA), PrintedItems.of(model).profiles([], DATA.n_items)
    for _ in range(rounds):
        items = model.exact(rows.T.tocsr(), model.exact(rows, items))
    return items


@pytest.mark.parametrize("loss", LOSSES)
def test_one_party_without_noise_alternates_as_one_data_owner_does(loss):
    model = Dpimf(loss=loss, rounds=3, local=2, factors=3)
    outcome = simulate_parties(PrintedItems.of(model), DATA, 1, random=SIMULATED)
    np.testing.assert_allclose(outcome.model.scorer.item_factors, alternated(model, 6), rtol=1e-8)
    # The twin: one alternation less is a different model.
    assert not np.allclose(outcome.model.scorer.item_factors, alternated(model, 5), rtol=1e-8)


def test_the_coordinator_averages_what_parties_solve():
    model = Dpimf(rounds=1, factors=3)
    protocol = PrintedItems.of(model)
    start = protocol.profiles([], DATA.n_items)
    solved = [
        model.exact(rows.T.tocsr(), model.exact(rows, start))
        for rows in map(interactions_matrix, PARTS.values())
    ]
    outcome = train(protocol, PARTS, DATA)
    np.testing.assert_allclose(outcome.model.scorer.item_factors, np.mean(solved, axis=0), rtol=1e-10)


@pytest.mark.parametrize("model", [Dpimf(epsilon=1.0), Dpmf(epsilon=1.0), Dpimf(epsilon=1.0, solve="users")])
def test_printed_noise_is_drawn_and_the_label_states_that_it_guarantees_nothing(model):
    protocol = simulated_protocol(replace(model, rounds=2), DATA.facts, NOISE, "sums")
    outcome = simulate(protocol, DATA, 3, random=PrivacyRandom.from_os())
    assert not outcome.model.guarantee.is_private
    assert model.refuted in outcome.model.guarantee.notes
    clear = simulated_protocol(replace(model, rounds=2, epsilon=math.inf), DATA.facts, NOISE, "sums")
    exact = simulate(clear, DATA, 3, random=SIMULATED)
    assert not np.allclose(outcome.model.scorer.item_factors, exact.model.scorer.item_factors)
    assert model.refuted not in exact.model.guarantee.notes


def test_less_epsilon_is_more_noise_over_parties():
    def moved(epsilon):
        model = Dpimf(epsilon=epsilon, rounds=1, factors=3)
        noisy = train(PrintedItems.of(model), PARTS, DATA).model.scorer.item_factors
        return np.abs(noisy - alternated_by_parties).mean()

    exact = PrintedItems.of(Dpimf(rounds=1, factors=3))
    alternated_by_parties = train(exact, PARTS, DATA).model.scorer.item_factors
    assert moved(0.1) > 3 * moved(10.0)


def test_parties_that_share_users_keep_their_items_and_join_them_in_a_simulation():
    model = Dpimf(rounds=2, factors=3, solve="users")
    outcome = simulate_shared_users(PrintedUsers.of(model), DATA, 3, random=SIMULATED)
    scorer = outcome.model.scorer
    parts = split_items(DATA, 3)
    assert sum(part.n_items for part in parts.values()) == DATA.n_items
    users, (rows, *_) = scorer.user_factors, [interactions_matrix(DATA)]
    np.testing.assert_allclose(scorer.item_factors, model.exact(rows.T.tocsr(), users), rtol=1e-8)
    assert outcome.model.scorer.knows(DATA.users.ids[0])


def test_a_party_answers_the_agreed_rounds_and_records_a_release_without_a_guarantee():
    protocol, ledger = PrintedItems.of(Dpimf(epsilon=1.0, rounds=2)), Ledger.in_memory()
    one = members(PARTS, protocol, ledger=ledger)["p0"]
    price = protocol.price(Message(kind="items"))
    assert [protocol.allows(price, [price] * n) for n in range(3)] == [True, True, False]
    assert price == Fraction(1, 2)
    assert not protocol.allows(protocol.price(Message(kind="users")), [])
    assert not one.promise.is_private
    train(protocol, PARTS, DATA, replaced={"p0": one.answer})
    (entry,) = ledger.entries()
    assert math.isinf(entry.guarantee.epsilon)


@pytest.mark.parametrize(
    "profiles", [np.full((30, 8), 1e3), np.full((30, 8), np.nan), np.zeros((30, 7)), np.zeros((29, 8))]
)
def test_profiles_that_no_coordinator_can_mean_are_rejected(profiles):
    protocol = PrintedItems.of(Dpimf(epsilon=1.0))
    good = Message(kind="items", arrays={"profiles": np.ones((30, 8))})
    assert set(protocol.shapes(good, 30)) == {"profiles", "listed"}
    with pytest.raises(Refused):
        protocol.shapes(replace(good, arrays={"profiles": profiles}), 30)
    with pytest.raises(Refused):
        protocol.shapes(replace(good, kind="users"), 30)


def test_items_that_a_party_does_not_list_are_not_averaged():
    protocol = PrintedItems.of(Dpimf())
    part = Message(kind="items", arrays={"profiles": np.ones((4, 8)), "listed": np.ones(4)})
    some = protocol.limited(part, np.array([0, 2]))
    totals = {name: np.asarray(part.arrays[name]) + np.asarray(some.arrays[name]) for name in part.arrays}
    np.testing.assert_array_equal(protocol.combine(totals, 2)["profiles"], np.ones((4, 8)))


def test_averages_with_a_guarantee_are_those_of_our_model():
    model = ImplicitObjective(epsilon=4.0, rounds=2, factors=3)
    protocol = item_protocol(model, DATA.facts, NOISE, "averages")
    assert protocol == AveragedItems(epsilon=4.0, delta=model.delta, rounds=2, factors=3)
    outcome = simulate(protocol, DATA, 3)
    assert (outcome.model.guarantee.epsilon, outcome.model.guarantee.delta) == (4.0, model.delta)


@pytest.mark.parametrize(
    ("model", "way", "error"),
    [
        (Popularity(epsilon=1.0), "averages", CannotAverage),
        (ImplicitObjective(epsilon=1.0, loss="symmetric"), "averages", CannotAverage),
        (Dpimf(epsilon=1.0, solve="users"), "sums", SharedUsersAreSimulated),
    ],
)
def test_models_that_cannot_run_in_this_way_are_rejected(model, way, error):
    with pytest.raises(error):
        item_protocol(model, DATA.facts, NOISE, way)


def test_a_printed_protocol_takes_no_guarantee():
    with pytest.raises(NoGuaranteeAsPrinted):
        PrintedItems(estimator=Dpimf(epsilon=1.0), epsilon=1.0)


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "dpimf", "--epsilon", "1", "--set", "rounds=2"),
        ("--model", "implicit-objective", "--epsilon", "5", "--protocol", "averages", "--set", "rounds=1"),
    ],
    ids=lambda options: options[1],
)
def test_members_of_an_agreement_average_without_a_keeper(options, tmp_path, discreet):
    (tmp_path / "items.txt").write_text("\n".join(map(str, DATA.catalog.ids)))
    folder = tmp_path / "f"
    given = ("--parties", "p0,p1,p2", "--items", str(tmp_path / "items.txt"), "--implicit")
    code, _, error = discreet("federation", "init", str(folder), *given, *options)
    assert code == 0, error
    agreement = Agreement.read(folder / COORDINATOR)
    estimator, protocol = agreed_protocol(agreement)
    assert estimator.name == options[1]

    def no_keeper(*_):
        pytest.fail("a keeper was asked")

    whole = DATA.select_items(DATA.catalog.index_of(agreement.catalog.ids)).with_facts(agreement.facts)
    with contextlib.ExitStack() as open_members:
        ends = {}
        for place, name in enumerate(agreement.parties):
            part = whole.select_users(np.arange(place, whole.n_users, 3))
            join = joining(agreement, protocol, part, Ledger.in_memory())
            ends[name] = open_members.enter_context(join(name, folder / name, no_keeper))
        outcome = Coordinator(
            protocol,
            InProcess(ends),
            parties=list(ends),
            shared=agreement.catalog,
            run=agreement.run,
            least=2,
        ).train(agreement.facts)
    assert all(len(entry.counted) == 3 for entry in outcome.rounds)
    assert outcome.model.guarantee.is_private == (options[1] != "dpimf")
