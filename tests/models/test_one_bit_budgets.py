"""One-bit models spend exactly what they guarantee, and one rating moves each query by its bound at most."""

import math
from fractions import Fraction

import numpy as np
import pytest

from budgets import budget
from discreet.core.randomness import PrivacyRandom
from discreet.models.scorers.one_bit import CompletedMatrix, MatrixEntries, binary_ratings
from discreet.papers.one_bit.estimators import OneBitGradient, OneBitInput, OneBitObjective, OneBitOutput
from discreet.papers.one_bit.task import (
    ClampedGradient,
    FlippedRatings,
    LinearTerm,
    OneBit,
    RatingPositions,
    released_mean,
)
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.errors import Overspent
from discreet.privacy.mechanisms.additive import laplace_scale
from discreet.privacy.mechanisms.local import sign_flip
from discreet.privacy.session import Session
from discreet.solvers.low_rank.losses import MeteredGradient
from discreet.testing import refuses
from spending import costs_all_of, pure_cost, trained
from toy import toy_interactions

DATA = toy_interactions(n_users=12, n_items=10, per_user=5, seed=2)
SIZE = DATA.n_ratings
PURE = [
    OneBitInput(epsilon=1.3),
    OneBitInput(epsilon=1.0, flip_positive=0.3, flip_negative=0.4),
    OneBitObjective(epsilon=0.7, scale=0.37),
    OneBitGradient(epsilon=0.9, rounds=1),
    OneBitGradient(epsilon=1.1, rounds=7),
    OneBitGradient(epsilon=2.0, rounds=3, step="barzilai-borwein", link="probit"),
]


def with_means(estimators):
    return [one.clone(mean_share=share) for one in estimators for share in (0.0, 0.1, 0.25)]


def releases_of(estimator):
    return getattr(estimator, "rounds", 1) + bool(estimator.mean_share)


# A flip rate that is declared does not follow the budget that the mean leaves.
PURE = [one for one in with_means(PURE) if not one.mean_share or getattr(one, "flip_positive", None) is None]


@pytest.mark.parametrize("estimator", PURE, ids=lambda one: one.named)
def test_spends_what_it_guarantees(estimator):
    session, _ = trained(estimator, DATA)
    promise = estimator.promise(DATA.facts)
    assert len(session.log) == releases_of(estimator)
    assert costs_all_of(session, promise.epsilon)
    session.check(promise)


@pytest.mark.parametrize("mean_share", [0.0, 0.1])
@pytest.mark.parametrize("rounds", [1, 6])
def test_gaussian_rounds_and_a_pure_mean_spend_what_they_guarantee(rounds, mean_share):
    estimator = OneBitGradient(epsilon=1.0, delta=1e-6, rounds=rounds, mean_share=mean_share)
    session, _ = trained(estimator, DATA)
    session.check(estimator.promise(DATA.facts))
    gaussian = [entry for entry in session.log if entry.mechanism == "gaussian"]
    assert len(gaussian) == rounds and len(session.log) == releases_of(estimator)
    assert session.unspent() == 0
    multiplier = gaussian_multiplier(estimator.verdict_epsilon, 1e-6)
    precision = sum((one.bound / one.scale) ** 2 for one in gaussian) * Fraction(multiplier) ** 2
    assert 1 - 1e-9 < precision <= 1


@pytest.mark.parametrize("mean_share", [0.0, 0.1])
@pytest.mark.parametrize("cells", [1, 3, 7])
def test_answers_together_spend_what_is_guaranteed(cells, mean_share):
    estimator = OneBitOutput(epsilon=1.1, cells=cells, mean_share=mean_share)
    promise = estimator.promise(DATA.facts)
    session, scorer = trained(estimator, DATA, PrivacyRandom.from_os())
    assert len(session.log) == bool(mean_share) and session.unspent() == 1
    asked = iter(np.arange(DATA.n_users))
    first = scorer.predict(DATA, np.array([next(asked)]), np.array([0]))
    for _ in range(cells - 1):
        scorer.predict(DATA, np.array([next(asked)]), np.array([1]))
    session.check(promise)
    assert costs_all_of(session, promise.epsilon)
    assert scorer.predict(DATA, np.array([0]), np.array([0])) == first
    with refuses("entries-used-up", asked=1):
        scorer.predict(DATA, np.array([next(asked)]), np.array([2]))
    assert len(session.log) == cells + bool(mean_share)


def test_entries_that_are_asked_for_together_cost_as_much_as_one_by_one():
    estimator = OneBitOutput(epsilon=0.8, cells=4)
    together, scorer = trained(estimator, DATA, PrivacyRandom.from_os())
    scorer.predict(DATA, np.arange(4), np.arange(4))
    single, scorer = trained(estimator, DATA, PrivacyRandom.from_os())
    for place in range(4):
        scorer.predict(DATA, np.array([place]), np.array([place]))
    for session in (together, single):
        assert costs_all_of(session, estimator.promise(DATA.facts).epsilon)
    scale = laplace_scale(epsilon=0.8, bound=0.4)
    for entry in (*together.log, *single.log):
        assert float(entry.scale) == pytest.approx(scale, rel=1e-11)
    # The twin: noise for entries that could not move together would be too little.
    assert pure_cost(together) > 3 * Fraction(2 * 0.2) / together.log[0].scale


def test_simulated_answers_are_unlimited_and_leave_the_budget_alone():
    session, scorer = trained(OneBitOutput(epsilon=1.0, cells=2), DATA)
    scorer.scores(DATA, np.arange(5))
    assert not session.log and session.unspent() == 1


def test_a_probit_objective_has_no_guarantee_and_spends_nothing():
    for mean_share in (0.0, 0.25):
        estimator = OneBitObjective(epsilon=1.0, link="probit", mean_share=mean_share)
        session, scorer = trained(estimator, DATA)
        assert not session.is_private and not session.log
        exact = float(DATA.values.mean(dtype=np.float64))
        assert (scorer.above == 3.5) if not mean_share else abs(scorer.above - exact) > 1e-9


@pytest.mark.parametrize("kind", [OneBitInput, OneBitObjective, OneBitGradient, OneBitOutput])
def test_spends_nothing_without_privacy(kind):
    session, scorer = trained(kind(epsilon=math.inf, mean_share=0.1), DATA)
    assert not any(entry.scale or entry.epsilon for entry in session.log)
    assert scorer.above == pytest.approx(float(DATA.values.mean(dtype=np.float64)), abs=1e-6)


# Wrong changes: each raises before the release that is too much.


def test_one_gradient_too_many_is_rejected(monkeypatch):
    plain = MeteredGradient.gradient

    def twice(self, scores):
        self.asked = -1
        plain(self, scores)
        return plain(self, scores)

    monkeypatch.setattr(MeteredGradient, "gradient", twice)
    for delta in (0.0, 1e-6):
        with pytest.raises(Overspent):
            trained(OneBitGradient(epsilon=1.0, delta=delta, rounds=3), DATA)


@pytest.mark.parametrize("kind", [OneBitInput, OneBitObjective, OneBitGradient, OneBitOutput])
def test_a_mean_that_spends_the_budget_of_the_ratings_is_rejected(kind, monkeypatch):
    """The mean is released for the whole epsilon; nothing is left for the ratings."""
    monkeypatch.setattr(kind, "_mean", lambda self, session: released_mean(session.laplace(), local=False))
    with pytest.raises(Overspent):
        trained(kind(epsilon=1.0, mean_share=0.25), DATA)


def test_ratings_that_spend_the_budget_of_the_mean_are_rejected(monkeypatch):
    """Ratings are flipped for the whole epsilon although the mean was paid from it."""
    monkeypatch.setattr(OneBit, "verdict_epsilon", property(lambda self: self.epsilon))
    monkeypatch.setattr(FlippedRatings, "over", lambda *_: pytest.fail("ratings were read"))
    with pytest.raises(Overspent):
        trained(OneBitInput(epsilon=1.0, mean_share=0.25), DATA)


def test_a_mean_that_is_released_twice_is_rejected(monkeypatch):
    def twice(session, *, local):
        released_mean(session, local=local)
        return released_mean(session, local=local)

    monkeypatch.setattr("discreet.papers.one_bit.task.released_mean", twice)
    with pytest.raises(Overspent):
        trained(OneBitObjective(epsilon=1.0, mean_share=0.25), DATA)


def test_training_with_a_guarantee_never_gets_rows(monkeypatch):
    monkeypatch.setattr(OneBitGradient, "_learn", lambda self, task, session: session.rows())
    with refuses("rows-are-secret"):
        trained(OneBitGradient(epsilon=1.0), DATA)


# Bounds: one rating changes one number, by the bound at most.

SCORES = np.linspace(-1.2, 1.2, SIZE)
STEEP = OneBitObjective(epsilon=1.0, scale=0.37)


@pytest.mark.parametrize(
    "query",
    [
        LinearTerm(size=SIZE, above=3.5, scale=0.37, bound=STEEP.slope_bound()),
        ClampedGradient(scores=SCORES, above=3.5, link="logistic", scale=0.1, clamp=0.5, norm="l1"),
        ClampedGradient(scores=SCORES, above=3.5, link="probit", scale=0.1, clamp=0.7, norm="l2"),
        RatingPositions(size=SIZE, low=1.0, width=4.0),
    ],
    ids=lambda query: type(query).__name__,
)
def test_one_rating_moves_one_number_by_the_bound_at_most(query):
    (part,) = query.parts
    assert part.of == "rating" and part.shape == (SIZE,)
    base, largest = query.over(DATA).steps(), 0.0
    assert base.shape == part.shape
    for place in range(SIZE):
        for value in (1.0, 3.5, 5.0, -1e30, 1e30):
            values = DATA.values.copy()
            values[place] = value
            change = query.over(DATA.with_values(values)).steps() - base
            assert np.count_nonzero(change) <= 1
            largest = max(largest, float(np.abs(change).sum()))
    assert 0.9 * part.bound < largest <= part.bound, "the bound must hold, and must not be idle"


def test_entries_move_together_by_their_bound_at_most():
    """Any change of the ratings may turn every entry around."""
    rows, items = np.arange(5), np.arange(5)
    entries = MatrixEntries(rows=rows, items=items, bound=0.2)
    far = 10 * np.ones((12, 1))
    one, other = (CompletedMatrix(far, side * far).total(entries).steps() for side in (1, -1))
    change = one - other
    assert np.abs(change).sum() <= entries.parts[0].bound == pytest.approx(2.0)
    alone = MatrixEntries(rows=rows, items=items, bound=0.2, alone=True)
    assert np.abs(change).sum() > alone.parts[0].bound


def test_flipped_ratings_state_the_epsilon_of_their_mechanism():
    channel = FlippedRatings(flip=sign_flip(0.7), above=3.5)
    assert channel.epsilon == 0.7 and channel.of == "rating"
    reports = channel.over(DATA, PrivacyRandom.simulate(1))
    assert set(reports.tolist()) == {-1, 1} and not np.array_equal(reports, binary_ratings(DATA, 3.5))


def test_a_query_for_ratings_does_not_serve_a_guarantee_for_users():
    users = Session.open(DATA, budget(1.0), PrivacyRandom.simulate(1)).laplace()
    with refuses("wrong-secret", name="positions", of="rating", unit="user"):
        users.release(RatingPositions(size=SIZE, low=1.0, width=4.0), Fraction(1))


def test_a_model_that_will_answer_lists_its_answers_in_its_certificate():
    for mean_share in (0.0, 0.25):
        answers = OneBitOutput(epsilon=1.0, mean_share=mean_share, cells=2).fit(DATA).certificate["releases"]
        assert [one["count"] for one in answers if one["name"] == "MatrixEntries.entries"] == [2]
        assert OneBitObjective(epsilon=1.0, mean_share=mean_share).fit(DATA).certificate is not None
