"""DPIMF and DPMF from the front door: every loss, sampling and side; labels state what was refuted."""

import itertools
import math

import numpy as np
import pytest

import discreet
from discreet.core.checks import ParameterError, PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.papers.dpimf import printed_losses as printed
from discreet.papers.dpimf.estimators import PublishedNoise, interactions_matrix
from discreet.papers.dpimf.theory import LOSSES
from discreet.privacy.session import Session
from discreet.report.guarantee_wording import PRINTED_DPIMF

FILMS = popularity_skewed(n_users=80, n_items=40, mean_per_user=15)
KINDS = [
    *({"loss": loss, "solve": solve} for loss, solve in itertools.product(LOSSES, ("items", "users"))),
    {"sampling": "corrected"},
    {"sampling": "printed"},
]


@pytest.mark.parametrize("settings", KINDS, ids=lambda one: "-".join(one.values()))
def test_every_kind_fits_saves_recommends_and_says_not_private(settings, tmp_path):
    model = discreet.Dpimf(epsilon=1.0, **settings).fit(FILMS, random=PrivacyRandom.from_os())
    assert not model.guarantee.is_private
    assert PRINTED_DPIMF in model.guarantee.notes
    model.save(tmp_path / "m.discreet")
    again = discreet.load(tmp_path / "m.discreet")
    history = [FILMS.catalog.id_at(0), FILMS.catalog.id_at(3)]
    user = FILMS.users.ids[2]
    assert again.recommend(history, 5) == model.recommend(history, 5)
    assert again.recommend(history, 5, user=user) == model.recommend(history, 5, user=user)


def test_without_epsilon_it_is_the_printed_training():
    setting = printed.Setting(factors=3, regularization=0.1, epochs=5)
    trained = printed.train(interactions_matrix(FILMS), setting, 1.0, 0)
    model = discreet.Dpimf(factors=3, regularization=0.1, epochs=5).fit(FILMS)
    rows = np.arange(FILMS.n_users)
    exact = trained.users @ printed.exact_rows(trained.clicks.T.tocsr(), trained.users, setting, 1.0).T
    np.testing.assert_allclose(model.scores(FILMS, rows), exact, rtol=1e-4, atol=1e-5)


def test_the_original_loss_and_its_fold_in_agree_with_training():
    model = discreet.Dpimf(loss="complementary", alpha0=0.7, factors=3, regularization=0.1).fit(FILMS)
    setting = printed.Setting(factors=3, regularization=0.1, epochs=10, alpha0=0.7)
    trained = printed.train(interactions_matrix(FILMS), setting, 0.7, 0)
    np.testing.assert_allclose(model.scorer.fold_in(FILMS), trained.users, rtol=1e-6, atol=1e-8)


def test_less_epsilon_is_more_noise_and_users_get_their_own_profiles():
    def moved(epsilon):
        exact = discreet.Dpimf().fit(FILMS).scorer.item_factors
        noisy = discreet.Dpimf(epsilon=epsilon).fit(FILMS, random=PrivacyRandom.simulate(1))
        return np.abs(noisy.scorer.item_factors - exact).mean()

    assert moved(100.0) < moved(1.0)
    model = discreet.Dpimf(epsilon=5.0, solve="users").fit(FILMS, random=PrivacyRandom.simulate(1))
    assert model.scorer.knows(FILMS.users.ids[0]) and not model.scorer.knows("nobody")
    np.testing.assert_array_equal(model.scorer.fold_in(FILMS), model.scorer.user_factors)


def test_printed_weights_have_their_mean_and_lower_the_noise():
    lengths = np.random.default_rng(0).uniform(0.2, 3, 500)
    weights = printed.inverse_weights(lengths[:, None], 16.0)
    assert weights.mean() == pytest.approx(16) and weights.min() >= 1
    free = weights > 1
    assert np.ptp((weights * lengths)[free]) < 1e-6


def test_noise_of_a_session_has_the_distributions_that_are_asked_for():
    guarantee = discreet.Dpimf().promise(FILMS.facts)
    noise = PublishedNoise(Session.open(FILMS, guarantee, PrivacyRandom.simulate(3)))
    uniform, laplace = noise.random(20_000), noise.laplace(scale=2.0, size=20_000)
    assert uniform.min() >= 0 and uniform.max() < 1
    for share in (0.1, 0.5, 0.9):
        assert np.mean(uniform < share) == pytest.approx(share, abs=0.02)
    assert np.abs(laplace).mean() == pytest.approx(2.0, rel=0.05)
    assert not noise.laplace(scale=0.0, size=5).any()


def test_a_session_with_a_guarantee_has_no_such_noise():
    promise = discreet.Popularity(epsilon=1.0, delta=1e-6).promise(FILMS.facts)
    with pytest.raises(PrivacyError):
        PublishedNoise(Session.open(FILMS, promise, PrivacyRandom.simulate(3))).random(3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": "best"},
        {"sampling": "corrected", "loss": "symmetric"},
        {"solve": "both"},
        {"beta1": 0.6, "beta2": 0.4},
        {"mean_weight": 0.5},
        {"alpha0": 1.5},
        {"factors": 0},
    ],
)
def test_settings_are_checked(wrong):
    with pytest.raises(ParameterError):
        discreet.Dpimf(epsilon=1.0, **wrong)


@pytest.mark.parametrize("name", ["dpimf", "dpmf"])
def test_an_epsilon_reaches_the_noise_through_evaluate_and_compare(name):
    from discreet.model_settings import estimators

    assert [one.epsilon for one in estimators([name], [0.5, 1.0], None)] == [0.5, 1.0]
    assert [one.epsilon for one in estimators(["ease"], [0.5, 1.0], None)] == [math.inf]
