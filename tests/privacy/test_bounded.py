"""Bounded, clamped and modified Laplace: every ratio enumerated, every draw as its table says."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.checks import DataError, ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.mechanisms import bounded as bounded_module
from discreet.privacy.mechanisms import grid as grid_module
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ClampedLaplace, ModifiedLaplace
from discreet.privacy.mechanisms.cells import HiddenStars
from discreet.privacy.mechanisms.channel import ROUNDING, log_up
from discreet.privacy.mechanisms.clamped_noise import clamped_noise
from discreet.testing import refuses
from evidence import cumulative, follows, gap, samples_to_separate

GRIDS = [BoundedLaplace, ClampedLaplace]
EPSILONS = [1e-6, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 50.0, 700.0]
MISSING = None


def stars(kind, epsilon, points=1025):
    return kind(epsilon=epsilon, low=1.0, high=5.0, points=points)


def words(*numbers):
    # More bytes are asked for than are used.
    return PrivacyRandom.scripted(b"".join(number.to_bytes(8, "big") for number in numbers) + bytes(1024))


def steps_of(mechanism, reports):
    width = (mechanism.high - mechanism.low) / (mechanism.points - 1)
    return np.rint((reports - mechanism.low) / width).astype(np.int64)


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("points", [2, 5, 9, 1025])
def test_the_largest_ratio_on_a_grid_is_e_to_the_epsilon(kind, epsilon, points):
    loss = stars(kind, epsilon, points).largest_log_ratio()
    assert loss <= epsilon
    if epsilon <= 10:
        assert loss >= epsilon - 2 * ROUNDING


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", GRIDS)
def test_the_finest_grid_keeps_the_smallest_promise(kind):
    assert stars(kind, 1e-6, points=2049).largest_log_ratio() <= 1e-6


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_every_triple_of_two_ratings_and_a_report_is_enumerated(kind, epsilon):
    mechanism = stars(kind, epsilon, points=33)
    counts = [[int(count) for count in row] for row in grid_module._grid_table(mechanism).counts()]
    assert all(sum(row) == 2**64 for row in counts)
    ratios = [Fraction(a, b) for one in counts for two in counts for a, b in zip(one, two, strict=True)]
    assert mechanism.largest_log_ratio() == log_up(max(ratios)) <= epsilon
    assert log_up(Fraction(counts[0][0], counts[-1][0])) == pytest.approx(epsilon, abs=2 * ROUNDING)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_tables_are_those_of_the_definitions(epsilon):
    bounded, clamped = stars(BoundedLaplace, epsilon, 65), stars(ClampedLaplace, epsilon, 65)
    values, scale = bounded.grid(), 4.0 / epsilon
    kernel = np.exp(-np.abs(values[:, None] - values[None, :]) / scale)
    np.testing.assert_allclose(bounded.channel().transition, kernel / kernel.sum(axis=1)[:, None], rtol=1e-8)
    wide = np.arange(-20_000, 20_065)
    q = math.exp(-epsilon / 64)
    for row in (0, 10, 64):
        noise = (1 - q) / (1 + q) * q ** np.abs(wide - row)
        expected = np.bincount(np.clip(wide, 0, 64), weights=noise)
        np.testing.assert_allclose(clamped.channel().transition[row], expected, rtol=1e-8)


def test_bounded_laplace_approaches_the_printed_density():
    mechanism = stars(BoundedLaplace, 1.0)
    scale, low, high = 4.0, 1.0, 5.0
    ratings, reports = np.array([1.0, 2.5, 5.0])[:, None], np.linspace(1.25, 4.75, 8)[None, :]
    normalizer = 1 - (np.exp(-(ratings - low) / scale) + np.exp(-(high - ratings) / scale)) / 2
    printed = np.exp(-np.abs(reports - ratings) / scale) / (2 * scale * normalizer)
    np.testing.assert_allclose(mechanism.density(reports, ratings), printed, rtol=2e-3)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("rating", [1.0, 3.5, 5.0])
def test_reports_follow_the_table_and_not_that_of_another_epsilon(kind, rating):
    honest, bold = stars(kind, 1.0), stars(kind, 1.25)
    row = steps_of(honest, np.array([rating]))[0]
    apart = np.abs(honest.channel().cdf(row) - bold.channel().cdf(row)).max()
    reports = honest.release(np.full(samples_to_separate(apart), rating), PrivacyRandom.simulate(21))
    drawn = steps_of(honest, reports)
    assert follows(drawn, cumulative(honest.channel().transition[row]))
    assert not follows(drawn, cumulative(bold.channel().transition[row]))


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_mean_variance_and_their_inverse_come_from_the_channel(kind, epsilon):
    mechanism = stars(kind, epsilon)
    transition, values = mechanism.channel().transition, mechanism.grid()
    mean = transition @ values
    np.testing.assert_allclose(mechanism.mean(values), mean, rtol=1e-13)
    np.testing.assert_allclose(mechanism.variance(values), transition @ values**2 - mean**2, rtol=1e-10)
    assert np.all(np.diff(mean) > 0) and mean[0] > 1 and mean[-1] < 5
    assert mechanism.mean(3.0) == pytest.approx(3.0, abs=1e-12)
    ratings = np.array([1.0, 1.23, 3.3, 5.0])
    np.testing.assert_allclose(mechanism.inverse_mean(mechanism.mean(ratings)), ratings, atol=1e-9)
    np.testing.assert_array_equal(mechanism.inverse_mean([0.0, 9.0]), [1.0, 5.0])


@pytest.mark.parametrize("kind", GRIDS)
def test_simulated_means_are_those_of_the_channel_and_not_the_ratings(kind):
    mechanism = stars(kind, 1.0)
    # Hoeffding on a range of 4: the mean is within `off` except with probability 1e-9.
    expected = float(mechanism.mean(5.0))
    off = (5.0 - expected) / 4
    count = math.ceil(16 * math.log(2e9) / (2 * off**2))
    reports = mechanism.release(np.full(count, 5.0), PrivacyRandom.simulate(22))
    assert abs(reports.mean() - expected) <= off
    assert abs(reports.mean() - 5.0) > off
    spread = (reports - expected) ** 2
    assert abs(spread.mean() - mechanism.variance(5.0)) <= 16 * math.sqrt(math.log(2e9) / (2 * count))


def test_the_first_and_the_last_word_give_the_ends_of_the_scale():
    for kind in GRIDS:
        mechanism = stars(kind, 1.0)
        assert mechanism.release([3.0, 3.0], words(0, 2**64 - 1)).tolist() == [1.0, 5.0]
    clamped = stars(ClampedLaplace, 1.0, points=2)
    # With two points the lower end is reported with probability 1 / (1 + 1/e) when it is the rating.
    first_high = round(2**64 / (1 + math.exp(-1.0 + ROUNDING)))
    edge = 2**14
    assert clamped.release([1.0] * 2, words(first_high - edge, first_high + edge)).tolist() == [1.0, 5.0]


def test_ratings_are_put_on_the_nearest_point_and_reports_stay_on_the_scale():
    mechanism = BoundedLaplace(epsilon=700.0, low=-0.1, high=0.7, points=9)
    reports = mechanism.release([-0.1, 0.04, 0.06, 0.7], PrivacyRandom.simulate(1))
    np.testing.assert_allclose(reports, [-0.1, 0.0, 0.1, 0.7], atol=1e-15)
    assert mechanism.grid()[0] == -0.1 and mechanism.grid()[-1] == 0.7
    np.testing.assert_allclose(mechanism.likelihood(reports, reports), 1.0, atol=1e-15)


def test_a_table_whose_ratio_is_too_large_is_never_drawn_from(monkeypatch):
    monkeypatch.setattr(grid_module, "ROUNDING", -1e-9)
    with refuses("table-reveals", epsilon=1.0):
        BoundedLaplace(epsilon=1.0, low=0.0, high=1.0, points=77).release([0.5], PrivacyRandom.simulate(1))


@pytest.mark.parametrize("kind", [*GRIDS, ModifiedLaplace])
@pytest.mark.parametrize(
    "change",
    [{"low": 5.0}, {"high": math.inf}, {"low": math.nan}, {"points": 1}, {"points": 10.5}, {"points": 10**6}]
    + [{"epsilon": value} for value in (0, -1, math.nan, math.inf, 1e-9, 1e4, "1", True)],
)
def test_bad_parameters_are_refused(kind, change):
    with pytest.raises(ParameterError):
        kind(**{"epsilon": 1.0, "low": 1.0, "high": 5.0, **change})


@pytest.mark.parametrize("kind", GRIDS)
def test_ratings_and_reports_outside_the_scale_are_refused(kind):
    mechanism = stars(kind, 1.0)
    for call in (mechanism.mean, mechanism.variance, lambda x: mechanism.likelihood(x, 3.0)):
        with refuses("off-grid"):
            call([5.01])


def cell_counts(mechanism, cell):
    """Return the probability of every report of a cell in units of 2^-128, that of "missing" last."""
    noise = clamped_noise(mechanism.epsilon, mechanism.points // 2)
    truth, lie = (int(count) for count in bounded_module._coin(mechanism.epsilon).counts()[0])
    moves = [int(count) for count in noise.table.counts()[0]]
    rating = 0 if cell is MISSING else cell
    totals = [0] * (2 * noise.reach + 1)
    for index, count in enumerate(moves):
        report = min(max(rating + index - noise.farthest, -noise.reach), noise.reach)
        totals[report + noise.reach] += count
    number, none = (lie, truth) if cell is MISSING else (truth, lie)
    return [number * count for count in totals] + [none * 2**64]


CASES = {
    "rating, rating, numbers": (1, 1, "numbers"),
    "rating, rating, missing": (1, 1, "missing"),
    "rating, rating, both": (1, 1, "both"),
    "rating, missing, numbers": (1, 0, "numbers"),
    "rating, missing, missing": (1, 0, "missing"),
    "rating, missing, both": (1, 0, "both"),
    "missing, rating, numbers": (0, 1, "numbers"),
    "missing, rating, missing": (0, 1, "missing"),
    "missing, rating, both": (0, 1, "both"),
}
# What each case's largest ratio is, as a multiple of epsilon in the exponent.
SHARES = {"rating, rating, numbers": 1, "rating, rating, missing": 0, "rating, missing, numbers": 1}
SHARES |= {"rating, missing, missing": -0.5, "missing, rating, numbers": 0, "missing, rating, missing": 0.5}


@pytest.mark.few(18)
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("case", CASES)
def test_the_nine_cases_of_the_proof(case, epsilon):
    mechanism = ModifiedLaplace(epsilon=epsilon, points=5)
    rated_one, rated_other, reports = CASES[case]
    largest = Fraction(0)
    for one in range(-2, 3) if rated_one else [MISSING]:
        for other in range(-2, 3) if rated_other else [MISSING]:
            mine, theirs = cell_counts(mechanism, one), cell_counts(mechanism, other)
            assert sum(mine) == sum(theirs) == 2**128
            pairs = list(zip(mine, theirs, strict=True))
            numbers, none = pairs[:-1], pairs[-1]
            if reports == "numbers":
                sets = numbers
            elif reports == "missing":
                sets = [none]
            else:
                sets = [(a + none[0], b + none[1]) for a, b in numbers]
            largest = max(largest, *(Fraction(a, b) for a, b in sets))
    assert log_up(largest) <= epsilon
    if case in SHARES:
        assert log_up(largest) == pytest.approx(SHARES[case] * epsilon, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_the_largest_ratio_over_all_cells_is_e_to_the_epsilon(epsilon):
    mechanism = ModifiedLaplace(epsilon=epsilon, points=5)
    rows = [cell_counts(mechanism, cell) for cell in (MISSING, *range(-2, 3))]
    largest = max(Fraction(a, b) for one in rows for two in rows for a, b in zip(one, two, strict=True))
    assert log_up(largest) == mechanism.largest_log_ratio() <= epsilon
    assert mechanism.largest_log_ratio() == pytest.approx(epsilon, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 2.0, 8.0, 20.0, 40.0, 100.0, 700.0])
@pytest.mark.parametrize("points", [3, 257])
def test_modified_laplace_keeps_the_promise_on_fine_grids_too(epsilon, points):
    loss = ModifiedLaplace(epsilon=epsilon, points=points).largest_log_ratio()
    assert loss <= epsilon
    if epsilon <= 20:
        assert loss >= epsilon - 1e-7


@pytest.mark.parametrize(
    ("word", "reported", "moved"),
    [(0, [False, False], 0), (2**63, [True, False], 0), (2**64 - 1, [True, True], math.inf)],
)
def test_modified_laplace_reports_as_its_words_say(word, reported, moved):
    mechanism = ModifiedLaplace(epsilon=2.0, low=-1.0, high=1.0, points=5)
    result, numbers = mechanism.release([0.5, 0.5], words(*[word] * 50), present=[True, False])
    assert result.tolist() == reported
    high = mechanism.report_range()[1]
    assert numbers.tolist() == [min(0.5 + moved, high) if reported[0] else 0.0, min(moved, high)]


def test_the_numbers_in_missing_cells_do_not_matter():
    mechanism = ModifiedLaplace(epsilon=1.0)
    assert (mechanism.low, mechanism.high, mechanism.points) == (-1.0, 1.0, 257)
    ratings, present = np.array([0.3, -0.9, 0.5]), np.array([True, False, False])
    one = mechanism.release(ratings, PrivacyRandom.simulate(5), present=present)
    other = mechanism.release(np.where(present, ratings, 1.0), PrivacyRandom.simulate(5), present=present)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("rated", [True, False])
def test_modified_laplace_follows_its_distribution_and_not_that_of_another_epsilon(rated):
    honest, bold = (ModifiedLaplace(epsilon=epsilon, low=1.0, high=5.0) for epsilon in (2.0, 2.5))
    rating, visible = 4.0, 0.02
    count = samples_to_separate(visible) * 4
    ratings, present = np.full(count, rating), np.full(count, rated)
    reported, numbers = honest.release(ratings, PrivacyRandom.simulate(31), present=present)
    share = honest.keep() if rated else honest.fake()
    twin = bold.keep() if rated else bold.fake()
    assert abs(share - twin) > visible
    assert follows(reported.astype(np.int64), cumulative([1 - share, share]))
    assert not follows(reported.astype(np.int64), cumulative([1 - twin, twin]))

    noise = numbers[reported] - (rating if rated else 3.0)
    assert noise.size > samples_to_separate(visible)
    centered = np.rint(noise * 64).astype(np.int64)

    def cdf(scale):
        q = math.exp(-1 / (64 * scale))
        return lambda k: np.where(k < 0, q ** np.abs(k) / (1 + q), 1 - q ** np.abs(k + 1) / (1 + q))

    assert gap(cdf(4.0 / 2.0), cdf(4.0 / 2.5), np.arange(-1000, 1000)) > visible
    assert follows(centered, cdf(4.0 / 2.0))
    assert not follows(centered, cdf(4.0 / 2.5))


def test_modified_laplace_moments_and_likelihood_agree_with_its_channel():
    mechanism = ModifiedLaplace(epsilon=1.5, low=1.0, high=5.0, points=17)
    channel = mechanism.channel()
    np.testing.assert_allclose(channel.transition.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(mechanism.mean(mechanism.grid()), channel.mean(), atol=1e-10)
    np.testing.assert_allclose(mechanism.variance(mechanism.grid()), channel.variance(), rtol=1e-9)
    np.testing.assert_allclose(mechanism.mean(mechanism.grid()), mechanism.grid(), atol=2e-7 * 4 / 1.5)
    np.testing.assert_allclose(mechanism.inverse_mean(mechanism.mean([1.2, 4.0])), [1.2, 4.0], atol=1e-9)
    given = mechanism.likelihood(channel.outputs[None, :], channel.inputs[:, None])
    np.testing.assert_allclose(given, mechanism.keep() * channel.transition, rtol=1e-13)
    missing = mechanism.likelihood_missing(channel.outputs)
    np.testing.assert_allclose(missing, mechanism.fake() * channel.transition[8], rtol=1e-13)
    assert missing.sum() == pytest.approx(mechanism.fake())
    assert mechanism.keep() / mechanism.fake() == pytest.approx(math.exp(0.75))
    shares = np.array([[mechanism.keep(), mechanism.fake()], [mechanism.fake(), mechanism.keep()]])
    np.testing.assert_allclose(shares @ mechanism.presence([True, False]), [1.0, 0.0], atol=1e-14)


def test_modified_laplace_refuses_what_it_cannot_hold():
    mechanism = ModifiedLaplace(epsilon=1.0)
    random = PrivacyRandom.simulate(1)
    for ratings, present in ([[0.5], [1]], [[0.5], [True, False]], [[2.0], [True]], [[math.nan], [False]]):
        with pytest.raises(DataError):
            mechanism.release(ratings, random, present=present)
    with refuses("off-grid", name="reports"):
        mechanism.likelihood([1e6], 0.0)
    with refuses("broken-rule", name="points", value=10):
        ModifiedLaplace(epsilon=1.0, points=10)
    with refuses("broken-rule", name="(points - 1) / epsilon"):
        ModifiedLaplace(epsilon=1e-4)
    with refuses("broken-rule", name="points * reports", value=1680410625):
        ModifiedLaplace(epsilon=0.02, points=1025).channel()


def test_the_middle_of_a_scale_is_a_grid_point():
    with refuses("broken-rule", name="points"):
        ModifiedLaplace(epsilon=1.0, points=256)


def test_cells_are_released_for_the_whole_catalog_alone():
    with refuses("whole-catalog-needed"):
        HiddenStars(epsilon=1.0).release([4.0], PrivacyRandom.simulate(1))


@pytest.mark.parametrize("kind", [BoundedLaplace, ModifiedLaplace])
def test_grid_points_are_different_numbers(kind):
    kind(epsilon=1.0, low=1.0, high=1.0 + 2.0**-40, points=5)
    with refuses("broken-rule", name="high"):
        kind(epsilon=1.0, low=1.0, high=1.0 + 2.0**-50, points=5)
