"""Objective and output perturbation as printed: labels state the refutation, noise has the printed scale."""

import math

import numpy as np
import pytest

import discreet
from discreet import model_settings
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.papers import PAPER_NAMES
from discreet.papers.one_bit.estimators import projected_scorer
from discreet.papers.one_bit.theory import printed_sensitivity
from discreet.report.guarantee_wording import PRINTED_OBJECTIVE, PRINTED_OUTPUT

FILMS = popularity_skewed(n_users=80, n_items=40, mean_per_user=15)
KINDS = [discreet.OneBitObjectivePrinted, discreet.OneBitOutputPrinted]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_saved_and_served_and_says_not_private(kind, tmp_path):
    model = kind(epsilon=1.0).fit(FILMS, random=PrivacyRandom.from_os())
    assert not model.guarantee.is_private
    assert not {PRINTED_OBJECTIVE, PRINTED_OUTPUT}.isdisjoint(model.guarantee.notes)
    model.save(tmp_path / "m.discreet")
    history = {FILMS.catalog.id_at(0): 5}
    assert discreet.load(tmp_path / "m.discreet").recommend(history, 5) == model.recommend(history, 5)


def test_output_noise_is_printed_and_projection_removes_most_of_it():
    def matrix(**settings):
        scorer = discreet.OneBitOutputPrinted(**settings).fit(FILMS, random=PrivacyRandom.simulate(1)).scorer
        return scorer.left @ scorer.right.T

    clear = np.clip(matrix(), -1, 1)
    rough = matrix(epsilon=2.0, project=False) - clear
    smooth = matrix(epsilon=2.0) - clear
    # Laplace noise of scale 2 bound / epsilon has this mean absolute value.
    assert np.abs(rough).mean() == pytest.approx(1.0, rel=0.1)
    assert np.abs(smooth).mean() < np.abs(rough).mean() / 2


def test_a_projection_lies_in_the_ball():
    scorer = discreet.OneBitOutputPrinted().fit(FILMS).scorer
    noisy = np.random.default_rng(0).normal(size=(80, 40))
    found = projected_scorer(scorer, noisy, 10.0)
    sizes = np.linalg.svd(found.left @ found.right.T, compute_uv=False)
    assert sizes.sum() == pytest.approx(10.0)


def test_the_printed_delta_of_probit_draws_more_noise_than_the_exact_one():
    assert printed_sensitivity("probit") > 2.7 * printed_sensitivity("logistic")

    def moved(epsilon):
        models = [
            discreet.OneBitObjectivePrinted(epsilon=level).fit(FILMS, random=PrivacyRandom.simulate(2)).scorer
            for level in (math.inf, epsilon)
        ]
        first, second = (one.left @ one.right.T for one in models)
        return np.abs(first - second).mean()

    assert moved(100.0) < moved(1.0)


@pytest.mark.parametrize("wrong", [{"link": "cauchy"}, {"bound": 0}, {"radius": -1}, {"epsilon": 0}])
def test_settings_are_checked(wrong):
    with pytest.raises(ParameterError):
        discreet.OneBitOutputPrinted(**wrong)


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_a_name_of_a_paper_is_a_model_with_its_settings(name, discreet, tmp_path):
    model, settings = PAPER_NAMES[name]
    found = model_settings.estimator(name, {"epsilon": 1.0})
    assert found.name == model
    assert {key: getattr(found, key) for key in settings} == dict(settings)
    assert model_settings.defaults(name).items() >= settings.items()
    shown = discreet("models", "--all")[1]
    assert name in shown


def test_a_setting_of_your_own_wins_over_that_of_the_name():
    assert model_settings.estimator("dplcf", {"epsilon": 1.0, "likeness": "cosine"}).likeness == "cosine"


def test_entries_released_ahead_are_saved_served_and_certified(tmp_path):
    settings = {"epsilon": 2.0, "cells": 50, "release": "ahead"}
    model = discreet.OneBitOutput(**settings).fit(FILMS)
    # Fifty entries at 2 each; the matrix as a whole isn't covered for less.
    assert model.guarantee.epsilon == 100.0
    assert model.certificate is not None
    model.save(tmp_path / "m.discreet")
    again = discreet.load(tmp_path / "m.discreet")
    history = {FILMS.catalog.id_at(0): 5}
    assert again.recommend(history, 3) == model.recommend(history, 3)
    # The twin: the file of a model that answers when asked has no entries.
    asked = discreet.OneBitOutput(epsilon=2.0, cells=50).fit(FILMS)
    assert not asked.scorer.arrays()["cells"].size


def test_more_entries_ahead_recover_more_of_the_matrix():
    rows = np.arange(FILMS.n_users)

    def likeness(cells):
        settings = {"epsilon": 20.0, "cells": cells, "release": "ahead", "answer_bound": 1.0}
        model = discreet.OneBitOutput(**settings).fit(FILMS, random=PrivacyRandom.simulate(0))
        return float(np.mean(model.scores(FILMS, rows) * exact))

    exact = discreet.OneBitOutput(epsilon=np.inf).fit(FILMS).scores(FILMS, rows)
    assert likeness(2000) > 3 * abs(likeness(20))
