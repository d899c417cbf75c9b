"""The accountant's laws, over every event it prices, and its numbers against exact ones."""

import functools
import itertools
import json
import math
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import dp_event, get_sigma_gaussian
from dp_accounting.dp_event import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.checks import ParameterError, PrivacyError
from discreet.privacy.accounting.accountant import (
    calibrate,
    compose,
    compose_gaussians,
    delta_at,
    describe,
    epsilon_at,
    event_from_json,
    event_to_json,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_multiplier,
    pure_event,
    split_gaussian,
    supported_events,
)
from discreet.privacy.accounting.events import FailureEvent, Leaf, tally
from discreet.privacy.accounting.gaussian import least, log_delta_above
from discreet.privacy.accounting.loss_bounds import DistributionBound, _interval, _laplace_loss, _pure_renyi
from discreet.privacy.accounting.rounding import round_up, sum_up, times_up
from discreet.testing import refuses

# One example per priced event, as a function of how much noise there is.
NOISY = {
    "GaussianDpEvent": lambda noise: GaussianDpEvent(2.0 * noise),
    "LaplaceDpEvent": lambda noise: LaplaceDpEvent(3.0 * noise),
    "DiscreteLaplaceDpEvent": lambda noise: DiscreteLaplaceDpEvent(0.1 / noise, 4),
    "RandomizedResponseDpEvent": lambda noise: RandomizedResponseDpEvent(1 - 0.3 / noise, 3),
    "ZCDpEvent": lambda noise: ZCDpEvent(rho=0.02 / noise**2, xi=0.01 / noise),
    "PoissonSampledDpEvent": lambda noise: PoissonSampledDpEvent(0.2, GaussianDpEvent(1.5 * noise)),
    "SelfComposedDpEvent": lambda noise: SelfComposedDpEvent(LaplaceDpEvent(8.0 * noise), 3),
    "ComposedDpEvent": lambda noise: ComposedDpEvent(
        [LaplaceDpEvent(4.0 * noise), GaussianDpEvent(3.0 * noise)]
    ),
    "NoOpDpEvent": lambda noise: NoOpDpEvent(),
    "PoissonSampledDpEvent of Laplace": lambda noise: PoissonSampledDpEvent(0.3, LaplaceDpEvent(noise)),
    "PoissonSampledDpEvent of discrete Laplace": lambda noise: PoissonSampledDpEvent(
        0.3, DiscreteLaplaceDpEvent(0.5 / noise, 2)
    ),
    "FailureEvent": lambda noise: ComposedDpEvent(
        [GaussianDpEvent(2.0 * noise), FailureEvent(probability=1e-9 / noise)]
    ),
    "pure": lambda noise: pure_event(0.4 / noise),
}
EVERY = pytest.mark.parametrize("make", NOISY.values(), ids=NOISY)
DELTAS = (0.0, 1e-12, 1e-5, 0.01)


def test_every_priced_event_has_an_example():
    assert set(supported_events()) <= set(NOISY)


@pytest.mark.few(2)
@EVERY
def test_repeating_n_times_is_composing_n_times(make):
    event = make(1.0)
    for delta in DELTAS:
        repeated = epsilon_at(SelfComposedDpEvent(event, 7), delta)
        assert repeated == epsilon_at(ComposedDpEvent([event] * 7), delta) == epsilon_at([event] * 7, delta)
        nested = SelfComposedDpEvent(SelfComposedDpEvent(event, 3), 2)
        assert repeated == epsilon_at([nested, event], delta)


@EVERY
def test_repetition_is_never_forgotten(make):
    event = make(1.0)
    for delta in (1e-12, 1e-5):
        once, often = epsilon_at(event, delta), epsilon_at(SelfComposedDpEvent(event, 50), delta)
        assert often >= 3 * once
    once, often = delta_at(event, 0.3), delta_at(SelfComposedDpEvent(event, 50), 0.3)
    assert often > once or (often == once == 0 and isinstance(event, NoOpDpEvent))


def test_randomized_response_repeated_costs_more_than_once():
    # dp-accounting's own privacy-loss accountant reports the cost of one for a hundred.
    one = RandomizedResponseDpEvent(0.5, 2)
    assert epsilon_at(one, 0.0) == pytest.approx(math.log(3))
    assert epsilon_at(SelfComposedDpEvent(one, 100), 0.0) == pytest.approx(100 * math.log(3))
    assert 90 < epsilon_at(SelfComposedDpEvent(one, 100), 1e-6) < 96


@pytest.mark.few(1)
@EVERY
def test_more_noise_never_costs_more(make):
    for delta in DELTAS:
        costs = [epsilon_at(make(noise), delta) for noise in (0.7, 1.0, 1.5, 10.0, 1000.0)]
        assert costs == sorted(costs, reverse=True)
    failures = [delta_at(make(noise), 0.2) for noise in (0.7, 1.0, 1.5, 10.0)]
    assert failures == sorted(failures, reverse=True)


@pytest.mark.few(5)
@EVERY
def test_a_larger_delta_never_costs_more(make):
    event = SelfComposedDpEvent(make(1.0), 5)
    costs = [epsilon_at(event, delta) for delta in (0.0, 1e-300, 1e-12, 1e-9, 1e-6, 1e-3, 0.1)]
    assert all(later <= earlier * (1 + 1e-3) for earlier, later in itertools.pairwise(costs))


def test_composition_is_symmetric():
    events = [make(1.0) for make in NOISY.values()]
    for delta in (1e-12, 1e-5):
        assert epsilon_at(events, delta) == epsilon_at(events[::-1], delta)
    assert delta_at(events, 3.0) == delta_at(events[::-1], 3.0)


@EVERY
def test_adding_a_release_never_lowers_the_cost(make):
    base = GaussianDpEvent(3.0)
    for delta in (1e-12, 1e-5):
        assert epsilon_at([base, make(1.0)], delta) >= epsilon_at(base, delta) * (1 - 1e-12)


@pytest.mark.few(6)
@EVERY
def test_epsilon_and_delta_agree(make):
    event = SelfComposedDpEvent(make(1.0), 4)
    for delta in (1e-6, 1e-3):
        epsilon = epsilon_at(event, delta)
        assert delta_at(event, epsilon) <= delta * 1.05
    pure = epsilon_at(event, 0.0)
    if math.isfinite(pure):
        assert delta_at(event, pure) == 0.0


@EVERY
def test_events_travel_as_json(make):
    event = SelfComposedDpEvent(make(1.0), 2)
    record = json.loads(json.dumps(event_to_json(event)))
    assert event_from_json(record) == event
    assert epsilon_at(event_from_json(record), 1e-5) == epsilon_at(event, 1e-5)
    assert isinstance(describe(event), str)


def test_infinite_noise_travels_as_json_and_is_free():
    event = LaplaceDpEvent(math.inf)
    assert event_from_json(json.loads(json.dumps(event_to_json(event), allow_nan=False))) == event
    assert epsilon_at([event, GaussianDpEvent(math.inf)], 0.0) == 0
    assert gaussian_delta(math.inf, 0.0) == 0
    assert gaussian_epsilon(math.inf, 0.0) == 0


@pytest.mark.parametrize(
    "record", [{}, {"kind": "NonPrivateDpEvent"}, {"kind": "GaussianDpEvent"}, [], "Gaussian"]
)
def test_foreign_json_is_refused(record):
    with refuses("damaged-record", kind="event"):
        event_from_json(record)


class HomeMadeDpEvent(dp_event.DpEvent):
    pass


class DressedUpGaussian(GaussianDpEvent):
    pass


UNKNOWN = [
    dp_event.NonPrivateDpEvent(),
    dp_event.UnsupportedDpEvent(),
    HomeMadeDpEvent(),
    DressedUpGaussian(1.0),
    dp_event.SampledWithReplacementDpEvent(100, 10, GaussianDpEvent(1.0)),
    dp_event.RepeatAndSelectDpEvent(GaussianDpEvent(1.0), 2.0, 1.0),
    dp_event.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]),
    PoissonSampledDpEvent(0.5, RandomizedResponseDpEvent(0.5, 2)),
    PoissonSampledDpEvent(0.5, ComposedDpEvent([LaplaceDpEvent(1.0), GaussianDpEvent(1.0)])),
    "GaussianDpEvent",
    None,
    7,
]


@pytest.mark.parametrize("event", UNKNOWN, ids=lambda event: type(event).__name__)
def test_what_is_unknown_is_refused_wherever_it_hides(event):
    for hidden in (event, [event], [GaussianDpEvent(1.0), event]):
        with pytest.raises(PrivacyError):
            epsilon_at(hidden, 1e-5)
    for wrapped in (
        SelfComposedDpEvent(event, 2),
        ComposedDpEvent([event]),
        PoissonSampledDpEvent(0.0, event),
    ):
        with pytest.raises(PrivacyError):
            delta_at(wrapped, 1.0)
        with pytest.raises(PrivacyError):
            compose([wrapped])
        with pytest.raises(PrivacyError):
            event_to_json(wrapped)


@pytest.mark.parametrize(
    "event",
    [
        GaussianDpEvent(0.0),
        GaussianDpEvent(-1.0),
        GaussianDpEvent(math.nan),
        LaplaceDpEvent(0.0),
        DiscreteLaplaceDpEvent(math.inf, 1),
        DiscreteLaplaceDpEvent(1.0, 0),
        RandomizedResponseDpEvent(0.0, 2),
        RandomizedResponseDpEvent(1.5, 2),
        ZCDpEvent(rho=-1.0),
        SelfComposedDpEvent(GaussianDpEvent(1.0), 0),
        SelfComposedDpEvent(GaussianDpEvent(1.0), 2.5),
        PoissonSampledDpEvent(1.5, GaussianDpEvent(1.0)),
    ],
    ids=repr,
)
def test_parameters_without_meaning_are_refused(event):
    with pytest.raises(ParameterError):
        epsilon_at(event, 1e-5)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan, math.inf, "1e-5", None, True])
def test_delta_out_of_range_is_refused(delta):
    for ask in (
        lambda: epsilon_at(LaplaceDpEvent(1.0), delta),
        lambda: gaussian_epsilon(1.0, delta),
        lambda: gaussian_multiplier(1.0, delta),
        lambda: calibrate(GaussianDpEvent, 1.0, delta),
    ):
        with refuses(ParameterError, name="delta"):
            ask()


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, "1", None])
def test_epsilon_out_of_range_is_refused(epsilon):
    for ask in (
        lambda: delta_at(LaplaceDpEvent(1.0), epsilon),
        lambda: gaussian_multiplier(epsilon, 1e-5),
        lambda: calibrate(GaussianDpEvent, epsilon, 1e-5),
        lambda: pure_event(epsilon),
    ):
        with refuses(ParameterError, name="epsilon"):
            ask()


def test_gaussian_noise_cannot_be_pure():
    assert epsilon_at(GaussianDpEvent(5.0), 0.0) == math.inf
    with refuses("broken-rule", name="delta", value=0.0):
        gaussian_multiplier(1.0, 0.0)
    with refuses("noise-insufficient", epsilon=1.0, delta=0.0):
        calibrate(GaussianDpEvent, 1.0, 0.0)


def test_nothing_costs_nothing():
    assert epsilon_at([], 0.0) == 0
    assert epsilon_at(compose([]), 1e-5) == 0
    assert delta_at([], 0.0) == 0
    assert describe([]) == "nothing"
    assert epsilon_at(PoissonSampledDpEvent(0.0, GaussianDpEvent(1.0)), 1e-5) == 0


def test_one_event_is_its_own_composition():
    assert compose([GaussianDpEvent(1.0)]) == GaussianDpEvent(1.0)
    assert describe([LaplaceDpEvent(2.0), GaussianDpEvent(1.0), LaplaceDpEvent(2.0)]) == (
        "Gaussian(1) + 2 x Laplace(2)"
    )


# ---- exact numbers ----------------------------------------------------------------------------------------


@functools.cache
def pi() -> Decimal:
    def inverse_tangent(n):
        term = total = Decimal(1) / n
        k = 1
        while abs(term) > Decimal(10) ** -440:
            term, k = -term / (n * n), k + 2
            total += term / k
        return total

    return 4 * (4 * inverse_tangent(5) - inverse_tangent(239))


def normal_tail(t: Decimal) -> Decimal:
    term = total = t
    k = 1
    while abs(term) > Decimal(10) ** -430:
        term, k = term * t * t / (2 * k + 1), k + 1
        total += term
    return Decimal("0.5") - (-t * t / 2).exp() / (2 * pi()).sqrt() * total


def exact_gaussian_delta(shift: float, epsilon: float) -> Decimal:
    with localcontext(prec=440):
        a, e = Decimal(shift), Decimal(epsilon)
        return normal_tail(e / a - a / 2) - e.exp() * normal_tail(e / a + a / 2)


@pytest.mark.few(2)
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-15, 1e-5, 0.5])
def test_gaussian_numbers_are_exact_and_on_the_safe_side(epsilon, delta):
    multiplier = gaussian_multiplier(epsilon, delta)
    exact = exact_gaussian_delta(1 / multiplier, epsilon)
    assert exact <= Decimal(delta) <= exact * Decimal(1 + 1e-7)
    assert 0 <= float(Decimal(log_delta_above(1 / multiplier, epsilon)) - exact.ln()) < 1e-8
    assert Decimal(gaussian_delta(multiplier, epsilon)) >= exact
    assert exact_gaussian_delta(1 / multiplier, gaussian_epsilon(multiplier, delta)) <= Decimal(delta)
    assert gaussian_epsilon(multiplier, delta) == pytest.approx(epsilon, rel=1e-9)
    # The twin: a hair less noise is not enough.
    assert exact_gaussian_delta(1 / (multiplier * (1 - 1e-9)), epsilon) > Decimal(delta)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_gaussian_multiplier_agrees_with_dp_accounting(epsilon, delta):
    assert gaussian_multiplier(epsilon, delta) == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-9)


@given(shift=st.floats(1e-5, 1e3), epsilon=st.floats(0, 300))
def test_the_gaussian_bound_is_never_below_the_exact_delta(shift, epsilon):
    x = epsilon / shift - shift / 2
    if x > 38 or shift > 40:
        assert 0 <= gaussian_delta(1 / shift, epsilon) <= 1
        return
    assert Decimal(log_delta_above(shift, epsilon)) >= exact_gaussian_delta(shift, epsilon).ln()


def test_gaussian_edges():
    assert gaussian_multiplier(math.inf, 1e-5) == 0
    assert gaussian_epsilon(1e-200, 1e-5) == math.inf
    assert gaussian_epsilon(10.0, 0.5) == 0
    assert gaussian_delta(1e-200, 5.0) == 1
    assert gaussian_delta(1e-3, 0.0) == 1


@given(st.lists(st.floats(0.01, 1e3), min_size=1, max_size=8), st.floats(0.01, 1e3))
def test_split_gaussians_compose_to_the_whole(weights, total):
    parts = split_gaussian(total, weights)
    precision = sum(1 / Fraction(part) ** 2 for part in parts)
    assert precision <= 1 / Fraction(total) ** 2
    assert compose_gaussians(parts) == pytest.approx(total, rel=1e-13)
    exact = 1 / math.sqrt(precision)
    assert compose_gaussians(parts) <= exact * (1 + 1e-15)
    assert parts[0] ** 2 * weights[0] == pytest.approx(parts[-1] ** 2 * weights[-1])


def test_gaussians_compose_to_one_gaussian():
    events = [SelfComposedDpEvent(GaussianDpEvent(4.0), 9), GaussianDpEvent(2.0)]
    assert epsilon_at(events, 1e-6) == pytest.approx(gaussian_epsilon(1 / math.sqrt(9 / 16 + 1 / 4), 1e-6))
    assert compose_gaussians([]) == math.inf
    for bad in ([], [1.0, 0.0], [-1.0]):
        with pytest.raises(ParameterError):
            split_gaussian(1.0, bad)


@pytest.mark.parametrize("loss", [0.01, 1.0, 12.0])
def test_laplace_is_never_below_its_closed_form(loss):
    event = LaplaceDpEvent(1 / loss)
    assert Fraction(epsilon_at(event, 0.0)) * Fraction(1 / loss) >= 1
    for share in (0.1, 0.5, 0.99):
        exact = -math.expm1((share - 1) * loss / 2)
        assert exact <= delta_at(event, share * loss) <= exact * 1.01 + 1e-9


def binomial_delta(times: int, flip: Fraction, epsilon: float) -> Fraction:
    """Return the exact delta of randomized response over two answers, repeated."""
    with localcontext(prec=60):
        growth = Fraction(Decimal(epsilon).exp())
    truth = 1 - flip
    total = Fraction(0)
    for lies in range(times + 1):
        here = truth ** (times - lies) * flip**lies
        there = truth**lies * flip ** (times - lies)
        total += math.comb(times, lies) * max(here - growth * there, Fraction(0))
    return total


@pytest.mark.parametrize("times", [1, 7, 60])
def test_randomized_response_is_never_below_the_enumeration(times):
    flip = Fraction(1, 4)
    event = SelfComposedDpEvent(RandomizedResponseDpEvent(0.5, 2), times)
    pure = epsilon_at(event, 0.0)
    assert pure == pytest.approx(times * math.log(3))
    for share in (0.2, 0.5, 0.9):
        exact = binomial_delta(times, flip, share * pure)
        assert exact <= Fraction(delta_at(event, share * pure)) <= exact * Fraction(11, 10) + Fraction(1e-7)
    for delta in (1e-12, 1e-6, 1e-2):
        assert binomial_delta(times, flip, epsilon_at(event, delta)) <= Fraction(delta)


@pytest.mark.parametrize("times", [3, 40])
def test_a_pure_event_is_priced_as_the_worst_mechanism(times):
    loss = 0.7
    flip = Fraction(1 / (1 + math.exp(loss)))
    event = SelfComposedDpEvent(pure_event(loss), times)
    for delta in (1e-9, 1e-5, 1e-2):
        assert binomial_delta(times, flip, epsilon_at(event, delta)) <= Fraction(delta) * Fraction(1 + 1e-12)
        # Laplace noise of the same pure loss composes strictly better, so the two must not be confused.
    laplace = SelfComposedDpEvent(LaplaceDpEvent(1 / loss), times)
    assert epsilon_at(laplace, 1e-5) < epsilon_at(event, 1e-5)


def test_discrete_laplace_is_never_below_the_enumeration():
    parameter, sensitivity = 0.5, 3
    event = DiscreteLaplaceDpEvent(parameter, sensitivity)
    assert epsilon_at(event, 0.0) == 1.5
    weight = [math.tanh(parameter / 2) * math.exp(-parameter * abs(k)) for k in range(-200, 201)]
    for epsilon in (0.0, 0.4, 1.0, 1.4):
        moved = weight[sensitivity:] + [0.0] * sensitivity
        exact = math.fsum(max(a - math.exp(epsilon) * b, 0) for a, b in zip(weight, moved, strict=True))
        assert exact - 1e-12 <= delta_at(event, epsilon) <= exact * 1.01 + 1e-9


@pytest.mark.parametrize("parameter", [1e-6, 0.01, 0.3, 2.0, 8.0])
@pytest.mark.parametrize("steps", [1, 3, 40])
def test_a_continuous_laplace_with_a_little_more_loss_dominates_the_discrete_one(parameter, steps):
    # Both trade-off functions are convex, so it is enough to compare them where the discrete one has corners.
    edge = math.log1p(math.exp(-parameter))
    loss = _laplace_loss(Leaf("DiscreteLaplaceDpEvent", (parameter, float(steps))))
    bare = parameter * steps

    def log_tail(x):
        return -parameter * x - edge if x >= 0 else math.log1p(-math.exp(parameter * (x - 1) - edge))

    def continuous(alpha, shift):
        """Return log beta of the continuous test at log alpha."""
        threshold = -math.log(2) - alpha if alpha <= -math.log(2) else math.log(2 * -math.expm1(alpha))
        gap = shift - threshold
        return -math.log(2) - gap if gap >= 0 else math.log1p(-math.exp(gap) / 2)

    corners = [(log_tail(x), log_tail(steps - x + 1)) for x in range(-30, steps + 30)]
    corners = [pair for pair in corners if min(pair) > -500 and max(pair) < -1e-12]
    assert all(continuous(alpha, loss) <= beta + 1e-9 for alpha, beta in corners)
    # The twin: without the little more the discrete mechanism reveals what the continuous one hides.
    if parameter > 1e-3:
        assert any(continuous(alpha, bare) > beta + 1e-9 for alpha, beta in corners)


def test_a_fine_grid_costs_what_continuous_noise_costs():
    fine, coarse = DiscreteLaplaceDpEvent(1e-6, 10**6), DiscreteLaplaceDpEvent(0.01, 100)
    smooth = LaplaceDpEvent(1.0)
    for delta in (1e-12, 1e-6, 1e-2):
        prices = [epsilon_at(SelfComposedDpEvent(event, 20), delta) for event in (smooth, fine, coarse)]
        assert prices[0] * (1 - 1e-9) <= prices[1] <= prices[0] * (1 + 1e-5)
        assert prices[2] == pytest.approx(prices[0], rel=2e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize("share", [0.01, 0.3])
@pytest.mark.parametrize("multiplier", [0.8, 3.0])
def test_a_sampled_gaussian_is_never_below_its_closed_form(share, multiplier):
    event = PoissonSampledDpEvent(share, GaussianDpEvent(multiplier))
    for epsilon in (0.05, 0.5, 1.5):
        inner = math.log1p(math.expm1(epsilon) / share)
        exact = share * float(exact_gaussian_delta(1 / multiplier, inner))
        assert exact <= delta_at(event, epsilon) <= exact * 1.05 + 2e-9


def test_gaussians_on_one_sample_are_one_gaussian():
    pair = PoissonSampledDpEvent(0.1, ComposedDpEvent([GaussianDpEvent(2.0), GaussianDpEvent(2.0)]))
    one = PoissonSampledDpEvent(0.1, GaussianDpEvent(math.sqrt(2)))
    assert epsilon_at(pair, 1e-5) == pytest.approx(epsilon_at(one, 1e-5), rel=1e-6)
    assert epsilon_at(PoissonSampledDpEvent(1.0, one.event), 1e-5) == epsilon_at(one.event, 1e-5)


def test_sampling_a_pure_mechanism_amplifies_as_proved():
    for loss in (0.5, 40.0, 900.0):
        sampled = PoissonSampledDpEvent(0.25, LaplaceDpEvent(1 / loss))
        with localcontext(prec=40):
            exact = float((1 + Decimal("0.25") * (Decimal(loss).exp() - 1)).ln())
        assert epsilon_at(sampled, 0.0) == pytest.approx(exact, rel=1e-13)


def test_a_mixture_beats_adding_the_parts():
    parts = [SelfComposedDpEvent(LaplaceDpEvent(5.0), 10), GaussianDpEvent(2.0)]
    together = epsilon_at(parts, 1e-6)
    assert together < 0.99 * (2.0 + gaussian_epsilon(2.0, 1e-6))
    assert together > max(gaussian_epsilon(2.0, 1e-6), epsilon_at(parts[0], 1e-6))


def test_zero_concentrated_events_agree_with_the_gaussian_they_contain():
    assert epsilon_at(ZCDpEvent(rho=0.125), 1e-5) >= gaussian_epsilon(2.0, 1e-5)
    assert epsilon_at(ZCDpEvent(rho=0.125), 1e-5) <= 1.1 * gaussian_epsilon(2.0, 1e-5)
    assert epsilon_at(ZCDpEvent(rho=0.0, xi=0.3), 0.0) == 0.3
    assert epsilon_at(ZCDpEvent(rho=0.1, xi=0.3), 0.0) == math.inf


def test_the_distribution_bound_stays_silent_where_it_cannot_be_trusted():
    parts = tally(SelfComposedDpEvent(LaplaceDpEvent(100.0), 1000))
    assert DistributionBound(parts, scale=1.0).epsilon(1e-10) == math.inf
    assert DistributionBound(parts, scale=1.0).epsilon(1e-5) < math.inf
    many = tally(SelfComposedDpEvent(LaplaceDpEvent(1e6), 10**12))
    assert DistributionBound(many, scale=1.0).delta(1.0) == 1.0
    # Renyi divergences answer instead.
    assert epsilon_at(SelfComposedDpEvent(LaplaceDpEvent(1e5), 10**8), 1e-5) < 1.1


def test_calibrate_meets_its_target_and_not_by_much():
    for make, epsilon, delta in (
        (lambda noise: SelfComposedDpEvent(LaplaceDpEvent(noise), 4), 2.0, 0.0),
        (lambda noise: ComposedDpEvent([LaplaceDpEvent(noise), GaussianDpEvent(noise)]), 1.0, 1e-5),
        (GaussianDpEvent, 0.5, 1e-8),
    ):
        noise = calibrate(make, epsilon, delta, precision=1e-3)
        assert epsilon_at(make(noise), delta) <= epsilon < epsilon_at(make(noise * 0.99), delta)
    assert calibrate(GaussianDpEvent, 0.5, 1e-8) == pytest.approx(gaussian_multiplier(0.5, 1e-8), rel=1e-5)


def test_least_finds_the_step_and_gives_up_in_time():
    assert least(lambda x: x >= 3.7, guess=1.0) == pytest.approx(3.7)
    assert least(lambda x: x >= 3.7, guess=1e9) >= 3.7
    assert least(lambda x: False, guess=1.0) == math.inf
    assert least(lambda x: True, guess=1.0) < 1e-290


@given(st.lists(st.floats(0, 1e6), max_size=10), st.integers(1, 10**6))
def test_sums_round_up_and_stay_exact_where_they_can(values, count):
    total, exact = sum_up(values), sum(map(Fraction, values), Fraction(0))
    assert total >= exact
    assert math.nextafter(total, 0) < exact or total == exact
    for value in values:
        assert Fraction(times_up(value, count)) >= Fraction(value) * count


def test_rounding_edges():
    assert sum_up([0.5, 0.5]) == 1.0
    assert sum_up([1.0, math.inf]) == math.inf
    assert times_up(math.inf, 3) == math.inf
    assert round_up(Fraction(10) ** 400) == math.inf
    assert sum_up([]) == 0


def test_gaussian_calibration_does_not_import_dp_accounting():
    code = (
        "import sys; from discreet.privacy.accounting.accountant import gaussian_multiplier, split_gaussian; "
        "split_gaussian(gaussian_multiplier(1.0, 1e-6), [1, 2]); sys.exit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_delta_too_small_for_a_float_is_not_zero():
    """Zero would say that the releases are pure, which Gaussian noise never is."""
    assert 0 < delta_at([GaussianDpEvent(18.7), pure_event(4.26)], 20.0) < 1e-300
    assert delta_at([pure_event(4.26)], 20.0) == 0


def test_a_delta_is_at_most_one():
    """A mechanism that may fail, next to noise that hides nothing, can't fail more often than always."""
    events = [GaussianDpEvent(1e-3), FailureEvent(probability=0.5)]
    assert delta_at(events, 0.1) == 1.0


@pytest.mark.parametrize("loss", [0.01, 0.7, 3.0])
def test_a_pure_loss_has_the_divergence_of_two_answers(loss):
    likely = 1 / (1 + math.exp(-loss))
    orders = np.array([1.5, 2.0, 7.0, 64.0])
    moment = likely**orders * (1 - likely) ** (1 - orders) + (1 - likely) ** orders * likely ** (1 - orders)
    exact = np.log(moment) / (orders - 1)
    found = _pure_renyi(loss, orders)
    assert np.all(found >= exact * (1 - 1e-9)) and np.all(found <= exact * (1 + 1e-6))


def test_many_rounded_responses_get_a_finer_interval():
    """Each response but the costliest is rounded up by at most an interval; together they stay small."""
    costly, cheap = (next(iter(tally([pure_event(epsilon)]))) for epsilon in (0.1, 1e-4))
    assert 400 * _interval({costly: 1, cheap: 400}, 1.0) <= 1 / 200
    assert 400 * _interval({costly: 1}, 1.0) > 1 / 200
