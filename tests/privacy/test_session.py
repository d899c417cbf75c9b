"""A session spends what its guarantee states, whatever order it is called in."""

import json
import math
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets import budget
from discreet.core.checks import PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.privacy import session as module
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.errors import Overspent
from discreet.privacy.guarantee import Unit
from discreet.privacy.mechanisms.additive import (
    FixedPoint,
    Gaussian,
    Laplace,
    additive_release,
    planned_noise,
)
from discreet.privacy.session import Session, SpendingAccount, share, spent
from discreet.statistics.statistic import Part
from discreet.testing import refuses


@dataclass(frozen=True)
class Counts:
    """A statistic of three numbers."""

    parts: tuple = (Part("counts", (3,), bits=0),)


PURE = Counts((Part("counts", (3,), bits=0, norm="l1"),))
TWO = Counts((Part("long", (3,), bits=0, bound=2.0), Part("square", (2, 2), bits=0, symmetric=True)))


class Data:
    """A source that counts how often it is read."""

    facts = PublicFacts(n_items=3)
    catalog = None
    has_times = False

    def __init__(self):
        self.reads = 0

    def total(self, query):
        self.reads += 1
        return self

    def steps(self, name=None):
        shape = (2, 2) if name == "square" else (3,)
        return FixedPoint(np.arange(math.prod(shape)).reshape(shape), 0)


def opened(epsilon=1.0, delta=1e-6, unit=Unit.USER, data=None):
    return Session.open(data or Data(), budget(epsilon, delta, unit), PrivacyRandom.simulate(0))


def test_the_noise_is_that_of_the_share_and_the_statistic():
    session, whole = opened().gaussian(), gaussian_multiplier(1.0, 1e-6)
    first = session.release(Counts(), Fraction(1, 4))
    assert first.deviation == pytest.approx(2 * whole) == session.deviation(Counts(), Fraction(1, 4))
    long, square = session.release_parts(TWO, {"long": Fraction(1, 4), "square": Fraction(1, 2)})
    assert long.deviation == pytest.approx(4 * whole), "the bound of 2 is the statistic's own"
    assert square.values.shape == (2, 2) and square.values[0, 1] == square.values[1, 0]
    assert session.left == 0 and session.unspent() == 0
    session.check(budget(1.0, 1e-6))


def test_the_noise_of_a_pure_share_is_that_of_its_epsilon():
    part, _ = opened(2.0, 0.0).laplace().split(Fraction(1, 4), Fraction(3, 4))
    assert part.epsilon == 0.5
    noisy = part.release(PURE, Fraction(1, 2))
    assert noisy.deviation == pytest.approx(math.sqrt(2) / 0.25) == part.deviation(PURE, Fraction(1, 2))


@pytest.mark.parametrize("wrong", [{"bound": 2.0}, {"norm": "l1"}, {"of": "rating"}, {"most": None}])
def test_names_need_a_bounded_number_of_votes_of_length_one_of_users(wrong):
    data = Data()
    root = opened(data=data)
    with pytest.raises(PrivacyError):
        root.names(Counts((Part("counts", (3,), bits=0, **{"most": 3, **wrong}),)), epsilon=0.5, delta=1e-7)
    assert data.reads == 0 and root.left == 1
    root.names(Counts((Part("counts", (3,), bits=0, most=3),)), epsilon=0.5, delta=1e-7)
    assert data.reads == 1 and root.left == Fraction(1, 2)


def test_without_a_guarantee_numbers_are_exact_and_rows_are_there():
    data = Data()
    session = opened(math.inf, 0.0, data=data)
    session.gaussian().release(Counts(), Fraction(1))
    np.testing.assert_array_equal(session.gaussian().release(Counts(), Fraction(1)).values, [0, 1, 2])
    assert session.rows() is data and session.multiplier == session.gaussian().multiplier == 0
    assert math.isinf(session.epsilon)
    assert [one.mechanism for one in session.log] == ["none", "none"]


def test_asking_for_too_much_raises_before_data_are_read():
    data = Data()
    session = opened(data=data).gaussian()
    for wrong in (Fraction(2), Fraction(-1, 2), Fraction(0)):
        with pytest.raises(Overspent):
            session.release(Counts(), wrong)
    session.release(Counts(), Fraction(2, 3))
    with pytest.raises(Overspent):
        session.release(Counts(), Fraction(1, 2))
    with pytest.raises(Overspent):
        session.split(Fraction(1, 4), Fraction(1, 4))
    assert data.reads == 1 and session.left == Fraction(1, 3)


def test_a_negative_share_lends_nothing_to_another():
    """Shares that add up to 1 could contain 2 and -1, and the first would buy half of the noise it needs."""
    data = Data()
    session = opened(data=data).gaussian()
    with pytest.raises(Overspent):
        session.split(Fraction(2), Fraction(-1))
    with pytest.raises(Overspent):
        session.release_parts(TWO, {"long": Fraction(2), "square": Fraction(-1)})
    with pytest.raises(Overspent):
        session.split(Fraction(1), Fraction(0))
    assert data.reads == 0 and session.left == 1 and session.log == ()


def test_a_child_owns_its_share_and_cannot_spend_its_parents():
    session = opened().gaussian()
    small, large = session.split(Fraction(1, 10), Fraction(9, 10))
    assert session.left == 0
    with pytest.raises(Overspent):
        session.release(Counts(), Fraction(1, 100))
    small.release(Counts(), Fraction(1))
    with pytest.raises(Overspent):
        small.release(Counts(), Fraction(1, 100))
    for part in large.rounds(3):
        part.release(Counts(), Fraction(1))
    assert [one.share for one in session.log] == [Fraction(1, 10), *[Fraction(3, 10)] * 3]
    session.check(budget(1.0, 1e-6))


def test_a_root_is_divided_by_epsilon_and_delta():
    root = opened(2.0, 1e-6)
    pure, rest = root.laplace(epsilon=0.5), root.gaussian()
    assert pure.epsilon == 0.5
    assert rest.multiplier == pytest.approx(gaussian_multiplier(1.5, 1e-6))
    with pytest.raises(Overspent):
        root.laplace(epsilon=0.1)
    assert root.unspent() == 1
    pure.release(PURE, Fraction(1))
    rest.release(Counts(), Fraction(1))
    assert root.unspent() == 0
    root.check(budget(2.0, 1e-6))
    for smaller in (budget(1.9, 1e-6), budget(2.0, 9e-7), budget(2.0)):
        with pytest.raises(Overspent):
            root.check(smaller)


def test_what_is_left_is_not_lost_by_rounding():
    root = opened(0.1 + 0.2, 1e-6)
    root.part(epsilon=0.1, delta=5e-7)
    child = root.gaussian()
    assert child.multiplier >= gaussian_multiplier(0.1 + 0.2, 1e-6)
    assert root.left == 0


def test_norm_and_secret_are_those_of_the_guarantee():
    with pytest.raises(PrivacyError):
        opened().gaussian().release(PURE, Fraction(1))
    with pytest.raises(PrivacyError):
        opened(1.0, 0.0).laplace().release(Counts(), Fraction(1))
    rating = Counts((Part("counts", (3,), bits=0, of="rating"),))
    with pytest.raises(PrivacyError):
        opened().gaussian().release(rating, Fraction(1))
    opened(unit=Unit.RATING).gaussian().release(rating, Fraction(1))
    with pytest.raises(PrivacyError):
        opened().release(Counts(), Fraction(1))
    with pytest.raises(PrivacyError):
        opened().gaussian().release(Counts(), 0.5)


class Free(Fraction):
    """A share that is nothing when it is subtracted, and everything when noise is calibrated to it."""

    def __radd__(self, other):
        return other

    def __rmul__(self, other):
        return other

    def __le__(self, other):
        return False


@pytest.mark.parametrize("ask", ["release", "parts", "split", "expect"])
def test_a_share_has_no_arithmetic_of_its_own(ask):
    data = Data()
    session, free = opened(data=data).gaussian(), Free(1, 1000)
    asked = {
        "release": lambda: session.release(Counts(), free),
        "parts": lambda: session.release_parts(TWO, {"long": free}),
        "split": lambda: session.split(free),
        "expect": lambda: session.expect(Counts(), free, 1),
    }
    with refuses("inexact-share"):
        asked[ask]()
    assert data.reads == 0 and session.left == 1


def test_rows_and_patterns_stay_behind_the_session():
    for reach in (opened().rows, opened().gaussian().rows, opened().pattern):
        with pytest.raises(PrivacyError):
            reach()
    with pytest.raises(PrivacyError):
        opened().published_noise(np.zeros(3), scale=1.0)
    with pytest.raises(PrivacyError):
        opened().gaussian().mapped(lambda data: data)
    with pytest.raises(PrivacyError):
        Session()


def test_a_release_that_fails_has_spent_its_share():
    class Broken(Data):
        def total(self, query):
            raise OSError("disk")

    session = opened(data=Broken()).gaussian()
    with pytest.raises(OSError) as caught:
        session.release(Counts(), Fraction(1, 2))
    assert caught.value.args == ("disk",)
    assert session.left == Fraction(1, 2) and len(session.log) == 1


def test_threads_cannot_spend_more_than_there_is():
    session = opened().gaussian()
    outcomes = []

    def ask():
        for _ in range(40):
            try:
                session.release(Counts(), Fraction(1, 100))
                outcomes.append(True)
            except Overspent:
                outcomes.append(False)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert outcomes.count(True) == 100 == len(session.log) and len(outcomes) == 160
    session.check(budget(1.0, 1e-6))


@given(st.lists(st.tuples(st.integers(0, 3), st.fractions(Fraction(1, 50), Fraction(3, 4))), max_size=12))
def test_no_order_of_calls_costs_more_than_the_guarantee(calls):
    """The cost is counted from noise and bounds alone, by another program than the session's own check."""
    root = opened()
    sessions = [root.gaussian()]
    for kind, part in calls:
        session = sessions[kind % len(sessions)]
        try:
            if kind == 0:
                sessions.extend(session.split(part))
            else:
                session.release(Counts() if kind == 1 else TWO, part, part="long" if kind > 1 else None)
        except Overspent:
            continue
    precision = sum(((one.bound / one.scale) ** 2 for one in root.log), Fraction(0))
    assert precision * Fraction(gaussian_multiplier(1.0, 1e-6)) ** 2 <= 1
    events = [Gaussian(sigma=float(one.scale), l2_sensitivity=float(one.bound)).event() for one in root.log]
    assert not events or epsilon_at(events, 1e-6) <= 1.0 + 1e-9
    root.check(budget(1.0, 1e-6))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("gaussian_sigma", lambda multiplier, bound, share: multiplier * bound),
        ("gaussian_sigma", lambda multiplier, bound, share: multiplier / math.sqrt(share)),
        ("gaussian_multiplier", lambda epsilon, delta: 0.9 * gaussian_multiplier(epsilon, delta)),
        ("gaussian_multiplier", lambda epsilon, delta: gaussian_multiplier(epsilon, 10 * delta)),
    ],
)
def test_the_check_finds_too_little_noise(name, wrong, monkeypatch):
    """Twins: noise that ignores the share, the bound, or the calibration."""
    monkeypatch.setattr(module, name, wrong)
    session = opened()
    metered = session.gaussian()
    metered.release(TWO, Fraction(1, 2), part="long")
    metered.release(Counts(), Fraction(1, 2))
    with pytest.raises(Overspent):
        session.check(budget(1.0, 1e-6))


def test_the_check_finds_a_pure_release_with_too_little_noise(monkeypatch):
    real = Laplace.calibrated
    monkeypatch.setattr(
        module.Laplace,
        "calibrated",
        lambda *, epsilon, l1_sensitivity: real(epsilon=2 * epsilon, l1_sensitivity=l1_sensitivity),
    )
    session = opened(1.0, 0.0)
    session.laplace().release(PURE, Fraction(1))
    with pytest.raises(Overspent):
        session.check(budget(1.0))


def test_a_pure_account_counts_laplace_noise_alone():
    session = opened(1.0, 0.0)
    session.laplace().release(PURE, Fraction(1))
    (entry,) = session.log
    account = SpendingAccount(number=entry.account, kind="pure", epsilon=Fraction(1))
    assert spent(account, [entry])[0] <= 1
    for wrong in (replace(entry, mechanism="gaussian"), replace(entry, scale=None)):
        assert spent(account, [wrong])[0] > 10**6


def test_the_log_is_exact_and_says_what_the_sampler_used():
    session = opened().gaussian()
    session.release(TWO, Fraction(1, 3), part="long")
    (entry,) = session.log
    written = json.loads(json.dumps(entry.to_json()))
    assert Fraction(written["share"]) == Fraction(1, 3) and Fraction(written["bound"]) == 2
    noise = planned_noise(1.0, 1e-6, [Fraction(1, 3)])[0]
    assert Fraction(written["scale"]) == pytest.approx(Fraction(2 * noise.sigma), rel=1e-15)
    assert entry.steps * Fraction(2) ** entry.exponent >= entry.scale
    assert entry.steps * Fraction(2) ** entry.exponent <= entry.scale * Fraction(1001, 1000)


def test_no_certificate_states_a_release_without_noise():
    with refuses("not-certified"):
        additive_release("counts", Gaussian(sigma=0.0, l2_sensitivity=1.0), 3)


def test_shares_are_what_their_decimals_say():
    assert share(0.1) + share(0.2) == share(0.3)
    assert sum(share(one) for one in (0.02, 0.25, 0.73)) == 1


def test_the_proof_names_every_call():
    proof = (Path(__file__).parents[2] / "proofs" / "session.md").read_text(encoding="utf8")
    table = proof.partition("## Every call")[2].partition("## Calls that need a word")[0]
    public = {name for name in vars(Session) if not name.startswith("_")} - {"open"}
    assert {name for name in public if f"`{name}`" not in table} == set()
