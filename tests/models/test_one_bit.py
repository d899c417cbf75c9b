"""One-bit completion: four places for the noise, one Clear, and what each promise rests on."""

import dataclasses
import math
import os

import numpy as np
import pytest

import discreet
from assumption_examples import stated
from budgets import budget
from discreet.core.checks import ParameterError, PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets import catalog
from discreet.data.datasets.synthetic import one_bit
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.splits import given
from discreet.evaluation.scoring import measure
from discreet.models.scorers.one_bit import Answers, CompletedMatrix, Vault, binary_ratings, public_threshold
from discreet.papers.one_bit.estimators import OneBitGradient, OneBitInput, OneBitObjective, OneBitOutput
from discreet.papers.one_bit.task import OneBit, released_mean
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.guarantee import Basis, Fact, Kind, Neighbors, Trust, Unit
from discreet.privacy.mechanisms.additive import Laplace
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.privacy.session import Session
from discreet.report.guarantee_wording import PROBIT_OBJECTIVE
from discreet.solvers.low_rank.losses import OneBitLoss
from discreet.testing import refuses
from evidence import follows, gap, samples_to_separate
from toy import toy_interactions

ALL = (OneBitInput, OneBitObjective, OneBitGradient, OneBitOutput)
FACTS = PublicFacts(n_items=40, low=1, high=5, step=1)


@pytest.fixture(scope="module")
def small() -> Interactions:
    return toy_interactions(n_users=30, n_items=20, per_user=8, seed=2)


def fit(estimator, data, seed=3):
    return estimator.fit(data, random=PrivacyRandom.simulate(seed))


def everything(model, data):
    return model.scores(data, np.arange(data.n_users))


@pytest.mark.parametrize("kind", ALL)
def test_promise_states_its_frame(kind):
    promise = kind(epsilon=2.0).promise(FACTS)
    assert (promise.unit, promise.neighbors) == (Unit.VALUE, Neighbors.REPLACE)
    assert promise.trust is (Trust.LOCAL if kind is OneBitInput else Trust.CENTRAL)
    assert promise.basis is Basis.PROVED and promise.delta == 0
    assert {(Kind.DECLARED, Fact.PARTICIPATION), (Kind.DECLARED, Fact.RATED_ITEMS)} <= set(stated(promise))


@pytest.mark.few(1)
@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_without_noise_all_four_are_the_same_fit(link, small):
    clear = [everything(fit(kind(epsilon=math.inf, link=link), small), small) for kind in ALL]
    for other in clear[1:]:
        np.testing.assert_array_equal(other, clear[0])


@pytest.mark.parametrize("kind", [OneBitInput, OneBitObjective, OneBitGradient])
def test_learns_which_group_likes_what(kind, small):
    model = fit(kind(epsilon=20.0), small)
    rows = np.repeat(np.arange(30), 20)
    items = np.tile(np.arange(20), 30)
    liked = model.predict(small, rows, items) > 0
    assert np.mean(liked == (rows % 2 == items % 2)) > 0.9


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ALL)
def test_more_epsilon_is_closer_to_clear(kind):
    sample = one_bit(n_users=40, n_items=40, observed=0.4, seed=5)
    rows, items = np.divmod(np.arange(1600), 40)

    def error(epsilon: float) -> float:
        estimator = kind(epsilon=epsilon, radius=15.0)
        found = [fit(estimator, sample.data, seed).predict(sample.data, rows, items) for seed in range(3)]
        return float(np.mean([np.sum((one.reshape(40, 40) - sample.truth) ** 2) for one in found]))

    assert error(20.0) < error(0.2)


def test_scores_stay_inside_the_bound_where_the_matrix_is_kept_in_full(small):
    model = fit(OneBitInput(epsilon=math.inf, bound=0.3), small)
    assert np.abs(everything(model, small)).max() <= 0.3 * (1 + 1e-4)


# The secret enters through one mechanism only; everything after it is a function of what that released.


def flipped(data: Interactions) -> Interactions:
    """Return neighboring data: one rating on the other side of the threshold."""
    values = data.values.copy()
    values[0] = 1.0 if values[0] > 3.5 else 5.0
    return data.with_values(values)


@pytest.mark.parametrize(
    ("estimator", "mechanism"),
    [
        (OneBitInput(epsilon=1.0), SignFlip),
        (OneBitObjective(epsilon=1.0), Laplace),
        (OneBitGradient(epsilon=1.0, rounds=2), Laplace),
        (OneBitGradient(epsilon=1.0, rounds=3, step="barzilai-borwein"), Laplace),
        (OneBitInput(epsilon=1.0, flip_positive=0.3, flip_negative=0.4), SignFlip),
    ],
)
def test_neighbors_with_the_same_release_give_the_same_model(estimator, mechanism, small, monkeypatch):
    released = []
    plain = mechanism.release

    def once(self, values, random):
        released.append(plain(self, values, random))
        return released[-1]

    monkeypatch.setattr(mechanism, "release", once)
    first = everything(fit(estimator, small), small)
    played = iter(list(released))
    monkeypatch.setattr(mechanism, "release", lambda self, values, random: next(played))
    neighbor = flipped(small)
    np.testing.assert_array_equal(everything(fit(estimator, neighbor), neighbor), first)


def test_gradient_takes_as_many_releases_as_rounds(small, monkeypatch):
    sizes = []
    plain = Laplace.release

    def counted(self, values, random):
        sizes.append((np.size(values), self.scale, float(np.abs(values).max())))
        return plain(self, values, random)

    monkeypatch.setattr(Laplace, "release", counted)
    fit(OneBitGradient(epsilon=2.0, rounds=4), small)
    assert [size for size, _, _ in sizes] == [small.n_ratings] * 4
    for _, scale, largest in sizes:
        assert scale == pytest.approx(2 * 0.5 * 4 / 2.0, rel=1e-9) and largest <= 0.5


def test_spectral_steps_differ_from_fixed_ones_once_there_are_two_gradients(small):
    for rounds in (1, 3):
        fixed, spectral = (
            everything(fit(OneBitGradient(epsilon=8.0, rounds=rounds, step=step), small), small)
            for step in ("fixed", "barzilai-borwein")
        )
        assert np.array_equal(fixed, spectral) == (rounds == 1)


def test_flip_rates_are_held_to_all_four_ratios_and_known_to_the_fit(small, monkeypatch):
    # The condition printed in the paper lets these through; a report of -1 would be 600 times as likely.
    with refuses("broken-rule", name="epsilon", value=1.0):
        OneBitInput(epsilon=1.0, flip_positive=0.001, flip_negative=0.4)
    with refuses("both-flips-needed"):
        OneBitInput(epsilon=1.0, flip_positive=0.3)
    with refuses("settings-conflict", setting="flip_positive"):
        OneBitInput(epsilon=math.inf, flip_positive=0.3, flip_negative=0.3)
    settings = {"epsilon": 4.0, "bound": 2.0, "radius": 40.0}
    skewed = OneBitInput(**settings, flip_positive=0.02, flip_negative=0.45)
    plain, known = (np.mean(everything(fit(one, small), small)) for one in (OneBitInput(**settings), skewed))
    monkeypatch.setattr(SignFlip, "flip_rates", lambda self: (0.02, 0.02))
    unknown = np.mean(everything(fit(skewed, small), small))
    assert abs(known - plain) < abs(unknown - plain) / 2, "flipped dislikes were taken for likes"


def test_gaussian_gradients_cost_what_they_say():
    estimator = OneBitGradient(epsilon=1.0, delta=1e-6, rounds=20, mean_share=0.1)
    assert epsilon_at(estimator.events(FACTS), 1e-6) <= 1.0
    assert estimator.promise(FACTS).delta == 1e-6
    gaussian, laplace = (
        OneBitGradient(epsilon=1.0, delta=d, rounds=60).noise_variance() for d in (1e-6, 0.0)
    )
    assert gaussian < laplace / 5


def test_objective_pays_for_the_curvature_of_the_probit_link():
    logistic, probit = (OneBitObjective(epsilon=1.0, link=link) for link in ("logistic", "probit"))
    assert logistic.noise_epsilon() == 1.0 and logistic.ridge() == 0.0
    assert 0.74 < probit.noise_epsilon() <= 0.7501 and probit.ridge() > 0.1
    # With a budget that covers it anyway, no ridge is bought.
    assert OneBitObjective(epsilon=8.0, link="probit").ridge() == 1e-3
    assert logistic.promise(FACTS).basis is Basis.PROVED
    assert probit.promise(FACTS).basis is Basis.NONE and not probit.promise(FACTS).is_private
    assert probit.promise(FACTS).notes == (PROBIT_OBJECTIVE,)
    with refuses("broken-rule", name="regularization", value=0.0):
        OneBitObjective(epsilon=0.1, link="probit", regularization=0.0)


def largest_log_ratio(noise: Laplace, ridge: float, push: float) -> float:
    """Return how far one cell's verdict moves the minimizer's distribution, by counting small intervals.

    The minimizer is at most t exactly if the tilt is at least minus the slope at t, so the noise's own
    distribution function gives every probability. `push` stands for the pull of the other cells through the
    constraint.
    """
    t = np.linspace(-0.999, 0.999, 400)
    chances = []
    for verdict in (1, -1):
        loss = OneBitLoss(verdicts=np.full(t.size, verdict, np.int8), link="probit", ridge=ridge)
        chances.append(np.diff(1 - noise.cdf(-loss.gradient(t) - push)))
    return float(np.abs(np.log(chances[0]) - np.log(chances[1])).max())


@pytest.mark.parametrize("push", [0.0, 4.0, -4.0])
def test_probit_objective_of_one_cell_keeps_its_promise(push):
    estimator = OneBitObjective(epsilon=1.0, link="probit")
    noise = Laplace(scale=estimator.noise_scale(), l1_sensitivity=estimator.slope_bound())
    assert largest_log_ratio(noise, estimator.ridge(), push) <= 1.0


def test_probit_objective_without_the_jacobian_would_break_it():
    # The twin: the printed noise compares densities of the noise only.
    sensitivity = OneBitObjective(epsilon=1.0, link="probit").slope_bound()
    printed = Laplace.calibrated(epsilon=1.0, l1_sensitivity=sensitivity)
    assert max(largest_log_ratio(printed, 1e-3, push) for push in (4.0, -4.0)) > 1.5


# Output: single cells.


def test_output_draws_no_cells_in_a_copy_of_the_process(small, monkeypatch):
    """Copies made by a fork would each draw noise of their own for a cell that was paid for once."""
    model = OneBitOutput(epsilon=1.0, cells=2).fit(small)
    known = model.predict(small, [0], [4])
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert model.predict(small, [0], [4]) == known
    with refuses("made-by-hand"):
        model.predict(small, [0], [5])


def test_output_refuses_more_cells_than_were_paid_for(small):
    model = OneBitOutput(epsilon=1.0, cells=3).fit(small)
    assert model.guarantee.epsilon == pytest.approx(3.0) and model.guarantee.is_private
    first = model.predict(small, [0, 1], [4, 5])
    np.testing.assert_array_equal(model.predict(small, [1, 0], [5, 4]), first[::-1])
    with refuses("entries-used-up", released=2, asked=2, most=3):
        model.predict(small, [2, 3], [4, 5])
    assert model.predict(small, [2, 0], [4, 4])[1] == first[0]
    with pytest.raises(PrivacyError):
        model.scores(small, [0])
    with refuses("entries-only"):
        model.fold_in({"item 01": 5.0})


def test_output_file_holds_the_answers_and_no_matrix(small, tmp_path):
    model = OneBitOutput(epsilon=1.0, cells=2).fit(small)
    told = model.predict(small, [7, 7], [1, 2])
    model.save(tmp_path / "cells.discreet")
    loaded = discreet.load(tmp_path / "cells.discreet")
    assert {name: array.size for name, array in loaded.scorer.arrays().items()} == {
        "users": 30,
        "cells": 2,
        "values": 2,
    }
    np.testing.assert_array_equal(loaded.predict(small, [7, 7], [1, 2]), told)
    with refuses("entries-not-released", count=1):
        loaded.predict(small, [7], [3])


def test_output_noise_has_the_scale_of_one_cell():
    honest, timid = (Laplace(scale=1.0 / share, l1_sensitivity=1.0) for share in (1.0, 1.2))
    n = samples_to_separate(gap(honest.cdf, timid.cdf, np.linspace(-10, 10, 20_001)))
    side = math.ceil(math.sqrt(n))
    zeros = np.zeros((side, 1))
    promise = OneBitOutput(epsilon=1.0, answer_bound=0.5).promise(FACTS)
    kept = Session.open(CompletedMatrix(zeros, zeros), promise, PrivacyRandom.simulate(1))
    vault = Vault(kept.laplace(), cells=1, bound=0.5)
    answers = Answers(np.zeros(0, dtype=np.int64), np.zeros(0))
    drawn = answers.of(np.arange(side * side), side, vault)
    assert follows(drawn, honest.cdf)
    assert not follows(drawn, timid.cdf)


def test_output_knows_its_own_people_only(small):
    model = OneBitOutput(epsilon=1.0).fit(small)
    with refuses("unknown-user"):
        model.recommend({"item 01": 5.0})


# Thresholds.


def test_threshold_comes_from_the_public_scale():
    assert public_threshold(FACTS, None) == 3.5
    assert public_threshold(PublicFacts(n_items=3, low=0, high=2), None) == 1.25
    assert public_threshold(FACTS, 3.0) == 3.0
    for wrong in (0.5, 5.0):
        with refuses("scale-too-small", low=1.0, high=5.0):
            public_threshold(FACTS, wrong)
    with refuses("scale-too-small", low=1.0, high=1.0):
        public_threshold(PublicFacts(n_items=3, low=1, high=1), None)


@pytest.mark.parametrize("local", [True, False])
def test_mean_is_released_with_noise_that_vanishes(local, small):
    exact = float(small.values.mean(dtype=np.float64))
    told, lost = (
        released_mean(
            Session.open(small, budget(epsilon, unit=Unit.VALUE), PrivacyRandom.simulate(1)).laplace(),
            local=local,
        )
        for epsilon in (30.0, 1e-3)
    )
    assert told == pytest.approx(exact, abs=0.1) and told != exact
    assert 1 <= lost <= 5


@pytest.mark.parametrize("kind", ALL)
def test_bought_mean_is_the_threshold_and_is_paid_for(kind, small):
    estimator = kind(epsilon=2.0, mean_share=0.25)
    assert estimator.mean_epsilon + estimator.verdict_epsilon <= 2.0
    assert estimator.promise(small.facts).epsilon == 2.0
    model = fit(estimator, small)
    assert model.above not in (None, 3.5) and 1 <= model.above <= 5
    assert (Kind.SELECTED, Fact.THRESHOLD) in stated(model.guarantee)


@pytest.mark.parametrize("kind", ALL)
def test_free_training_mean_is_refused(kind):
    with refuses("wrong-kind", name="above", kind="a number", found="'mean'"):
        kind(epsilon=1.0, above="mean")
    with refuses("broken-rule", name="above", value=3.0):
        kind(epsilon=1.0, above=3.0, mean_share=0.1)


def test_verdicts_are_likes_above_the_threshold(small):
    np.testing.assert_array_equal(binary_ratings(small, 3.5), np.where(small.values > 3.5, 1, -1))


# People.


def test_newcomers_get_a_row_from_their_own_verdicts(small):
    model = fit(OneBitInput(epsilon=20.0), small)
    even = {f"item {i:02d}": (5.0 if i % 2 == 0 else 1.0) for i in range(10)}
    odd = {item: 6.0 - value for item, value in even.items()}
    best_even = {int(item[-2:]) % 2 for item, _ in model.recommend(even, k=3, rank_by="stars")}
    best_odd = {int(item[-2:]) % 2 for item, _ in model.recommend(odd, k=3, rank_by="stars")}
    assert best_even == {0} and best_odd == {1}
    np.testing.assert_array_equal(model.fold_in({}), np.zeros(model.scorer.left.shape[1]))


def test_own_people_keep_their_rows_in_any_order(small):
    model = fit(OneBitGradient(epsilon=5.0), small)
    order = np.array([4, 2, 9])
    moved = model.scores(small.select_users(order), np.arange(3))
    np.testing.assert_array_equal(moved, model.scores(small, order))


def test_settings_out_of_rule_are_refused():
    for wrong in (
        {"radius": 0.0},
        {"bound": -1.0},
        {"leveling": -1.0},
        {"mean_share": 1.0},
        {"link": "x"},
        {"scale": 0.0},
    ):
        with pytest.raises(ParameterError):
            OneBitInput(epsilon=1.0, **wrong)
    for wrong in ({"rounds": 0}, {"clamp": 0.0}, {"delta": 1.0}, {"step": "x"}):
        with pytest.raises(ParameterError):
            OneBitGradient(epsilon=1.0, **wrong)
    with pytest.raises(ParameterError):
        OneBitOutput(epsilon=1.0, cells=0)
    for kind in ALL:
        # More epsilon than the noise can be drawn for is refused before anything is paid.
        with refuses(ParameterError) as caught:
            kind(epsilon=1e6)
        assert caught.value.name in ("epsilon", "scale")
    assert dataclasses.is_dataclass(OneBit) and OneBit.__abstractmethods__


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "epsilon", "least"),
    [
        (OneBitInput, math.inf, 0.72),
        (OneBitInput, 4.0, 0.71),
        (OneBitObjective, 4.0, 0.695),
        (OneBitGradient, 4.0, 0.68),
        (OneBitOutput, 4.0, 0.68),
        *((kind, 1.0, 0.563) for kind in ALL),
    ],
)
def test_verdicts_of_movielens_are_right_often_enough(kind, epsilon, least):
    if catalog.find("movielens-100k") is None:
        pytest.skip("movielens-100k is not on this machine")
    data = catalog.load("movielens-100k")
    files = [catalog.split_file("movielens-100k", f"u1.{part}") for part in ("base", "test")]
    split = given(*files, name=data.name, facts=data.facts, catalog=data.catalog, people=data.users)
    model = fit(kind(epsilon=epsilon), split.train)
    assert measure(model, split.train, split.test, "accuracy")["accuracy"] >= least
