import tracemalloc
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.special import ndtr

from discreet.core.checks import ParameterError
from discreet.core.kernels import strict
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.sampling import draws as sampling
from discreet.privacy.sampling import kernels as sampling_kernels
from discreet.privacy.sampling.draws import (
    add_discrete_gaussian,
    add_discrete_laplace,
    bernoulli,
    discrete_gaussian,
    discrete_laplace,
    draw_from_table,
    geometric,
    uniform_below,
)
from discreet.testing import refuses
from evidence import agree, cumulative, follows, gap, samples_to_separate, samples_to_separate_two

dp.enable_features("contrib")

SCALES = [0.5, 1.0, 7.3, 1000.0, 2.0**20 + 0.1, 2.0**40]
PADDING = bytes(2000)


def geometric_cdf(scale):
    return lambda k: np.where(k < 0, 0.0, -np.expm1(-(np.asarray(k, dtype=float) + 1) / scale))


def laplace_cdf(scale):
    def cdf(k):
        tail = np.exp(-np.where(k < 0, -k, k + 1) / scale) / (1 + np.exp(-1 / scale))
        return np.where(k < 0, tail, 1 - tail)

    return cdf


def gaussian_cdf(sigma):
    if sigma > 1000:  # The sum is the integral up to 1 / sigma^2, far below what a sample can see.
        return lambda k: ndtr((np.asarray(k, dtype=float) + 0.5) / sigma)
    reach = int(40 * sigma) + 2
    weights = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
    return cumulative(weights / weights.sum(), first=-reach)


def points(scale):
    return np.unique(np.round(np.linspace(-4, 4, 4001) * scale).astype(np.int64))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("draw", "cdf"),
    [(geometric, geometric_cdf), (discrete_laplace, laplace_cdf), (discrete_gaussian, gaussian_cdf)],
)
def test_draws_have_the_scale_they_claim(draw, cdf, scale):
    claimed, timid = cdf(scale), cdf(scale / 1.1)
    count = samples_to_separate(gap(claimed, timid, points(scale)))
    noise = draw(scale, count, PrivacyRandom.simulate(11))
    assert follows(noise, claimed)
    assert not follows(noise, timid)


def test_noise_far_below_one_step_is_seen_at_all():
    claimed, timid = laplace_cdf(0.2), laplace_cdf(0.15)
    noise = discrete_laplace(
        0.2, samples_to_separate(gap(claimed, timid, np.arange(-3, 4))), PrivacyRandom.simulate(1)
    )
    assert follows(noise, claimed)
    assert not follows(noise, timid)
    assert not discrete_laplace(1e-3, 10_000, PrivacyRandom.simulate(1)).any()
    assert not discrete_gaussian(1e-3, 10_000, PrivacyRandom.simulate(1)).any()
    assert not geometric(5e-324, 10_000, PrivacyRandom.simulate(1)).any()


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_the_last_digits_of_wide_noise_are_even(draw):
    even, lopsided = cumulative(np.full(16, 1 / 16)), cumulative(np.repeat([1.05 / 16, 0.95 / 16], 8))
    count = samples_to_separate(gap(even, lopsided, np.arange(16)))
    digits = draw(2.0**40, count, PrivacyRandom.simulate(5)) & 15
    assert follows(digits, even)
    assert not follows(digits, lopsided)


@pytest.mark.thorough
def test_opendp_draws_the_same_laplace():
    scale, twin = 5.0, 4.0
    count = samples_to_separate_two(gap(laplace_cdf(scale), laplace_cdf(twin), points(scale)))
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    oracle = dp.m.make_laplace(*space, scale=scale)([0] * count)
    assert agree(oracle, discrete_laplace(scale, count, PrivacyRandom.simulate(1)))
    assert not agree(oracle, discrete_laplace(twin, count, PrivacyRandom.simulate(1)))


@pytest.mark.thorough
def test_opendp_draws_the_same_gaussian():
    sigma, twin = 5.0, 4.0
    count = samples_to_separate_two(gap(gaussian_cdf(sigma), gaussian_cdf(twin), points(sigma)))
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    oracle = dp.m.make_gaussian(*space, scale=sigma)([0] * count)
    assert agree(oracle, discrete_gaussian(sigma, count, PrivacyRandom.simulate(1)))
    assert not agree(oracle, discrete_gaussian(twin, count, PrivacyRandom.simulate(1)))


def exponential(x, terms=400):
    """Return exp(x) for a small fraction by its series: nothing here is shared with the code under test."""
    total = term = Fraction(1)
    halvings = 0
    while abs(x) > Fraction(1, 8):
        x, halvings = x / 2, halvings + 1
    for index in range(1, terms):
        term = Fraction(int(term * x / index * 2**400), 2**400)
        total += term
    for _ in range(halvings):
        total = Fraction(int(total * total * 2**400), 2**400)
    return total


@pytest.mark.parametrize("scale", [0.05, 1.0, 1000.7])
def test_digit_probabilities_are_exact_to_127_places(scale):
    high, low = sampling._digits(Fraction(scale), sampling._laplace_digit_count(scale))
    for digit in range(high.size):
        ratio = 2**digit / Fraction(scale)
        exact = 1 / (1 + exponential(ratio)) if ratio < 200 else Fraction(0)
        assert abs(Fraction((int(high[digit]) << 64) + int(low[digit]), 2**128) - exact) < Fraction(1, 2**127)


def test_the_acceptance_table_is_exact_to_127_places():
    high, low = sampling._decay()
    for place in range(sampling_kernels.TABLED_BYTES):
        for byte in (0, 1, 2, 77, 254, 255):
            exact = exponential(-Fraction(byte, 2 ** (1 + 8 * place)))
            word = (int(high[place, byte]) << 64) + int(low[place, byte])
            assert abs(Fraction(word, 2**128) - exact) < Fraction(1, 2**127)


_survives = sampling_kernels._survives


@strict
def survives(stream, exponent_high, exponent_low, high, low):
    return _survives(stream, 0, exponent_high, exponent_low, high, low)


@pytest.mark.parametrize("rest", [1, 2**57 - 1, 2**57, 3 * 2**63 + 5, 2**112 - 1])
def test_the_rest_of_an_exponent_decides_to_its_last_digit(rest):
    """The tabled bytes are zero, so the first decision after them has just the probability of the rest."""
    high, low = sampling._decay()
    words = (np.uint64(rest >> 64), np.uint64(rest & (2**64 - 1)))
    # In units of 2^-121, and as 16 bytes: below it the decision goes on to a second one, which fails.
    for drawn, survived in ((rest << 7, True), ((rest << 7) - 1, False)):
        stream = np.frombuffer(bytes(2) + drawn.to_bytes(16, "big") + bytes([255] * 32), dtype=np.uint8)
        assert survives(stream, *words, high, low)[0] == survived


_exponent = sampling_kernels.exponent


@strict
def exponent(magnitude, rate_high, rate_low):
    return _exponent(magnitude, rate_high, rate_low)


@pytest.mark.parametrize("sigma", [0.0625, 0.3, 1.0, 3.7, 1000.0, 12345.678, 2.0**40 / 3, 2.0**55])
def test_the_exponent_is_exact_to_110_places(sigma):
    exact_sigma = Fraction(sigma)
    digits = sampling._gaussian_digit_count(exact_sigma)
    rate = sampling._gaussian_tables(sigma)[2]
    values = {min(int(exact_sigma * Fraction(step, 7)), 2**digits - 1) for step in range(120)} | {
        0,
        1,
        2**digits - 1,
    }
    for value in values:
        high, low = exponent(np.uint64(value << (62 - digits)), rate[0], rate[1])
        found = Fraction((int(high) << 64) + int(low), 2**sampling_kernels.RATIO_BITS)
        exact = (value / exact_sigma - 1) ** 2 / 2
        assert abs(found - exact) < Fraction(1, 2**110) or (found > 112 and exact > 112)


@pytest.mark.parametrize(
    "threshold", [1, 77 << 120, (77 << 120) + (3 << 64) + 9, (1 << 128) - 1, 0x0123456789ABCDEF << 64]
)
def test_a_decision_compares_all_128_places(threshold):
    words = {threshold ^ (1 << place) for place in range(128)} | {0, threshold, threshold - 1, (1 << 128) - 1}
    for word in words:
        source = PrivacyRandom.scripted(word.to_bytes(16, "big") + PADDING)
        assert bernoulli(Fraction(threshold, 2**128), 1, source).item() == (word < threshold)


def test_one_byte_decides_when_it_can():
    first_bytes = np.arange(256, dtype=np.uint8).tobytes()
    assert bernoulli(77 / 256, 256, PrivacyRandom.scripted(first_bytes[:77] + PADDING))[:77].all()
    assert bernoulli(Fraction(77, 256), 178, PrivacyRandom.scripted(first_bytes[78:] + PADDING)).sum() == 0


def test_digits_with_equal_first_bytes_read_on_behind_the_block():
    high, low = sampling._digits(Fraction(3.0), sampling._laplace_digit_count(3.0))
    words = [(int(upper) << 64) + int(lower) for upper, lower in zip(high, low, strict=True)]
    firsts = b"".join(bytes([word >> 120]) for word in words)
    rest = 2**120 - 1
    for change, expected in ((-1, 2**high.size - 1), (0, 0), (1, 0)):
        ties = b"".join(max((word & rest) + change, 0).to_bytes(15, "big") for word in words if word & rest)
        assert geometric(3.0, 1, PrivacyRandom.scripted(firsts + ties + PADDING)).item() == expected


def test_bernoulli_has_the_probability_it_claims():
    for share, twin in ((0.5, 0.48), (1e-3, 3e-3), (0.97, 0.96)):
        claimed, other = cumulative([1 - share, share]), cumulative([1 - twin, twin])
        count = samples_to_separate(abs(share - twin))
        sample = bernoulli(share, count, PrivacyRandom.simulate(2)).astype(np.int64)
        assert follows(sample, claimed)
        assert not follows(sample, other)
    assert bernoulli(1.0, 100, PrivacyRandom.scripted(b"")).all()
    assert not bernoulli(0.0, 100_000, PrivacyRandom.simulate(1)).any()
    assert bernoulli(Fraction(1, 3), 5, PrivacyRandom.simulate(1)).dtype == np.bool_


def test_uniform_numbers_are_exactly_even():
    every_byte = np.arange(256, dtype=np.uint8).tobytes()
    draws = uniform_below(5, 160, PrivacyRandom.scripted(every_byte + PADDING))
    assert np.bincount(draws).tolist() == [32] * 5
    assert uniform_below(1, 3, PrivacyRandom.scripted(b"")).tolist() == [0, 0, 0]
    assert uniform_below(256, 256, PrivacyRandom.scripted(every_byte + PADDING)).tolist() == [*range(256)]


@pytest.mark.parametrize("bound", [2, 3, 256, 257, 1000, 2**40 + 1, 2**63])
def test_uniform_numbers_fill_their_range(bound):
    def even(k):
        return (np.asarray(k, dtype=float) + 1) / bound

    def lopsided(k):
        return even(k) ** 1.1

    grid = np.linspace(0, bound - 1, min(bound, 1000)).astype(np.uint64).astype(float)
    sample = uniform_below(bound, samples_to_separate(gap(even, lopsided, grid)), PrivacyRandom.simulate(9))
    assert sample.min() >= 0
    assert sample.max() < bound
    assert follows(sample, even)
    assert not follows(sample, lopsided)


def test_a_table_is_drawn_from_exactly():
    table = np.array([[0, 2**61, 3 * 2**61], [0, 2**63, 2**63]], dtype=np.uint64)
    for row, starts in enumerate(table.tolist()):
        for start in starts:
            for word in {start, max(start - 1, 0), 2**64 - 1}:
                source = PrivacyRandom.scripted(word.to_bytes(8, "big") + PADDING)
                expected = max(outcome for outcome in range(3) if starts[outcome] <= word)
                assert draw_from_table(table, [row], source).item() == expected


def test_a_table_has_the_distribution_of_its_gaps():
    weights = np.array([[0.25, 0.25, 0.125, 0.375], [0.25, 0.25, 0.25, 0.25]])
    table = np.zeros((2, 4), dtype=np.uint64)
    table[:, 1:] = (np.cumsum(weights, axis=1)[:, :-1] * 2.0**64).astype(np.uint64)
    claimed, twin = (cumulative(row) for row in weights)
    count = samples_to_separate(gap(claimed, twin, np.arange(4)))
    rows = np.repeat([[0], [1]], count, axis=1)
    sample = draw_from_table(table, rows, PrivacyRandom.simulate(1))
    assert follows(sample[0], claimed)
    assert follows(sample[1], twin)
    assert not follows(sample[0], twin)


@pytest.mark.parametrize(
    "starts", [np.array([[0, 5, 3]], dtype=np.uint64), np.array([[1, 2]], dtype=np.uint64)]
)
def test_a_table_that_falls_or_starts_late_is_refused(starts):
    with refuses("bad-table"):
        draw_from_table(starts, [0], PrivacyRandom.simulate(1))


def test_other_tables_and_rows_are_refused():
    table = np.array([[0, 2**63]], dtype=np.uint64)
    for foreign in (table[0], table.astype(np.int64), table.astype(float), np.zeros((0, 3), dtype=np.uint64)):
        with refuses("broken-rule", name="starts"):
            draw_from_table(foreign, [0], PrivacyRandom.simulate(1))
    for row in (-1, 1, 0.5):
        with refuses("off-grid", name="row_index"):
            draw_from_table(table, [row], PrivacyRandom.simulate(1))
    assert draw_from_table(table, np.zeros((0, 2), dtype=np.int64), PrivacyRandom.simulate(1)).shape == (0, 2)


@pytest.mark.few(1)
@pytest.mark.parametrize("add", [add_discrete_laplace, add_discrete_gaussian])
def test_noise_is_added_in_place_with_little_memory(add):
    target = np.arange(2_000_000, dtype=np.int64)
    add(np.zeros(1, dtype=np.int64), 3.0, PrivacyRandom.simulate(1))
    tracemalloc.start()
    add(target, 3.0, PrivacyRandom.simulate(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000
    noise = target - np.arange(2_000_000)
    assert noise.any()
    assert abs(noise).max() < 200


@pytest.mark.few(2)
@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_no_noise_is_used_twice(draw):
    noise = draw(2.0**40, 200_000, PrivacyRandom.simulate(1)).reshape(-1, 2)
    assert len(np.unique(noise, axis=0)) == len(noise)


@pytest.mark.few(14)
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_any_number_of_draws_can_be_had(draw, size):
    noise = draw(2.0**30, size, PrivacyRandom.simulate(1))
    assert noise.shape == (size,)
    assert noise.dtype == np.int64
    assert noise.all()


@pytest.mark.parametrize("scale", [0, -1.0, np.nan, np.inf, 2.0**56, "1", None, True])
def test_a_bad_scale_is_refused(scale):
    for draw in (geometric, discrete_laplace, discrete_gaussian):
        with refuses(ParameterError, name="sigma" if draw is discrete_gaussian else "scale"):
            draw(scale, 3, PrivacyRandom.simulate(1))


def test_the_largest_scale_does_not_overflow():
    target = np.full(10_000, 2**62 - 1)
    add_discrete_laplace(target, 2.0**55, PrivacyRandom.simulate(1))
    assert (target > 0).all()
    add_discrete_gaussian(np.negative(target, out=target), 2.0**55, PrivacyRandom.simulate(1))
    assert (target < 0).all()


def test_other_bad_arguments_are_refused():
    source = PrivacyRandom.simulate(1)
    for size in (-1, 2.5, None):
        with refuses(ParameterError, name="size"):
            discrete_laplace(1.0, size, source)
    for share in (-0.1, 1.1, np.nan, "1"):
        with refuses("broken-rule", name="probability"):
            bernoulli(share, 1, source)
    for bound in (0, -5, 2**63 + 1, 1.5):
        with refuses(ParameterError, name="bound"):
            uniform_below(bound, 1, source)
    read_only = np.zeros(3, dtype=np.int64)
    read_only.flags.writeable = False
    for target in (np.zeros(3), np.zeros(6, dtype=np.int64)[::2], read_only, [0, 0]):
        with refuses("bad-table", name="target"):
            add_discrete_gaussian(target, 1.0, source)
