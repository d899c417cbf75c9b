"""A plan is arithmetic on public numbers: what a year allows, what an attacker gains, what to expect."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import discreet
from discreet.core.checks import ParameterError
from discreet.planning.curves import MARGIN, Curve, curves, expected, similar_curves, smallest_epsilon
from discreet.planning.schedules import best_chance_gaussian, schedule
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.report.odds import posterior
from discreet.testing import refuses


@pytest.mark.parametrize("releases", [1, 4, 12, 52])
def test_a_schedule_uses_its_budget_and_no_more(releases):
    plan = schedule(5.0, 1e-6, releases)
    mu = math.sqrt(releases) / gaussian_multiplier(plan.per_release.epsilon, 1e-6)
    assert gaussian_epsilon(1 / mu, 1e-6) == pytest.approx(5.0, rel=1e-6)
    assert plan.adding.epsilon * releases == pytest.approx(5.0)
    assert plan.per_release.epsilon >= plan.adding.epsilon * (1 - 1e-9)
    assert 0.5 < plan.from_one <= plan.from_all < plan.at_most <= 1


def test_the_odds_are_what_the_best_guess_wins():
    """Play the game: N(0, 1) or N(mu, 1), guess by the likelihood; nothing does better than the odds say."""
    rng, games, multiplier = np.random.default_rng(3), 400_000, 0.8
    present = rng.integers(0, 2, games)
    seen = rng.standard_normal(games) + present / multiplier
    won = np.mean((seen > 0.5 / multiplier) == present)
    spread = 5 * math.sqrt(0.25 / games)
    assert abs(won - best_chance_gaussian(multiplier)) < spread
    assert abs(won - best_chance_gaussian(1.1 * multiplier)) > spread  # the twin
    epsilon = gaussian_epsilon(multiplier, 1e-6)
    assert best_chance_gaussian(multiplier) <= posterior(epsilon, 1e-6)
    assert posterior(1e-9, 0.0) == pytest.approx(0.5) and posterior(1000.0, 0.0) == 1.0


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": 0.0}, {"releases": 0}])
def test_a_plan_without_numbers_is_one_sentence(bad):
    with pytest.raises(ParameterError):
        schedule(**{"epsilon": 5.0, "delta": 1e-6, "releases": 12, **bad})


def test_a_curve_is_read_both_ways():
    curve = Curve(
        dataset="x",
        people=1000,
        items=200,
        ratings_per_person=20.0,
        metric="rmse",
        points=((0.1, 1.0), (1.0, 0.9), (10.0, 0.8)),
        floor=1.1,
        bar=0.75,
    )
    assert curve.at(1.0, 1000) == pytest.approx(0.9) and curve.at(0.5, 2000) == pytest.approx(0.9)
    assert curve.at(1e-3, 1000) == 1.0 and curve.at(100.0, 1000) == 0.8
    for wanted in (0.95, 0.9, 0.83):
        assert curve.at(curve.smallest_epsilon(wanted, 500), 500) == pytest.approx(wanted)
    assert curve.smallest_epsilon(0.7, 1000) is None


def test_committed_curves_are_whole_and_the_nearest_is_found():
    found = curves()
    assert found
    for curve in found:
        epsilons = [epsilon for epsilon, _ in curve.points]
        assert epsilons == sorted(epsilons) and len(epsilons) >= 3
        assert similar_curves(curve.metric, curve.people, curve.ratings_per_person, curve.items)[0] == curve
    with pytest.raises(ParameterError):
        similar_curves("taste", 100, 10.0)


def test_a_gaussian_tells_less_than_its_epsilon_allows():
    assert norm.cdf(0.5) == pytest.approx(best_chance_gaussian(1.0))


def test_what_is_expected_of_each_public_data_set_from_the_others(monkeypatch):
    """Leave each data set out: what was measured there lies in the range of the others, mostly."""
    every, inside, narrow = curves(), [], []
    for left_out in every:
        others = tuple(curve for curve in every if curve.dataset != left_out.dataset)
        monkeypatch.setattr("discreet.planning.curves.curves", lambda others=others: others)
        for epsilon, value in left_out.points:
            low, high = expected(
                left_out.metric,
                epsilon,
                left_out.people,
                items=left_out.items,
                ratings_per_person=left_out.ratings_per_person,
            ).shares
            kept = min(max(left_out.share(value), 0.0), 1.0)
            inside.append(low <= kept <= high)
            narrow.append(low + MARGIN <= kept <= high - MARGIN)
    assert np.mean(inside) > 0.85
    assert np.mean(narrow) < 0.5  # the twin: without the margin most would lie outside


def test_fewer_items_more_people_and_more_epsilon_promise_more():
    def least(epsilon=0.5, people=3000, items=2000):
        return expected("rmse", epsilon, people, items=items, ratings_per_person=30.0).shares[0]

    assert least() < least(people=9000) and least() < least(items=500) and least() < least(epsilon=2.0)


def test_an_accuracy_that_nothing_reached_is_one_sentence():
    epsilon, curve = smallest_epsilon("rmse", 0.9, 6040)
    assert curve.at(epsilon, 6040) == pytest.approx(0.9)
    with refuses("accuracy-not-reached", metric="hr@10", wanted=0.99):
        smallest_epsilon("hr@10", 0.99, 6040)


def test_a_plan_finds_the_least_epsilon_for_an_accuracy():
    found = discreet.plan(wanted=0.92, people=6000)
    assert found.wanted["value"] == 0.92 and found.limit.epsilon == found.wanted["epsilon"]
    for asked, names in (({}, ("epsilon", "wanted")), ({"wanted": 0.9}, ("people",))):
        with refuses("argument-missing", names=names):
            discreet.plan(**asked)


def test_a_plan_of_predicted_ratings_names_the_measure_of_lists():
    size = {"releases": 12, "people": 9000, "items": 600}
    assert "hr@10" in discreet.plan(3.0, **size)._repr_html_()
    assert "rmse" not in discreet.plan(3.0, **size, metric="hr@10")._repr_html_()
