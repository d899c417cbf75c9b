"""A budget is spent once: not by copies, not by forked processes, and not again unless noise is simulated."""

import copy
import os
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from budgets import budget
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.errors import Overspent
from discreet.privacy.guarantee import Unit
from discreet.privacy.mechanisms.additive import gaussian_deviation, laplace_scale
from discreet.privacy.session import Session
from discreet.statistics.counts import RatingShares
from discreet.testing import refuses
from toy import toy_interactions

SHARES = RatingShares(low=1.0, width=4.0)


@cache
def data():
    """Return the ratings; on import nothing is computed."""
    return toy_interactions(n_users=12, n_items=8, per_user=4, seed=1)


def opened(epsilon, *, random=None, delta=0.0):
    return Session.open(data(), budget(epsilon, delta, Unit.VALUE), random or PrivacyRandom.simulate(1))


class Bits:
    """Reports of a device that states any epsilon."""

    name, of = "bits", "rating"

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def over(self, data, random):
        return data.n_ratings


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_has_no_copies(duplicate):
    with refuses("made-by-hand"):
        duplicate(opened(1.0))


def test_a_forked_process_spends_nothing(monkeypatch):
    whole = opened(1.0, random=PrivacyRandom.from_os())
    pure = whole.laplace(epsilon=0.5)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    for spend in (
        lambda: pure.release(SHARES, Fraction(1)),
        lambda: pure.split(Fraction(1, 2)),
        lambda: pure.perturb(Bits(0.5)),
        whole.laplace,
        lambda: whole.part(epsilon=0.1),
    ):
        with refuses("made-by-hand"):
            spend()
    assert not whole.log
    monkeypatch.setattr(os, "getpid", lambda: parent)
    pure.release(SHARES, Fraction(1))
    assert len(whole.log) == 1


def test_only_simulated_noise_repeats_and_its_log_is_its_own():
    pure = opened(1.0).laplace()
    first = pure.repeated().release(SHARES, Fraction(1))
    assert pure.left == 1 and not pure.log
    again = pure.repeated()
    second = again.release(SHARES, Fraction(1))
    assert first.deviation == second.deviation and first.values != second.values
    with pytest.raises(Overspent):
        again.release(SHARES, Fraction(1, 100))
    with refuses("spent-once"):
        opened(1.0, random=PrivacyRandom.from_os()).laplace().repeated()


def test_a_stream_of_its_own_does_not_depend_on_other_draws():
    found = []
    for before in (0, 3):
        whole = opened(4.0)
        for _ in range(before):
            whole.laplace(epsilon=0.5).release(SHARES, Fraction(1))
        found.append(whole.with_stream("answers").laplace(epsilon=1.0).release(SHARES, Fraction(1)).values)
    assert found[0] == found[1]
    whole = opened(4.0)
    whole.with_stream("answers").laplace(epsilon=3.0)
    with pytest.raises(Overspent):
        whole.laplace(epsilon=2.0)
    with refuses("wrong-budget", kind="pure", needs=("approximate", "none")):
        whole.laplace().with_stream("late")


@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 3), (0.1, 7), (1.7, 10), (5.0, 49)])
def test_rounds_of_devices_spend_all_that_floats_can_spend(epsilon, rounds):
    pure = opened(epsilon).laplace()
    for part in pure.rounds(rounds):
        part.perturb(Bits(part.epsilon))
        with pytest.raises(Overspent):
            part.perturb(Bits(5e-324))
    cost = sum(entry.epsilon for entry in pure.log)
    assert pure.unspent() == 0 and Fraction(epsilon) * (1 - Fraction(1, 2**50)) <= cost <= epsilon


def test_a_device_may_not_cost_a_last_bit_more():
    part = opened(1.0).laplace().rounds(3)[0]
    with pytest.raises(Overspent):
        part.perturb(Bits(np.nextafter(part.epsilon, 1.0)))
    assert not part.log


@pytest.mark.parametrize("rounds", [1, 3, 20])
def test_noise_is_planned_as_it_is_drawn(rounds):
    pure = opened(1.1).laplace().rounds(rounds)[0]
    pure.release(SHARES, Fraction(1))
    assert Fraction(laplace_scale(epsilon=1.1, bound=1.0, rounds=rounds)) == pure.log[0].scale

    class Rows:
        parts = (SHARES.parts[0]._replace(norm="l2"),)
        over = SHARES.over

    whole = opened(1.1, delta=1e-6).gaussian()
    whole.rounds(rounds)[0].release(Rows(), Fraction(1))
    planned = gaussian_deviation(epsilon=1.1, delta=1e-6, bound=1.0, rounds=rounds)
    assert Fraction(planned) == whole.log[0].scale
    assert planned != gaussian_deviation(epsilon=1.1, delta=1e-6, bound=1.0, rounds=rounds + 1)


def test_noise_that_cannot_be_drawn_is_rejected_when_planned():
    with refuses("broken-rule", name="scale"):
        laplace_scale(epsilon=1000.0, bound=1.0)
    with refuses("broken-rule", name="sigma"):
        gaussian_deviation(epsilon=1000.0, delta=1e-6, bound=1.0)


def test_a_pattern_has_no_values_and_no_times():
    pattern = opened(1.0).pattern()
    np.testing.assert_array_equal(pattern.items, data().items)
    np.testing.assert_array_equal(pattern.indptr, data().indptr)
    assert pattern.users is data().users and not pattern.values.any()
    assert pattern.times is None and pattern.listed is None
    secret = Session.open(data(), budget(1.0, unit=Unit.RATING), PrivacyRandom.simulate(1))
    with refuses("rows-are-secret"):
        secret.pattern()
