"""A guarantee is a value with a privacy definition: its laws, and its way through JSON."""

import itertools
import json
import math
import operator
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assumption_examples import TAKEN_CATALOG, TAKEN_SCALE
from discreet.core.checks import ParameterError
from discreet.privacy.guarantee import Assumption, Basis, Fact, Guarantee, Kind, Neighbors, Unit
from discreet.testing import refuses
from privacy_values import FRAMES, deltas, epsilons, guarantees, make


@given(guarantees())
def test_json_both_ways(promise):
    record = json.loads(json.dumps(promise.to_json(), allow_nan=False))
    assert Guarantee.from_json(record) == promise
    assert record["sentence"] == promise.sentence()


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "one"},
        {"epsilon": -1},
        {"epsilon": 0},
        {"epsilon": "nan"},
        {"epsilon": True},
        {"epsilon": 10**400},
        {"epsilon": None},
        {"delta": 1.0},
        {"delta": "0"},
        {"unit": "person"},
        {"neighbours": None},
        {"trust": "nobody"},
        {"basis": "none"},
        {"basis": "hearsay"},
        {"simulated": "false"},
        {"simulated": 0},
        {"assumes": "a text"},
        {"assumes": [1]},
        {"assumes": [{}]},
        {"assumes": [{**TAKEN_CATALOG.to_json(), "detail": {}}]},
        {"assumes": [{**TAKEN_CATALOG.to_json(), "detail": {"items": "5"}}]},
        {"assumes": [{**TAKEN_SCALE.to_json(), "detail": {"low": math.inf, "high": 5, "step": None}}]},
        {"assumes": [{**TAKEN_CATALOG.to_json(), "kind": 1}]},
        {"notes": [1]},
    ],
    ids=str,
)
def test_foreign_json_is_refused(change):
    with pytest.raises(ParameterError):
        Guarantee.from_json({**make().to_json(), **change})


@pytest.mark.parametrize("record", [{}, [], "promise", None])
def test_what_is_no_record_is_refused(record):
    with refuses("damaged-record", kind="guarantee"):
        Guarantee.from_json(record)


@pytest.mark.parametrize(
    "name", sorted(make().to_json().keys() - {"sentence", "read_raw_ratings", "large_delta"})
)
def test_an_incomplete_record_is_refused(name):
    record = make().to_json()
    del record[name]
    with refuses("damaged-record", kind="guarantee"):
        Guarantee.from_json(record)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"delta": -1e-9},
        {"delta": 1.0},
        {"delta": math.nan},
        {"unit": "user"},
        {"neighbors": "replace"},
        {"trust": None},
        {"basis": Basis.NONE},
        {"assumes": "text"},
        {"assumes": ("the catalog is public",)},
        {"notes": "text"},
        {"notes": (1,)},
    ],
    ids=str,
)
def test_bad_parts_are_refused(change):
    with pytest.raises(ParameterError):
        make(**change)


def test_a_promise_cannot_be_edited():
    with pytest.raises(FrozenInstanceError):
        make().epsilon = 0.1


def test_a_large_delta_is_a_field_of_its_own():
    large, usual = make(delta=0.5), make(delta=1e-3)
    assert large.to_json()["large_delta"] and Guarantee.from_json(large.to_json()) == large
    assert not usual.has_large_delta and not usual.to_json()["large_delta"]
    old = {name: value for name, value in large.to_json().items() if name != "large_delta"}
    assert Guarantee.from_json(old).has_large_delta, "a file of an earlier version has none"
    assert not make(math.inf, delta=0.5).has_large_delta


@given(epsilons, epsilons, deltas, deltas)
def test_adding_rounds_up_and_never_by_more_than_one_float(first, second, delta, other):
    total = make(first, delta=delta) + make(second, delta=other)
    for got, exact in (
        (total.epsilon, Fraction(first) + Fraction(second)),
        (total.delta, Fraction(delta) + Fraction(other)),
    ):
        assert Fraction(got) >= exact
        assert got == exact or Fraction(math.nextafter(got, 0)) < exact


def test_exact_sums_stay_exact():
    assert (make(0.5) + make(0.5)).epsilon == 1.0


@given(guarantees(), st.data())
def test_addition_commutes_and_weakens(first, data):
    second = replace(
        data.draw(guarantees()), **dict(zip(("unit", "neighbors", "trust"), first.definition, strict=True))
    )
    total, reverse = first + second, second + first
    assert (total.epsilon, total.delta, total.basis) == (reverse.epsilon, reverse.delta, reverse.basis)
    assert set(total.assumes) == set(first.assumes) | set(second.assumes)
    assert total.simulated == (first.simulated or second.simulated)
    assert first <= total and second <= total and total >= first


def test_the_weaker_basis_survives():
    published = make(basis=Basis.AS_PUBLISHED)
    assert (make() + published).basis is Basis.AS_PUBLISHED
    assert (make() + make(math.inf)).basis is Basis.NONE
    assert (make(proof="a.md") + make(proof="a.md")).proof == "a.md"
    assert (make(proof="a.md") + make(proof="b.md")).proof == ""


def test_what_fails_with_certainty_promises_nothing():
    hopeless = make(delta=0.6) + make(delta=0.6)
    assert hopeless.epsilon == math.inf and not hopeless.is_private and hopeless.basis is Basis.NONE
    assert make(5.0, delta=0.01, unit=Unit.RATING).for_user(3).epsilon == math.inf
    with refuses("out-of-range", name="ratings"):
        make(1.0, unit=Unit.RATING).for_user(0)
    assert make(5.0, delta=0.3).to_replace().epsilon == math.inf
    assert make(1e308).to_replace().epsilon == math.inf


def test_privacy_definitions_do_not_mix():
    promises = [make(unit=unit, neighbors=neighbors, trust=trust) for unit, neighbors, trust in FRAMES]
    for first, second in itertools.combinations(promises, 2):
        for act in (operator.add, operator.le, operator.ge):
            with refuses("definitions-unlike", dataset=""):
                act(first, second)


def test_order_is_by_both_numbers():
    assert make(1.0, delta=0.1) <= make(1.0, delta=0.1)
    assert make(1.0) <= make(2.0, delta=0.1)
    assert not make(1.0, delta=0.2) <= make(2.0, delta=0.1)
    assert not make(2.0, delta=0.1) <= make(1.0, delta=0.2)


@given(st.floats(1e-6, 2.0), st.floats(1e-300, 1e-3) | st.just(5e-324), st.integers(1, 300))
def test_group_privacy_is_never_below_the_exact_sum(epsilon, delta, size):
    group = make(epsilon, delta=delta, unit=Unit.RATING).for_user(size)
    with localcontext(prec=60):
        exact = Decimal(delta) * sum((Decimal(epsilon) * k).exp() for k in range(size))
    if exact >= 1:
        assert group.epsilon == math.inf
        return
    if math.isfinite(group.epsilon):
        assert Fraction(group.epsilon) >= Fraction(epsilon) * size
        assert exact <= Decimal(group.delta) <= exact * Decimal(1 + 1e-11) + Decimal("2e-323")
    else:
        assert exact > Decimal("0.999")


def test_group_privacy_of_pure_promises():
    user = make(0.125, unit=Unit.RATING).for_user(8)
    assert (user.unit, user.epsilon, user.delta) == (Unit.USER, 1.0, 0.0)
    assert user.assumes == (Assumption.of(Kind.DECLARED, Fact.RATINGS_PER_USER, ratings=8),)
    value = make(0.125, unit=Unit.VALUE).for_user(8)
    assert Assumption.of(Kind.DECLARED, Fact.RATED_ITEMS) in value.assumes
    assert make(math.inf, delta=0.1, unit=Unit.RATING).for_user(1).epsilon == math.inf
    with refuses("already-per-user"):
        make().for_user(3)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ParameterError):
            make(unit=Unit.RATING).for_user(bad)


def test_replacing_is_removing_and_adding():
    twice = make(0.5, delta=1e-6).to_replace()
    assert twice.neighbors is Neighbors.REPLACE and twice.epsilon == 1.0
    assert twice.delta == pytest.approx(1e-6 * (1 + math.exp(0.5)))
    assert twice.to_replace() is twice


def test_a_larger_delta_may_be_stated_and_a_smaller_one_not():
    assert make(delta=1e-6).to_approximate(1e-5) == make(delta=1e-5)
    for bad in (1e-7, 1.0, -1.0, math.nan):
        with pytest.raises(ParameterError):
            make(delta=1e-6).to_approximate(bad)


def test_simulated_noise_protects_nobody_for_ever():
    simulated = make().as_simulated()
    assert not simulated.is_private and make().is_private
    for derived in (simulated + make(), simulated.to_replace(), simulated.to_approximate(0.1)):
        assert derived.simulated
    assert Guarantee.from_json(simulated.to_json()).simulated


@given(st.floats(1e-300, 1e300))
def test_written_numbers_are_never_below_the_real_ones(epsilon):
    written = dict(make(epsilon).rows())["epsilon"]
    assert epsilon <= float(written) <= epsilon * 1.00101


def test_numbers_read_as_they_were_typed():
    for number in (0.1, 1.0, 2.5, 3.7, 1e-6, 12.34):
        assert float(dict(make(number).rows())["epsilon"]) == number
    assert dict(make(1.0000000000000002).rows())["epsilon"] == "1.001"
