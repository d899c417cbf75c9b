"""The likelihood of a known channel: it finds what was put in, and invents nothing when there is nothing."""

import numpy as np
import pytest

from discreet.core.checks import DataError
from discreet.solvers.channel_fit import Reports, fit_channel, respond
from discreet.solvers.features import pattern_features

LEVELS = np.linspace(0, 1, 5)


def noisy_channel(strength):
    """Return a channel between five levels that keeps a level the more often the stronger it is."""
    weights = np.exp(-strength * np.abs(LEVELS[:, None] - LEVELS[None, :]))
    return weights / weights.sum(axis=1, keepdims=True)


def reports(strength, n_users=400, n_items=60, per_user=40, taste=0.2, seed=0):
    rng = np.random.default_rng(seed)
    own, quality = rng.normal(0, 0.08, n_users), rng.normal(0.1, 0.12, n_items)
    sides = rng.choice([-1.0, 1.0], n_users), rng.choice([-1.0, 1.0], n_items)
    items = np.sort(np.argsort(rng.random((n_users, n_items)), axis=1)[:, :per_user], axis=1)
    rows, columns = np.repeat(np.arange(n_users), per_user), items.ravel().astype(np.int32)
    expected = 0.5 + own[rows] + quality[columns] + taste * sides[0][rows] * sides[1][columns]
    ratings = np.clip(np.rint(4 * (expected + rng.normal(0, 0.15, rows.size))), 0, 4).astype(int)
    sums = np.cumsum(noisy_channel(strength)[ratings], axis=1)
    codes = (rng.random(rows.size)[:, None] > sums).sum(axis=1).astype(np.int32)
    order = np.argsort(columns, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=n_items))]).astype(np.int64)
    by_user = Reports(np.arange(n_users + 1, dtype=np.int64) * per_user, columns, codes)
    by_item = Reports(indptr, rows[order].astype(np.int32), codes[order])
    return by_user, by_item, np.clip(expected, 0, 1), rows


def predictions(fit, rows, columns):
    return 0.5 + np.einsum("ij,ij->i", fit.people.means[rows], fit.items.means[columns])


def fit(strength, factors=3, iterations=20, **options):
    by_user, by_item, expected, rows = reports(strength, **options)
    response = respond(LEVELS, noisy_channel(strength), LEVELS)
    found = fit_channel(by_user, by_item, response, factors=factors, iterations=iterations)
    error = np.sqrt(np.mean((predictions(found, rows, by_user.columns) - expected) ** 2))
    return found, error, expected


def test_finds_biases_and_factors_through_a_clear_channel():
    found, error, expected = fit(20.0)
    assert found.factors >= 1 and error < 0.25 * expected.std()


def test_more_signal_is_never_worse():
    errors = [fit(strength)[1] for strength in (0.2, 1.0, 4.0, 20.0)]
    assert errors == sorted(errors, reverse=True)


def test_says_nothing_but_means_where_there_is_nothing_to_learn():
    found, error, expected = fit(0.05)
    assert found.factors == 0
    # No worse than the middle of the scale, which needs no report at all.
    assert error < np.sqrt(np.mean((expected - 0.5) ** 2)) + 0.02
    assert np.abs(found.people.means[:, 0]).max() < 0.05


def test_no_factor_is_invented_where_there_is_no_taste():
    found, _, _ = fit(4.0, taste=0.0, factors=3, iterations=30)
    strength = np.sqrt(np.mean(found.people.means[:, 2:] ** 2, axis=0))
    strength = strength * np.sqrt(np.mean(found.items.means[:, 2:] ** 2, axis=0))
    assert strength.sum() < 0.02


def test_a_model_that_knows_the_channel_beats_one_that_takes_reports_for_ratings():
    by_user, by_item, expected, rows = reports(2.0)
    errors = []
    for believed in (noisy_channel(2.0), noisy_channel(50.0)):
        response = respond(LEVELS, believed, LEVELS)
        found = fit_channel(by_user, by_item, response, factors=2, iterations=20)
        errors.append(np.sqrt(np.mean((predictions(found, rows, by_user.columns) - expected) ** 2)))
    assert errors[0] < 0.8 * errors[1]


def test_reports_outside_the_channel_and_none_at_all_are_refused():
    by_user, by_item, _, _ = reports(2.0, n_users=20)
    response = respond(LEVELS, noisy_channel(2.0), LEVELS)
    beyond = by_user._replace(codes=by_user.codes + 5)
    with pytest.raises(DataError):
        fit_channel(beyond, by_item, response, factors=0, iterations=1)
    nothing = Reports(np.zeros(3, dtype=np.int64), *(np.zeros(0, dtype=np.int32) for _ in range(2)))
    with pytest.raises(DataError):
        fit_channel(nothing, nothing, response, factors=0, iterations=1)


def test_patterns_describe_who_met_what():
    rng = np.random.default_rng(0)
    block = np.zeros((60, 40), dtype=bool)
    block[:30, :20] = rng.random((30, 20)) < 0.6
    block[30:, 20:] = rng.random((30, 20)) < 0.6
    indptr = np.concatenate([[0], np.cumsum(block.sum(axis=1))]).astype(np.int64)
    people, items = pattern_features(indptr, np.nonzero(block)[1].astype(np.int32), 40, 2)
    assert people.shape == (60, 3) and items.shape == (40, 3)
    split = np.abs([np.corrcoef(people[:, k], np.arange(60) < 30)[0, 1] for k in (1, 2)])
    assert split.max() > 0.9
    empty, _ = pattern_features(np.zeros(4, dtype=np.int64), np.zeros(0, dtype=np.int32), 5, 2)
    assert np.isfinite(empty).all()


def test_scores_are_the_slopes_of_the_log_likelihood_also_without_noise():
    """Without noise likelihoods fall by orders of magnitude from one expectation to the next."""
    levels = np.linspace(0, 1, 401)
    found = respond(levels, np.eye(levels.size), levels)
    exact = (levels - found.mean[:, None]) / found.variance[:, None]
    np.testing.assert_allclose(found.score, exact, rtol=1e-5, atol=1e-5)
