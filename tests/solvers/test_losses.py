"""The one-bit loss: its tails, its slopes, flips, tilts, and the meter."""

import math

import numpy as np
import pytest
from scipy.special import erfcx, expit, log_ndtr

from discreet.core.checks import DataError
from discreet.solvers.low_rank.losses import (
    MeteredGradient,
    OneBitLoss,
    curvature_at_0,
    curvature_ratio,
    steepness,
)
from discreet.testing import refuses

POINTS = np.array([-700.0, -40.0, -5.1, -5.0, -4.9, -1.0, 0.0, 0.3, 5.0, 30.0, 700.0])


def one(score: float, **settings) -> tuple[float, float]:
    verdicts = np.array([settings.pop("verdict", 1)], dtype=np.int8)
    value, gradient = OneBitLoss(verdicts=verdicts, **settings).value_and_gradient(np.array([score]))
    return value, float(gradient[0])


@pytest.mark.parametrize("x", POINTS.tolist())
def test_tails_are_right_to_the_last_digits(x):
    value, slope = one(x)
    assert value == pytest.approx(np.logaddexp(0, -x), rel=1e-13, abs=1e-300)
    assert slope == pytest.approx(-expit(-x), rel=1e-13, abs=1e-300)
    value, slope = one(x, link="probit")
    assert value == pytest.approx(-log_ndtr(x), rel=1e-11, abs=1e-16)
    mills = math.sqrt(2 / math.pi) / erfcx(-x / math.sqrt(2))
    assert slope == pytest.approx(-mills, rel=1e-11, abs=1e-16)


def test_probit_agrees_with_scipy_over_a_range():
    x = np.linspace(-30, 6, 2001)
    out = OneBitLoss(verdicts=np.ones(x.size, np.int8), link="probit").value_and_gradient(x)[0]
    assert out == pytest.approx(-log_ndtr(x).sum(), rel=1e-12)


@pytest.mark.parametrize("verdict", [1, -1])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"link": "probit", "scale": 0.7},
        {"flips": (0.2, 0.3)},
        {"flips": (0.1, 0.1), "link": "probit"},
        {"linear": np.array([0.4]), "ridge": 0.3},
        {"link": "probit", "straight_beyond": 0.5, "linear": np.array([-0.2])},
    ],
)
@pytest.mark.parametrize("x", [-2.0, -0.4, 0.3, 1.7])
def test_slope_is_the_derivative_of_the_value(x, settings, verdict):
    step = 1e-5
    rise = one(x + step, verdict=verdict, **settings)[0] - one(x - step, verdict=verdict, **settings)[0]
    assert one(x, verdict=verdict, **settings)[1] == pytest.approx(rise / (2 * step), abs=1e-8)


def test_flips_are_the_chance_of_a_report():
    chance = 1 / (1 + math.exp(-0.8))
    reported = chance * (1 - 0.2) + (1 - chance) * 0.3
    assert one(0.8, flips=(0.2, 0.3))[0] == pytest.approx(-math.log(reported))
    assert one(0.8, flips=(0.2, 0.3), verdict=-1)[0] == pytest.approx(-math.log(1 - reported))


def test_a_minus_is_a_plus_tilted_by_one_for_the_logistic_link():
    # The identity behind the promise of objective perturbation.
    for x in (-3.0, 0.2, 2.5):
        assert one(x, verdict=-1)[0] == pytest.approx(one(x, linear=np.ones(1))[0])


def test_straight_beyond_keeps_the_slope_of_the_edge():
    edge = one(-1.0, link="probit")[1]
    assert one(-4.0, link="probit", straight_beyond=1.0)[1] == pytest.approx(edge)
    assert one(-4.0, link="probit")[1] < edge


def test_steepness_and_curvature_of_the_links():
    assert steepness("logistic", 1.0, 5.0) == 1.0
    assert steepness("probit", 1.0, 1.0) == pytest.approx(1.8127, abs=1e-4)
    grid = np.linspace(-1, 1, 401)
    slopes = [one(x, link="probit", verdict=-1)[1] - one(x, link="probit")[1] for x in grid]
    assert max(slopes) <= steepness("probit", 1.0, 1.0) * (1 + 1e-12)
    assert curvature_at_0("probit", 2.0) == pytest.approx(2 / math.pi / 4)


def test_curvature_ratio_is_the_largest_over_the_bound_and_falls_with_the_ridge():
    assert curvature_ratio("logistic", 1.0, 3.0, 0.0) == 0.0

    def bend(x, verdict):
        step = 1e-4
        up, down = (one(x + s, link="probit", verdict=verdict)[1] for s in (step, -step))
        return (up - down) / (2 * step)

    for ridge in (0.0, 0.5):
        largest = max(
            abs(math.log((bend(x, 1) + ridge) / (bend(x, -1) + ridge))) for x in np.linspace(-1, 1, 41)
        )
        assert curvature_ratio("probit", 1.0, 1.0, ridge) == pytest.approx(largest, abs=1e-5)
    assert curvature_ratio("probit", 1.0, 1.0, 5.0) < curvature_ratio("probit", 1.0, 1.0, 0.0)


def test_meter_refuses_the_question_that_was_not_paid_for():
    meter = MeteredGradient(lambda scores: scores + 1, allowed=2)
    for _ in range(2):
        np.testing.assert_array_equal(meter.gradient(np.zeros(3)), np.ones(3))
    with refuses("gradient-overspent", allowed=2):
        meter.gradient(np.zeros(3))
    assert meter.asked == 2
    with refuses("objective-private"):
        meter.value_and_gradient(np.zeros(3))


def test_refuses_what_does_not_fit():
    with pytest.raises(DataError):
        OneBitLoss(verdicts=np.ones(2, np.int8)).value_and_gradient(np.zeros(3))
    with pytest.raises(DataError):
        OneBitLoss(verdicts=np.ones(2, np.int8), linear=np.zeros(3))
    with refuses("unknown-choice", name="link", value="cauchy"):
        OneBitLoss(verdicts=np.ones(2, np.int8), link="cauchy")
