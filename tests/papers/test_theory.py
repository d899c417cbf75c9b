"""Bounds of the papers: values against formulas written anew, vacuous bounds, and the command."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from command_line import one_sentence
from discreet.core.checks import ParameterError
from discreet.papers import bounds as common
from discreet.papers.bounds import Bound, PublicSizes, Standing, theories
from discreet.papers.collection import theory as collection
from discreet.papers.dpimf import theory as dpimf
from discreet.papers.frank_wolfe import theory as frank_wolfe
from discreet.papers.mixture import theory as mixture
from discreet.papers.one_bit import theory as one_bit
from discreet.privacy.mechanisms.cells import HiddenStars

ML100K = PublicSizes(users=943, items=1682, ratings=100_000, epsilon=1.0)
COMMAND = ("--users", "943", "--items", "1682", "--ratings", "100000", "--epsilon", "1")


def largest(function, bound=1.0):
    """Return the supremum over [-bound, bound] by a search of its own."""
    grid = np.linspace(-bound, bound, 401)
    start = grid[np.argmax([function(x) for x in grid])]
    found = optimize.minimize_scalar(
        lambda x: -function(x), bounds=(max(start - 0.01, -bound), min(start + 0.01, bound)), method="bounded"
    )
    return max(-found.fun, function(bound), function(-bound))


@pytest.mark.few(1)
@pytest.mark.parametrize("link", one_bit.LINKS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_constants_of_links_are_suprema(link, epsilon):
    p = 1 / (1 + math.exp(epsilon))
    law = stats.logistic if link == "logistic" else stats.norm

    def c(x):
        return (1 - p) * law.cdf(x) + p * law.sf(x)

    def slope(x):
        return (1 - 2 * p) * law.pdf(x)

    found = one_bit.link_constants(link, epsilon)
    assert found.steepness == pytest.approx(largest(lambda x: slope(x) / (c(x) * (1 - c(x)))), rel=1e-6)
    assert found.flatness == pytest.approx(largest(lambda x: c(x) * (1 - c(x)) / slope(x) ** 2), rel=1e-6)


def test_the_printed_flatness_is_false_where_the_note_says_so():
    said = {epsilon: _flatness_note(epsilon) for epsilon in (1.0, 8.0)}
    assert "refuted" in said[1.0]
    probit = one_bit.OneBitSettings(link="probit")
    large = common.PublicSizes(users=943, items=1682, ratings=100_000, epsilon=8.0)
    assert "refuted" not in one_bit.bounds(large, probit)[1].note


def _flatness_note(epsilon):
    sizes = PublicSizes(users=943, items=1682, ratings=100_000, epsilon=epsilon)
    return one_bit.bounds(sizes, one_bit.OneBitSettings())[1].note


def test_the_printed_sensitivity_of_probit():
    assert one_bit.printed_sensitivity("probit") == pytest.approx(2 * stats.norm.pdf(0) / stats.norm.cdf(-1))
    assert one_bit.link_constants("probit").steepness == pytest.approx(1.813, abs=5e-4)


def test_e_emp_is_least_at_its_rounds():
    radius, row = 1259.4, 10.3
    best = frank_wolfe.balanced_rounds(ML100K, radius, row)
    least = sum(frank_wolfe.empirical_error(ML100K, radius, row, best))
    for factor in (0.8, 1.25):
        assert sum(frank_wolfe.empirical_error(ML100K, radius, row, factor * best)) > least


def test_e_gen_by_its_own_arithmetic():
    k, length = 1000.0, 9.0
    n, d, seen = ML100K.users, ML100K.items, ML100K.ratings
    first, second = frank_wolfe.general_error(ML100K, k, length)
    assert first == pytest.approx((k * math.sqrt(n + d) / seen) ** (2 / 3))
    logs = 4 / 3 * math.log(k) + math.log(length) + math.log(d) / 4
    logs -= (13 / 6 * math.log(seen) + math.log(n + d) / 6) / 2
    assert second == pytest.approx(math.exp(logs))


@pytest.mark.parametrize("rating", [1.0, 2.5, 5.0])
def test_reports_have_a_density_and_its_moments(rating):
    def height(x):
        return float(mixture.density(np.array([x]), rating, 4.0, 1.0, 5.0)[0])

    total, _ = integrate.quad(height, 1, 5, points=[rating])
    mean, _ = integrate.quad(lambda x: x * height(x), 1, 5, points=[rating])
    assert total == pytest.approx(1)
    assert mixture.report_moments(rating, 4.0, 1.0, 5.0)[0] == pytest.approx(mean, abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_scale_is_right_for_the_whole_range_only(epsilon):
    assert mixture.largest_log_ratio(4 / epsilon, 1, 5) == pytest.approx(epsilon)
    assert mixture.largest_log_ratio(3 / epsilon, 1, 5) > epsilon * 1.1


def test_shares_of_reports_add_up():
    stars = HiddenStars(epsilon=1.0)
    rated = ML100K.ratings / ML100K.cells
    share, fake = collection.reported_share(stars, ML100K), collection.fake_share(stars, ML100K)
    assert share * (1 - fake) == pytest.approx(rated * stars.keep)
    assert 0.9 < fake < 1


def test_gammas_follow_the_corollary_and_its_twin_does_not():
    assert dpimf.corollary_holds(dpimf.DpimfSettings())
    values = [dpimf.gamma(loss, 1.0, dpimf.DpimfSettings()) for loss in dpimf.LOSSES]
    assert values == sorted(values, reverse=True)
    # Without its condition on alpha_0 the first part of the corollary fails.
    odd = dpimf.DpimfSettings(alpha0=0.0, beta1=0.001, beta2=0.001)
    assert dpimf.gamma("complementary", 1.0, odd) > dpimf.gamma("strawman", 1.0, odd)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.05, 3), st.floats(0.05, 1), st.floats(2, 64))
def test_corrected_weights_keep_epsilon_and_printed_ones_do_not(epsilon, share, most):
    weight = dpimf.corrected_weights(epsilon, (share,), most)[0]
    assert dpimf.true_sampled_epsilon(epsilon, weight, share) <= epsilon * (1 + 1e-6)
    before = dpimf.printed_epsilon_before(epsilon, most)
    assert dpimf.true_sampled_epsilon(before, most) > epsilon


def test_a_bound_is_vacuous_from_the_value_that_needs_no_learning():
    def bound(value, without):
        return Bound(Standing.PRINTED, "x", "", value, without=without)

    assert bound(2.0, 2.0).vacuous
    assert not bound(1.9, 2.0).vacuous
    assert not bound(1.9, None).vacuous


@pytest.mark.parametrize("paper", theories())
def test_more_epsilon_never_raises_an_error_bound(paper):
    kind, bounds = theories()[paper]
    found = {}
    for epsilon in (0.5, 1.0, 2.0):
        sizes = PublicSizes(users=500, items=300, ratings=9000, epsilon=epsilon)
        found[epsilon] = {one.name: one.value for one in bounds(sizes, kind()) if one.without is not None}
    assert found[0.5]
    for name, value in found[1.0].items():
        assert found[2.0][name] <= value <= found[0.5][name]


@pytest.mark.parametrize("paper", theories())
def test_the_command_prints_every_bound(discreet, paper):
    code, shown, _ = discreet("theory", paper, *COMMAND)
    coded, told, _ = discreet("theory", paper, *COMMAND, "--json")
    assert code == coded == 0
    content = json.loads(told)
    assert content["paper"] == paper and content["bounds"]
    for one in content["bounds"]:
        assert one["name"] in shown
        assert set(one) >= {"value", "where", "standing", "without", "vacuous", "note"}
    assert ("VACUOUS" in shown) == any(one["vacuous"] for one in content["bounds"])


def test_settings_are_parsed_and_checked(discreet):
    _, told, _ = discreet("theory", "one-bit", *COMMAND, "--set", "link=probit", "--set", "rank=3", "--json")
    assert json.loads(told)["settings"]["link"] == "probit"
    assert json.loads(told)["settings"]["rank"] == 3
    for wrong in ("rank=x", "rank", "colour=1", "rank=0", "link=cauchy"):
        code, out, error = discreet("theory", "one-bit", *COMMAND, "--set", wrong)
        one_sentence(code, out, error)


def test_sizes_are_checked(discreet):
    with pytest.raises(ParameterError):
        PublicSizes(users=10, items=10, ratings=101, epsilon=1.0)
    for name, value in (("users", 0), ("ratings", 0), ("epsilon", 0.0), ("epsilon", math.inf)):
        with pytest.raises(ParameterError):
            PublicSizes(**{"users": 10, "items": 10, "ratings": 10, "epsilon": 1.0, name: value})
    one_sentence(*discreet("theory", "no-paper", *COMMAND))
