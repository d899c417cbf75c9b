"""A period of releases is spent once, and each release is drawn once, stored and replayed."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from budgets import budget
from discreet.core.checks import DataError, PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.privacy.accounting.gaussian import gaussian_delta
from discreet.privacy.continual import continual_width
from discreet.privacy.errors import Overspent
from discreet.privacy.guarantee import Unit
from discreet.privacy.session import Session


class Data:
    facts = PublicFacts(n_items=3)
    catalog = None


@dataclass(frozen=True)
class Plan:
    """Prefix sums of three releases, with columns of length at most 4."""

    matrices: tuple = (np.array([[2, 0, 0], [2, 2, 0], [2, 2, 4]]),)
    entries: int = 4
    bits: int = 3
    shares: int = 1
    name: str = "plan"

    def exact(self, sums):
        return [self.matrices[0][len(sums) - 1, : len(sums)] @ np.stack(sums)]


@dataclass
class Stored:
    """A state in memory; sums of a release are there before it is drawn."""

    entered: list = field(default_factory=list)
    drawn: dict = field(default_factory=dict)
    simulated: set = field(default_factory=set)

    @property
    def made(self):
        return len(self.drawn)

    def sums(self):
        return self.entered

    def store(self, number, drawn, *, simulated):
        assert number not in self.drawn
        self.drawn[number] = [one.tolist() for one in drawn]
        self.simulated.add(simulated)


def opened(epsilon=1.0, seed=0, unit=Unit.USER):
    return Session.open(Data(), budget(epsilon, 1e-6, unit), PrivacyRandom.simulate(seed))


def stream_of(state, plan=None, **options):
    session = opened(**options).gaussian()
    return session, session.stream(plan or Plan(), state)


def test_the_budget_is_spent_once_and_the_log_has_one_entry():
    state = Stored()
    session, stream = stream_of(state)
    assert session.left == 0 and session.unspent() == 0
    for number in range(3):
        state.entered.append(np.arange(4) * number)
        stream.release()
    (entry,) = session.log
    assert entry.bound == 1 and entry.scale == Fraction(session.multiplier)
    assert entry.exponent == -3 and entry.steps == Fraction(stream.width)
    session.check(budget(1.0, 1e-6))
    with pytest.raises(Overspent):
        session.stream(Plan(), state)


def test_a_release_is_drawn_once_and_a_new_session_continues():
    state = Stored(entered=[np.zeros(4, dtype=np.int64)])
    stream_of(state)[1].release()
    kept = dict(state.drawn)
    with pytest.raises(PrivacyError):
        # Nothing entered for the second release: the first is not drawn again.
        stream_of(state, seed=1)[1].release()
    state.entered.append(np.zeros(4, dtype=np.int64))
    stream_of(state, seed=1)[1].release()
    assert state.drawn[0] == kept[0] and set(state.drawn) == {0, 1} and state.simulated == {True}


def test_a_finished_period_draws_nothing():
    state = Stored(entered=[np.zeros(4, dtype=np.int64)] * 4, drawn={0: [], 1: [], 2: []})
    with pytest.raises(Overspent):
        stream_of(state)[1].release()
    assert set(state.drawn) == {0, 1, 2}


def test_a_release_is_the_mixed_sums_with_the_noise_of_the_guarantee():
    state = Stored(entered=[np.array([10**6, -5, 0, 7] * 500)])
    _, stream = stream_of(state)
    (drawn,) = stream.release()
    noise = drawn - 2 * state.entered[0]
    assert state.drawn[0] == [drawn.tolist()]
    assert np.std(noise) == pytest.approx(stream.width, rel=0.1)
    # A user moves all releases by at most 8 units, and the noise hides that; with a tenth less it would not.
    assert gaussian_delta(np.sqrt(stream.width**2 - 4) / 8, 1.0) <= 1e-6
    assert gaussian_delta(0.9 * np.sqrt(stream.width**2 - 4) / 8, 1.0) > 1e-6


def test_shares_of_parties_add_up_to_the_whole_noise():
    whole = continual_width(2.0, bits=20)
    for shares in (2, 5):
        own = continual_width(2.0, bits=20, shares=shares)
        assert shares * (own**2 - 4) >= (2.0 * 2**20) ** 2 and own < whole
    _, stream = stream_of(Stored(), Plan(shares=4))
    assert stream.width < stream_of(Stored())[1].width


@pytest.mark.parametrize(
    "wrong",
    [
        Plan(entries=5),
        Plan(bits=2),
        Plan(matrices=(np.array([[3, 0, 0], [2, 2, 0], [2, 2, 4]]),)),
        Plan(matrices=(Plan().matrices[0], 2 * Plan().matrices[0])),
        Plan(matrices=(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]),)),
        Plan(matrices=(np.zeros((3, 3), dtype=np.int64),)),
        Plan(matrices=(np.array([[1 << 20]]),), bits=62),
    ],
)
def test_a_plan_that_a_user_moves_too_far_is_rejected_before_anything_is_spent(wrong):
    """Twins: more entries, a finer unit, longer columns, a second list, the future, no weights, overflow."""
    session = opened().gaussian()
    with pytest.raises(PrivacyError):
        session.stream(wrong, Stored())
    assert session.left == 1 and session.log == ()


def test_other_budgets_and_units_have_no_stream():
    with pytest.raises(PrivacyError):
        opened().stream(Plan(), Stored())
    with pytest.raises(PrivacyError):
        opened().laplace().stream(Plan(), Stored())
    with pytest.raises(PrivacyError):
        opened(unit=Unit.RATING).gaussian().stream(Plan(), Stored())


def test_sums_beyond_the_sampler_are_rejected():
    state = Stored(entered=[np.array([1 << 61])])
    with pytest.raises(DataError):
        stream_of(state)[1].release()
    assert state.drawn == {}
