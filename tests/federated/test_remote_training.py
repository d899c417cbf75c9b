"""Training over parties: one run, exact prices, one calibration per question, and resuming."""

import threading
from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.federated.errors import FederationError
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols import estimator_sums
from discreet.federated.protocols.estimator_sums import RemoteTraining, RemoteUsers, protocol_for
from discreet.federated.simulation import simulate_parties
from discreet.federated.transport import InProcess
from discreet.federated.wire import decode
from discreet.models.biases import Biases
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.privacy.accounting import gaussian
from discreet.privacy.errors import Overspent
from discreet.privacy.noise_shares import SharedBudget
from discreet.privacy.session import Session
from discreet.statistics.counts import ItemVotes, UserCount
from discreet.testing import refuses
from federation import coordinator, keeper_of, members, next_question, toy_parts

DATA, PARTS = toy_parts(parties=3)
NOISE = SharedNoise(parties=3, missing=1)
MODELS = {
    "popularity": Popularity(epsilon=4.0, delta=1e-6),
    "biases": Biases(epsilon=4.0, delta=1e-6),
    "ratings": UserFactorization(epsilon=4.0, delta=1e-6),
    "choices": UserFactorization(epsilon=4.0, delta=1e-6, feedback="implicit"),
    "objective": ImplicitObjective(epsilon=4.0, delta=1e-6),
}


@pytest.fixture
def trainings(monkeypatch):
    """Return a list that grows by one with each training that begins."""
    begun = []
    real = estimator_sums._trained

    def counted(protocol, sums):
        begun.append(protocol)
        return real(protocol, sums)

    monkeypatch.setattr(estimator_sums, "_trained", counted)
    return begun


def simulated(model):
    return simulate_parties(protocol_for(model, DATA.facts, NOISE), DATA, 3, random=PrivacyRandom.simulate(1))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MODELS)
def test_a_run_trains_once(name, trainings):
    assert len(simulated(MODELS[name]).rounds) >= 1
    assert len(trainings) == 1


def test_the_count_sees_a_training_per_question(trainings):
    protocol = protocol_for(MODELS["ratings"], DATA.facts, NOISE)
    rounds = simulated(MODELS["ratings"]).rounds
    trainings.clear()
    for done in range(len(rounds)):
        assert next_question(protocol, DATA.n_items, [entry.result for entry in rounds[:done]]) is not None
    assert len(trainings) == len(rounds) > 1


# Calibrations


@pytest.fixture
def searches(monkeypatch):
    """Return the arguments of every calibration that is computed, not looked up."""
    found = []
    for name in ("_searched_multiplier", "_searched_epsilon"):
        cached = getattr(gaussian, name)
        cached.cache_clear()

        def counted(*given, name=name, compute=cached.__wrapped__):
            found.append((name, given))
            return compute(*given)

        monkeypatch.setattr(gaussian, name, gaussian.lru_cache(maxsize=4096)(counted))
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MODELS)
def test_no_calibration_is_computed_twice(name, searches):
    rounds = simulated(MODELS[name]).rounds
    assert len(searches) == len(set(searches)) <= 3 + len(rounds)


def test_the_count_sees_calibrations_that_are_repeated(searches, monkeypatch):
    monkeypatch.setattr(gaussian, "_searched_multiplier", gaussian._searched_multiplier.__wrapped__)
    simulated(MODELS["ratings"])
    assert len(searches) > len(set(searches))


# What is spent


def asked_by(protocol):
    """Return the questions of one run, and how much of the budget they cost together."""
    seen = []
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}

    def watched(raw):
        seen.append(decode(raw))
        return endpoints["p0"](raw)

    coordinator(protocol, endpoints | {"p0": watched}, DATA.catalog, keeper=keeper).train(DATA.facts)
    whole = Fraction(protocol.budget.planned_multiplier) ** 2
    return seen, sum((protocol.price(one) for one in seen if one.kind == "sum"), Fraction(0)) * whole


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MODELS)
def test_parties_spend_what_they_guarantee(name):
    protocol = protocol_for(MODELS[name], DATA.facts, NOISE)
    _, spent = asked_by(protocol)
    assert 1 - Fraction(1, 10**12) <= spent <= 1


def test_prices_are_exact():
    """Two halves cost one; a deviation that is one float smaller costs more than is left."""
    budget = SharedBudget(epsilon=2.0, delta=1e-6, parties=3, least=2)
    sigma = float(np.sqrt(2) * budget.planned_multiplier)
    whole = Fraction(budget.planned_multiplier) ** 2
    # The least float that is enough.
    while 2 * budget.price(1.0, sigma) * whole > 1:
        sigma = nextafter(sigma, inf)
    while 2 * budget.price(1.0, nextafter(sigma, 0.0)) * whole <= 1:
        sigma = nextafter(sigma, 0.0)
    less = nextafter(sigma, 0.0)
    assert budget.covers([budget.price(1.0, sigma)] * 2)
    assert not budget.covers([budget.price(1.0, less)] * 2)
    assert not budget.covers([budget.price(1.0, sigma)] * 2 + [budget.price(1.0, 1e3)])
    assert not budget.covers([budget.price(1.0, 0.0)])
    assert not budget.covers([-1.0]) and not budget.covers([float("nan")])


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 4.0, 30.0])
@pytest.mark.parametrize(("parties", "least"), [(2, 2), (3, 2), (10, 3)])
def test_the_fewest_parties_add_enough_noise(epsilon, parties, least):
    budget = SharedBudget(epsilon=epsilon, delta=1e-6, parties=parties, least=least)
    for bound, share in ((1.0, Fraction(1)), (0.3, Fraction(1, 7)), (2.0**0.5, Fraction(3, 10))):
        planned = Fraction(budget.planned_multiplier) * Fraction(bound)
        sigma = float(planned) * float(1 / share) ** 0.5 * (1 + 1e-12)
        noise = Fraction(budget.deviation(bound, sigma))
        price = budget.price(bound, sigma)
        # The share of the guarantee that the least noise costs is no more than the share that was metered.
        assert (Fraction(bound) / noise) ** 2 * Fraction(budget.multiplier) ** 2 <= (
            price * Fraction(budget.planned_multiplier) ** 2
        )


# Resuming


class Interrupted(InProcess):
    """A transport that loses all parties after some rounds."""

    def __init__(self, endpoints, rounds):
        super().__init__(endpoints)
        self.left = rounds

    def ask(self, question, parties, seconds):
        self.left -= 1
        return iter(()) if self.left < 0 else super().ask(question, parties, seconds)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["ratings", "objective"])
def test_a_run_that_resumes_after_any_round_gives_the_same_model(name, tmp_path, trainings):
    protocol = protocol_for(MODELS[name], DATA.facts, NOISE)

    def run(state, rounds):
        keeper = keeper_of(protocol, PARTS)
        endpoints = {one: party.answer for one, party in members(PARTS, protocol, keeper=keeper).items()}
        options = {"state": tmp_path / state, "keeper": keeper, "seconds": 5.0}
        first = coordinator(
            protocol, endpoints, DATA.catalog, transport=Interrupted(endpoints, rounds), **options
        )
        if rounds < 100:
            with pytest.raises(FederationError):
                first.train(DATA.facts)
            first._journal.close()
            first = coordinator(protocol, endpoints, DATA.catalog, **options)
        return first.train(DATA.facts)

    whole = run("whole", 100)
    for done in range(len(whole.rounds)):
        trainings.clear()
        resumed = run(f"resumed {done}", done)
        assert len(trainings) == 2, "once before and once after the restart"
        for key, array in whole.model.scorer.arrays().items():
            assert np.array_equal(resumed.model.scorer.arrays()[key], array)
    assert not any(thread.name == "training" for thread in threading.enumerate())


def test_sums_that_training_cannot_use_end_the_run_and_are_not_kept(monkeypatch):
    protocol = protocol_for(MODELS["popularity"], DATA.facts, NOISE)
    keeper = keeper_of(protocol, PARTS)
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    run = coordinator(protocol, endpoints, DATA.catalog, keeper=keeper)

    def broken(self, session, progress):
        session.gaussian().release(UserCount(), Fraction(1))
        raise ZeroDivisionError

    monkeypatch.setattr(Popularity, "_train", broken)
    with refuses("no-model-from-sum", why="ZeroDivisionError"):
        run.train(DATA.facts)
    assert run.rounds == ()


# The session of a coordinator


def opened(train):
    promise = MODELS["popularity"].promise(DATA.facts)

    def run(sums):
        return train(Session.open(RemoteUsers(DATA.facts), promise, None, releases=sums))

    return RemoteTraining(run)


def test_a_coordinator_has_no_rows_and_no_noise():
    with refuses("more-than-sums"):
        _ = RemoteUsers(DATA.facts).indptr
    for ask in (
        lambda session: session._noise_source(),
        lambda session: session.with_stream("own"),
    ):
        training = opened(ask)
        with refuses("no-noise-source"):
            training.question()


def test_overspending_ends_training_before_a_question():
    votes = ItemVotes(n_items=DATA.n_items, norm="l2")

    def greedy(session):
        part = session.gaussian()
        part.release(votes, Fraction(1))
        part.release(votes, Fraction(1, 10**9))

    training = opened(greedy)
    asked = training.question()
    assert asked.statistic is votes
    with pytest.raises(Overspent):
        training.answer(np.zeros(asked.part.shape))
    with refuses("training-out-of-step"):
        training.answer(np.zeros(asked.part.shape))
    training.close()
