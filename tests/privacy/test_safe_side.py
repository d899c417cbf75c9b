"""Sums and conversions of accounting are rounded to the safe side, never to the nearest float."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.privacy.accounting.events import event_to_json, pure_event
from discreet.privacy.accounting.gaussian import gaussian_multiplier, least
from discreet.privacy.accounting.rounding import left_over
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.accounts import Account, capacity, weight

EPSILONS = np.random.default_rng(3).uniform(0.01, 1.9, 200)


def promise(epsilon, delta=0.0):
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.CENTRAL,
        basis=Basis.PROVED,
        proof="a test",
    )


@pytest.mark.parametrize("recorded", [False, True])
def test_a_pure_release_weighs_at_least_half_its_square(recorded):
    """To the nearest float about half of these would weigh too little."""
    nearest = 0
    for epsilon in EPSILONS.tolist():
        exact = Fraction(epsilon) ** 2 / 2
        events = [event_to_json(pure_event(epsilon))] if recorded else []
        found = weight(Account.CONCENTRATED, promise(epsilon), events)
        assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 10**9))
        nearest += Fraction(epsilon * epsilon / 2) < exact
    assert nearest > 50


def test_a_budget_holds_no_more_than_the_one_release_it_allows():
    """The exact weight of that release is 1 / multiplier^2; the nearest float is often larger."""
    nearest = 0
    for epsilon in EPSILONS[:40].tolist():
        multiplier = gaussian_multiplier(epsilon, 1e-6)
        exact = 1 / Fraction(multiplier) ** 2
        found = Fraction(capacity(Account.GAUSSIAN, promise(epsilon, 1e-6)))
        assert exact * (1 - Fraction(1, 10**9)) <= found <= exact
        nearest += Fraction(multiplier**-2) > exact
    assert nearest > 5


def test_what_is_left_never_exceeds_the_difference():
    for limit, spent in zip(EPSILONS[1:].tolist(), EPSILONS[:-1].tolist(), strict=True):
        high, low = max(limit, spent), min(limit, spent)
        assert 0 <= Fraction(left_over(high, low)) <= Fraction(high) - Fraction(low)
        assert left_over(low, high) == left_over(low, low) == 0.0


@pytest.mark.parametrize("bound", [1e-290, 1e-9, 0.3, 1.0, 4.0, 7e11])
@pytest.mark.parametrize("guess", [1e-6, 1.0, 1e6])
def test_the_least_that_is_enough_is_found_from_any_guess(bound, guess):
    found = least(lambda x: x >= bound, guess=guess)
    assert bound <= found <= bound * (1 + 1e-13)


def test_what_is_always_or_never_enough_ends():
    assert 0 < least(lambda _: True, guess=1.0) < 1e-299
    assert math.isinf(least(lambda _: False, guess=1.0))
