import dataclasses
import math

import numpy as np
import pytest

import discreet
from discreet.collect.channel_correction import CellReader, corrected_cells, corrected_means
from discreet.collect.device import collect_cells
from discreet.collect.errors import WrongReports
from discreet.collect.estimate import collect_from, rho_bound, rho_expected
from discreet.collect.mechanisms import OpenCells
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.papers.collection.nuclear import (
    LocalNuclear,
    LocalNuclearPlain,
    held_out_loss,
    printed_unit,
    stands_out,
)
from discreet.papers.mixture.channel import LocalChannel
from discreet.privacy.guarantee import Neighbors, Trust, Unit
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
from discreet.solvers.low_rank.nuclear import recover
from discreet.testing import refuses
from toy import toy_interactions


def grouped(n_users=400, n_items=60, per_user=20, seed=0, step=1.0):
    """Return ratings of two groups of people with opposite taste, every second one held out."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n_users), per_user)
    items = np.concatenate([rng.choice(n_items, per_user, replace=False) for _ in range(n_users)])
    taste = np.where(rows % 2 == items % 2, 1.2, -1.2) + 0.6 * np.sin(items)
    values = np.clip(np.round(3 + taste + 0.5 * rng.standard_normal(rows.size)), 1, 5)
    facts = PublicFacts(n_items=n_items, low=1, high=5, step=step)
    train = rng.random(rows.size) < 0.7
    data = Interactions.from_arrays(rows[train], items[train], values[train], facts=facts, name="groups")
    return data, (rows[~train], items[~train], values[~train])


def rmse(model, data, test):
    rows, items, values = test
    places = data.catalog.index_of(items)
    return float(np.sqrt(np.mean((model.predict(data, rows, places) - values) ** 2)))


def fit(estimator, data, seed=1):
    return estimator.fit(data, random=PrivacyRandom.simulate(seed))


@pytest.mark.few(1)
@pytest.mark.parametrize("step", [1.0, None])
def test_corrected_recovery_finds_taste_and_beats_plain_and_means(step):
    data, test = grouped(step=step)
    corrected = fit(LocalNuclear(epsilon=6.0), data)
    plain = fit(LocalNuclearPlain(epsilon=6.0), data)
    scorer = corrected.scorer
    means = dataclasses.replace(
        scorer,
        user_vectors=scorer.user_vectors[:, :1],
        item_factors=np.zeros((len(scorer.item_bias), 0)),
        ridge=scorer.ridge[:1],
    )
    best, worse = rmse(corrected, data, test), rmse(dataclasses.replace(corrected, scorer=means), data, test)
    assert scorer.device.item_factors.shape[1] > 0
    assert best < 0.8 * worse and best < rmse(plain, data, test)


@pytest.mark.few(2)
@pytest.mark.parametrize("step", [1.0, None])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_nothing_can_be_learned_the_answer_is_the_debiased_mean(seed, step):
    data, test = grouped(step=step)
    model = fit(LocalNuclear(epsilon=0.05), data, seed)
    assert model.scorer.device.item_factors.shape[1] == 0
    constant = float(np.sqrt(np.mean((np.clip(model.scorer.device.mean, 1, 5) - test[2]) ** 2)))
    assert rmse(model, data, test) <= constant + 0.02


@pytest.mark.thorough
def test_more_epsilon_is_better_and_none_is_best():
    data, test = grouped()
    errors = [rmse(fit(LocalNuclear(epsilon=level), data), data, test) for level in (1.0, 4.0, 8.0, math.inf)]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("step", [1.0, None])
def test_plain_recovery_finds_taste_on_any_scale(step):
    """The misfit it allows is a part of the scale, whatever the paper's unit for that scale is."""
    data, test = grouped(step=step)
    middle = float(np.sqrt(np.mean((test[2] - 3) ** 2)))
    assert rmse(fit(LocalNuclearPlain(epsilon=math.inf), data), data, test) < 0.85 * middle


def test_promise_is_for_a_cell_and_says_what_a_person_pays():
    promise = LocalNuclear(epsilon=2.0).promise(PublicFacts(n_items=1682, step=1.0))
    assert promise.definition == (Unit.RATING, Neighbors.REPLACE, Trust.LOCAL) and promise.delta == 0
    assert any("1,682 items: epsilon = 3364" in note for note in promise.notes)


@pytest.mark.parametrize("estimator", [LocalNuclear(epsilon=4.0), LocalNuclearPlain(epsilon=4.0)])
def test_reports_of_a_campaign_give_the_model_that_fit_gives(estimator):
    data = toy_interactions()
    mechanism = estimator.mechanism(data.facts)
    collected = collect_cells(data, mechanism, PrivacyRandom.simulate(1))
    served, fitted = estimator.fit_reports(collected), fit(estimator, data)
    rows = np.arange(5)
    np.testing.assert_array_equal(served.scores(data, rows), fitted.scores(data, rows))
    assert served.guarantee.unit is Unit.RATING and served.guarantee.simulated
    assert any("answers for 40 items" in note for note in served.guarantee.notes)


def test_reports_that_tell_what_was_rated_are_sent_elsewhere():
    data = toy_interactions()
    loud = collect_from(data, BoundedLaplace(epsilon=4.0, low=1, high=5), PrivacyRandom.simulate(1))
    with pytest.raises(WrongReports):
        LocalNuclear(epsilon=4.0).fit_reports(loud)


@pytest.mark.parametrize("step", [1.0, None])
def test_local_channel_reads_these_reports_too(step):
    data, test = grouped(step=step)
    estimator = LocalNuclear(epsilon=6.0)
    collected = collect_cells(data, estimator.mechanism(data.facts), PrivacyRandom.simulate(1))
    model = LocalChannel(epsilon=6.0, iterations=10).fit_reports(collected)
    assert model.guarantee.unit is Unit.RATING and model.guarantee.epsilon == 6.0
    assert 0.5 < collected.rated_share < 1.0
    constant = float(np.sqrt(np.mean((test[2].mean() - test[2]) ** 2)))
    assert rmse(model, data, test) < constant


def test_a_stranger_is_served_from_their_own_history(tmp_path):
    data, _ = grouped()
    model = fit(LocalNuclear(epsilon=8.0), data)
    model.save(tmp_path / "m.discreet")
    loaded = discreet.load(tmp_path / "m.discreet")
    even = dict.fromkeys(range(0, 20, 2), 5.0) | dict.fromkeys(range(1, 20, 2), 1.0)
    liked = [item for item, _ in loaded.recommend(even, k=10)]
    assert np.mean([item % 2 == 0 for item in liked]) >= 0.8


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_corrected_sums_are_unbiased(epsilon):
    """Over many draws the debiased overall mean is the mean of the ratings, not of the reports."""
    data, _ = grouped(n_users=300)
    truth = float(data.values.mean()) - 3.0
    found = []
    for seed in range(12):
        collected = collect_cells(data, HiddenStars(epsilon=epsilon), PrivacyRandom.simulate(seed))
        reader = CellReader.of(collected, collected.mechanism)
        whole = reader.tally(np.zeros(300), np.zeros(60))[1]
        found.append(whole.sums.sum() / whole.present.sum())
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 5 * error + 0.02


def test_residual_variances_average_one_and_rho_falls_with_taste():
    data, _ = grouped()
    for mechanism in (HiddenStars(epsilon=4.0), HiddenNumbers(epsilon=4.0, low=1.0, high=5.0)):
        collected = collect_cells(data, mechanism, PrivacyRandom.simulate(2))
        reader = CellReader.of(collected, mechanism)
        found = corrected_cells(reader, corrected_means(reader, 4.0))
        np.testing.assert_allclose(found.fixed + found.own, 1.0)
        squares = found.cells.weights * found.cells.values.astype(np.float64) ** 2
        assert 0.8 < squares.mean() < 1.25
        assert found.rho(0.0) > found.rho(0.2) > found.rho(0.5)
        assert math.isclose(found.rho(0.0), math.sqrt(squares.sum()), rel_tol=1e-5)


def test_noise_does_not_stand_out_and_taste_does():
    data, _ = grouped()
    collected = collect_cells(data, OpenCells(low=1, high=5, points=5), PrivacyRandom.simulate(2))
    reader = CellReader.of(collected, collected.mechanism)
    cells = corrected_cells(reader, corrected_means(reader, 4.0)).cells
    assert stands_out(cells, 60, 0)
    shuffled = cells._replace(values=np.random.default_rng(0).permutation(cells.values))
    assert sum(stands_out(shuffled, 60, seed) for seed in range(10)) < 10
    nothing = recover(cells, 60, 1e9)
    assert held_out_loss(cells, nothing) == (0.0, 0.0)


STARS = HiddenStars(epsilon=2.0)
NUMBERS = HiddenNumbers(epsilon=2.0, points=65)


def test_the_bound_is_the_printed_one():
    size = {"people": 30, "items": 20, "rated": 100.0, "intrinsic": 0.5, "gamma": 0.05}
    stars = 5 + 2 * 4 * math.sqrt(2 * 600 * 5 / ((math.exp(2) + 5) * 0.05))
    assert math.isclose(rho_bound(STARS, **size), stars)
    numbers = 5 + 2 * math.sqrt(100 / 0.05) + math.sqrt(2 * 600 / ((math.exp(1) + 1) * 0.05) * (1 + 8 / 4))
    assert math.isclose(rho_bound(NUMBERS, **size), numbers)
    assert rho_bound(OpenCells(low=1, high=5), **size) == 5.0
    for change in ({"gamma": 0.0}, {"rated": 601}, {"people": 0}, {"intrinsic": -1}):
        with pytest.raises(ParameterError):
            rho_bound(STARS, **(size | change))


@pytest.mark.few(1)
@pytest.mark.parametrize("mechanism", [STARS, NUMBERS])
def test_theorem_three_holds_in_two_hundred_draws(mechanism):
    rng = np.random.default_rng(5)
    m, n, draws = 40, 30, 200
    taste = rng.uniform(-1, 1, (m, 1)) * rng.uniform(-1, 1, (1, n))
    truth = mechanism.middle + taste * (mechanism.high - mechanism.low) / 2
    rows, items = np.nonzero(rng.random((m, n)) < 0.3)
    step = 1.0 if isinstance(mechanism, HiddenStars) else 2 / 64
    ratings = mechanism.low + np.round((truth[rows, items] - mechanism.low) / step) * step
    facts = PublicFacts(n_items=n, low=mechanism.low, high=mechanism.high)
    data = Interactions.from_arrays(rows, items, ratings, facts=facts)
    intrinsic = float(np.sqrt(np.mean((truth[rows, items] - ratings) ** 2)))
    size = {"people": m, "items": n, "rated": rows.size, "intrinsic": intrinsic}
    bound = rho_bound(mechanism, gamma=0.05, **size)
    measured = []
    for seed in range(draws):
        reports = collect_cells(data, mechanism, PrivacyRandom.simulate(seed)).reports
        measured.append(np.linalg.norm(truth[reports.rows(), reports.items] - reports.values))
    assert np.mean(np.array(measured) <= bound) >= 0.95
    # The twin: a bound as tight as the expectation itself fails about half of the time.
    usual = float(np.sqrt(np.mean(np.square(measured))))
    assert np.mean(np.array(measured) <= usual) < 0.95
    assert 0.7 < rho_expected(mechanism, **size) / usual < 1.3 and bound > 2 * usual


def test_printed_units():
    facts = PublicFacts(n_items=3, low=0.5, high=5.0, step=0.5)
    assert printed_unit(HiddenStars(epsilon=1.0, low=0.5, high=5.0, step=0.5), facts) == (0.0, 0.5)
    open_scale = PublicFacts(n_items=3, low=-10, high=10)
    assert printed_unit(HiddenNumbers(epsilon=1.0, low=-10, high=10), open_scale) == (0.0, 10.0)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (LocalNuclear, {"most_columns": 0}),
        (LocalNuclearPlain, {"rho": 0.0}),
        (LocalNuclearPlain, {"gamma": -1.0}),
        (LocalNuclearPlain, {"intrinsic": -1.0}),
    ],
)
def test_bad_settings_are_refused(kind, settings):
    with refuses("out-of-range"):
        kind(epsilon=1.0, **settings)
