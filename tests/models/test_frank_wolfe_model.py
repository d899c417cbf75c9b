"""Frank-Wolfe and the methods beside it: the promise is what is drawn, and rows stay with their people."""

import dataclasses
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, pld

import discreet
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets import catalog
from discreet.data.datasets.synthetic import rank_one
from discreet.data.facts import PublicFacts
from discreet.data.splits import random_split
from discreet.evaluation.scoring import measure
from discreet.models.biases import Biases
from discreet.papers.frank_wolfe import directions
from discreet.papers.frank_wolfe.covariance_svd import CovarianceSvd
from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe, affordable_rounds
from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe
from discreet.papers.frank_wolfe.projected_gradient import ProjectedGradient
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.accounting.events import event_from_json
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.statistics import frank_wolfe_rounds as projection
from discreet.statistics import scaled_rows as second_moment
from discreet.testing import refuses
from small_sources import observed
from toy import toy_interactions

ESTIMATORS = {
    "covariance rounds": FrankWolfe(epsilon=2.0, rounds=3, solver="covariance"),
    "growing rounds": FrankWolfe(epsilon=2.0, rounds=3, schedule="growing"),
    "bounded rows": FrankWolfe(epsilon=2.0, rounds=2, row_bound=3.0),
    "oja": FrankWolfe(epsilon=2.0, rounds=2, solver="oja", steps=3),
    "no rounds": FrankWolfe(epsilon=2.0),
    "as printed": PrintedFrankWolfe(epsilon=2.0, rounds=3, row_bound=3.0),
    "as printed, oja": PrintedFrankWolfe(epsilon=2.0, rounds=2, solver="oja", steps=3, row_bound=3.0),
    "covariance-svd": CovarianceSvd(epsilon=2.0),
    "projected-gradient": ProjectedGradient(epsilon=2.0, rounds=3),
}


@pytest.fixture(scope="module")
def toy():
    return toy_interactions(seed=2)


@pytest.fixture(params=sorted(ESTIMATORS))
def estimator(request):
    return ESTIMATORS[request.param]


def test_the_ledger_recounts_the_promise(estimator, toy):
    ledger = Ledger.in_memory()
    model = estimator.fit(toy, ledger=ledger, random=PrivacyRandom.simulate(0))
    (entry,) = ledger.entries()
    events = [event_from_json(record) for record in entry.events]
    assert model.guarantee.epsilon == 2.0 and model.guarantee.delta == 1e-6
    assert epsilon_at(events, 1e-6) == pytest.approx(2.0, rel=1e-6)
    assert epsilon_at(events, 1e-6) <= 2.0 * (1 + 1e-9)
    assert ledger.recounted(toy.name, 1e-6) == epsilon_at(events, 1e-6)


def test_dp_accounting_says_the_same(toy):
    releases = ESTIMATORS["oja"].fit(toy, random=PrivacyRandom.simulate(0)).releases
    accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
    for one in releases:
        accountant.compose(GaussianDpEvent(float(one.scale / one.bound)))
    assert len(releases) == 3 + 2 * 3
    assert accountant.get_epsilon(1e-6) == pytest.approx(2.0, rel=0.01)


def test_every_draw_is_logged_and_all_of_the_budget_is_spent(estimator, toy, monkeypatch):
    drawn = record_releases(monkeypatch)
    logged = estimator.fit(toy, random=PrivacyRandom.simulate(0)).releases
    assert [(one.scale, one.bound) for one in logged] == [
        (Fraction(mechanism.sigma), Fraction(mechanism.l2_sensitivity)) for mechanism, _ in drawn
    ]
    assert sum(one.share for one in logged) == 1


def record_releases(monkeypatch, answers=None):
    """Note what every Gaussian release receives; with `answers`, answer with those instead of noise."""
    noted = []
    for name in ("release", "release_symmetric"):
        real = getattr(Gaussian, name)

        def release(self, value, random, real=real, name=name):
            noted.append((self, observed(value, name)))
            return real(self, value, random) if answers is None else answers[len(noted) - 1].copy()

        monkeypatch.setattr(Gaussian, name, release)
    return noted


def steps_between_neighbors(estimator, data, person, monkeypatch):
    """Return, for each release, how far one person moves it, over its sensitivity, given earlier releases."""
    with monkeypatch.context() as patch:
        noted = record_releases(patch)
        estimator.fit(data, random=PrivacyRandom.simulate(1))
    draw = np.random.default_rng(0)
    answers = []
    for mechanism, value in noted:
        noise = draw.normal(0, 0.1 * mechanism.sigma, value.shape)
        answers.append(value + (noise + noise.T if value.ndim == 2 and len(value) == len(value.T) else noise))
    runs = []
    for some in (data, data.select_users(np.delete(np.arange(data.n_users), person))):
        with monkeypatch.context() as patch:
            runs.append(record_releases(patch, answers))
            estimator.fit(some, random=PrivacyRandom.simulate(1))
    return [
        np.linalg.norm(first - second) / mechanism.l2_sensitivity
        for (mechanism, first), (_, second) in zip(*runs, strict=True)
    ]


@pytest.mark.few(4)
def test_a_person_moves_every_release_by_at_most_its_sensitivity(estimator, toy, monkeypatch):
    steps = np.array([steps_between_neighbors(estimator, toy, who, monkeypatch) for who in (0, 7)])
    assert np.all(steps <= 1)
    assert np.all(steps.max(axis=0) > 0.01)


@pytest.mark.parametrize("name", ["covariance rounds", "oja", "covariance-svd", "projected-gradient"])
def test_rows_that_are_too_long_would_be_caught(name, toy, monkeypatch):
    monkeypatch.setattr(second_moment, "ROUNDING", 1.9)
    monkeypatch.setattr(projection, "ROUNDING", 4.0)
    assert max(steps_between_neighbors(ESTIMATORS[name], toy, 7, monkeypatch)) > 1


@pytest.mark.few(7)
def test_a_prediction_needs_the_file_and_the_own_row_only(estimator, toy, tmp_path):
    model = estimator.fit(toy, random=PrivacyRandom.simulate(3))
    model.save(tmp_path / "before.discreet")
    mine = model.scores(toy, np.array([4]))
    # Everybody else rates the opposite from now on; so does the file, which was written before, not change.
    values = 6 - toy.values
    values[toy.indptr[4] : toy.indptr[5]] = toy.values[toy.indptr[4] : toy.indptr[5]]
    later = toy.with_values(values)
    np.testing.assert_array_equal(model.scores(later, np.array([4])), mine)
    np.testing.assert_array_equal(
        discreet.load(tmp_path / "before.discreet").scores(later.select_users(np.array([4])), np.array([0])),
        mine,
    )
    model.save(tmp_path / "after.discreet")
    assert (tmp_path / "before.discreet").read_bytes() == (tmp_path / "after.discreet").read_bytes()
    assert not np.array_equal(model.scores(later, np.array([5])), model.scores(toy, np.array([5])))


@pytest.mark.parametrize("solver", ["covariance", "oja"])
def test_error_falls_with_epsilon(solver):
    data = rank_one(n_users=6_000, n_items=40, per_user=20, seed=1).data
    split = random_split(data, 0.02, 0)
    errors = []
    for epsilon in (0.05, 3.0, math.inf):
        estimator = FrankWolfe(epsilon=epsilon, solver=solver, rounds=1)
        model = estimator.fit(split.train, random=PrivacyRandom.simulate(0))
        errors.append(measure(model, split.train, split.test, "rmse")["rmse"])
    assert errors[0] > 0.06 and errors[1] < 0.04 and errors[2] <= errors[1] * 1.1


@pytest.mark.slow
@pytest.mark.skipif(catalog.find("movielens-1m") is None, reason="MovieLens 1M is not on this machine")
def test_real_ratings_are_predicted_better_than_by_the_user_mean():
    films = catalog.load("movielens-1m")
    counts = np.bincount(films.items, minlength=films.n_items)
    best_known = films.select_items(np.sort(np.argsort(-counts, kind="stable")[:400]))
    split = random_split(best_known.bounded(80), 0.1, 0)
    train, test = split.train, split.test
    sums = np.bincount(train.rows(), train.values, minlength=train.n_users)
    means = np.divide(
        sums, np.diff(train.indptr), where=np.diff(train.indptr) > 0, out=np.full(sums.size, 3.5)
    )
    plain = np.sqrt(np.mean((means[test.rows()] - test.values) ** 2))
    for epsilon, gain in ((0.5, 0.0), (1.0, 0.0), (2.0, 0.0), (5.0, 0.03)):
        model = FrankWolfe(epsilon=epsilon).fit(train, random=PrivacyRandom.simulate(0))
        assert measure(model, train, test, "rmse")["rmse"] <= plain - gain


@pytest.mark.parametrize("kind", [FrankWolfe, CovarianceSvd, ProjectedGradient])
def test_without_noise_every_method_learns_taste(kind, toy):
    split = random_split(toy, 0.1, 0)
    scores = {
        estimator.name: measure(
            estimator.fit(split.train, random=PrivacyRandom.simulate(0)), split.train, split.test, "rmse"
        )["rmse"]
        for estimator in (kind(epsilon=math.inf), Biases(epsilon=math.inf))
    }
    assert scores[kind.name] < scores["biases"] - 0.2


def test_noise_alone_adds_no_direction(toy):
    for epsilon in (0.01, 0.1):
        for name in ("covariance rounds", "oja"):
            estimator = dataclasses.replace(ESTIMATORS[name], epsilon=epsilon)
            for seed in range(5):
                model = estimator.fit(toy, random=PrivacyRandom.simulate(seed))
                assert model.scorer.item_factors.shape[1] == 0


def test_rounds_follow_from_public_numbers():
    facts = PublicFacts(n_items=400, n_users=131_072)
    rounds = [affordable_rounds(facts, noise) for noise in (0.1, 3.0, 10.0, 1000.0)]
    assert rounds == [10, 8, 2, 0]
    assert affordable_rounds(dataclasses.replace(facts, n_users=None), 1e6) == 1
    assert len(FrankWolfe(epsilon=1.0)._shares(facts, gaussian_multiplier(1.0, 1e-6))) == 1 + 6
    assert FrankWolfe(epsilon=0.001)._shares(facts, gaussian_multiplier(0.001, 1e-6)) == [1]
    assert FrankWolfe(epsilon=math.inf).events(facts) == ()


def test_later_rounds_get_less_noise_when_the_schedule_grows():
    _, *shares = ESTIMATORS["growing rounds"]._shares(PublicFacts(n_items=40, n_users=100), 1.0)
    assert shares == sorted(shares) and shares[-1] == 3 * shares[0]


def test_many_items_need_no_matrix_of_pairs():
    data = rank_one(n_users=500, n_items=10_000, per_user=10, seed=0).data
    estimator = FrankWolfe(epsilon=5.0, rounds=1, steps=2)
    estimator.fit(data, random=PrivacyRandom.simulate(0))
    tracemalloc.start()
    estimator.fit(data, random=PrivacyRandom.simulate(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 10_000**2 / 50


def test_the_edge_of_noise_is_found_beside_a_signal():
    draw = np.random.default_rng(0)
    noise = np.triu(draw.normal(size=(300, 300)), 1)
    direction = draw.normal(size=300)
    direction /= np.linalg.norm(direction)
    moment = noise + noise.T + 200 * np.outer(direction, direction)
    np.fill_diagonal(moment, 0.0)
    (found,) = directions.leading(moment, np.sqrt(2), 0.0, 5)
    assert found.noise == pytest.approx(1.0, rel=0.05)
    assert found.value == pytest.approx(200, rel=0.05)
    assert abs(found.product @ direction) / np.linalg.norm(found.product) > 0.99
    assert directions.leading(noise + noise.T, np.sqrt(2), 0.0, 5) == []


@pytest.mark.parametrize(
    "setting",
    [{"rounds": -1}, {"solver": "magic"}, {"schedule": "falling"}, {"steps": 1}, {"row_bound": 0.0}],
)
def test_refuses_bad_settings_of_frank_wolfe(setting):
    with refuses(ParameterError, name=next(iter(setting))):
        FrankWolfe(epsilon=1.0, **setting)


@pytest.mark.parametrize(
    "setting", [{"rounds": 0}, {"factors": 0}, {"radius": -1.0}, {"row_bound": math.inf}]
)
def test_refuses_bad_settings_of_projected_gradient(setting):
    with refuses("out-of-range"):
        ProjectedGradient(epsilon=1.0, **setting)
