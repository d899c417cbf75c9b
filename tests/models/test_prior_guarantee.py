"""The guarantee of a fit that starts from an earlier release: every weakness of that release is kept."""

from dataclasses import replace

import pytest

import discreet
from assumption_examples import CONDITIONS, EXAMPLES, TAKEN_CATALOG, conditions, stated
from discreet.core.checks import PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.models.user_factorization.estimator import carrying_over
from discreet.privacy.guarantee import Basis, Fact, Kind, Trust
from toy import toy_interactions


@pytest.fixture(scope="module")
def model():
    data = toy_interactions(n_users=60, n_items=20, per_user=8)
    return discreet.UserFactorization(epsilon=8.0).fit(data)


@pytest.fixture
def save(model, tmp_path):
    """Save the model with another guarantee, and return the file."""

    def saved(**changes):
        path = tmp_path / "earlier.discreet"
        replace(model, guarantee=replace(model.guarantee, **changes)).save(path, force=True)
        return path

    return saved


@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: f"{one.kind}-{one.fact}")
def test_each_condition_of_the_earlier_release_is_a_condition_of_the_fit(model, save, one):
    declared = replace(model.guarantee, assumes=())
    assert one in carrying_over(declared, save(assumes=(one,))).conditions
    assert carrying_over(declared, save(assumes=())).conditions == ()


def test_only_conditions_are_carried_over(model, save):
    started = carrying_over(replace(model.guarantee, assumes=()), save(assumes=tuple(EXAMPLES)))
    assert set(started.conditions) == set(CONDITIONS)
    assert {one.kind for one in started.assumes} == {Kind.TAKEN, Kind.UNKNOWN, Kind.EARLIER}


def test_the_earlier_release_and_its_cost_are_stated(model, save):
    promise = replace(model.guarantee, assumes=())
    started = carrying_over(promise, save(epsilon=3.0, delta=1e-5))
    detail = stated(started)[Kind.EARLIER, Fact.PRIOR]
    assert detail == {"epsilon": 3.0, "delta": 1e-5, "simulated": False}
    assert (started.epsilon, started.delta) == (promise.epsilon, promise.delta)
    assert started.basis is Basis.PROVED and not started.simulated


def test_a_weaker_basis_and_simulated_noise_are_carried_over(model, save):
    started = carrying_over(model.guarantee, save(basis=Basis.AS_PUBLISHED))
    assert started.basis is Basis.AS_PUBLISHED
    started = carrying_over(model.guarantee, save(simulated=True))
    assert started.simulated and stated(started)[Kind.EARLIER, Fact.PRIOR]["simulated"]


def test_a_release_that_is_not_private_or_promises_something_else_is_rejected(model, save):
    with pytest.raises(PrivacyError):
        carrying_over(model.guarantee, save(epsilon=float("inf")))
    with pytest.raises(PrivacyError):
        carrying_over(model.guarantee, save(trust=Trust.CENTRAL))


def test_a_fit_with_declared_facts_is_conditional_if_its_prior_is(model, save):
    data = toy_interactions(n_users=60, n_items=20, per_user=8)
    for assumes, wanted in (((TAKEN_CATALOG,), [Fact.CATALOG]), ((), [])):
        estimator = discreet.UserFactorization(epsilon=8.0, prior=str(save(assumes=assumes)))
        listed = data.with_facts(replace(data.facts, from_file=()))
        fitted = estimator.fit(listed, random=PrivacyRandom.simulate(2))
        assert conditions(fitted.guarantee) == wanted
